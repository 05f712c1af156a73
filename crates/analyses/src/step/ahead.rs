//! Steps of a loop that hands its work over and runs ahead of it, as JAX loops do.
//!
//! ```text
//! calls  |||||||||||||   |   |   |   |   | … |-- wait --|||||||||||||   |   |
//! work   |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! ```
//!
//! Calls return at once until so many are on their way that the next one has to wait, or until
//! the program asks for a result. When calls began says little of what a step takes; when their
//! work began does.

use std::collections::BTreeMap;

use trace::dialect;
use trace::{EdgeKind, EventId, OpKind, StrId, Time, Trace, Track, TrackId, TrackKind};

use super::{Found, by_period, is_pipeline_thread, period_on};

/// The same steps, from when their work began, where calls ran ahead of it.
pub fn of_the_work(trace: &Trace, host: TrackId, calls: Found) -> Found {
    if ran_ahead(trace, host, &calls) {
        // What was called ahead of time runs later: its own rhythm is that of the steps.
        return match by_period(trace, host) {
            Some(work) if work.spans_more_than(&calls) => work,
            _ => calls,
        };
    }
    let called = Pace::of(&calls.starts);
    if calls.starts.len() < FEWEST || called.is_even() || !is_a_thread(trace, calls.track) {
        return calls;
    }
    let Some(starts) = starts_of_work(trace, host, &calls) else { return calls };
    let alike = starts.len().abs_diff(calls.starts.len()) <= calls.starts.len() / ALIKE;
    if alike && Pace::of(&starts).is_much_evener_than(&called) {
        return Found { starts, ends_at: None, ..calls };
    }
    calls
}

/// Fewer steps have no pattern.
/// Source: choice, a guess.
const FEWEST: usize = 8;

/// Calls and work are the same steps where their numbers differ by less than one part in so many.
/// Source: choice, a guess: a third.
const ALIKE: usize = 3;
/// A step that takes longer than so many of the middle one was held up.
/// Source: choice, a guess.
const HELD_UP: f64 = 3.0;
/// Steps are even where they are less than this apart.
/// Source: choice, a guess.
const EVEN_APART: f64 = 0.25;
/// And where less than this share of the time is held up.
/// Source: choice, as little as is never said of a step.
const EVEN_HELD_UP: f64 = 0.03;
/// Work is much evener than its calls where it is held up so many times less.
/// Source: choice, a guess.
const MUCH_LESS: f64 = 4.0;
/// How sure steps are that are runs of a compiled program.
/// Source: choice, a guess.
const BY_PROGRAMS: f64 = 0.8;

/// How even steps are.
struct Pace {
    /// How far they lie from the middle one, as a share of all time.
    apart: f64,
    /// The time by which single ones take more than three of the middle one, as a share of all.
    held_up: f64,
}

impl Pace {
    fn of(starts: &[(i64, i64, Option<i64>)]) -> Pace {
        let mut durs: Vec<i64> = starts.windows(2).map(|it| it[1].0 - it[0].0).collect();
        let typical = super::median(&mut durs).unwrap_or(0) as f64;
        let sum = |of: &dyn Fn(f64) -> f64| durs.iter().map(|&it| of(it as f64)).sum::<f64>();
        let total = sum(&|it| it).max(1.0);
        Pace {
            apart: sum(&|it| (it - typical).abs()) / total,
            held_up: sum(&|it| (it - HELD_UP * typical).max(0.0)) / total,
        }
    }

    /// Whether nothing is to be explained.
    fn is_even(&self) -> bool {
        self.apart < EVEN_APART && self.held_up < EVEN_HELD_UP
    }

    /// Work that comes at its own pace is no more than a little uneven, however its calls are.
    fn is_much_evener_than(&self, calls: &Pace) -> bool {
        self.apart < calls.apart
            && (self.apart * 2.0 < calls.apart || self.held_up * MUCH_LESS < calls.held_up)
    }
}

