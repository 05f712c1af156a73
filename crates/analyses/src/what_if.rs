//! Replays the steps with something taken away, to say what a fix would win.
//!
//! ```text
//! driving thread   input|python|call------|input|python|call------
//! device                        |=====|                 |=====|
//! without python   input|call------|input|call------     but never faster than the device,
//!                            |=====|           |=====|   nor than the pipeline makes batches
//! ```
//!
//! The unchanged step is replayed first; where that misses what was measured by more than a
//! tenth, nothing is predicted.

use std::fmt;

use hashbrown::{HashMap, HashSet};
use trace::{EventId, OpKind, StrId, TrackKind};

use crate::input_stage::pipeline::{Pipeline, Stage};
use crate::kernel_time::{KernelTime, op_of};
use crate::mean_step::Mean;
use crate::replay::{Change, PathPart, Replay};
use crate::span::{subtract, total, union};
use crate::step::{Counted, is_pipeline_thread};
use crate::step_time::CATEGORIES;
use crate::{Analysis, Tables, Worded};

/// What is changed in the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Altered {
    /// A category of the breakdown is gone.
    Without(&'static str),
    /// Nothing is copied to or from the device.
    WithoutTransfers,
    /// Handing work to the device takes no time, and it starts at once.
    WithoutLaunches,
    /// The host does not wait for the device.
    WithoutWaits,
    /// The kernels of an op take half of their time.
    FasterKernels(String),
    /// The input pipeline ends with a prefetch. So do all that follow, each of a stage's path.
    Prefetch,
    Parallel(String),
    WithoutPythonIn(String),
    WithoutStage(String),
    Cache(String),
    ShuffleBefore(String),
}

impl Altered {
    /// Whether the model of the input pipeline is asked, not the steps replayed.
    pub fn is_of_input(&self) -> bool {
        use Altered::*;
        match self {
            Without(_) | WithoutTransfers | WithoutLaunches | WithoutWaits => false,
            FasterKernels(_) => false,
            Prefetch | Parallel(_) | WithoutPythonIn(_) => true,
            WithoutStage(_) | Cache(_) | ShuffleBefore(_) => true,
        }
    }
}

impl fmt::Display for Altered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Altered::Without(category) => write!(out, "without {category}"),
            Altered::WithoutTransfers => out.write_str("without transfers"),
            Altered::WithoutLaunches => out.write_str("without launch overhead"),
            Altered::WithoutWaits => out.write_str("without waits for the device"),
            Altered::FasterKernels(op) => write!(out, "kernels of {op} × {FASTER}"),
            Altered::Prefetch => out.write_str("prefetch"),
            Altered::Parallel(stage) => write!(out, "parallel {stage}"),
            Altered::WithoutPythonIn(stage) => write!(out, "without python in {stage}"),
            Altered::WithoutStage(stage) => write!(out, "without {stage}"),
            Altered::Cache(stage) => write!(out, "cache {stage}"),
            Altered::ShuffleBefore(stage) => write!(out, "shuffle before {stage}"),
        }
    }
}

/// What bounds a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitedBy {
    /// Nothing that stands out.
    Rest,
    Cores,
    Input,
    /// A stage of the input pipeline, by its path.
    Stage(String),
    Category(&'static str),
}

impl LimitedBy {
    /// For scripts.
    pub fn name(&self) -> &str {
        match self {
            LimitedBy::Rest => "rest",
            LimitedBy::Cores => "cpu",
            LimitedBy::Input => "input",
            LimitedBy::Stage(path) => path,
            LimitedBy::Category(category) => category,
        }
    }
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LimitedBy::Rest => "the rest of the step",
            LimitedBy::Cores => "the cores",
            LimitedBy::Input => "the input pipeline",
            LimitedBy::Stage(path) => path,
            LimitedBy::Category(category) => category,
        })
    }
}

