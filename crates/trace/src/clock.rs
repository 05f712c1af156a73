//! Brings devices onto the host's clock, as far as what cannot be shows that they are not on it.
//!
//! ```text
//! host      |launch|        |launch|
//! device  |kernel|        |kernel|         before its own launch: the clock is behind
//! moved     >>|kernel|        >>|kernel|   by the least that makes it possible
//! ```
//!
//! A clock that runs ahead cannot be told from a device that is late, and is left alone.

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use crate::cores::WORTH_WAKING;
use crate::{
    Dur, EdgeKind, EventId, Fact, FactValue, Note, NoteKind, Time, Trace, TrackId, TrackKind,
};

/// A device whose events were moved onto the host's clock: what the profile says is
/// [`ClockShift::by`] earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockShift {
    pub device: TrackId,
    pub by: Dur,
}

/// Drivers that convert a device's time err by a few microseconds; that moves nothing between
/// steps.
const LEAST_PS: i64 = 20_000_000;

/// Of so many launches at least one must come too late: fewer are keys that were used twice.
const ONE_IN: usize = 20;

/// Moves devices whose work begins before it was launched, and says so.
pub(crate) fn align(trace: &mut Trace) {
    let launches = launches(trace);
    let mut shifts = Vec::new();
    for device in trace.tracks_of(TrackKind::Device) {
        let leads = match launches.get(&device) {
            Some(it) if it.are_often_late() => Some(it.leads(trace)),
            Some(_) => None,
            None => leads_by_order(trace, device),
        };
        if let Some(by) = leads.and_then(shift_for) {
            shifts.push((device, by));
        }
    }
    for (device, by) in shifts {
        shift(trace, device, by);
    }
}

/// The edges that lead to a device.
#[derive(Default)]
struct Launches {
    edges: Vec<Range<usize>>,
    n: usize,
    /// How many come after what they launch.
    late: usize,
}

impl Launches {
    /// Almost always that is no: only then all of them are kept.
    fn are_often_late(&self) -> bool {
        self.late > 0 && self.late * ONE_IN >= self.n
    }

    /// By how much work began before its launch did; negative where it came after, as it should.
    fn leads(&self, trace: &Trace) -> Vec<i64> {
        let edges = self.edges.iter().cloned().flatten().filter(|&it| {
            causes(trace, it)
                && trace.tracks[trace.track_of(trace.edges.from[it]).row()].kind
                    == TrackKind::Thread
        });
        edges.map(|it| lead(trace, it)).collect()
    }
}

fn causes(trace: &Trace, edge: usize) -> bool {
    matches!(trace.edges.kind[edge], EdgeKind::Launch | EdgeKind::Flow)
}

fn lead(trace: &Trace, edge: usize) -> i64 {
    let start = |it: EventId| trace.events.start[it.row()].0;
    start(trace.edges.from[edge]).saturating_sub(start(trace.edges.to[edge]))
}

fn launches(trace: &Trace) -> BTreeMap<TrackId, Launches> {
    let mut launches: BTreeMap<TrackId, Launches> = BTreeMap::new();
    // Edges are sorted by the event caused, as events are by track.
    let mut first = 0;
    for (at, track) in trace.tracks.iter().enumerate() {
        let n = trace.edges.to[first..].partition_point(|it| it.0 < track.events.end);
        let edges = first..first + n;
        first += n;
        let Some(device) = trace.ancestor(TrackId(at as u32), TrackKind::Device) else { continue };
        if track.kind == TrackKind::Steps || edges.is_empty() {
            continue;
        }
        let is_late = |it: &usize| causes(trace, *it) && lead(trace, *it) >= LEAST_PS;
        let found = launches.entry(device).or_default();
        found.n += n;
        let edges_at_once = edges.clone().into_par_iter().with_min_len(WORTH_WAKING);
        found.late += edges_at_once.filter(is_late).count();
        found.edges.push(edges);
    }
    launches
}

/// The same where nothing joins both, if a device ran as many programs as a thread of its host
/// called: each belongs to its call.
fn leads_by_order(trace: &Trace, device: TrackId) -> Option<Vec<i64>> {
    let host = trace.ancestor(device, TrackKind::Host)?;
    let mut summaries = trace.tracks_below(device, TrackKind::Summary);
    let runs = summaries.find(|&it| {
        trace.tracks[it.row()].parent == Some(device) && trace.track_name(it) == "XLA Modules"
    })?;
    let runs: Vec<i64> =
        trace.tracks[runs.row()].rows().map(|it| trace.events.start[it].0).collect();
    if runs.is_empty() {
        return None;
    }
    let threads = trace.tracks_below(host, TrackKind::Thread);
    let calls = threads.map(|it| execution_calls(trace, it)).find(|it| it.len() == runs.len())?;
    let leads: Vec<i64> = calls.iter().zip(&runs).map(|it| it.0.saturating_sub(*it.1)).collect();
    // Further apart than runs are, nobody can say which call is whose.
    let apart = runs.windows(2).map(|it| it[1] - it[0]).min().unwrap_or(i64::MAX);
    let most = leads.iter().copied().max().unwrap_or(0);
    let early = leads.iter().filter(|&&it| it > LEAST_PS).count();
    (most < apart / 2 && early * 2 > leads.len()).then_some(leads)
}

/// When a thread called programs, calls inside calls left out.
fn execution_calls(trace: &Trace, thread: TrackId) -> Vec<i64> {
    let (mut calls, mut over) = (Vec::new(), Time(i64::MIN));
    for row in trace.tracks[thread.row()].rows() {
        let event = EventId(row as u32);
        let start = trace.events.start[row];
        if start >= over && trace.name(event).ends_with("Executable::Execute") {
            calls.push(start.0);
            over = trace.events.end(event);
        }
    }
    calls
}

