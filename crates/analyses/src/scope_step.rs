//! Adds up ops by step and by the scopes in their names.
//!
//! ```text
//! step 7   model/dense/MatMul 3 ms, model/Softmax 6 ms     7  model         9 ms
//! step 8   model/dense/MatMul 4 ms                         7  model/dense   3 ms   …
//! ```
//!
//! `scope_time` is the same for all steps together: an op belongs to the step in which it began, so
//! that rows add to those.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{TrackId, TrackKind, at_once};

use crate::op_time::OpRuns;
use crate::scope_time::{at_most_deep, scopes};
use crate::step::HostSteps;
use crate::{Analysis, Tables};

table! {
    /// The time of the ops in each name scope, step by step; `scope_time` is that of all steps.
    ///
    /// An op belongs to the step in which it began.
    pub struct ScopeStep = "scope_step" {
        /// The host.
        host: Arc<str>,
        /// The step; null for ops outside of steps.
        step: Option<i64>,
        /// Where the ops ran: host or device.
        side: &'static str,
        /// The scope's path, as model/dense; / for all ops.
        scope: Arc<str>,
        /// The scope around it; null for /.
        parent: Option<Arc<str>>,
        /// How many scopes are around it; 0 for /.
        depth: i64,
        /// When its first op began, since the start of the trace.
        start_ps: i64,
        /// How often ops in it ran, those of inner scopes included; on a device, how many kernels.
        count: i64,
        /// Time of all ops in it, those of inner scopes included: self times of ops, added over
        /// threads or streams.
        total_ps: i64,
        /// Time of the ops directly in it.
        self_ps: i64,
    }
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    first: i64,
    count: i64,
    total: i64,
    own: i64,
}

impl Sum {
    /// The sum of no ops.
    /// Source: physical, nothing was added yet.
    const NONE: Sum = Sum { first: i64::MAX, count: 0, total: 0, own: 0 };

    fn add(&mut self, other: &Sum) {
        self.first = self.first.min(other.first);
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
    }
}

/// By step and scope.
type Sums<'a> = HashMap<(Option<i64>, &'a str), Sum>;

impl Analysis for ScopeStep {
    fn run(tables: &Tables) -> Vec<ScopeStep> {
        let trace = tables.trace();
        let runs = OpRuns::of(trace);
        let steps = tables.model::<HostSteps>();
        let mut paths: HashMap<&str, Arc<str>> = HashMap::new();
        let mut rows = Vec::new();
        for host in trace.tracks_of(TrackKind::Host) {
            let name: Arc<str> = trace.track_name(host).into();
            let steps = steps.of(&name);
            let step_at = |time: i64| {
                let after = steps.partition_point(|it| it.start_ps <= time);
                let step = after.checked_sub(1).and_then(|it| steps.get(it))?;
                (time < step.span().1).then_some(step.step)
            };
            for (side, kind) in [("host", TrackKind::Thread), ("device", TrackKind::Stream)] {
                let tracks: Vec<TrackId> = trace.tracks_below(host, kind).collect();
                let of_track = |&track: &TrackId| {
                    let mut sums: Sums<'_> = HashMap::new();
                    let mut each = |scope, start, own: i64| {
                        let sum = sums.entry((step_at(start), scope)).or_insert(Sum::NONE);
                        sum.add(&Sum { first: start, count: 1, total: own, own });
                    };
                    match kind {
                        TrackKind::Thread => runs.on_thread(track, &mut each),
                        _ => runs.on_stream(track, &mut each),
                    }
                    sums
                };
                let all = at_once(trace, &tracks).map(of_track).reduce(HashMap::new, joined);
                rows.extend(around(all).into_iter().map(|((step, _), scope)| ScopeStep {
                    host: name.clone(),
                    step,
                    side,
                    scope: paths.entry(scope.path).or_insert_with(|| scope.path.into()).clone(),
                    parent:
                        scope.parent.map(|it| paths.entry(it).or_insert_with(|| it.into()).clone()),
                    depth: scope.depth,
                    start_ps: scope.sum.first,
                    count: scope.sum.count,
                    total_ps: scope.sum.total,
                    self_ps: scope.sum.own,
                }));
            }
        }
        rows
    }
}

