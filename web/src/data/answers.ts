// The report, and what the API answers (docs/api.md). Made from the code by `UPDATE=1 cargo test`.

/** What stands in a cell of a table; null is not known. */
export type Cell = null | number | string | boolean;

/** One of the ten categories of a step. */
export type Category =
  | "input"
  | "transfer_in"
  | "compile"
  | "python"
  | "runtime"
  | "compute"
  | "collective"
  | "transfer_out"
  | "output"
  | "idle";

/** How much a finding matters. */
export type Severity = "low" | "medium" | "high";

/** The verdict on a run. */
export interface Report {
  schema: number;
  run: Run;
  /** The first sentence: where the time goes, and why. */
  headline: string;
  /** What holds the largest part of the largest category, where it can be told. */
  culprit: Culprit | null;
  steps: Steps;
  /** Categories of the mean step. */
  breakdown: Share[];
  /** Categories that this profile cannot tell. */
  breakdown_unknown: UnknownCategory[];
  /** The ops with the largest self time, of the devices where there are any. */
  top_ops: TopOp[];
  /** The most costly first. */
  findings: Finding[];
  /** The order of edits worth making. */
  plan: PlanStep[];
  /** What no advised edit can pass. */
  floor_ms: number | null;
  not_checked: NotChecked[];
  beside: Beside;
  notes: Note[];
}

/** What was profiled. */
export interface Run {
  path: string;
  name: string;
  frameworks: string[];
  hosts: string[];
  /** What was profiled, in words. */
  facts: string[];
  /** What of a run there is: a timeline, steps, samples and so on. */
  has: string[];
  /** Those on which anything was seen to run. */
  devices: Device[];
  window_ms: number;
  events: number;
  /** Points of the training log. */
  scalars: number;
}

export interface Device {
  name: string;
  kind: string;
  host: string;
}

/** An op, stage or call to blame for a category's time. */
export interface Culprit {
  name: string;
  /** Of all that could be blamed. */
  share: number;
}

/** The steps. Without any, `count` is 0, `found_by` is `none`, and nothing else is known. */
export interface Steps {
  /** Steps that statistics rest on, on the host that has most. */
  count: number;
  /** `markers`, `calls`, `period` or `none`. */
  found_by: string;
  marker?: string;
  confidence: number;
  warmup_skipped?: number;
  /** Cut off by the end of the capture. */
  partial?: number;
  mean_ms?: number;
  median_ms?: number;
  p95_ms?: number;
  /** Of a sample; null for a single step. */
  stdev_ms?: number | null;
  /** How fast the job itself says that it trains, where its log tells. */
  pace_ms?: number | null;
}

/** A category's part of the step. */
export interface Share {
  category: Category;
  ms_per_step: number;
  share: number;
}

export interface UnknownCategory {
  category: Category;
  why: string;
}

/** An op that stands out. */
export interface TopOp {
  name: string;
  type: string | null;
  side: string;
  count: number;
  self_ms: number;
  /** Of all ops' self time on its side. */
  share: number;
}

/** A problem: what it costs, how it shows, what to change, what that gives. */
export interface Finding {
  rule: string;
  severity: Severity;
  /** One sentence, with the user's own names. */
  title: string;
  /** Time of a mean step that the problem takes. */
  takes_ms_per_step: number;
  /** What the best edit saves; where no edit's gain can be told, what the problem takes. */
  cost_ms_per_step: number;
  /** The figures in words, as the terminal prints them. */
  gain: string;
  speedup_if_fixed: number | null;
  speedup_low: number | null;
  speedup_high: number | null;
  step_after_ms: StepAfter | null;
  /** How sure, 0 to 1. */
  confidence: number;
  evidence: Evidence[];
  /** The most worthwhile first. */
  fix: Fix[];
  /** Findings that follow from this one, which have none themselves. */
  symptoms?: Finding[];
}

/** Something seen that a person can open. */
export interface Evidence {
  text: string;
  table: string | null;
  /** Of that table. */
  rows: number[];
  events: number[];
}

/** An edit, and what it gives. */
export interface Fix {
  /** What is changed, by a stable name. */
  change: string;
  text: string;
  /** The code to write. */
  edit: string | null;
  /** The same as a diff of the user's file, where that is certain. */
  diff: string | null;
  where: Place | null;
  /** The figures in words. */
  gain: string | null;
  speedup_if_fixed: number | null;
  speedup_low: number | null;
  speedup_high: number | null;
  /** The row of the table `what_if` that the gain rests on, by its `change`. */
  what_if: string | null;
  step_after_ms: StepAfter | null;
  /** What limits the step after that. */
  then_limited_by: string | null;
  /** Why no gain can be told. */
  why: string | null;
}

/** A line of the user's code. */
export interface Place {
  file: string;
  line: number;
}

/** A predicted step time, in milliseconds. */
export interface StepAfter {
  low: number;
  likely: number;
  high: number;
}

