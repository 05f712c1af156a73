// What a query's result can be drawn as.

import type { Cell, SqlResult } from "../data/types";
import { kindByName } from "./table-columns";
import type { ColumnKind } from "./table-rows";

export interface ResultColumn {
  /** Unlike the name, no two are the same. */
  key: string;
  name: string;
  kind: ColumnKind;
  at: number;
}

export function resultColumns(result: SqlResult): ResultColumn[] {
  const seen = new Map<string, number>();
  return result.columns.map((name, at) => {
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    const cells = result.rows.map((row) => row[at] ?? null).filter((it) => it !== null);
    const sample = cells.find((it) => typeof it === "string") ?? cells[0] ?? null;
    return {
      key: before === 0 ? name : `${name}_${before + 1}`,
      name,
      kind: kindByName(name, sample),
      at,
    };
  });
}

export interface ResultShape {
  /** Bars for names, a line where the first column grows. */
  as: "bars" | "line";
  x: ResultColumn;
  /** All of one kind, so that they share an axis. */
  ys: ResultColumn[];
}

/** Numbers that name things are not drawn. */
const NAMES = /^(id|event|track|parent|line|pid|number|from_event|to_event|name_id)$/;
const MOST = 8;

export function shapeOf(result: SqlResult, columns: ResultColumn[]): ResultShape | null {
  const [x, ...others] = columns;
  if (!x || result.rows.length < 2) return null;
  const figures = others.filter(
    (it) => it.kind !== "text" && it.kind !== "bool" && !NAMES.test(it.name),
  );
  const kind = figures[0]?.kind;
  if (kind === undefined) return null;
  const ys = figures.filter((it) => it.kind === kind).slice(0, MOST);
  if (x.kind === "text" || x.kind === "bool") return { as: "bars", x, ys };
  const along = result.rows.map((row) => row[x.at] ?? null);
  const grows = along.every((it, at) => it !== null && (at === 0 || it > along[at - 1]!));
  if (grows && along.length > 2) return { as: "line", x, ys };
  return along.length <= 50 ? { as: "bars", x, ys } : null;
}

export const cellOf = (row: Cell[], column: ResultColumn): Cell => row[column.at] ?? null;

/** Those with a category in their name have its colour. */
const OTHERS = ["accent", "input", "collective", "python", "compile", "output", "transfer_in"];

export function colourOf(column: ResultColumn, at: number): string {
  const category =
    /^(compute|collective|transfer_in|transfer_out|input|python|compile|runtime|output|idle)(_ps|_share)?$/.exec(
      column.name,
    );
  return category?.[1] ?? OTHERS[at % OTHERS.length]!;
}
