// Where evidence can be seen: lit on the timeline, else its rows in their table.

import { useMemo } from "preact/hooks";
import { useAnswer } from "../data/store";
import type { Evidence, Finding, Spotlight } from "../data/types";
import { thousands, time } from "../format";
import { link } from "../router";

export interface Place {
  href: string;
  /** What one sees there. */
  what: string;
  /** The same, as a link at the end of a line. */
  short: string;
}

/** What is on the timeline, by its name. */
export type Spotlights = ReadonlyMap<string, Spotlight>;

/** Null until the run has said what is on the timeline: a link must not change under the pointer. */
export function useSpotlights(run: number): Spotlights | null {
  const { value } = useAnswer<Spotlight[]>(`runs/${run}/evidence`);
  return useMemo(() => value && new Map(value.map((it) => [it.id, it])), [value]);
}

/** Null where there is nothing to land on. */
export function placeOf(id: string, evidence: Evidence, lit: Spotlights): Place | null {
  const spot = lit.get(id);
  if (spot) {
    return {
      href: link("timeline", { host: null, device: null, steps: null, evidence: id }),
      what: "it on the timeline",
      short: inShort(spot),
    };
  }
  const { table, rows } = evidence;
  if (!table) return null;
  return {
    href: link("tables", { table, rows: rows.join(",") }),
    what: `the table ${table}`,
    short: table,
  };
}

function inShort({ n_events, lit_ps, step }: Spotlight): string {
  if (n_events > 0) return n_events === 1 ? "1 event" : `${thousands(n_events)} events`;
  return step === null ? time(lit_ps) : `${time(lit_ps)} of step ${step}`;
}

/** `finding` is the name of the finding: `0`, or `0.2` for a symptom. */
export function bestPlace(finding: string, list: Evidence[], lit: Spotlights): Place | null {
  const ids = list.map((_, at) => `${finding}.${at}`);
  // Events say more than a length of time, which says more than a row.
  const events = ids.findIndex((it) => (lit.get(it)?.n_events ?? 0) > 0);
  const spans = ids.findIndex((it) => lit.has(it));
  const rows = list.findIndex((it) => it.table !== null && it.rows.length > 0);
  const table = list.findIndex((it) => it.table !== null);
  const best = [events, spans, rows, table].find((it) => it >= 0);
  return best === undefined ? null : placeOf(ids[best]!, list[best]!, lit);
}

/** The evidence of a name, and the finding that it belongs to. */
export function evidenceOf(
  findings: Finding[],
  id: string,
): { finding: Finding; evidence: Evidence } | null {
  const path = id.split(".").map(Number);
  const at = path.pop() ?? -1;
  let finding = findings[path[0] ?? -1];
  if (path.length > 1) finding = finding?.symptoms?.[path[1]!];
  const evidence = finding?.evidence[at];
  return finding && evidence ? { finding, evidence } : null;
}

/** Rows that the address asks to be lit: `table=…&rows=1,2`. */
export function litRows(params: Record<string, string>, table: string): Set<number> {
  if (params["table"] !== table) return new Set();
  return new Set((params["rows"] ?? "").split(",").filter(Boolean).map(Number));
}