/** One edit of the plan. Speed-ups count from today's step. */
export interface PlanStep {
  rule: string;
  /** Which of the finding's. */
  fix: number;
  step_after_ms: number;
  /** In milliseconds, with this edit and all before it. */
  step_after: StepAfter;
  speedup_low: number;
  speedup_if_fixed: number;
  speedup_high: number;
}

/** A rule that could not be asked. */
export interface NotChecked {
  rule: string;
  why: string;
}

/** What was recorded beside the profile. */
export interface Beside {
  /** Steps of the whole run, as its processes timed them. */
  steps: RunSteps | null;
  /** Where Python was, most often first. */
  python_lines: CodeLine[];
  /** Empty where there is a profile. */
  machine: MachineUse[];
}

export interface RunSteps {
  /** What counted as a step. */
  name: string | null;
  /** Of all processes. */
  count: number;
  processes: number;
  /** Those that the median and p95 are of. */
  steady: number;
  median_ms: number;
  p95_ms: number;
}

/** A line of Python, of those that train or make input. */
export interface CodeLine {
  activity: string;
  function: string;
  file: string;
  line: number | null;
  /** The library's function that it was in, where it was in one. */
  inside: string | null;
  samples: number;
  /** Of the samples of its activity. */
  share: number;
}

/** What the run took of a host, where that was sampled. */
export interface MachineUse {
  host: string;
  /** Cores that its processes kept busy, on average. */
  cores_used: number | null;
  /** The most that its processes held. */
  memory_peak_bytes: number | null;
  gpus: GpuUse[];
}

export interface GpuUse {
  name: string;
  /** Share of the time that it was busy. */
  busy_share: number;
}

/** Something skipped or guessed while reading. */
export interface Note {
  kind: string;
  count: number;
  first: string;
}

/** What differs between two runs, `a` and `b`. A difference is that of b less that of a. */
export interface Comparison {
  step: StepDifference[];
  /** Steps that are slow, of the first host. */
  slow_steps: SlowSteps;
  /** Categories of the mean step that take any time in one of the runs. */
  by_category: CategoryDifference[];
  /** The largest differences first; empty where one run has no steps. */
  by_op: OpDifference[];
  /** What is known of both or one, and not the same. */
  facts: FactDifference[];
  findings: FindingsDifference;
}

/** One measure of the steps. */
export interface StepDifference {
  measure: Measure;
  a_ms: number | null;
  b_ms: number | null;
  delta_ms: number | null;
  /** Of a's. */
  delta_share: number | null;
}

/**
 * What is measured of steps: `typical` is an ordinary step of the first host, `spread` how far
 * steps are from it.
 */
export type Measure = "median" | "mean" | "p95" | "stdev" | "typical" | "spread";

export interface SlowSteps {
  a: number | null;
  b: number | null;
}

export interface CategoryDifference {
  category: Category;
  a_ms: number | null;
  b_ms: number | null;
  /** Absent where one of the runs cannot tell. */
  delta_ms: number | null;
}

/** Self time of ops of one name in a step: over the whole capture, divided by its steps. */
export interface OpDifference {
  side: string;
  /** Without what the framework puts in front of it. */
  name: string;
  type: string | null;
  /** Absent where the run has no such op. */
  a_ms: number | null;
  b_ms: number | null;
  /** An op that a run does not have counts as nothing there. */
  delta_ms: number;
}

export interface FactDifference {
  /** What it is a fact of: `run`, or a host, device or process. */
  of: string;
  key: string;
  a: string | null;
  b: string | null;
}

/** Rules that found something. */
export interface FindingsDifference {
  /** In a alone. */
  fixed: string[];
  /** In b alone. */
  new: string[];
  /** In both. */
  kept: string[];
}

/** Whether a run is open. */
export type RunState = "unopened" | "opening" | "ready" | "failed";

/** What went wrong. */
export interface ErrorBody {
  error: string;
  /** What to try. */
  hint: string | null;
}

/** A run that can be looked at. */
export interface RunEntry {
  id: number;
  name: string;
  path: string;
  state: RunState;
}

/** How far a run is. */
export interface RunStatus {
  state: RunState;
  /** What is done now, in words. */
  phase: string;
  bytes: number;
  total_bytes: number;
  seconds: number;
  error: string | null;
}

/** What a table is. */
export interface TableHead {
  name: string;
  doc: string;
  columns: Column[];
}

/** A column: its name carries the unit, its doc says what it means. */
export interface Column {
  name: string;
  kind: ColumnKind;
  doc: string;
}

export type ColumnKind = "int" | "float" | "text" | "bool";

/** A table that queries can name. */
export interface TableSchema extends TableHead {
  /** Of a table that is called as a function: what it is given. */
  parameter: string | null;
}

/** Rows of a table. */
export interface TableData extends TableHead {
  /** How many rows there are. */
  total: number;
  rows: Cell[][];
}

/** A rule, and what it looks for. */
export interface RuleDoc {
  name: string;
  doc: string;
}

