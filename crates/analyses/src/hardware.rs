//! What the machine, the process and its GPUs did during each step, as sampled beside the run.
//!
//! ```text
//! steps      |---- 0 ----|-- 1 --|- 2 -|
//! samples      x    x    x     x         x
//! step 2 is between two: a level holds what was last seen, a share or rate what is said next,
//! since that speaks of the time before it
//! ```

use std::sync::Arc;

use trace::{Counter, Trace, TrackId, TrackKind};

use crate::step::{HostSteps, Step};
use crate::{Analysis, Tables};

table! {
    /// What was sampled of the machine, the process tree and its GPUs, for each step that counts.
    ///
    /// Empty where nothing was sampled during the run. What each counter holds, and its unit, is
    /// said in `docs/run-folder.md`.
    pub struct Hardware = "hardware" {
        /// The host whose samples these are.
        host: Arc<str>,
        /// The step; null for all steps that count together, or for all samples where there are
        /// no steps.
        step: Option<i64>,
        /// What was sampled, as cpu/all or gpu 0/sm_clock.
        counter: Arc<str>,
        /// Mean of the samples in the step.
        mean: f64,
        /// The lowest.
        min: f64,
        /// The highest.
        max: f64,
        /// Samples in the step. Of a step shorter than the time between two, 0: it has the value
        /// of the sample that covers it.
        n: i64,
    }
}

impl Analysis for Hardware {
    fn run(tables: &Tables) -> Vec<Hardware> {
        let trace = tables.trace();
        let steps = tables.model::<HostSteps>();
        let mut rows = Vec::new();
        for host in trace.tracks_of(TrackKind::Host) {
            let columns = columns(trace, host);
            if columns.is_empty() {
                continue;
            }
            let name: Arc<str> = trace.track_name(host).into();
            let own: Vec<&Step> = steps.counted(&name).collect();
            let all = match (own.first(), own.last()) {
                (Some(first), Some(last)) => (first.start_ps, last.span().1),
                _ => (i64::MIN, i64::MAX),
            };
            let spans = own.iter().map(|it| (Some(it.step), it.span()));
            for (step, span) in std::iter::once((None, all)).chain(spans) {
                for (counter, samples) in &columns {
                    let (n, values) = during(samples, counter, span);
                    rows.extend(row(&name, step, counter, n, values));
                }
            }
        }
        rows
    }
}

fn row(
    host: &Arc<str>,
    step: Option<i64>,
    counter: &Arc<str>,
    n: usize,
    values: &[Counter],
) -> Option<Hardware> {
    let first = values.first()?.value;
    let (mut sum, mut min, mut max) = (0.0, first, first);
    for it in values {
        sum += it.value;
        min = min.min(it.value);
        max = max.max(it.value);
    }
    let mean = sum / values.len() as f64;
    let (host, counter) = (host.clone(), counter.clone());
    Some(Hardware { host, step, counter, mean, min, max, n: n as i64 })
}

/// Everything sampled of a host, by name, in the order of time.
fn columns(trace: &Trace, host: TrackId) -> Vec<(Arc<str>, &[Counter])> {
    trace
        .tracks_below(host, TrackKind::Counter)
        .filter(|it| trace.tracks[it.row()].parent == Some(host))
        .map(|it| (trace.track_name(it).into(), samples_of(trace, it)))
        .collect()
}

fn samples_of(trace: &Trace, track: TrackId) -> &[Counter] {
    let from = trace.counters.partition_point(|it| it.track < track);
    let to = trace.counters.partition_point(|it| it.track <= track);
    &trace.counters[from..to]
}

/// One counter of a host, in the order of time; empty where it was not sampled.
pub fn samples<'t>(trace: &'t Trace, host: &str, counter: &str) -> &'t [Counter] {
    let is_it = |it: &TrackId| {
        let parent = trace.tracks[it.row()].parent;
        trace.track_name(*it) == counter && parent.is_some_and(|it| trace.track_name(it) == host)
    };
    let track = trace.tracks_of(TrackKind::Counter).find(is_it);
    track.map_or(&[], |it| samples_of(trace, it))
}

/// A value that is older than this is not known any more: the slowest rhythm is one a second.
/// Source: choice, five times that rhythm.
const LONGEST_HELD_PS: i64 = 5_000_000_000_000;