/// When the work of each step began: by the launches in it where there are any, else by the
/// rhythm of a compiled program's ops.
fn starts_of_work(
    trace: &Trace,
    host: TrackId,
    calls: &Found,
) -> Option<Vec<(i64, i64, Option<i64>)>> {
    let mut first: Vec<Option<i64>> = vec![None; calls.starts.len()];
    for edge in trace.all_below(host).iter().flat_map(|&it| trace.edges_into(it)) {
        let (from, to) = (trace.edges.from[edge], trace.edges.to[edge]);
        if trace.edges.kind[edge] != EdgeKind::Launch
            || trace.events.kind[to.row()] != OpKind::Kernel
            || trace.ancestor(trace.track_of(from), TrackKind::Host) != Some(host)
        {
            continue;
        }
        let at = trace.events.start[from.row()].0;
        let step = calls.starts.partition_point(|it| it.0 <= at);
        if let Some(first) = step.checked_sub(1).and_then(|it| first.get_mut(it)) {
            let began = trace.events.start[to.row()].0;
            *first = Some(first.map_or(began, |it| it.min(began)));
        }
    }
    if first.iter().any(Option::is_some) {
        let steps = first.iter().zip(&calls.starts);
        let mut starts: Vec<_> = steps.filter_map(|(&it, call)| Some((it?, it?, call.2))).collect();
        starts.sort_unstable();
        starts.dedup_by_key(|it| it.0);
        return Some(starts);
    }
    if let Some(runs) = program_runs(trace, host) {
        return Some(runs.starts);
    }
    let threads = trace.tracks_below(host, TrackKind::Thread);
    let threads: Vec<TrackId> =
        threads.filter(|&it| !is_pipeline_thread(trace.track_name(it))).collect();
    // Only compiled programs are handed over on a host, and only one of them is the step.
    let program = main_program(trace, &threads)?;
    let is_work = |trace: &Trace, it: EventId| program_of(trace, it) == Some(program);
    let (_, work) = period_on(trace, calls.track, &threads, is_work)?;
    Some(work.starts)
}

/// Runs of one compiled program on a device, as the device's own line of programs shows them.
struct ProgramRuns {
    track: TrackId,
    name: StrId,
    starts: Vec<(i64, i64, Option<i64>)>,
}

/// Those of the program that takes most time, on the device that ran it most often. Programs that
/// only prepare something run beside it now and then.
fn program_runs(trace: &Trace, host: TrackId) -> Option<ProgramRuns> {
    let mut runs: BTreeMap<(StrId, TrackId), (i64, Vec<EventId>)> = BTreeMap::new();
    for track in trace.tracks_below(host, TrackKind::Summary) {
        if !dialect::any(|it| it.shows_programs(trace.track_name(track))) {
            continue;
        }
        for row in trace.tracks[track.row()].rows() {
            let run = runs.entry((trace.events.name[row], track)).or_default();
            run.0 = run.0.saturating_add(trace.events.dur[row].0);
            run.1.push(EventId(row as u32));
        }
    }
    let ((name, track), (_, events)) =
        runs.into_iter().max_by_key(|it| (it.1.0, std::cmp::Reverse(it.0)))?;
    let marks: Vec<_> = events.into_iter().map(|it| (it, None)).collect();
    Some(ProgramRuns { track, name, starts: super::starts_of(trace, &marks) })
}

/// Where nothing of the host tells steps apart: the runs of the program that takes most time.
pub fn by_programs(trace: &Trace, host: TrackId) -> Option<Found> {
    let runs = program_runs(trace, host)?;
    (runs.starts.len() >= super::FEWEST).then(|| Found {
        track: runs.track,
        by: "calls",
        confidence: BY_PROGRAMS,
        marker: trace.text(runs.name).to_owned(),
        starts: runs.starts,
        ends_at: None,
    })
}

/// The compiled program that an op belongs to.
fn program_of(trace: &Trace, event: EventId) -> Option<StrId> {
    let is_op = trace.events.kind[event.row()] == OpKind::Op;
    trace.detail(event).hlo_module.filter(|_| is_op)
}

/// The one whose ops take most time.
fn main_program(trace: &Trace, threads: &[TrackId]) -> Option<StrId> {
    let mut times: BTreeMap<StrId, i64> = BTreeMap::new();
    for row in threads.iter().flat_map(|it| trace.tracks[it.row()].rows()) {
        if let Some(program) = program_of(trace, EventId(row as u32)) {
            let time = times.entry(program).or_default();
            *time = time.saturating_add(trace.events.dur[row].0);
        }
    }
    times.into_iter().max_by_key(|it| it.1).map(|it| it.0)
}

fn is_a_thread(trace: &Trace, track: TrackId) -> bool {
    trace.tracks[track.row()].kind == TrackKind::Thread
}

impl Found {
    /// Whether its steps cover much more time than another's.
    fn spans_more_than(&self, other: &Found) -> bool {
        let span = |it: &Found| match (it.starts.first(), it.starts.last()) {
            (Some(first), Some(last)) => last.0 - first.0,
            _ => 0,
        };
        self.starts.len() > 2 && span(self) / 2 > span(other)
    }
}

