// A table that filters as you type and sorts by header; times of a column share one unit.

import { useMemo, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { bytes, percent, thousands, time, timeColumn, UNKNOWN } from "../format";
import "./data-table.css";

export type ColumnKind = "text" | "time" | "count" | "share" | "bytes" | "number" | "bool";

export interface DataColumn<T> {
  /** Stable: stands in the address as the sort order. */
  key: string;
  title: string;
  /** Shown on hover: lifted from the code by `tables/NAME`. */
  doc?: string;
  kind: ColumnKind;
  value: (row: T) => string | number | boolean | null;
  /** In place of the formatted value. */
  cell?: (row: T) => ComponentChildren;
  /** Of a share: drawn as a bar inside the cell. */
  bar?: (row: T) => string | null;
  width?: number;
}

export interface DataTableProps<T> {
  /** For screen readers and for the file name of a copy. */
  label: string;
  columns: DataColumn<T>[];
  rows: T[];
  sort?: { key: string; descending: boolean };
  onSort?: (sort: { key: string; descending: boolean }) => void;
  filter?: string;
  onFilter?: (text: string) => void;
  /** Makes rows open on click and Enter. */
  onOpen?: (row: T) => void;
  /** Lit, and scrolled to. */
  marked?: (row: T) => boolean;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { columns, rows } = props;
  const [sort, setSort] = useState(props.sort ?? null);
  const [filter, setFilter] = useState(props.filter ?? "");
  const shown = useMemo(() => {
    const wanted = filter.toLowerCase();
    const texts = columns.filter((it) => it.kind === "text");
    const kept = wanted
      ? rows.filter((row) =>
          texts.some((it) =>
            String(it.value(row) ?? "")
              .toLowerCase()
              .includes(wanted),
          ),
        )
      : rows.slice();
    const by = sort && columns.find((it) => it.key === sort.key);
    if (by && sort) kept.sort((a, b) => compare(by.value(a), by.value(b), sort.descending));
    return kept;
  }, [rows, columns, sort, filter]);
  const units = useMemo(
    () =>
      new Map(
        columns
          .filter((it) => it.kind === "time")
          .map((it) => [it.key, timeColumn(rows.map((row) => it.value(row) as number | null))]),
      ),
    [rows, columns],
  );
  return (
    <div class="data-table">
      <input
        type="search"
        placeholder="Filter"
        aria-label={`Filter ${props.label}`}
        value={filter}
        onInput={(it) => {
          setFilter(it.currentTarget.value);
          props.onFilter?.(it.currentTarget.value);
        }}
      />
      <table aria-label={props.label}>
        <thead>
          <tr>
            {columns.map((it) => (
              <th
                key={it.key}
                class={it.kind === "text" ? "" : "number"}
                aria-sort={
                  sort?.key === it.key ? (sort.descending ? "descending" : "ascending") : "none"
                }
                title={it.doc}
              >
                <button
                  onClick={() => {
                    const descending = sort?.key === it.key ? !sort.descending : it.kind !== "text";
                    setSort({ key: it.key, descending });
                    props.onSort?.({ key: it.key, descending });
                  }}
                >
                  {it.title}
                  {units.has(it.key) && <span class="faint"> {units.get(it.key)!.unit}</span>}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.slice(0, 1000).map((row, at) => (
            <tr key={at} onClick={() => props.onOpen?.(row)}>
              {columns.map((it) => (
                <td key={it.key} class={it.kind === "text" ? "" : "number"}>
                  {it.cell ? it.cell(row) : formatted(it, row, units.get(it.key))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function formatted<T>(
  column: DataColumn<T>,
  row: T,
  unit: { text: (ps: number) => string } | undefined,
): string {
  const value = column.value(row);
  if (value === null) return UNKNOWN;
  switch (column.kind) {
    case "time":
      return unit ? unit.text(value as number) : time(value as number);
    case "count":
      return thousands(value as number);
    case "share":
      return percent(value as number);
    case "bytes":
      return bytes(value as number);
    case "bool":
      return value ? "yes" : "no";
    default:
      return String(value);
  }
}

/** What is not known comes last, whichever way. */
function compare(a: unknown, b: unknown, descending: boolean): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  const order = typeof a === "string" ? a.localeCompare(String(b)) : Number(a) - Number(b);
  return descending ? -order : order;
}
