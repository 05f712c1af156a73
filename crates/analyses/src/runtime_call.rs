//! Names what the host was doing while a step was in `runtime`: framework work, nothing computing.
//!
//! ```text
//! runtime          |=====================|
//! driving thread   |------ Execute ------|      it waits for what others do
//! other threads       |-- allocate --|          they get the time that they cover,
//!                  '--'              '---'      the driving thread's own calls the rest
//! ```
//!
//! Every instant has one name, so that rows add to what `step_time` says.

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{OpKind, StrId, Trace, TrackId, TrackKind, at_once};

use crate::span::{Span, intersect, subtract, total, union};
use crate::step::{Step, is_pipeline_thread};
use crate::step_time::{StepTime, when};
use crate::{Analysis, Tables};

table! {
    /// What the host did in the `runtime` of a step: the innermost calls of the framework, by the
    /// time that they cover.
    ///
    /// Where other threads worked while the driving thread waited, the time is theirs. Each
    /// instant counts once, so rows add to the `runtime_ps` of the steps looked at.
    pub struct RuntimeCall = "runtime_call" {
        /// The call; null for time in which no call is known.
        call: Option<String>,
        /// Whether the driving thread made it, and not another one.
        is_driving: bool,
        /// Time that it covers, for a mean step.
        per_step_ps: i64,
        /// Its part of the runtime, 0 to 1.
        share: f64,
    }
}

/// Steps that are looked at, evenly chosen.
/// Source: choice, as many as are replayed.
const MOST_STEPS: usize = 20;

/// Names that get time of their own; the rest is the last row's.
/// Source: choice, a few lines.
const MOST_NAMES: usize = 8;

impl Analysis for RuntimeCall {
    fn run(tables: &Tables) -> Vec<RuntimeCall> {
        let trace = tables.trace();
        let rows = tables.get::<StepTime>();
        let mut counted: Vec<&StepTime> = rows.iter().filter(|it| it.counts).collect();
        // Devices of one step share its host.
        counted.dedup_by(|a, b| (&a.host, a.step) == (&b.host, b.step));
        let each = counted.len().div_ceil(MOST_STEPS).max(1);
        let looked_at: Vec<&StepTime> = counted.into_iter().step_by(each).collect();
        let n = looked_at.len().max(1) as i64;

        let mut sums: HashMap<(Option<StrId>, bool), i64> = HashMap::new();
        for of_host in looked_at.chunk_by(|a, b| a.host == b.host) {
            let runtime =
                union(of_host.iter().flat_map(|it| when(tables, it, "runtime")).collect());
            for (name, sum) in named(tables, &of_host[0].host, runtime) {
                let all = sums.entry(name).or_default();
                *all = all.saturating_add(sum);
            }
        }
        let whole = sums.values().fold(0_i64, |sum, it| sum.saturating_add(*it));
        let mut rows: Vec<RuntimeCall> = sums
            .into_iter()
            .map(|((name, is_driving), sum)| RuntimeCall {
                call: name.map(|it| trace.text(it).to_owned()),
                is_driving,
                per_step_ps: sum / n,
                share: sum as f64 / whole.max(1) as f64,
            })
            .collect();
        rows.sort_by(|a, b| (b.per_step_ps, &a.call).cmp(&(a.per_step_ps, &b.call)));
        rows
    }
}

/// What a stretch of runtime is called by, and whether the driving thread called it.
type Name = (Option<StrId>, bool);

fn named(tables: &Tables, host: &str, runtime: Vec<Span>) -> Vec<(Name, i64)> {
    let trace = tables.trace();
    let steps = tables.get::<Step>();
    let driving = steps.iter().find(|it| it.host == host).map(|it| it.track);
    let Some(track) = trace.tracks_of(TrackKind::Host).find(|&it| trace.track_name(it) == host)
    else {
        return Vec::new();
    };
    let (own, others): (Vec<TrackId>, Vec<TrackId>) = trace
        .tracks_below(track, TrackKind::Thread)
        .filter(|&it| !is_pipeline_thread(trace.track_name(it)))
        .partition(|it| Some(i64::from(it.0)) == driving);
    let mut left = runtime;
    let mut sums = Vec::new();
    for (threads, is_driving) in [(others, false), (own, true)] {
        let mut calls = innermost(trace, &threads, &left, is_driving);
        while sums.len() < MOST_NAMES * (1 + usize::from(is_driving)) {
            // The one that covers most comes first, and takes what it covers from the others.
            let covers = |it: &(StrId, Vec<Span>)| total(&it.1);
            let Some(at) = (0..calls.len()).max_by_key(|&it| (covers(&calls[it]), calls[it].0))
            else {
                break;
            };
            let (name, spans) = calls.swap_remove(at);
            if spans.is_empty() {
                break;
            }
            sums.push(((Some(name), is_driving), total(&spans)));
            left = subtract(&left, &spans);
            calls.par_iter_mut().for_each(|it| it.1 = subtract(&it.1, &spans));
        }
    }
    sums.push(((None, true), total(&left)));
    sums.retain(|it| it.1 > 0);
    sums
}

