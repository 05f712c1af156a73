// Where evidence can be seen: its events on the timeline, its rows in the view of their table.

import type { Evidence } from "../data/types";
import { link, showEvents } from "../router";

/** The view that shows a table; others are shown by a query. */
const VIEW_OF: Record<string, string> = {
  op_time: "ops",
  scope_time: "ops",
  kernel_time: "kernels",
  copy: "kernels",
  device_use: "kernels",
  input_stage: "input",
  what_if: "input",
  memory: "memory",
  memory_peak: "memory",
  program_memory: "memory",
  hardware: "hardware",
  run_step: "hardware",
  compile: "compile",
  step: "overview",
  step_time: "overview",
  step_spread: "overview",
  step_outlier: "overview",
  run_info: "overview",
};

export interface Place {
  href: string;
  /** What one sees there. */
  what: string;
  /** The same, as a link at the end of a line. */
  short: string;
}

/** When the step of a row of a table about steps was; null of other tables. */
export type StepWindow = (table: string, row: number) => { from: number; to: number } | null;

/** Null where there is nothing to land on. */
export function placeOf(evidence: Evidence, stepOf: StepWindow = () => null): Place | null {
  const { events, table, rows } = evidence;
  const step = table && rows.length > 0 ? stepOf(table, rows[0]!) : null;
  if (events.length > 0) {
    return {
      href: showEvents(events, step ?? undefined),
      what: "the events on the timeline",
      short: events.length === 1 ? "1 event" : `${events.length} events`,
    };
  }
  if (!table) return null;
  if (step) {
    return {
      href: link("timeline", step),
      what: "the step on the timeline",
      short: "a step of it",
    };
  }
  const view = VIEW_OF[table];
  const lit = rows.join(",");
  const href = view
    ? link(view, { table, rows: lit })
    : link("query", { sql: `select * from ${table}`, rows: lit });
  return { href, what: `the table ${table}`, short: table };
}

/** What shows most: events before rows, rows before a whole table. */
export function bestPlace(list: Evidence[], stepOf?: StepWindow): Place | null {
  const best =
    list.find((it) => it.events.length > 0) ??
    list.find((it) => it.table && it.rows.length > 0) ??
    list.find((it) => it.table);
  return best ? placeOf(best, stepOf) : null;
}

/** Rows that the address asks to be lit: `table=…&rows=1,2`. */
export function litRows(params: Record<string, string>, table: string): Set<number> {
  if (params["table"] !== table) return new Set();
  return new Set((params["rows"] ?? "").split(",").filter(Boolean).map(Number));
}
