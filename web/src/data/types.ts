// The shapes of docs/api.md.

import type { Tables } from "./tables";

export type Cell = null | number | string | boolean;

export interface Column {
  name: string;
  kind: "int" | "float" | "text" | "bool";
  doc: string;
}

export interface TableSchema {
  name: string;
  doc: string;
  columns: Column[];
}

export interface TableData extends TableSchema {
  total: number;
  rows: Cell[][];
}

/** A table whose rows are known by its name. */
export interface TableOf<Name extends keyof Tables> extends TableData {
  name: Name;
}

export interface RunEntry {
  id: number;
  name: string;
  path: string;
  state: RunState;
}

export type RunState = "unopened" | "opening" | "ready" | "failed";

export interface RunStatus {
  state: RunState;
  phase: string;
  bytes: number;
  total_bytes: number;
  seconds: number;
  error: string | null;
}

export type Category =
  | "compute"
  | "collective"
  | "transfer_in"
  | "transfer_out"
  | "input"
  | "python"
  | "compile"
  | "runtime"
  | "output"
  | "idle";

/** In the order of the design. */
export const CATEGORIES: Category[] = [
  "compute",
  "collective",
  "transfer_in",
  "transfer_out",
  "input",
  "python",
  "compile",
  "runtime",
  "output",
  "idle",
];

export interface Evidence {
  text: string;
  table: string | null;
  rows: number[];
  events: number[];
}

/** Evidence that is on the timeline: what to look at, and how much of it is lit. */
export interface Spotlight {
  /** `0.1` is the second evidence of the first finding; `0.2.1` is of its third symptom. */
  id: string;
  from: number;
  to: number;
  step: number | null;
  n_events: number;
  /** Time that is lit where no event stands for it. */
  lit_ps: number;
}

export interface LitEvidence extends Spotlight {
  /** `event, track, lane, start_ps, dur_ps` */
  events: [number, number, number, number, number][];
  spans: [from: number, to: number][];
  /** Events beyond those. */
  left_out: number;
}

export interface Fix {
  change: string;
  text: string;
  edit: string | null;
  where: { file: string; line: number } | null;
  gain: string | null;
  speedup_low: number | null;
  speedup_high: number | null;
  step_after_ms: { low: number; likely: number; high: number } | null;
  /** The row of the table `what_if` that the gain rests on, by its `change`. */
  what_if: string | null;
  then_limited_by: string | null;
  why: string | null;
}

export interface Finding {
  rule: string;
  severity: "low" | "medium" | "high";
  title: string;
  takes_ms_per_step: number;
  cost_ms_per_step: number;
  /** The figures in words, as the terminal prints them. */
  gain: string;
  speedup_if_fixed: number | null;
  speedup_low: number | null;
  speedup_high: number | null;
  confidence: number;
  evidence: Evidence[];
  fix: Fix[];
  symptoms?: Finding[];
}

export interface Report {
  schema: number;
  run: {
    path: string;
    name: string;
    frameworks: string[];
    hosts: string[];
    /** What was profiled, in words. */
    facts: string[];
    devices: { name: string; kind: string; host: string }[];
    window_ms: number;
    events: number;
  };
  headline: string;
  culprit: { name: string; share: number } | null;
  steps: {
    count: number;
    found_by: string;
    confidence: number;
    marker?: string;
    warmup_skipped?: number;
    partial?: number;
    mean_ms?: number;
    median_ms?: number;
    p95_ms?: number;
    stdev_ms?: number | null;
  };
  breakdown: { category: Category; ms_per_step: number; share: number }[];
  breakdown_unknown: { category: Category; why: string }[];
  top_ops: {
    name: string;
    type: string | null;
    side: string;
    count: number;
    self_ms: number;
    share: number;
  }[];
  findings: Finding[];
  not_checked: { rule: string; why: string }[];
  notes: { kind: string; count: number; first: string }[];
}

export interface SqlResult {
  columns: string[];
  rows: Cell[][];
  truncated: boolean;
}

export interface Track {
  id: number;
  parent: number | null;
  kind: string;
  name: string;
  n_events: number;
  lanes: number;
  first_ps: number | null;
  last_ps: number | null;
  driving: boolean;
  counter?: { n: number; min: number; max: number };
}

export interface TimelineStep {
  /** The host's track. */
  host: number;
  step: number;
  start_ps: number;
  dur_ps: number;
  counts: boolean;
}

export interface Timeline {
  start_ps: number;
  end_ps: number;
  cells: number;
  kinds: { name: string; category: Category | null }[];
  tracks: Track[];
  steps: TimelineStep[];
  typical_step: number | null;
}

export interface EventRef {
  event: number;
  name: string;
  start_ps: number;
  dur_ps: number;
}

export interface EventLink extends EventRef {
  kind: string;
  track: number;
  lane: number;
}

export interface EventDetails {
  event: number;
  name: string;
  kind: string;
  category: Category | null;
  track: number;
  lane: number;
  start_ps: number;
  dur_ps: number;
  self_ps: number;
  parent: number | null;
  step: number | null;
  op: string | null;
  hlo_op: string | null;
  hlo_module: string | null;
  hlo: string | null;
  source: string | null;
  args: [string, string | number][];
  ancestors: EventRef[];
  causes: EventLink[];
  effects: EventLink[];
  same_name: {
    count: number;
    total_ps: number;
    min_ps: number;
    median_ps: number;
    max_ps: number;
    per_step: { step: number; count: number; total_ps: number }[];
    histogram: { edges_ps: number[]; counts: number[] };
    sampled?: boolean;
  };
}

export interface SearchResult {
  total: number;
  names: { name: string; count: number; total_ps: number }[];
  hits: { event: number; track: number; lane: number; start_ps: number; dur_ps: number }[];
}

export interface RangeResult {
  count: number;
  rows: {
    name: string;
    kind: string;
    category: Category | null;
    count: number;
    total_ps: number;
    self_ps: number;
  }[];
}