/** What a query returned. */
export interface SqlResult {
  columns: string[];
  rows: Cell[][];
  /** There is more than the limit lets through. */
  truncated: boolean;
}

/** Lowest, highest and mean value in each of some hundred parts of the counter's time. */
export interface CounterTrack {
  id: number;
  name: string;
  host: string | null;
  /** Samples. */
  n: number;
  first_ps: number;
  last_ps: number;
  time_ps: number[];
  low: number[];
  high: number[];
  mean: number[];
}

/** The mean of the steps that count, of those that were asked for. */
export interface MeanOfSteps {
  /** A step counts once for each device. */
  n_steps: number;
  /** Null without any step. */
  mean_ms: number | null;
  breakdown: Share[];
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

/** The same, with what is lit. */
export interface LitEvidence extends Spotlight {
  /** `event, track, lane, start_ps, dur_ps` */
  events: [number, number, number, number, number][];
  /** From and to. */
  spans: [number, number][];
  /** Events beyond those. */
  left_out: number;
}

/** What is on the timeline. */
export interface Timeline {
  start_ps: number;
  end_ps: number;
  /** Of a tile. */
  cells: number;
  /** By the number that a span's kind has. */
  kinds: Kind[];
  /** Parents first. */
  tracks: Track[];
  /** Host by host, by time. */
  steps: TimelineStep[];
  /** Which of `steps` took the median time, of those that count where any do. */
  typical_step: number | null;
}

export interface Kind {
  name: string;
  category: Category | null;
}

export interface Track {
  id: number;
  parent: number | null;
  kind: string;
  name: string;
  n_events: number;
  /** Rows of spans. */
  lanes: number;
  /** When its first event or sample is. */
  first_ps: number | null;
  /** When its last one ends. */
  last_ps: number | null;
  /** Whether it is a thread that drives the steps. */
  driving: boolean;
  /** Of a track of values. */
  counter?: CounterRange;
}

/** How many samples a counter has, and between which values they are. */
export interface CounterRange {
  n: number;
  min: number;
  max: number;
}

export interface TimelineStep {
  /** The host's track. */
  host: number;
  step: number;
  start_ps: number;
  dur_ps: number;
  /** Whether statistics rest on it. */
  counts: boolean;
}

/** Samples of a counter in a tile. */
export interface CounterTile {
  track: number;
  /** `cell, min, max, last`: only cells with a sample. */
  cells: [number, number, number, number][];
}

/** Events whose name contains a text. */
export interface SearchResult {
  /** Events found, whether they are listed or not. */
  total: number;
  /** Those of the most time first. */
  names: NameHits[];
  /** By start. */
  hits: Hit[];
}

export interface NameHits {
  name: string;
  count: number;
  total_ps: number;
}

/** An event and where it is. */
export interface Hit {
  event: number;
  track: number;
  lane: number;
  start_ps: number;
  dur_ps: number;
}

/** What is inside a range. */
export interface RangeResult {
  /** Events, of all rows. */
  count: number;
  /** The most self time first. */
  rows: RangeRow[];
}

export interface RangeRow {
  name: string;
  kind: string;
  category: Category | null;
  count: number;
  /** The parts inside the range. */
  total_ps: number;
  self_ps: number;
}

/** All that is known of an event. */
export interface EventDetails extends Hit {
  name: string;
  kind: string;
  category: Category | null;
  /** Without the events directly inside. */
  self_ps: number;
  parent: number | null;
  /** The step of its host that it begins in. */
  step: number | null;
  /** The framework's op behind it. */
  op: string | null;
  hlo_op: string | null;
  hlo_module: string | null;
  /** The instruction that ran, in XLA's words, where the profile holds its program. */
  hlo: string | null;
  /** File and line. */
  source: string | null;
  args: [string, ArgValue][];
  /** Innermost first. */
  ancestors: EventRef[];
  causes: EventLink[];
  effects: EventLink[];
  same_name: SameName;
}

/** What an argument holds. */
export type ArgValue = number | string;

export interface EventRef {
  event: number;
  name: string;
  start_ps: number;
  dur_ps: number;
}

/** An event at the other end of an edge. */
export interface EventLink extends Hit {
  name: string;
  /** Of the edge: `launch`, `function` or `flow`. */
  kind: string;
}

/** The events of one name on tracks of one kind. */
export interface SameName {
  count: number;
  total_ps: number;
  min_ps: number;
  median_ps: number;
  max_ps: number;
  /** Steps that have any, by their number; steps of several hosts together. */
  per_step: OfStep[];
  histogram: Histogram;
  /** There are more, and all of this rests on the first million. */
  sampled: boolean;
}

export interface OfStep {
  step: number;
  count: number;
  total_ps: number;
}

/** How many durations are between one edge and the next; the last edge is inside too. */
export interface Histogram {
  /** One more than counts. */
  edges_ps: number[];
  counts: number[];
}