/// The samples of a span, and how many lie in it; where none does, the one that covers it.
pub fn during<'t>(samples: &'t [Counter], name: &str, span: (i64, i64)) -> (usize, &'t [Counter]) {
    let from = samples.partition_point(|it| it.time.0 < span.0);
    let to = samples.partition_point(|it| it.time.0 < span.1).max(from);
    if from < to {
        return (to - from, &samples[from..to]);
    }
    let near = |at: usize| {
        let away = samples.get(at)?.time.0.abs_diff(span.0);
        (away <= LONGEST_HELD_PS.unsigned_abs()).then(|| &samples[at..=at])
    };
    let before = || from.checked_sub(1).and_then(near);
    let held = if speaks_of_before(name) { near(from).or_else(before) } else { before() };
    (0, held.unwrap_or(&[]))
}

/// Whether a sample speaks of the time since the one before, and not of its own moment.
fn speaks_of_before(name: &str) -> bool {
    match name.split_once('/') {
        Some(("cpu", it)) => !matches!(it, "runnable" | "clock"),
        Some(("pressure" | "disk" | "network", _)) => true,
        Some(("process", it)) => matches!(it, "read" | "write"),
        Some(("memory", it)) => it.ends_with("faults"),
        Some((_, it)) => it.ends_with("busy") || it.starts_with("pcie"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{Dur, NumberKey, Time, TraceBuilder, TrackKind};

    use super::Hardware;
    use crate::Tables;

    /// Steps of 100 ps each, and counters: name, times, value at each.
    fn table(n_steps: i64, counters: &[(&str, &[(i64, f64)])]) -> Vec<String> {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "box");
        let process = out.track(Some(host), TrackKind::Process, "p");
        let thread = out.track(Some(process), TrackKind::Thread, "t");
        for step in 0..n_steps {
            let event = out.event(thread, "train", Time(step * 100), Dur(100));
            out.number(event, NumberKey::Step, step);
        }
        let allocator = out.track(None, TrackKind::Counter, "cpu/all");
        out.counter(allocator, Time(0), 99.0);
        for (name, samples) in counters {
            let track = out.track(Some(host), TrackKind::Counter, name);
            for &(time, value) in *samples {
                out.counter(track, Time(time), value);
            }
        }
        let tables = Tables::new(Arc::new(out.finish()));
        let rows = tables.get::<Hardware>();
        let step = |it: Option<i64>| it.map_or("all".to_owned(), |it| it.to_string());
        let text = |it: &Hardware| {
            format!("{} {} {} {}..{} n{}", step(it.step), it.counter, it.mean, it.min, it.max, it.n)
        };
        rows.iter().map(text).collect()
    }

    #[test]
    fn each_step_knows_its_resources() {
        let samples = [(-50, 9.0), (10, 1.0), (90, 3.0), (100, 5.0), (350, 7.0), (900, 9.0)];
        assert_eq!(
            table(4, &[("memory/process", &samples)]),
            [
                "all memory/process 4 1..7 n4",
                "0 memory/process 2 1..3 n2",
                "1 memory/process 5 5..5 n1",
                "2 memory/process 5 5..5 n0",
                "3 memory/process 7 7..7 n1",
            ]
        );
    }

    #[test]
    fn a_short_step_has_the_share_that_speaks_of_it() {
        // Of the time up to 350, which step 2 is in.
        let samples = [(100, 0.5), (350, 1.0)];
        let rows = table(4, &[("cpu/all", &samples)]);
        assert_eq!(rows[3], "2 cpu/all 1 1..1 n0");
    }

    #[test]
    fn a_value_is_not_held_for_ever() {
        let old = -6_000_000_000_000;
        assert_eq!(table(3, &[("memory/process", &[(old, 1.0)])]), Vec::<String>::new());
        assert_eq!(table(3, &[("cpu/all", &[])]), Vec::<String>::new());
    }

    #[test]
    fn without_steps_all_samples_are_one() {
        let rows = table(0, &[("cpu/all", &[(0, 0.0), (5, 1.0)])]);
        assert_eq!(rows, ["all cpu/all 0.5 0..1 n2"]);
    }
}
