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

use hashbrown::HashMap;
use trace::EventId;

use crate::kernel_time::{KernelTime, op_of};
use crate::replay::{Change, Replay};
use crate::step_time::{CATEGORIES, StepTime};
use crate::{Analysis, Tables};

table! {
    /// What a step would take if something changed.
    ///
    /// Made by replaying measured steps: with a device as a graph of launches, queues and waits,
    /// else category by category. A change is only there if replaying the unchanged steps comes
    /// within a tenth of what was measured.
    pub struct WhatIf = "what_if" {
        /// The change: `without python` takes that category away, `without launch overhead` the
        /// calls that hand work to the device and the delay until it starts, `kernels of OP × 0.5`
        /// half of their time.
        change: String,
        /// The mean step as measured.
        step_ps: i64,
        /// The mean step as replayed, nothing changed.
        replayed_ps: i64,
        /// The mean step after the change.
        new_step_ps: i64,
        /// What bounds the step after the change: the category that holds most of what is left of
        /// the critical path.
        limited_by: String,
    }
}

/// Beyond this error of the unchanged replay nothing is predicted.
const TRUSTED: f64 = 0.10;
/// As many kernels are each made faster.
const MOST_KERNELS: usize = 3;

impl Analysis for WhatIf {
    fn run(tables: &Tables) -> Vec<WhatIf> {
        let steps = tables.get::<StepTime>();
        let steps: Vec<&StepTime> = steps.iter().filter(|it| it.counts).collect();
        if steps.is_empty() {
            return Vec::new();
        }
        let replay = tables.model::<Replay>();
        if replay.step_ps() > 0 { replayed(tables, &replay) } else { subtracted(&steps) }
    }
}

/// The steps as a graph, with something changed.
fn replayed(tables: &Tables, replay: &Replay) -> Vec<WhatIf> {
    let (step_ps, replayed_ps) = (replay.step_ps(), replay.replayed_ps());
    let row = |name: String, change: &Change<'_>| {
        let new_step_ps = replay.after(change)?;
        let limited_by = limit(replay, change);
        Some(WhatIf { change: name, step_ps, replayed_ps, new_step_ps, limited_by })
    };
    let mut rows = Vec::new();
    for (category, _) in CATEGORIES {
        let change = Change { without: &[category], ..Change::default() };
        rows.extend(row(format!("without {category}"), &change));
    }
    let transfers = Change { without: &["transfer_in", "transfer_out"], ..Change::default() };
    rows.extend(row("without transfers".to_owned(), &transfers));
    let launches = Change { launches_free: true, ..Change::default() };
    rows.extend(row("without launch overhead".to_owned(), &launches));
    let waits = Change { no_waits: true, ..Change::default() };
    rows.extend(row("without waits for the device".to_owned(), &waits));
    // What changes nothing at all is not there to be taken away.
    rows.retain(|it| it.new_step_ps < it.step_ps);

    let trace = tables.trace();
    for op in slowest_ops(tables) {
        let is_of = |it: EventId| op_of(trace, it) == op;
        let of_op = replay.rows_where(is_of);
        let change = Change { rows: Some((&of_op, 0.5)), ..Change::default() };
        rows.extend(row(format!("kernels of {op} × 0.5"), &change));
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
fn limit(replay: &Replay, change: &Change<'_>) -> String {
    let mut by_category = [0_i64; CATEGORIES.len()];
    for part in replay.critical_path(change) {
        if let Some(at) = CATEGORIES.iter().position(|it| it.0 == part.category) {
            by_category[at] += part.ps;
        }
    }
    let largest = (0..CATEGORIES.len()).rev().max_by_key(|&it| by_category[it]);
    largest.map_or("the rest of the step", |it| CATEGORIES[it].0).to_owned()
}

/// Without a device: categories are disjoint, and what is taken away is gone.
fn subtracted(steps: &[&StepTime]) -> Vec<WhatIf> {
    let n = steps.len() as i128;
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
                limited_by: "the rest of the step".to_owned(),
            });
        }
    }
    rows
}