table! {
    /// What a step would take if something changed.
    ///
    /// Made by replaying measured steps: with a device as a graph of launches, queues and waits,
    /// else category by category. A change is only there if replaying the unchanged steps comes
    /// within a tenth of what was measured.
    pub struct WhatIf = "what_if" {
        /// The change: `without python` takes that category away, `without launch overhead` the
        /// calls that hand work to the device and the delay until it starts, `kernels of OP × 0.5`
        /// half of their time; `prefetch`, `parallel STAGE`, `without python in STAGE`, `without
        /// STAGE`, `cache STAGE` and `shuffle before STAGE` change the input pipeline, each with a prefetch at its end.
        change: Worded<Altered>,
        /// The mean step as measured.
        step_ps: i64,
        /// The mean step as replayed, nothing changed.
        replayed_ps: i64,
        /// The mean step after the change.
        new_step_ps: i64,
        /// At best: all that could not be known turned out well.
        best_ps: i64,
        /// At worst.
        worst_ps: i64,
        /// What bounds the step after the change: with a device, the category that takes most of
        /// what is left of the critical path.
        limited_by: Worded<LimitedBy>,
    }
}

/// Beyond this error of the unchanged replay nothing is predicted.
/// Source: choice, the report's contract: a model that misses today's step by more is not asked.
const TRUSTED: f64 = 0.10;
/// As many kernels are each made faster.
/// Source: choice, as many as a person reads.
const MOST_KERNELS: usize = 3;

/// What is left of the time of kernels that are made faster.
/// Source: choice, twice as fast.
const FASTER: f64 = 0.5;

impl Analysis for WhatIf {
    fn run(tables: &Tables) -> Vec<WhatIf> {
        let Some(mean) = Mean::of(tables) else { return Vec::new() };
        let replay = tables.model::<Replay>();
        let pipeline = tables.model::<Pipeline>();
        let mut rows = if replay.step_ps() > 0 {
            replayed(tables, &replay)
        } else {
            let mut rows = subtracted(&mean);
            if !mean.on_device {
                hold_to_pipeline(&mut rows, &pipeline);
            }
            rows
        };
        rows.extend(pipeline_changes(&pipeline));
        rows
    }
}

/// The steps as a graph, with something changed.
fn replayed(tables: &Tables, replay: &Replay) -> Vec<WhatIf> {
    let (step_ps, replayed_ps) = (replay.step_ps(), replay.replayed_ps());
    let row = |altered: Altered, change: &Change<'_>| {
        let (new_step_ps, path) = replay.path_after(change)?;
        let limited_by = largest_part(&path).into();
        let (best_ps, worst_ps) = (new_step_ps, new_step_ps);
        Some(WhatIf {
            change: altered.into(),
            step_ps,
            replayed_ps,
            new_step_ps,
            best_ps,
            worst_ps,
            limited_by,
        })
    };
    let mut rows = Vec::new();
    for (category, _) in CATEGORIES {
        let change = Change { without: &[category], ..Change::default() };
        rows.extend(row(Altered::Without(category), &change));
    }
    let transfers = Change { without: &["transfer_in", "transfer_out"], ..Change::default() };
    rows.extend(row(Altered::WithoutTransfers, &transfers));
    let launches = Change { launches_free: true, ..Change::default() };
    rows.extend(row(Altered::WithoutLaunches, &launches));
    let waits = Change { no_waits: true, ..Change::default() };
    rows.extend(row(Altered::WithoutWaits, &waits));
    // What changes nothing at all is not there to be taken away.
    rows.retain(|it| it.new_step_ps < it.step_ps);

    let trace = tables.trace();
    for op in slowest_ops(tables) {
        let is_of = |it: EventId| op_of(trace, it) == op;
        let of_op = replay.rows_where(is_of);
        let change = Change { rows: Some((&of_op, FASTER)), ..Change::default() };
        rows.extend(row(Altered::FasterKernels(op), &change));
    }
    rows
}