/// Whether a call of this kind says what the framework does. On other threads a wait says nothing:
/// most of them wait most of the time.
fn tells(kind: OpKind, is_driving: bool) -> bool {
    match kind {
        OpKind::Runtime | OpKind::User | OpKind::Launch | OpKind::Compile => true,
        OpKind::Sync | OpKind::CallOp | OpKind::Program => is_driving,
        _ => false,
    }
}

/// When calls of each name were the innermost ones that tell something, inside of `window`.
fn innermost(
    trace: &Trace,
    threads: &[TrackId],
    window: &[Span],
    is_driving: bool,
) -> Vec<(StrId, Vec<Span>)> {
    let of_thread = |&track: &TrackId| {
        let mut spans: HashMap<StrId, Vec<Span>> = HashMap::new();
        let mut emit = |name: StrId, span: Span| {
            if span.0 < span.1 {
                spans.entry(name).or_default().push(span);
            }
        };
        // Name, end; and until when time was given away.
        let mut open: Vec<(StrId, i64)> = Vec::new();
        let mut at = i64::MIN;
        for row in trace.tracks[track.row()].rows() {
            if !tells(trace.events.kind[row], is_driving) {
                continue;
            }
            let start = trace.events.start[row].0;
            let end = start.saturating_add(trace.events.dur[row].0);
            while let Some((name, until)) = open.pop_if(|it| it.1 <= start) {
                emit(name, (at, until));
                at = at.max(until);
            }
            if let Some((name, _)) = open.last() {
                emit(*name, (at, start));
            }
            at = at.max(start);
            // What reaches out of the call around it is cut off where that ends.
            let end = open.last().map_or(end, |it| it.1.min(end));
            open.push((trace.events.name[row], end));
        }
        while let Some((name, until)) = open.pop() {
            emit(name, (at, until));
            at = at.max(until);
        }
        for it in spans.values_mut() {
            *it = intersect(&union(std::mem::take(it)), window);
        }
        spans
    };
    let of_threads: Vec<HashMap<StrId, Vec<Span>>> =
        at_once(trace, threads).map(of_thread).collect();
    let mut all: HashMap<StrId, Vec<Span>> = HashMap::new();
    for (name, mut spans) in of_threads.into_iter().flatten() {
        all.entry(name).or_default().append(&mut spans);
    }
    all.into_iter().map(|(name, spans)| (name, union(spans))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::RuntimeCall;
    use crate::Tables;
    use crate::step_time::StepTime;

    /// Call, whose it is, and µs of a mean step.
    fn check(picture: &str, expected: &[&str]) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let rows = tables.get::<RuntimeCall>();
        let found: Vec<String> = rows
            .iter()
            .map(|it| {
                let whose = if it.is_driving { "own" } else { "other" };
                format!(
                    "{} {whose} {}",
                    it.call.as_deref().unwrap_or("-"),
                    it.per_step_ps / 1_000_000
                )
            })
            .collect();
        assert_eq!(found, expected);
        let sum: i64 = rows.iter().map(|it| it.per_step_ps).sum();
        let steps = tables.get::<StepTime>();
        let runtime: Vec<i64> =
            steps.iter().filter(|it| it.counts).map(|it| it.runtime_ps).collect();
        assert_eq!(sum, runtime.iter().sum::<i64>() / runtime.len().max(1) as i64);
    }

    #[test]
    fn work_of_other_threads_takes_the_time_of_those_who_wait_for_it() {
        check(
            "
            host/python: train#1 0..100, PjRtClient::Execute 0..100, train#2 100..200, PjRtClient::Execute 100..200
            host/pool: Buffers::Allocate 10..50, Buffers::Allocate 110..150, PjRtBuffer::Await 50..90
            gpu0/stream7: matmul 60..70, matmul 160..170
            ",
            &["PjRtClient::Execute own 50", "Buffers::Allocate other 40"],
        );
    }

    #[test]
    fn the_innermost_call_counts() {
        check(
            "
            host/python: train#1 0..100, Outer::Run 0..100, Inner::Run 20..80, train#2 100..200, Outer::Run 100..200, Inner::Run 120..180
            gpu0/stream7: matmul 40..50, matmul 140..150
            ",
            &["Inner::Run own 50", "Outer::Run own 40"],
        );
    }

    #[test]
    fn without_steps_there_is_nothing_to_name() {
        check("host/python: Outer::Run 0..100", &[]);
    }
}