/// Whether a host only handed its work over: most of it ran after the last step was called.
fn ran_ahead(trace: &Trace, host: TrackId, found: &Found) -> bool {
    let (Some(first), Some(last)) = (found.starts.first(), found.starts.last()) else {
        return false;
    };
    if found.starts.len() < super::FEWEST || !is_a_thread(trace, found.track) {
        return false;
    }
    let streams: Vec<TrackId> = trace
        .tracks_below(host, TrackKind::Stream)
        .filter(|it| !trace.tracks[it.row()].events.is_empty())
        .collect();
    let (kind, tracks) = match streams.is_empty() {
        true => (OpKind::Op, trace.tracks_below(host, TrackKind::Thread).collect()),
        false => (OpKind::Kernel, streams),
    };
    let tracks = tracks.into_iter().filter(|&it| !is_pipeline_thread(trace.track_name(it)));
    let tracks: Vec<&Track> = tracks.map(|it| &trace.tracks[it.row()]).collect();
    let (first, last) = (Time(first.0), Time(last.1));
    let time_from = |moment: Time| {
        let rows = tracks.iter().flat_map(move |it| {
            let starts = &trace.events.start[it.rows()];
            it.rows().skip(starts.partition_point(|&it| it < moment))
        });
        rows.filter(|&it| trace.events.kind[it] == kind)
            .map(|it| (trace.events.start[it], trace.events.dur[it].0))
    };
    let after = time_from(last).fold(0_i64, |sum, it| sum.saturating_add(it.1));
    // Mostly that is little, and soon outdone.
    let mut during = time_from(first).filter(|it| it.0 < last).scan(0_i64, |sum, it| {
        *sum = sum.saturating_add(it.1);
        Some(*sum)
    });
    after > 0 && !during.any(|it| it >= after)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;
    use trace::{Dur, Time, TraceBuilder, TrackKind};

    use crate::Tables;
    use crate::step::Step;

    #[test]
    fn calls_that_run_ahead_are_not_the_steps() {
        let mut picture = "host/python: ".to_owned();
        for call in 0..8 {
            picture += &format!("PjitFunction(f) {}..{}, ", call * 2, call * 2 + 1);
        }
        picture += "x 0..1\nhost/pool: ";
        for step in 0..8 {
            let at = 20 + step * 50;
            picture += &format!(
                "a:MatMul {at}..{}, b:Relu {}..{}, c:Sum {}..{}, ",
                at + 20,
                at + 20,
                at + 30,
                at + 30,
                at + 48
            );
        }
        let tables = Tables::new(Arc::new(draw(&(picture + "x 0..1"))));
        let steps = tables.get::<Step>();
        let durs: Vec<i64> = steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps).collect();
        assert_eq!(durs, [50_000_000; 7]);
    }

    #[test]
    fn programs_on_a_device_are_the_steps_of_calls_that_run_ahead() {
        let us = |it: i64| Time(it * 1_000_000);
        let dur = |it: i64| Dur(it * 1_000_000);
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "host");
        let process = out.track(Some(host), TrackKind::Process, "p");
        let thread = out.track(Some(process), TrackKind::Thread, "main");
        let device = out.track(Some(host), TrackKind::Device, "tpu0");
        let modules = out.track(Some(device), TrackKind::Summary, "XLA Modules");
        out.event(modules, "jit_init(1)", us(0), dur(5));
        // The first call compiles for 400 µs, some return at once, the others wait in turn.
        for call in 0..20 {
            let at = if call == 0 { 0 } else { (399 + call).max((call - 8) * 50 + 400) };
            out.event(thread, "PjitFunction(f)", us(at), if call == 0 { dur(399) } else { dur(1) });
            out.event(modules, "jit_f(2)", us(400 + call * 50), dur(49));
        }
        let tables = Tables::new(Arc::new(out.finish()));
        let steps = tables.get::<Step>();
        let durs: Vec<i64> = steps.iter().take(19).map(|it| it.dur_ps / 1_000_000).collect();
        assert_eq!(durs, [50; 19]);
    }

    /// When calls that take 1 µs return: three at once, then as the work lets them, with a wait
    /// for all of it after every ten. A step of work takes 50 µs.
    fn held_up_in_turns(n: i64) -> Vec<i64> {
        let (mut calls, mut at) = (Vec::new(), 0);
        for step in 0..n {
            if step % 10 == 0 {
                // All work so far is done.
                at = at.max(step * 50);
            } else if step % 10 > 3 {
                at = at.max((step - 3) * 50);
            }
            calls.push(at);
            at += 2;
        }
        calls
    }

    /// The ops of a compiled program that takes 48 µs.
    fn ops(at: i64) -> String {
        let op = |name: &str, from: i64, to: i64| {
            format!(", {name}:{name}{{hlo_module=jit_f}} {from}..{to}")
        };
        op("MatMul", at, at + 30) + &op("Relu", at + 30, at + 48)
    }

    fn durations(picture: &str) -> (Vec<i64>, Option<i64>, &'static str) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let steps = tables.get::<Step>();
        let counted = steps.iter().filter(|it| it.counts());
        let durs = counted.map(|it| it.dur_ps / 1_000_000).collect();
        (durs, steps[3].number, steps[0].found_by)
    }

    #[test]
    fn calls_that_are_held_up_in_turns_are_not_the_steps() {
        let mut picture = "host/python: x 0..1".to_owned();
        for at in held_up_in_turns(40) {
            picture += &format!(", PjitFunction(f) {}..{}", at + 1, at + 2);
        }
        picture += "\nhost/pool: x 0..1";
        for step in 0..40 {
            let at = 5 + step * 50;
            picture += &ops(at);
        }
        let (durs, _, found_by) = durations(&picture);
        assert_eq!(durs[..39], [50; 39]);
        assert_eq!(found_by, "calls");
    }

    #[test]
    fn a_wait_now_and_then_is_no_slow_step() {
        // The host needs 40 µs a step, the work 50: every twentieth call waits for what is left.
        let (mut picture, mut work) =
            ("host/python: x 0..1".to_owned(), "\nhost/pool: x 0..1".to_owned());
        let mut called = 0;
        for step in 0..60 {
            let began = 2 + step * 50;
            picture += &format!(", PjitFunction(f) {}..{}", called + 1, called + 30);
            work += &ops(began);
            called += 40;
            if step % 20 == 19 {
                called = began + 50;
            }
        }
        let (durs, ..) = durations(&(picture + &work));
        assert_eq!(durs[..59], [50; 59]);
    }

    #[test]
    fn kernels_say_when_the_work_of_a_marked_step_began() {
        let mut picture = "host/python: x 0..1".to_owned();
        for (step, at) in held_up_in_turns(40).into_iter().enumerate() {
            picture +=
                &format!(", train#{step} {at}..{at}.9, cudaLaunchKernel@{step} {at}.5..{at}.6");
        }
        picture += "\ngpu0/stream1: ";
        for step in 0..40 {
            let at = 5 + step * 50;
            picture += &format!("k@{step} {at}..{}, ", at + 48);
        }
        let (durs, number, found_by) = durations(&(picture + "x 0..1"));
        assert_eq!(durs[..38], [50; 38]);
        assert_eq!((number, found_by), (Some(3), "markers"));
    }

    #[test]
    fn an_evaluation_by_the_same_ops_is_no_work_that_was_handed_over() {
        let (mut picture, mut work) =
            ("host/python: x 0..1".to_owned(), "\nhost/pool: x 0..1".to_owned());
        let mut at = 2;
        for step in 0..60 {
            let mut call = |name: &str| {
                picture += &format!(", PjitFunction({name}) {at}..{}", at + 48);
                work += &format!(", MatMul:MatMul {}..{}", at + 1, at + 47);
                at += 50;
            };
            call("train");
            if step % 20 == 19 {
                (0..4).for_each(|_| call("evaluate"));
            }
        }
        let (durs, ..) = durations(&(picture + &work));
        assert_eq!(durs.iter().filter(|&&it| it == 250).count(), 2);
    }

    #[test]
    fn a_slow_step_whose_work_is_slow_too_stays_slow() {
        let mut picture = "host/python: x 0..1".to_owned();
        let mut work = "\nhost/pool: x 0..1".to_owned();
        let mut at = 2;
        for step in 0..40 {
            picture += &format!(", PjitFunction(f) {at}..{}", at + 48);
            work += &ops(at + 1);
            at += if step % 10 == 9 { 500 } else { 50 };
        }
        let (durs, ..) = durations(&(picture + &work));
        assert_eq!(durs.iter().filter(|&&it| it == 500).count(), 3);
    }
}