/// The ops whose kernels take most time.
fn slowest_ops(tables: &Tables) -> Vec<String> {
    let mut times: HashMap<String, i64> = HashMap::new();
    for row in tables.get::<KernelTime>().iter() {
        let time = times.entry_ref(row.op.as_deref().unwrap_or(&row.name)).or_default();
        *time = time.saturating_add(row.total_ps);
    }
    let mut ops: Vec<(i64, String)> = times.into_iter().map(|(op, time)| (time, op)).collect();
    ops.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    ops.into_iter().take(MOST_KERNELS).map(|it| it.1).collect()
}

/// What holds most of the step after a change.
fn largest_part(path: &[PathPart]) -> LimitedBy {
    let mut by_category = [0_i64; CATEGORIES.len()];
    for part in path {
        if let Some(at) = CATEGORIES.iter().position(|it| it.0 == part.category) {
            by_category[at] += part.ps;
        }
    }
    let largest = (0..CATEGORIES.len()).rev().max_by_key(|&it| by_category[it]);
    largest.map_or(LimitedBy::Rest, |it| LimitedBy::Category(CATEGORIES[it].0))
}

/// Without a device: categories are disjoint, and what is taken away is gone.
fn subtracted(mean: &Mean) -> Vec<WhatIf> {
    let (step_ps, replayed_ps) = (mean.dur_ps, mean.of.iter().sum::<i64>());
    if (replayed_ps - step_ps).abs() as f64 > TRUSTED * step_ps as f64 {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for ((category, _), taken) in CATEGORIES.into_iter().zip(mean.of) {
        if taken > 0 {
            rows.push(WhatIf {
                change: Altered::Without(category).into(),
                step_ps,
                replayed_ps,
                new_step_ps: step_ps - taken,
                best_ps: step_ps - taken,
                worst_ps: step_ps - taken,
                limited_by: LimitedBy::Rest.into(),
            });
        }
    }
    rows
}

/// A step cannot become shorter than the pipeline makes batches.
fn hold_to_pipeline(rows: &mut [WhatIf], pipeline: &Pipeline) {
    for row in rows.iter_mut().filter(|it| *it.change != Altered::Without("input")) {
        let taken = row.step_ps - row.new_step_ps;
        let faster = pipeline.with_rest(pipeline.rest_ps - taken).predict();
        if faster > row.new_step_ps && !pipeline.stages.is_empty() {
            row.new_step_ps = faster.min(row.step_ps);
            row.worst_ps = row.new_step_ps;
            row.limited_by = LimitedBy::Input.into();
        }
    }
}

/// Stages with less than one part in so many of the work are not changed.
/// Source: choice, a guess.
const HEAVY: i64 = 20;
/// How much background work slows computing, for the part of the cores it takes: at 1 as much as
/// if computing wanted all cores, as a pool does. Less where it is one thread; more where it also
/// loses its caches and waits to be woken.
/// Source: choice, a guess at both ends; the middle one is a pool that shares all cores.
const CONTENTION: [f64; 3] = [0.3, 1.0, 1.6];
/// Work shared by many threads is seldom shared evenly, and two cores may be one with two names.
/// Source: choice, a guess.
const UNEVEN: f64 = 0.4;

/// And its calls cost less without a profiler, and less again on a thread of a pool.
/// Source: choice, a window adds 9 to 23% to a step by `bench/capture/overhead`; widened from 0.9
/// after a workload of `bench/diagnosis` gained more.
const EVEN: f64 = 0.8;

/// What each change of the input pipeline would give, where the model explains today's step.
fn pipeline_changes(pipeline: &Pipeline) -> Vec<WhatIf> {
    let replayed_ps = pipeline.predict();
    let error = (replayed_ps - pipeline.step_ps).abs() as f64;
    if pipeline.stages.is_empty() || error > TRUSTED * pipeline.step_ps as f64 {
        return Vec::new();
    }
    let row = |change: Altered, new: &Pipeline| {
        let new = new.with_prefetch();
        let [mut best_ps, new_step_ps, mut worst_ps] =
            CONTENTION.map(|it| new.predict_from(pipeline, it).min(pipeline.step_ps));
        if best_ps > worst_ps {
            (best_ps, worst_ps) = (worst_ps, best_ps);
        }
        let limited_by = new.limited_by();
        if limited_by != LimitedBy::Rest {
            worst_ps = (worst_ps as f64 * (1.0 + UNEVEN)) as i64;
            best_ps = (best_ps as f64 * EVEN) as i64;
        }
        let worst_ps = worst_ps.min(pipeline.step_ps);
        let step_ps = pipeline.step_ps;
        let (change, limited_by) = (change.into(), limited_by.into());
        WhatIf { change, step_ps, replayed_ps, new_step_ps, best_ps, worst_ps, limited_by }
    };
    let mut rows = vec![row(Altered::Prefetch, pipeline)];
    let all: i64 = pipeline.stages.iter().map(|it| it.work_ps).sum();
    let heavy = |it: &(usize, &Stage)| it.1.work_ps * HEAVY > all;
    for (at, stage) in pipeline.stages.iter().enumerate().filter(heavy) {
        let path = || stage.path.clone();
        if let Some(cores) = pipeline.cores {
            rows.push(row(Altered::Parallel(path()), &pipeline.with_parallel(at, cores)));
        }
        if stage.in_python_ps() > 0 {
            rows.push(row(Altered::WithoutPythonIn(path()), &pipeline.without_python(at)));
        }
        rows.push(row(Altered::WithoutStage(path()), &pipeline.without(at)));
        rows.push(row(Altered::Cache(path()), &pipeline.with_cache_after(at)));
        let shuffle = stage.parent.map(|it| &pipeline.stages[it]);
        if let Some(used) = shuffle
            .filter(|it| it.plain_kind().starts_with("Shuffle") && it.calls < stage.calls)
            .map(|it| it.calls as f64 / stage.calls.max(1) as f64)
        {
            rows.push(row(Altered::ShuffleBefore(path()), &pipeline.with_part_of(at, used)));
        }
    }
    rows
}

/// How some ops fill a mean step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpsInStep {
    /// Time in which they compute and no other op does: what goes if they go.
    pub alone_ps: i64,
    /// How often they run.
    pub runs: f64,
}