/// The least shift that makes what happened possible, but for single launches that are off.
fn shift_for(mut leads: Vec<i64>) -> Option<Dur> {
    let early = leads.iter().filter(|&&it| it >= LEAST_PS).count();
    if early == 0 || early * ONE_IN < leads.len() {
        return None;
    }
    leads.sort_unstable_by(|a, b| b.cmp(a));
    // Of a hundred launches one may carry another's key.
    let by = leads[leads.len() / 100];
    (by >= LEAST_PS).then_some(Dur(by))
}

fn shift(trace: &mut Trace, device: TrackId, by: Dur) {
    let tracks = [&[device], trace.all_below(device)].concat();
    // A broken profile's times may have no room.
    let fits = |it: &TrackId| {
        trace.tracks[it.row()].over.is_none_or(|it| it.0.checked_add(by.0).is_some())
    };
    if !tracks.iter().all(fits) {
        return;
    }
    for track in tracks {
        let rows = trace.tracks[track.row()].rows();
        for start in &mut trace.events.start[rows] {
            *start = *start + by;
        }
        let over = &mut trace.tracks[track.row()].over;
        *over = over.map(|it| it + by);
    }
    trace.clock_shifts.push(ClockShift { device, by });
    let fact = FactValue::Int(by.0);
    let at = trace.facts.partition_point(|it| it.track <= device);
    let fact = Fact { track: device, key: "clock_shift_ps".to_owned(), value: fact };
    trace.facts.insert(at, fact);
    let name = trace.track_name(device);
    let first = format!(
        "the clock of {name} is {by} behind the host's: work began before it was launched. Its \
         events are shown {by} later than the profile says"
    );
    match trace.notes.iter_mut().find(|it| it.kind == NoteKind::ClockShifted) {
        Some(note) => note.count += 1,
        None => trace.notes.push(Note { kind: NoteKind::ClockShifted, count: 1, first }),
    }
    trace.notes.sort_by_key(|it| it.kind);
}

#[cfg(test)]
mod tests {
    use crate::testing::draw;
    use crate::{Dur, NoteKind, Time, Trace, TraceBuilder, TrackKind};

    /// Programs that a host calls after so many µs and a device runs, joined by nothing.
    fn programs(calls: &[i64], runs: &[i64]) -> Trace {
        let us = |it: i64| Time(it * 1_000_000);
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "host");
        let process = out.track(Some(host), TrackKind::Process, "p");
        let thread = out.track(Some(process), TrackKind::Thread, "main");
        let device = out.track(Some(host), TrackKind::Device, "tpu0");
        let modules = out.track(Some(device), TrackKind::Summary, "XLA Modules");
        let ops = out.track(Some(device), TrackKind::Stream, "XLA Ops");
        for &at in calls {
            out.event(thread, "TfrtTpuLoadedExecutable::Execute", us(at), Dur(50_000_000));
        }
        for &at in runs {
            out.event(modules, "jit_f(1)", us(at), Dur(900_000_000));
            out.event(ops, "fusion", us(at), Dur(900_000_000));
        }
        out.finish()
    }

    #[test]
    fn programs_that_run_before_their_calls_move_with_all_of_their_device() {
        let trace = programs(&[1000, 2000, 3000], &[720, 1690, 2700]);
        assert_eq!(trace.clock_shifts[0].by, Dur(310_000_000));
        let starts = |name: &str| {
            let track = trace.track_ids().find(|&it| trace.track_name(it) == name);
            let rows = track.map(|it| trace.tracks[it.row()].rows()).unwrap_or_default();
            trace.events.start[rows].iter().map(|it| it.0 / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(starts("XLA Ops"), [1030, 2000, 3010]);
        assert_eq!(starts("XLA Modules"), starts("XLA Ops"));
        let later = programs(&[1000, 2000, 3000], &[1100, 2100, 3100]);
        assert!(later.clock_shifts.is_empty(), "as it should be");
        let other = programs(&[1000, 2000], &[720, 1690, 2700]);
        assert!(other.clock_shifts.is_empty(), "nobody knows which is whose");
    }

    #[test]
    fn work_before_its_launch_moves_by_the_least_that_makes_it_possible() {
        let trace = draw(
            "
            host/python: cuLaunchKernel@1 1000..1010, cuLaunchKernel@2 2000..2010
            gpu0/s: a@1 700..900, b@2 1650..1800
            gpu1/s: c 0..10
            ",
        );
        assert_eq!(trace.events.start[2..4], [Time(1_050_000_000), Time(2_000_000_000)]);
        assert_eq!(trace.clock_shifts[0].by, Dur(350_000_000));
        assert_eq!(trace.events.start[4], Time(0), "another device keeps its clock");
        let note = &trace.notes[0];
        assert_eq!((note.kind, note.count), (NoteKind::ClockShifted, 1));
        assert!(note.first.contains("gpu0 is 350 µs behind"), "{}", note.first);
    }

    #[test]
    fn a_few_microseconds_and_single_launches_move_nothing() {
        let mut picture = ["host/python: x 0..1", "gpu0/s: y 0..1"].map(str::to_owned);
        for it in 1..200 {
            picture[0] += &format!(", cuLaunchKernel@{it} {}..{}", it * 100, it * 100 + 5);
            let early = if it == 50 { 5000 } else { 5 };
            picture[1] += &format!(", k@{it} {}..{}", it * 100 - early, it * 100 + 10 - early);
        }
        let trace = draw(&picture.join("\n"));
        assert_eq!((trace.clock_shifts.len(), trace.notes.len()), (0, 0));
    }
}
