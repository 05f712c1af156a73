// What a table does with its rows, apart from drawing them: keep, order, write out, cut names.

import {
  bytesColumn,
  numberColumn,
  percent,
  timeColumn,
  UNKNOWN,
  type ColumnText,
} from "../format";

export type ColumnKind = "text" | "time" | "count" | "share" | "bytes" | "number" | "bool";
export type Value = string | number | boolean | null;

export interface Sort {
  key: string;
  descending: boolean;
}

/** What the functions here need to know of a column. */
export interface RowColumn<T> {
  key: string;
  kind: ColumnKind;
  value: (row: T) => Value;
  /** Behind the unit: `/s` for bytes a second. */
  per?: string;
}

/** One lower-case text for each row, made once; typing only searches it. */
export function searchable<T>(rows: readonly T[], columns: readonly RowColumn<T>[]): string[] {
  const texts = columns.filter((it) => it.kind === "text");
  return rows.map((row) =>
    texts
      .map((it) => it.value(row) ?? "")
      .join("\n")
      .toLowerCase(),
  );
}

/** Rows that hold every word of the filter, without regard to case. */
export function kept<T>(rows: readonly T[], texts: () => string[], filter: string): T[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows.slice();
  const all = texts();
  return rows.filter((_, at) => words.every((word) => all[at]!.includes(word)));
}

const collator = new Intl.Collator("en", { numeric: true });

/** Sorts a copy. What is not known comes last, whichever way. */
export function sorted<T>(rows: readonly T[], by: RowColumn<T>, descending: boolean): T[] {
  const keyed = rows.map((row) => ({ row, value: by.value(row) }));
  const sign = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.value === null || b.value === null) {
      return a.value === b.value ? 0 : a.value === null ? 1 : -1;
    }
    return typeof a.value === "string"
      ? sign * collator.compare(a.value, String(b.value))
      : sign * (Number(a.value) - Number(b.value));
  });
  return keyed.map((it) => it.row);
}

/** In the address: `self_ps` upwards, `-self_ps` downwards. */
export const sortText = (sort: Sort): string => (sort.descending ? "-" : "") + sort.key;

export function parseSort(text: string | undefined): Sort | undefined {
  if (!text) return undefined;
  return text.startsWith("-")
    ? { key: text.slice(1), descending: true }
    : { key: text, descending: false };
}

export interface CellText {
  /** Beside the title; empty where the cells say it, or there is none. */
  unit: string;
  text: (value: Value) => string;
}

/** How a column's cells read: the unit is chosen once, by the largest of all rows. */
export function cellText<T>(column: RowColumn<T>, rows: readonly T[]): CellText {
  const known = (text: (value: number) => string) => (value: Value) =>
    value === null ? UNKNOWN : text(value as number);
  switch (column.kind) {
    case "text":
      return { unit: "", text: (value) => (value === null ? UNKNOWN : String(value)) };
    case "bool":
      return { unit: "", text: (value) => (value === null ? UNKNOWN : value ? "yes" : "no") };
    case "share":
      return { unit: "", text: known(smallest(percent)) };
    default: {
      const values = rows.map((row) => column.value(row) as number | null);
      const make = {
        time: timeColumn,
        bytes: bytesColumn,
        number: numberColumn,
        count: numberColumn,
      };
      const { unit, text } = make[column.kind](values);
      return { unit: unit + (column.per ?? ""), text: known(smallest(text)) };
    }
  }
}

/** What rounds to nothing is not nothing: `<0.01`. */
function smallest(text: ColumnText["text"]): ColumnText["text"] {
  return (value) => {
    const said = text(value);
    return value > 0 && !/[1-9]/.test(said) ? `<${said.replace(/0(?=\D*$)/, "1")}` : said;
  };
}

/** All digits, units in the names of the columns; what is not known stays empty. */
export function csv<T>(columns: readonly RowColumn<T>[], rows: readonly T[]): string {
  const lines = [columns.map((it) => field(csvName(it))).join(",")];
  for (const row of rows) lines.push(columns.map((it) => field(it.value(row))).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

function csvName<T>({ key, kind, per }: RowColumn<T>): string {
  const unit = kind === "time" ? "ps" : kind === "bytes" ? (per ? "bytes_per_s" : "bytes") : "";
  return unit === "" || key === unit || key.endsWith(`_${unit}`) ? key : `${key}_${unit}`;
}

function field(value: Value): string {
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * The scopes around a name, and the name: the last part of `a/b/c/MatMul` says most.
 * C++ names say most at their beginning, and are not parted.
 */
export function split(name: string): [head: string, tail: string] {
  if (/^void |[<>]|::/.test(name)) return [name, ""];
  const at = name.lastIndexOf("/", name.length - 2);
  return at <= 0 ? [name, ""] : [name.slice(0, at + 1), name.slice(at + 1)];
}