/// Of ops of these names; `None` where the trace has no such ops or no steps.
pub fn ops_in_step(tables: &Tables, names: &HashSet<StrId>) -> Option<OpsInStep> {
    let trace = tables.trace();
    let counted = Counted::of(tables)?;
    let (from, to) = counted.window;
    let on_device =
        trace.tracks_of(TrackKind::Stream).any(|it| !trace.tracks[it.row()].events.is_empty());
    let (kind, tracks) = match on_device {
        true => (OpKind::Kernel, TrackKind::Stream),
        false => (OpKind::Op, TrackKind::Thread),
    };
    let (mut these, mut others) = (Vec::new(), Vec::new());
    for track in trace.tracks_of(tracks) {
        if is_pipeline_thread(trace.track_name(track)) {
            continue;
        }
        for row in trace.tracks[track.row()].rows() {
            let start = trace.events.start[row].0;
            if trace.events.kind[row] != kind || start < from || start >= to {
                continue;
            }
            let detail = &trace.details[trace.events.detail[row].row()];
            let name = match on_device {
                true => detail.op.or(detail.hlo_op).unwrap_or(trace.events.name[row]),
                false => trace.events.name[row],
            };
            let span = (start, trace.events.end(EventId(row as u32)).0);
            if names.contains(&name) { these.push(span) } else { others.push(span) }
        }
    }
    if these.is_empty() {
        return None;
    }
    let runs = these.len() as f64 / counted.n.max(1) as f64;
    let alone = total(&subtract(&union(these), &union(others)));
    Some(OpsInStep { alone_ps: alone / counted.n.max(1), runs })
}