fn joined<'a>(mut all: Sums<'a>, more: Sums<'a>) -> Sums<'a> {
    for (key, sum) in more {
        all.entry(key).or_insert(Sum::NONE).add(&sum);
    }
    all
}

struct Scope<'a> {
    path: &'a str,
    parent: Option<&'a str>,
    depth: i64,
    sum: Sum,
}

/// Each scope holds those in it. In the order of steps, each scope right before those in it: as
/// plain text, `a-b` comes between `a` and `a/b`.
fn around(sums: Sums<'_>) -> BTreeMap<(Option<i64>, Option<String>), Scope<'_>> {
    let mut all: BTreeMap<(Option<i64>, Option<String>), Scope<'_>> = BTreeMap::new();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|it| it.0);
    for ((step, scope), sum) in sums {
        let innermost = at_most_deep(scope);
        for (path, parent, depth) in scopes(innermost) {
            let directly = path == innermost || innermost.is_empty();
            let order = (depth > 0).then(|| path.replace('/', "\0"));
            let held =
                all.entry((step, order)).or_insert(Scope { path, parent, depth, sum: Sum::NONE });
            held.sum.add(&Sum { own: if directly { sum.own } else { 0 }, ..sum });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::ScopeStep;
    use crate::Tables;
    use crate::scope_time::ScopeTime;

    fn tables(picture: &str) -> Tables {
        Tables::new(Arc::new(draw(picture)))
    }

    const STEPS: &str = "
        host/python: train#1 0..100, train#2 100..200, train#3 200..300, train#4 300..400
        host/t: model/dense/MatMul:MatMul 0..30, model/Softmax:Softmax 40..50
        host/t: model/dense/MatMul:MatMul 110..150, x-y/Cast:Cast 160..161, Assign:Assign 170..172
        host/t: late/Add:Add 900..910, cuLaunchKernel@1 111..112
        gpu0/stream7: gemm@1 130..170
        ";

    #[test]
    fn a_scope_has_its_time_in_each_step() {
        let us = |ps: i64| ps / 1_000_000;
        let found: Vec<String> = tables(STEPS)
            .get::<ScopeStep>()
            .iter()
            .map(|it| {
                let step = it.step.map_or("-".to_owned(), |it| it.to_string());
                let (side, scope, count) = (it.side, &it.scope, it.count);
                let (start, total, own) = (us(it.start_ps), us(it.total_ps), us(it.self_ps));
                format!("{side} {step} {scope}: from {start} {count}x {total} {own}")
            })
            .collect();
        assert_eq!(
            found,
            [
                "host - /: from 900 1x 10 0",
                "host - late: from 900 1x 10 10",
                "host 0 /: from 0 2x 40 0",
                "host 0 model: from 0 2x 40 10",
                "host 0 model/dense: from 0 1x 30 30",
                "host 1 /: from 110 3x 43 2",
                "host 1 model: from 110 1x 40 0",
                "host 1 model/dense: from 110 1x 40 40",
                "host 1 x-y: from 160 1x 1 1",
                "device 1 /: from 130 1x 40 0",
                "device 1 model: from 130 1x 40 0",
                "device 1 model/dense: from 130 1x 40 40",
            ]
        );
    }

    #[test]
    fn steps_add_to_what_all_steps_have() {
        let tables = tables(STEPS);
        let of = tables.get::<ScopeStep>();
        for all in tables.get::<ScopeTime>().iter() {
            let sum = |side: &str| -> i64 {
                let rows = of.iter().filter(|it| it.side == side && *it.scope == *all.scope);
                rows.map(|it| it.total_ps).sum()
            };
            assert_eq!(
                (sum("host"), Some(sum("device"))),
                (all.total_ps, all.device_ps),
                "{all:?}"
            );
        }
    }
}
