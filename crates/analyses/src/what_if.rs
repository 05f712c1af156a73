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

use hashbrown::HashSet;
use trace::{EventId, OpKind, StrId, TrackKind};

use crate::input_stage::pipeline::{Pipeline, Stage};
use crate::span::{subtract, total, union};
use crate::step::{Step, is_pipeline_thread};
use crate::step_time::{CATEGORIES, StepTime};
use crate::{Analysis, Tables};

table! {
    /// What a step would take if something changed.
    ///
    /// Made by replaying the measured steps. A change is only there if replaying the unchanged
    /// steps comes within a tenth of what was measured.
    pub struct WhatIf = "what_if" {
        /// The change: `without python` takes that category away; `prefetch`, `parallel STAGE`,
        /// `without python in STAGE`, `without STAGE` and `cache STAGE` change the input pipeline,
        /// each with a prefetch at its end.
        change: String,
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
        /// What bounds the step after the change.
        limited_by: String,
    }
}

/// Beyond this error of the unchanged replay nothing is predicted.
const TRUSTED: f64 = 0.10;

impl Analysis for WhatIf {
    fn run(tables: &Tables) -> Vec<WhatIf> {
        let steps = tables.get::<StepTime>();
        let steps: Vec<&StepTime> = steps.iter().filter(|it| it.counts).collect();
        let Ok(n) = i128::try_from(steps.len()) else { return Vec::new() };
        if n == 0 {
            return Vec::new();
        }
        let mean = |of: &dyn Fn(&StepTime) -> i64| {
            (steps.iter().map(|it| i128::from(of(it))).sum::<i128>() / n) as i64
        };
        let step_ps = mean(&|it| it.dur_ps);
        let replayed_ps = mean(&|it| CATEGORIES.iter().map(|of| of.1(it)).sum());
        if (replayed_ps - step_ps).abs() as f64 > TRUSTED * step_ps as f64 {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for (category, of) in CATEGORIES {
            let taken = mean(&of);
            if taken > 0 {
                rows.push(WhatIf {
                    change: format!("without {category}"),
                    step_ps,
                    replayed_ps,
                    new_step_ps: step_ps - taken,
                    best_ps: step_ps - taken,
                    worst_ps: step_ps - taken,
                    limited_by: "the rest of the step".to_owned(),
                });
            }
        }
        let pipeline = tables.model::<Pipeline>();
        if !steps.iter().any(|it| it.device != "cpu") {
            hold_to_pipeline(&mut rows, &pipeline);
        }
        rows.extend(pipeline_changes(&pipeline));
        rows
    }
}

/// A step cannot become shorter than the pipeline makes batches.
fn hold_to_pipeline(rows: &mut [WhatIf], pipeline: &Pipeline) {
    for row in rows.iter_mut().filter(|it| it.change != "without input") {
        let taken = row.step_ps - row.new_step_ps;
        let faster = Pipeline { rest_ps: pipeline.rest_ps - taken, ..pipeline.copy() }.predict();
        if faster > row.new_step_ps && !pipeline.stages.is_empty() {
            row.new_step_ps = faster.min(row.step_ps);
            row.worst_ps = row.new_step_ps;
            row.limited_by = "the input pipeline".to_owned();
        }
    }
}

/// How much background work slows the rest of the step, for the part of the cores it takes: at
/// 1 as much as if the rest wanted all cores, as a compute pool does. Less where the rest is one
/// thread; more where it also loses its caches and waits to be woken.
const CONTENTION: [f64; 3] = [0.3, 1.0, 1.6];
/// Work shared by many threads is seldom shared evenly.
const UNEVEN: f64 = 0.25;

/// What each change of the input pipeline would give, where the model explains today's step.
fn pipeline_changes(pipeline: &Pipeline) -> Vec<WhatIf> {
    let replayed_ps = pipeline.predict();
    let error = (replayed_ps - pipeline.step_ps).abs() as f64;
    if pipeline.stages.is_empty() || error > TRUSTED * pipeline.step_ps as f64 {
        return Vec::new();
    }
    let row = |change: String, new: &Pipeline| {
        let new = new.with_prefetch();
        let [mut best_ps, new_step_ps, mut worst_ps] =
            CONTENTION.map(|it| new.predict_from(pipeline, it).min(pipeline.step_ps));
        if best_ps > worst_ps {
            (best_ps, worst_ps) = (worst_ps, best_ps);
        }
        let limited_by = new.limited_by();
        if limited_by != "the rest of the step" {
            worst_ps = (worst_ps as f64 * (1.0 + UNEVEN)) as i64;
        }
        let worst_ps = worst_ps.min(pipeline.step_ps);
        let step_ps = pipeline.step_ps;
        WhatIf { change, step_ps, replayed_ps, new_step_ps, best_ps, worst_ps, limited_by }
    };
    let mut rows = vec![row("prefetch".to_owned(), pipeline)];
    let all: i64 = pipeline.stages.iter().map(|it| it.work_ps).sum();
    let heavy = |it: &(usize, &Stage)| it.1.work_ps * 20 > all;
    for (at, stage) in pipeline.stages.iter().enumerate().filter(heavy) {
        if let Some(cores) = pipeline.cores {
            rows.push(row(format!("parallel {}", stage.path), &pipeline.with_parallel(at, cores)));
        }
        if stage.in_python_ps() > 0 {
            let change = format!("without python in {}", stage.path);
            rows.push(row(change, &pipeline.without_python(at)));
        }
        rows.push(row(format!("without {}", stage.path), &pipeline.without(at)));
        rows.push(row(format!("cache {}", stage.path), &pipeline.with_cache_after(at)));
    }
    rows
}

/// Time of a mean step in which ops of these names compute and no other does: what goes if they
/// go. `None` where the trace has no such ops or no steps.
pub fn alone_ps(tables: &Tables, names: &HashSet<StrId>) -> Option<i64> {
    let trace = tables.trace();
    let steps = tables.get::<Step>();
    let counted: Vec<&Step> = steps.iter().filter(|it| it.counts()).collect();
    let first = counted.first()?;
    let ours: Vec<&&Step> = counted.iter().filter(|it| it.host == first.host).collect();
    let (from, to) = (first.start_ps, ours.last()?.span().1);
    let on_device = trace.tracks_of(TrackKind::Stream).any(|it| !trace.tracks[it.row()].events.is_empty());
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
    let alone = total(&subtract(&union(these), &union(others)));
    Some(alone / ours.len() as i64)
}
