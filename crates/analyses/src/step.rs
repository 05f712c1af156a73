//! Finds the training steps, however they are marked or not.
//!
//! ```text
//! markers   |--train 7--|   |--train 8--|    step_num, _r, TraceContext, Steps lines
//! calls     |f||g|          |f||g|           repeated top-level calls of the driving thread
//! period    abcd  x         abcd  x          names that come back at equal distances
//! steps     |------ 7 ------|------ 8 ---…   start to start: gaps belong to the step before
//! ```
//!
//! Tried in that order for each host; the first that gives steps wins. Profiles of one or two
//! batches have their own ways (`batch.rs`), and none runs on into what ends the profile
//! (`closing.rs`). Warm-up is a change of level among the first steps, saving left aside: a
//! checkpoint is no warm-up.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use trace::dialect;
use trace::{EventId, NumberKey, OpKind, StrId, Trace, TrackId, TrackKind};

use crate::step_time::runs_backward;
use crate::{Analysis, Model, Tables};

mod ahead;
mod batch;
mod closing;

use closing::Closing;

table! {
    /// The training steps of each host, from the start of one to the start of the next.
    pub struct Step = "step" {
        /// The host whose step this is.
        host: String,
        /// Steps of a host in the order they began, from 0.
        step: i64,
        /// The step's own number, where the training loop gave one.
        number: Option<i64>,
        /// When it began, since the start of the trace.
        start_ps: i64,
        /// To the start of the next step; of the last, to its own end.
        dur_ps: i64,
        /// How steps were told apart: markers, calls or period.
        found_by: &'static str,
        /// How sure that is, 0 to 1.
        confidence: f64,
        /// What marks the steps: the name of the marker, call or recurring event.
        marker: String,
        /// False where the capture ends inside the step.
        complete: bool,
        /// Belongs to the warm-up and is left out of statistics.
        warmup: bool,
        /// Number of the track whose events drive the steps.
        track: i64,
    }
}

impl Step {
    /// Whether statistics rest on it.
    pub fn counts(&self) -> bool {
        self.complete && !self.warmup
    }

    pub fn span(&self) -> (i64, i64) {
        (self.start_ps, self.start_ps + self.dur_ps)
    }
}

/// The steps that count, of the first host that has any: what tables of mean steps rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    pub host: String,
    /// From the start of the first to the end of the last.
    pub window: (i64, i64),
    pub n: i64,
    /// Whose events drive the steps.
    pub track: TrackId,
}

impl Counted {
    pub fn of(tables: &Tables) -> Option<Counted> {
        let steps = tables.get::<Step>();
        let first = steps.iter().find(|it| it.counts())?;
        let ours = steps.iter().filter(|it| it.counts() && it.host == first.host);
        let (n, end) = ours.fold((0, first.start_ps), |it, step| (it.0 + 1, step.span().1));
        let track = TrackId(u32::try_from(first.track).ok()?);
        Some(Counted { host: first.host.clone(), window: (first.start_ps, end), n, track })
    }

    /// The driving thread; absent where the steps are a device's.
    pub fn thread(&self, trace: &Trace) -> Option<TrackId> {
        Some(self.track).filter(|it| trace.tracks[it.row()].kind == TrackKind::Thread)
    }
}

/// An event that begins a step, and the step's number.
type Mark = (EventId, Option<i64>);

/// Where steps begin, before they are measured.
struct Found {
    track: TrackId,
    by: &'static str,
    confidence: f64,
    marker: String,
    /// Start, end of the marking event, number.
    starts: Vec<(i64, i64, Option<i64>)>,
    /// Where the last step ends, if something after it says so.
    ends_at: Option<i64>,
}

impl Analysis for Step {
    fn run(tables: &Tables) -> Vec<Step> {
        let trace = tables.trace();
        let names = TellingNames::of(trace);
        let mut rows = Vec::new();
        for host in trace.tracks_of(TrackKind::Host) {
            let closing = Closing::of(trace, host, &names.stops);
            let found = by_markers(trace, host)
                .map(|it| {
                    batch::without_callback(trace, host, batch::add_unmarked(trace, &names, it))
                })
                .or_else(|| batch::by_batch_function(trace, host, closing, &names))
                .or_else(|| {
                    by_device_steps(trace, host).map(|it| batch::without_callback(trace, host, it))
                })
                .or_else(|| by_calls(trace, host, closing))
                .or_else(|| by_watching(trace, host));
            let found = match found {
                Some(found) => Some(ahead::of_the_work(trace, host, found)),
                None => ahead::by_programs(trace, host)
                    .or_else(|| by_period(trace, host))
                    .or_else(|| batch::by_single_call(trace, host, closing, &names)),
            };
            let found = found.and_then(|it| without_closing(it, closing));
            if let Some(found) = found {
                rows.extend(measure(trace, host, found, closing));
            }
        }
        rows
    }
}

/// Names that say what an event is, looked for once and not for every host.
struct TellingNames {
    /// They end a profile.
    stops: HashSet<StrId>,
    /// Programs run by a client that is not Python.
    executions: HashSet<StrId>,
    /// Whether calls of `tf.function` say if they traced.
    tells_tracing: bool,
}

impl TellingNames {
    fn of(trace: &Trace) -> TellingNames {
        let names = |test: fn(&str) -> bool| {
            trace.strings.iter().filter(|it| test(it.1)).map(|it| it.0).collect()
        };
        TellingNames {
            stops: names(closing::stops_profiler),
            executions: names(batch::is_execution),
            tells_tracing: trace.details.iter().any(|it| it.traced.is_some()),
        }
    }
}

/// The steps of each host, which lie together in the table.
#[derive(Debug, Default)]
pub struct HostSteps {
    steps: Arc<Vec<Step>>,
    of: HashMap<String, Range<usize>>,
}

impl Model for HostSteps {
    fn build(tables: &Tables) -> HostSteps {
        let steps = tables.get::<Step>();
        let mut of: HashMap<String, Range<usize>> = HashMap::new();
        for (at, step) in steps.iter().enumerate() {
            of.entry_ref(step.host.as_str()).or_insert(at..at).end = at + 1;
        }
        HostSteps { steps, of }
    }
}

impl HostSteps {
    pub fn of(&self, host: &str) -> &[Step] {
        self.of.get(host).map_or(&[], |it| &self.steps[it.clone()])
    }

    /// Those that statistics rest on.
    pub fn counted(&self, host: &str) -> impl DoubleEndedIterator<Item = &Step> {
        self.of(host).iter().filter(|it| it.counts())
    }
}

/// Without steps that begin inside the profiler's own stop, and with none that runs on into it.
fn without_closing(mut found: Found, closing: Option<Closing>) -> Option<Found> {
    let Some(closing) = closing else { return Some(found) };
    found.starts.retain(|it| !closing.contains(it.0));
    let last = found.starts.last_mut()?;
    if last.0 < closing.start {
        last.1 = last.1.min(closing.start);
        found.ends_at = found.ends_at.map(|it| it.min(closing.start));
    }
    Some(found)
}

/// Events that say which step they are, or that they are one.
fn by_markers(trace: &Trace, host: TrackId) -> Option<Found> {
    let mut groups: HashMap<(TrackId, StrId), Vec<Mark>> = HashMap::new();
    let mut numbered = 0;
    let threads = trace.tracks_below(host, TrackKind::Thread);
    let numbers = threads.flat_map(|it| trace.numbers_on(it).iter().map(move |n| (it, n)));
    for (track, number) in numbers {
        let row = number.event.row();
        let marks = match (number.key, trace.events.kind[row]) {
            (NumberKey::Step, _) => true,
            // The framework's own calls are roots too, of which a step can hold many.
            (NumberKey::Root, OpKind::User | OpKind::Step) => true,
            (NumberKey::Root, _) => false,
        };
        if !marks {
            continue;
        }
        let group = groups.entry((track, trace.events.name[row])).or_default();
        let value = (number.key == NumberKey::Step).then_some(number.value);
        numbered += usize::from(value.is_some());
        match group.last_mut() {
            Some(last) if last.0 == number.event => last.1 = last.1.or(value),
            _ => group.push((number.event, value)),
        }
    }
    if numbered == 0 {
        for track in trace.tracks_below(host, TrackKind::Thread) {
            for row in trace.rows_of(track, OpKind::Step) {
                let key = (track, trace.events.name[row]);
                groups.entry(key).or_default().push((EventId(row as u32), None));
            }
        }
    }
    // Of markers inside markers the outer ones are the steps: they hold more time.
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_unstable_by_key(|it| it.0);
    let weight = |events: &[Mark]| {
        let time = events.iter().map(|it| trace.events.dur[it.0.row()]).sum::<trace::Dur>();
        (events.len() > 1, events[0].1.is_some(), time)
    };
    let ((track, name), events) = groups.into_iter().max_by_key(|it| weight(&it.1))?;
    let confidence = if events.len() >= FEWEST { BY_MARKERS } else { BY_FEW_MARKERS };
    Some(Found {
        track,
        by: "markers",
        confidence,
        marker: trace.text(name).to_owned(),
        starts: starts_of(trace, &events),
        ends_at: None,
    })
}

fn starts_of(trace: &Trace, events: &[Mark]) -> Vec<(i64, i64, Option<i64>)> {
    let mut starts: Vec<_> = events
        .iter()
        .map(|&(it, number)| (trace.events.start[it.row()].0, trace.events.end(it).0, number))
        .collect();
    starts.sort_unstable();
    starts.dedup_by_key(|it| it.0);
    starts
}

/// Devices that mark their steps themselves. A step begins with the first device that begins it
/// and lasts until the last one ends it.
fn by_device_steps(trace: &Trace, host: TrackId) -> Option<Found> {
    let tracks: Vec<TrackId> = trace
        .tracks_below(host, TrackKind::Steps)
        .filter(|it| !trace.tracks[it.row()].events.is_empty())
        .collect();
    let most = tracks
        .iter()
        .max_by_key(|it| (trace.tracks[it.row()].events.len(), std::cmp::Reverse(**it)));
    let track = *most?;
    let number = |name: &str| name.rsplit(' ').next().and_then(|it| it.parse::<i64>().ok());
    let mut steps: HashMap<(Option<i64>, usize), (i64, i64)> = HashMap::new();
    for track in tracks {
        for (ordinal, row) in trace.tracks[track.row()].rows().enumerate() {
            let event = EventId(row as u32);
            let (start, end) = (trace.events.start[row].0, trace.events.end(event).0);
            let number = number(trace.name(event));
            let key = (number, if number.is_some() { 0 } else { ordinal });
            let step = steps.entry(key).or_insert((start, end));
            // Devices whose clocks do not agree cannot share a step: the longest one stands for it.
            if start <= step.1 && step.0 <= end {
                *step = (step.0.min(start), step.1.max(end));
            } else if end - start > step.1 - step.0 {
                *step = (start, end);
            }
        }
    }
    let mut starts: Vec<_> =
        steps.into_iter().map(|((number, _), (start, end))| (start, end, number)).collect();
    starts.sort_unstable();
    starts.dedup_by_key(|it| it.0);
    let confidence = if starts.len() >= FEWEST { BY_NUMBERS } else { BY_FEW_NUMBERS };
    Some(Found {
        track,
        by: "markers",
        confidence,
        marker: "Steps".to_owned(),
        starts,
        ends_at: None,
    })
}

/// A call into the framework that could be a step or a part of one.
fn call_name(trace: &Trace, event: EventId) -> Option<StrId> {
    let detail = trace.detail(event);
    let name = trace.name(event);
    let kind = trace.events.kind[event.row()];
    let whole = detail.traced.is_some()
        || (name == "EagerExecute" && detail.calls_function == Some(true))
        || dialect::any(|it| it.begins_step(name, kind));
    whole.then_some(trace.events.name[event.row()])
}

/// Fewer steps show no repetition.
/// Source: physical, two distances can be compared, one cannot.
const FEWEST: usize = 3;
/// How sure steps are that the program marks itself.
/// Source: choice, a guess.
const BY_MARKERS: f64 = 0.98;
/// How sure they are where they are one or two.
/// Source: choice, a guess.
const BY_FEW_MARKERS: f64 = 0.8;
/// How sure steps are that the runtime's own events number.
/// Source: choice, a guess.
const BY_NUMBERS: f64 = 0.9;
/// How sure they are where they are one or two.
/// Source: choice, a guess.
const BY_FEW_NUMBERS: f64 = 0.6;
/// How sure steps are that are one call each.
/// Source: choice, a guess.
const BY_CALLS: f64 = 0.9;
/// How sure steps are that are several calls each.
/// Source: choice, a guess.
const BY_CYCLES: f64 = 0.85;
/// How sure steps are that only a rhythm shows.
/// Source: choice, a guess.
const BY_PERIOD: f64 = 0.6;
/// How sure a single step is at most.
/// Source: choice, as likely as not.
const OF_ONE: f64 = 0.5;
/// What is left of that where the device's clock had to be moved.
/// Source: choice, a guess.
const SHIFTED: f64 = 0.9;

/// Repeated top-level calls: the cycle in which they come is the step.
fn by_calls(trace: &Trace, host: TrackId, closing: Option<Closing>) -> Option<Found> {
    let (track, (calls, _)) = trace
        .tracks_below(host, TrackKind::Thread)
        .filter(|&it| !is_pipeline_thread(trace.track_name(it)))
        .map(|it| (it, top_calls(trace, it)))
        .filter(|it| it.1.0.len() >= FEWEST)
        .max_by_key(|it| (it.1.1, std::cmp::Reverse(it.0)))?;
    let is_closing = |it: &(EventId, StrId)| {
        closing.is_some_and(|closing| closing.contains(trace.events.start[it.0.row()].0))
    };
    let calls = calls.into_iter().filter(|it| !is_closing(it)).collect();
    let calls = without_asides(trace, calls);
    let names: Vec<StrId> = calls.iter().map(|it| it.1).collect();
    let cycle = cycle_of(&names)?;
    let phase = phase_of(trace, &calls, cycle);
    let events: Vec<_> = calls[phase..].iter().step_by(cycle).map(|it| (it.0, None)).collect();
    if events.len() < FEWEST {
        return None;
    }
    // The longest call of the cycle is what a person would call the step.
    let first = &calls[phase..(phase + cycle).min(calls.len())];
    let main = first.iter().max_by_key(|it| trace.events.dur[it.0.row()])?;
    let mut found = Found {
        track,
        by: "calls",
        confidence: if cycle == 1 { BY_CALLS } else { BY_CYCLES },
        marker: trace.text(main.1).to_owned(),
        starts: starts_of(trace, &events),
        ends_at: None,
    };
    // The cycle's last call says where the last step ends.
    for (start, at) in found.starts.iter_mut().zip((phase..).step_by(cycle)) {
        if let Some(last) = calls.get(at + cycle - 1) {
            start.1 = trace.events.end(last.0).0;
        }
    }
    // A cycle that the capture's end cuts off is no step.
    if !(calls.len() - phase).is_multiple_of(cycle) && found.starts.len() > FEWEST {
        found.ends_at = found.starts.pop().map(|it| it.0);
    }
    Some(found)
}

/// Steps that the process itself was seen to begin while its profiler was on.
fn by_watching(trace: &Trace, host: TrackId) -> Option<Found> {
    // Of several processes, which one's steps these are is not known.
    let mut watched = trace.processes.iter().filter(|it| !it.windows.is_empty());
    let (process, None) = (watched.next()?, watched.next()) else { return None };
    if trace.tracks_of(TrackKind::Host).count() != 1 {
        return None;
    }
    let window = process.windows.last()?;
    let end = window.end.map_or(i64::MAX, |it| it.0);
    // The window opens as a step begins.
    let seen = process.steps.iter().map(|it| it.time.0);
    let mut starts = vec![window.start.0];
    starts.extend(seen.filter(|&it| it > window.start.0 && it <= end));
    if starts.len() <= FEWEST {
        return None;
    }
    // It closes as another begins, of which nothing is recorded.
    let ends_at = starts.pop();
    let track = trace
        .tracks_below(host, TrackKind::Thread)
        .filter(|&it| !is_pipeline_thread(trace.track_name(it)))
        .max_by_key(|it| {
            (trace.track_name(*it).contains("python"), trace.tracks[it.row()].events.len())
        })?;
    let ends = starts.iter().copied().skip(1).chain(ends_at);
    Some(Found {
        track,
        by: "calls",
        confidence: BY_CALLS,
        marker: process.step_name.clone().unwrap_or_else(|| "steps".to_owned()),
        starts: starts.iter().zip(ends).map(|it| (*it.0, it.1, None)).collect(),
        ends_at,
    })
}

/// Threads on which input is made, ahead of the steps that use it.
pub fn is_pipeline_thread(name: &str) -> bool {
    dialect::any(|it| it.makes_input(name))
}

/// A thread's calls that lie in no other call, and their time.
fn top_calls(trace: &Trace, track: TrackId) -> (Vec<(EventId, StrId)>, i64) {
    top_calls_among(trace, trace.tracks[track.row()].rows())
}

/// The same of those that begin within some of its rows.
pub fn top_calls_among(
    trace: &Trace,
    rows: impl Iterator<Item = usize>,
) -> (Vec<(EventId, StrId)>, i64) {
    let (mut calls, mut time, mut over) = (Vec::new(), 0_i64, i64::MIN);
    for row in rows {
        let start = trace.events.start[row].0;
        if start < over {
            continue;
        }
        let event = EventId(row as u32);
        if let Some(name) = call_name(trace, event) {
            calls.push((event, name));
            over = trace.events.end(event).0;
            time = time.saturating_add(over - start);
        }
    }
    (calls, time)
}

/// Without calls that only come between long runs of another, as those of an evaluation do, and
/// without the batches fetched for them: these make no step, and what they take belongs to the one
/// before.
fn without_asides(trace: &Trace, calls: Vec<(EventId, StrId)>) -> Vec<(EventId, StrId)> {
    let fetches = |it: &(EventId, StrId)| trace.events.kind[it.0.row()] == OpKind::InputWait;
    let mut counts: HashMap<StrId, usize> = HashMap::new();
    for (_, name) in calls.iter().filter(|it| !fetches(it)) {
        *counts.entry(*name).or_default() += 1;
    }
    let others = calls.iter().filter(|it| !fetches(it)).map(|it| it.1);
    let most = others.clone().max_by_key(|it| (counts[it], std::cmp::Reverse(*it)));
    let Some(main) = most else { return calls };
    let ends = others.clone().zip(others.skip(1)).filter(|it| it.0 == main && it.1 != main);
    let runs = ends.count() + 1;
    if counts.len() == 1 || counts[&main] < runs * LONG_RUN {
        return calls;
    }
    // From the end on, what is fetched is for the call behind it.
    let mut is_aside = false;
    let mut kept: Vec<_> = calls.into_iter().rev().collect();
    kept.retain(|it| {
        is_aside = if fetches(it) { is_aside } else { it.1 != main };
        !is_aside
    });
    kept.reverse();
    kept
}

/// Cycles of more calls are not looked for.
/// Source: choice, a bound on the work.
const LONGEST_CYCLE: usize = 2000;
/// Names repeat nearly always where at most one in so many differs.
/// Source: choice, a guess.
const DIFFER: usize = 20;

/// Fewer calls in a row may be parts of one step, whose gradients are added up before they are
/// applied.
/// Source: choice, a guess: gradients of more batches are seldom added up.
const LONG_RUN: usize = 10;

/// After how many calls the names repeat, if they do nearly always.
fn cycle_of(names: &[StrId]) -> Option<usize> {
    let longest = (names.len() / FEWEST).min(LONGEST_CYCLE);
    (1..=longest).find(|&cycle| {
        let pairs = names.len() - cycle;
        // Stops at the first pair too many, which for most cycles comes soon.
        let differ = (0..pairs).filter(|&it| names[it] != names[it + cycle]);
        differ.take(pairs / DIFFER + 1).count() <= pairs / DIFFER
    })
}

/// Which call of the cycle begins the step: fetching input does; else the one after the
/// longest pause.
fn phase_of(trace: &Trace, calls: &[(EventId, StrId)], cycle: usize) -> usize {
    let fetches = |it: &usize| trace.events.kind[calls[*it].0.row()] == OpKind::InputWait;
    let fetching: Vec<usize> = (0..cycle).filter(fetches).collect();
    if let [one] = fetching[..] {
        return one;
    }
    let pause = |phase: usize| {
        let mut pauses: Vec<i64> = (phase..calls.len())
            .step_by(cycle)
            .filter(|&it| it > 0)
            .map(|it| trace.events.start[calls[it].0.row()].0 - trace.events.end(calls[it - 1].0).0)
            .collect();
        median(&mut pauses).unwrap_or(0)
    };
    (0..cycle).max_by_key(|&it| (pause(it), std::cmp::Reverse(it))).unwrap_or(0)
}

/// Names that come back at equal distances over the whole window.
///
/// Looked for on the busiest thread and on all threads together (executors share out the ops of a
/// loop that runs inside a graph), then on the busiest stream.
fn by_period(trace: &Trace, host: TrackId) -> Option<Found> {
    let on = |kind| -> Vec<TrackId> {
        let tracks = trace.tracks_below(host, kind);
        let makes_steps =
            |&it: &TrackId| !is_pipeline_thread(trace.track_name(it)) && !runs_backward(trace, it);
        tracks.filter(makes_steps).collect()
    };
    let busiest = |tracks: &[TrackId]| {
        let size = |it: &TrackId| (trace.tracks[it.row()].events.len(), std::cmp::Reverse(*it));
        tracks.iter().copied().max_by_key(size).filter(|it| size(it).0 >= FEWEST_EVENTS)
    };
    let (threads, streams) = (on(TrackKind::Thread), on(TrackKind::Stream));
    let thread = busiest(&threads);
    let stream = busiest(&streams);
    // The thread that called the graph waits for it, and says what is done around it.
    let python = threads.iter().copied().find(|&it| trace.track_name(it).contains("python"));
    // Where ops are shared out, one thread alone shows some of them at chance distances: the
    // larger number of names that agree wins.
    let alone = thread.and_then(|it| period_on(trace, it, &[it], tells_a_period));
    let together = python.or(thread).and_then(|it| period_on(trace, it, &threads, tells_a_period));
    let hosts = match (alone, together) {
        (Some(alone), Some(together)) => Some(if alone.0 >= together.0 { alone } else { together }),
        (alone, together) => alone.or(together),
    };
    let streams = || stream.and_then(|it| period_on(trace, it, &[it], tells_a_period));
    hosts.or_else(streams).map(|it| it.1)
}

fn tells_a_period(trace: &Trace, event: EventId) -> bool {
    let kind = trace.events.kind[event.row()];
    !matches!(kind, OpKind::Listener | OpKind::Memory | OpKind::OpEnd)
}

/// A thread with fewer events has no rhythm.
/// Source: choice, a guess.
const FEWEST_EVENTS: usize = 8;
/// Moments are regular where so many tenths of the time between them, or of the distances, are near
/// to the middle one.
/// Source: choice, a guess.
const NEAR_TENTHS: i64 = 6;
/// With fewer distances all must be near.
/// Source: choice, a guess.
const FEW_GAPS: usize = 4;
/// And by distances only where none is longer than so many of the middle one.
/// Source: choice, a guess.
const LONGEST_GAP: i64 = 4;
/// Steps are in so many tenths of the time at least.
/// Source: choice, a guess.
const SPAN_TENTHS: i64 = 7;
/// Tenths of a whole.
/// Source: physical, the word says it.
const TENTHS: i128 = 10;

/// More occurrences than this are no steps a person would capture.
/// Source: choice, a bound on the work.
const MOST_STEPS: usize = 20_000;

/// The period in what counts of all that runs on `tracks`, for steps that are said to be on `track`,
/// and how much speaks for it.
fn period_on(
    trace: &Trace,
    track: TrackId,
    tracks: &[TrackId],
    counts: impl Fn(&Trace, EventId) -> bool,
) -> Option<(u64, Found)> {
    let events = &trace.events;
    let rows = tracks.iter().flat_map(|it| trace.tracks[it.row()].rows());
    let rows = rows.map(|it| it as u32).filter(|&it| counts(trace, EventId(it)));
    let mut rows: Vec<u32> = rows.collect();
    rows.sort_by_key(|&it| events.start[it as usize]);
    let first = events.start[*rows.first()? as usize].0;
    // When all that began before a row was over: what is left until the row is a pause.
    let mut last = first;
    let mut over_before = Vec::with_capacity(rows.len());
    let mut by_name: HashMap<StrId, Vec<u32>> = HashMap::new();
    for (place, &row) in rows.iter().enumerate() {
        over_before.push(last);
        last = last.max(events.end(EventId(row)).0);
        by_name.entry(events.name[row as usize]).or_default().push(place as u32);
    }
    let times = |at: &[u32]| -> Vec<i64> {
        at.iter().map(|&it| events.start[rows[it as usize] as usize].0).collect()
    };
    let mut regular: Vec<(StrId, Vec<u32>)> = by_name
        .into_iter()
        .filter(|(_, at)| (FEWEST..=MOST_STEPS).contains(&at.len()))
        .filter(|(_, at)| is_regular(&times(at), first, last))
        .collect();
    regular.sort_unstable_by_key(|it| it.1[0]);

    // Many names that come once a step outvote those of an inner loop or of every third step.
    let mut names_by_count: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, at) in &regular {
        *names_by_count.entry(at.len()).or_default() += 1;
    }
    let votes = |n: usize| {
        let names: usize = names_by_count.range(n - 1..=n + 1).map(|it| it.1).sum();
        (names as f64 * (n as f64).sqrt() * 1000.0) as u64
    };
    let n = names_by_count.keys().copied().max_by_key(|&it| (votes(it), it))?;
    let pause = |at: &[u32]| {
        let mut pauses: Vec<i64> = at
            .iter()
            .filter(|&&it| it > 0)
            .map(|&it| events.start[rows[it as usize] as usize].0 - over_before[it as usize])
            .collect();
        median(&mut pauses).unwrap_or(0)
    };
    let (name, at) = regular
        .iter()
        .filter(|it| it.1.len().abs_diff(n) <= 1)
        .max_by_key(|it| (pause(&it.1), std::cmp::Reverse(it.1[0])))?;
    let marks: Vec<Mark> = at.iter().map(|&it| (EventId(rows[it as usize]), None)).collect();
    let mut starts = starts_of(trace, &marks);
    // Nothing says where the last one ends but the end of what runs.
    if let Some(it) = starts.last_mut() {
        it.1 = last;
    }
    let found = Found {
        track,
        by: "period",
        confidence: BY_PERIOD,
        marker: trace.text(*name).to_owned(),
        starts,
        ends_at: None,
    };
    Some((votes(n), found))
}

/// Whether moments come at about equal distances, over most of the time from `first` to `last`.
fn is_regular(times: &[i64], first: i64, last: i64) -> bool {
    let gaps: Vec<i64> = times.windows(2).map(|it| it[1] - it[0]).collect();
    let Some(typical) = median(&mut gaps.clone()) else { return false };
    let near: Vec<i64> =
        gaps.iter().copied().filter(|it| (it - typical).abs() <= typical / 2).collect();
    let longest = gaps.iter().copied().max().unwrap_or(0);
    let spans = times[times.len() - 1] - times[0];
    // By time, not by number: the short gaps of a loop inside the step are many, and cover little.
    // Steps on a busy machine may vary a lot, but none is many times as long as the others.
    let covers = at_least(near.iter().sum(), NEAR_TENTHS, spans)
        || (longest / LONGEST_GAP <= typical
            && at_least(near.len() as i64, NEAR_TENTHS, gaps.len() as i64));
    // A few moments come at about equal distances by chance.
    let few = gaps.len() < FEW_GAPS;
    let strict = gaps.iter().all(|it| (it - typical).abs() <= typical / ABOUT);
    if few && !strict {
        return false;
    }
    typical > 0 && covers && at_least(spans.saturating_add(typical), SPAN_TENTHS, last - first)
}

/// Whether `part` is at least so many tenths of `whole`. Times of broken profiles fill an `i64`.
fn at_least(part: i64, tenths: i64, whole: i64) -> bool {
    i128::from(part) * TENTHS >= i128::from(whole) * i128::from(tenths)
}

/// From starts to rows: lengths, whether the last is whole, and the warm-up.
fn measure(trace: &Trace, host: TrackId, found: Found, closing: Option<Closing>) -> Vec<Step> {
    let starts = &found.starts;
    let n = starts.len();
    let mut durs: Vec<i64> = starts.windows(2).map(|it| it[1].0.saturating_sub(it[0].0)).collect();
    let mut tails: Vec<i64> =
        starts.windows(2).map(|it| it[1].0.saturating_sub(it[0].1).max(0)).collect();
    let typical = median(&mut durs.clone());
    let tail = median(&mut tails).unwrap_or(0);

    let (start, end, _) = starts[n - 1];
    let (dur, complete) = match found.ends_at {
        Some(end) => (end.saturating_sub(start), true),
        None => {
            let recorded = Recorded::of(trace, host, found.track, closing);
            last_step(&recorded, start, end, typical, tail)
        }
    };
    let complete = complete && !(found.by == "calls" && outlasts_all(&durs, dur));
    durs.push(dur);

    let plain = without_saving(trace, host, starts, &durs);
    let judged = if complete { &plain[..] } else { &plain[..n - 1] };
    let warmup = match judged.len() {
        2 | 3 => usize::from(first_is_warmup(judged, &compile_times(trace, host, starts, judged))),
        _ => warmup_of(judged),
    };
    let mut confidence = if n == 1 { found.confidence.min(OF_ONE) } else { found.confidence };
    let is_shifted = |it: TrackId| trace.clock_shifts.binary_search_by_key(&it, |it| it.device);
    if trace.tracks_below(host, TrackKind::Device).any(|it| is_shifted(it).is_ok()) {
        // Where the device's work lies is then an estimate.
        confidence *= SHIFTED;
    }
    // The name of a compiled op can be its whole text.
    let marker: String = found.marker.chars().take(LONGEST_NAME).collect();
    starts
        .iter()
        .zip(&durs)
        .enumerate()
        .map(|(step, (&(start_ps, _, number), &dur_ps))| Step {
            host: trace.track_name(host).to_owned(),
            step: step as i64,
            number,
            start_ps,
            dur_ps,
            found_by: found.by,
            confidence,
            marker: marker.clone(),
            complete: complete || step + 1 < n,
            warmup: step < warmup,
            track: i64::from(found.track.0),
        })
        .collect()
}

/// Whether the last step is more than twice as long as any other. Where a loop is over, an
/// evaluation may follow, or the next epoch begins: no part of its last step, and nothing marks
/// where that ends.
fn outlasts_all(others: &[i64], last: i64) -> bool {
    others.len() >= FEWEST && others.iter().all(|&it| last / 2 > it)
}

/// Until when a profile tells of what follows its last step.
struct Recorded {
    /// When the profiler was off, by its own word.
    window: Option<i64>,
    /// When a call began to stop it.
    closing: Option<i64>,
    /// When the last event of the driving thread was over.
    over: Option<i64>,
    /// When the devices were done.
    busy_until: Option<i64>,
}

impl Recorded {
    fn of(trace: &Trace, host: TrackId, track: TrackId, closing: Option<Closing>) -> Recorded {
        Recorded {
            window: trace.window.map(|it| it.0),
            closing: closing.map(|it| it.start),
            over: trace.tracks[track.row()].over.map(|it| it.0),
            busy_until: trace
                .tracks_below(host, TrackKind::Stream)
                .filter_map(|it| trace.tracks[it.row()].over)
                .map(|it| it.0)
                .max(),
        }
    }
}

/// The last step has no next start. Where steps have little behind their marker, it gets the
/// typical little; else it ends where the profiler is stopped, if that is about where it would
/// end; else it is whole where the profile goes on for longer than the typical rest takes.
fn last_step(
    recorded: &Recorded,
    start: i64,
    end: i64,
    typical: Option<i64>,
    tail: i64,
) -> (i64, bool) {
    let own = end.saturating_sub(start).max(0);
    let Some(typical) = typical else { return (own, true) };
    let stop = recorded.closing.or(recorded.window);
    let until_stop = stop.map(|it| it.saturating_sub(start));
    if tail <= typical / LITTLE {
        let whole = own + tail;
        return (until_stop.filter(|&it| it >= own).map_or(whole, |it| whole.min(it)), true);
    }
    // A program that stops the profiler when its work is done has ended its step.
    if let (Some(closing), Some(busy_until)) = (recorded.closing, recorded.busy_until)
        && let rest = closing.saturating_sub(start)
        && rest >= own
        && rest - own <= tail.saturating_mul(2)
    {
        return (rest, busy_until <= closing);
    }
    if let Some(rest) = until_stop
        && rest.abs_diff(typical) <= (typical / ABOUT).unsigned_abs()
    {
        return (rest, true);
    }
    let whole = own.saturating_add(tail);
    let known = match recorded.closing {
        Some(it) => Some(it),
        None => recorded.over,
    };
    match known {
        Some(it) if it.saturating_sub(start) >= whole => (whole, true),
        _ => (own, false),
    }
}

/// Step lengths for judging the warm-up: one that saves stands as an ordinary one, since a first
/// save may take long in a run that is long warm.
fn without_saving(
    trace: &Trace,
    host: TrackId,
    starts: &[(i64, i64, Option<i64>)],
    durs: &[i64],
) -> Vec<i64> {
    let mut saves = vec![false; durs.len()];
    for track in trace.tracks_below(host, TrackKind::Thread) {
        for row in trace.rows_of(track, OpKind::Save) {
            let step = starts.partition_point(|it| it.0 <= trace.events.start[row].0);
            if let Some(saves) = step.checked_sub(1).and_then(|it| saves.get_mut(it)) {
                *saves = true;
            }
        }
    }
    let mut others: Vec<i64> = durs.iter().zip(&saves).filter(|it| !it.1).map(|it| *it.0).collect();
    match median(&mut others) {
        Some(typical) => durs
            .iter()
            .zip(&saves)
            .map(|(&dur, &saves)| if saves { typical } else { dur })
            .collect(),
        None => durs.to_vec(),
    }
}

/// Steps have little behind their marker where it is less than one part in so many.
/// Source: choice, a guess.
const LITTLE: i64 = 20;
/// Times are about the same, such as a step's end and the stop of the profiler, within one part in
/// so many of a step.
/// Source: choice, a guess: a quarter.
const ABOUT: i64 = 4;
/// Markers are cut to so many characters.
/// Source: choice, a bound on memory.
const LONGEST_NAME: usize = 256;
/// A later step still compiles where that takes more than one part in so many of it.
/// Source: choice, a guess: a tenth.
const STILL_COMPILES: i64 = 10;
/// A first step is far above the others where this part of it is still longer than they are.
/// Source: choice, half as long again.
const FAR_ABOVE: (i64, i64) = (2, 3);
/// Warm-up of more steps is not looked for.
/// Source: choice, a bound on the work.
const LONGEST_WARMUP: usize = 64;
/// Nearly every step: all but the slowest twentieth.
/// Source: choice, a guess.
const NEARLY_EVERY: (usize, usize) = (19, 20);
/// Percent of a whole.
/// Source: physical, the word says it.
const PERCENT: i64 = 100;

/// A change of level this large is not drift or a busy machine: a first step that traces,
/// compiles or tunes takes several times as long.
/// Source: choice, a guess.
const WARMUP_PERCENT: i64 = 250;

/// Among so few steps, one that compiled and took half as long again as the others is no step like
/// them.
/// Source: choice, a guess.
const COMPILING_PERCENT: i64 = 150;

/// Whether the first of two or three steps belongs to another, slower regime.
fn first_is_warmup(durs: &[i64], compiling: &[i64]) -> bool {
    let (Some((&first, others)), Some((&compiled, after))) =
        (durs.split_first(), compiling.split_first())
    else {
        return false;
    };
    let (Some(middle), Some(&most)) = (median(&mut others.to_vec()), others.iter().max()) else {
        return false;
    };
    let slower = |percent: i64| first.saturating_mul(PERCENT) >= middle.saturating_mul(percent);
    // Compiling must explain the difference, and must not go on.
    let explains = compiled >= (first - middle) / 2
        && after.iter().zip(others).all(|(compiled, dur)| *compiled <= dur / STILL_COMPILES);
    let is_far_above =
        others.len() >= 2 && slower(WARMUP_PERCENT) && first / FAR_ABOVE.1 * FAR_ABOVE.0 > most;
    is_far_above || (slower(COMPILING_PERCENT) && explains)
}

/// How long each step traced, compiled or tuned, on whatever thread did most of it.
fn compile_times(
    trace: &Trace,
    host: TrackId,
    starts: &[(i64, i64, Option<i64>)],
    durs: &[i64],
) -> Vec<i64> {
    let mut most = vec![0; durs.len()];
    for track in trace.tracks_below(host, TrackKind::Thread) {
        let mut here = vec![0_i64; durs.len()];
        let mut over = i64::MIN;
        for row in trace.rows_of(track, OpKind::Compile) {
            let at = trace.events.start[row].0;
            if at < over {
                continue;
            }
            over = trace.events.end(EventId(row as u32)).0;
            let step = starts.partition_point(|it| it.0 <= at).checked_sub(1);
            if let Some(time) = step.and_then(|it| here.get_mut(it)) {
                *time = time.saturating_add(over - at);
            }
        }
        for (most, here) in most.iter_mut().zip(here) {
            *most = here.max(*most);
        }
    }
    most
}

/// How many steps at the start belong to another, slower regime.
///
/// The split that leaves the least absolute deviation from each side's median; it counts only
/// where every step before it is slower than nearly every one after it.
fn warmup_of(durs: &[i64]) -> usize {
    if durs.len() <= FEWEST {
        return 0;
    }
    let deviation = |part: &[i64]| {
        let middle = median(&mut part.to_vec()).unwrap_or(0);
        part.iter().fold(0_i64, |sum, it| sum.saturating_add((it - middle).abs()))
    };
    // Long runs need no more than their beginning looked at.
    let most = (durs.len() / 2).min(LONGEST_WARMUP);
    let split =
        (1..=most).min_by_key(|&it| deviation(&durs[..it]).saturating_add(deviation(&durs[it..])));
    let Some(split) = split else { return 0 };
    let (before, after) = durs.split_at(split);
    let mut sorted = after.to_vec();
    sorted.sort_unstable();
    let high = sorted[(sorted.len() - 1) * NEARLY_EVERY.0 / NEARLY_EVERY.1];
    let middle = sorted[sorted.len() / 2];
    let slower = before.iter().all(|&it| {
        it > high && it.saturating_mul(PERCENT) >= middle.saturating_mul(WARMUP_PERCENT)
    });
    if slower { split } else { 0 }
}

/// The middle value; of an even number the mean of the two.
pub fn median(values: &mut [i64]) -> Option<i64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let (below, &mut high, _) = values.select_nth_unstable(middle);
    if below.len() < middle || !values.len().is_multiple_of(2) {
        return Some(high);
    }
    let low = values[..middle].iter().copied().max().unwrap_or(high);
    Some(low + (high - low) / 2)
}

/// The least value that a share of all values does not exceed: one of them, so that the order of
/// percentiles is that of their shares.
pub fn percentile(values: &mut [i64], share: f64) -> Option<i64> {
    let rank = (values.len() as f64 * share).ceil() as usize;
    let at = rank.clamp(1, values.len().max(1)) - 1;
    (at < values.len()).then(|| *values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;
    use trace::{Process, StepCount, Time, Window};

    use super::{Step, first_is_warmup, median, percentile, warmup_of};
    use crate::Tables;

    /// Start, length (both µs), how found, complete, warm-up.
    fn check(picture: &str, expected: &[(i64, i64, &str, bool, bool)]) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let rows: Vec<_> = tables
            .get::<Step>()
            .iter()
            .map(|it| {
                (
                    it.start_ps / 1_000_000,
                    it.dur_ps / 1_000_000,
                    it.found_by,
                    it.complete,
                    it.warmup,
                )
            })
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn what_follows_the_loop_is_no_part_of_its_last_step() {
        let step = |at: i64| format!("PjitFunction(f) {at}..{}", at + 8);
        let loop_of = |end: &str| {
            let steps = [0, 10, 20, 30].map(step).join(", ");
            let tables = Tables::new(Arc::new(draw(&format!(
                "host/python: {steps}, PjitFunction(f) 40..{end}"
            ))));
            tables.get::<Step>().iter().map(Step::counts).collect::<Vec<_>>()
        };
        assert_eq!(loop_of("54, x 70..71"), [true; 5]);
        assert_eq!(loop_of("68, x 90..91"), [true, true, true, true, false]);
    }

    #[test]
    fn a_few_moments_at_unequal_distances_are_no_rhythm() {
        let at = |times: [i64; 4]| {
            let of = |it: i64| {
                format!(
                    "a::f {it}..{}, b::f {}..{}, c::f {}..{}",
                    it + 1,
                    it + 2,
                    it + 3,
                    it + 4,
                    it + 5
                )
            };
            let picture = format!("host/python: {}", times.map(of).join(", "));
            Tables::new(Arc::new(draw(&picture))).get::<Step>().len()
        };
        assert_eq!(at([0, 27, 370, 635]), 0);
    }

    #[test]
    fn gaps_belong_to_the_step_before() {
        check(
            "host/python: train#5 0..80, train#6 100..180, train#7 200..280",
            &[
                (0, 100, "markers", true, false),
                (100, 100, "markers", true, false),
                (200, 80, "markers", false, false),
            ],
        );
    }

    #[test]
    fn where_no_calls_repeat_the_steps_that_were_watched_count() {
        let ops: Vec<String> =
            (0..40).map(|it| format!("Op{} {}..{}", it % 7, it * 10, it * 10 + 5)).collect();
        let mut trace = draw(&format!("host/python: {}", ops.join(", ")));
        let step =
            |us: i64, count: i64| StepCount { time: Time(us * 1_000_000), count, anew: false };
        let window = Window {
            start: Time(1_000_000),
            end: Some(Time(401_000_000)),
            until: Some(Time(402_000_000)),
        };
        trace.processes.push(Process {
            steps: vec![step(0, 1), step(100, 2), step(200, 3), step(300, 4), step(400, 5)],
            windows: vec![window],
            ..Process::default()
        });
        let tables = Tables::new(Arc::new(trace));
        let rows: Vec<_> = tables
            .get::<Step>()
            .iter()
            .map(|it| (it.start_ps / 1_000_000, it.dur_ps / 1_000_000, it.found_by))
            .collect();
        assert_eq!(
            rows,
            [(1, 99, "calls"), (100, 100, "calls"), (200, 100, "calls"), (300, 100, "calls")]
        );
    }

    #[test]
    fn calls_in_a_cycle_make_a_step() {
        check(
            "host/python: SessionRun 0..10, PjitFunction(f) 10..20, SessionRun 50..60, \
             PjitFunction(f) 60..70, SessionRun 100..110, PjitFunction(f) 110..120, \
             SessionRun 150..160, PjitFunction(f) 160..199",
            &[
                (0, 50, "calls", true, false),
                (50, 50, "calls", true, false),
                (100, 50, "calls", true, false),
                (150, 49, "calls", false, false),
            ],
        );
    }

    #[test]
    fn an_evaluation_now_and_then_makes_no_step() {
        let mut picture = "host/python: x 0..1".to_owned();
        let mut at = 1;
        for step in 1..=60 {
            picture += &format!(", PjitFunction(train) {at}..{}", at + 9);
            at += 10;
            for _ in 0..if step % 20 == 0 { 3 } else { 0 } {
                picture += &format!(", PjitFunction(evaluate) {at}..{}", at + 30);
                at += 30;
            }
        }
        let tables = Tables::new(Arc::new(draw(&picture)));
        let steps = tables.get::<Step>();
        assert_eq!((steps.len(), steps[0].marker.as_str()), (60, "PjitFunction(train)"));
        let long = steps.iter().filter(|it| it.dur_ps == 100_000_000).map(|it| it.step);
        assert_eq!(long.collect::<Vec<_>>(), [19, 39]);
    }

    #[test]
    fn batches_of_an_evaluation_make_no_step() {
        let mut picture = "host/python: x 0..1".to_owned();
        let mut at = 1;
        for step in 1..=60 {
            for function in if step % 20 == 0 { &["train", "test", "test"][..] } else { &["train"] }
            {
                picture += &format!(
                    ", EagerLocalExecute: IteratorGetNext {at}..{0}, PjitFunction({function}) {0}..{1}",
                    at + 2,
                    at + 9
                );
                at += 10;
            }
        }
        let tables = Tables::new(Arc::new(draw(&picture)));
        let steps = tables.get::<Step>();
        assert_eq!((steps.len(), steps[0].marker.as_str()), (60, "PjitFunction(train)"));
        assert_eq!(steps.iter().filter(|it| it.dur_ps == 30_000_000).count(), 2);
    }

    #[test]
    fn gradients_added_up_and_applied_are_one_step() {
        let mut picture = "host/python: x 0..1".to_owned();
        for step in 0..6 {
            for part in 0..8 {
                let at = 1 + step * 100 + part * 10;
                picture += &format!(", PjitFunction(accumulate) {at}..{}", at + 9);
            }
            let at = 1 + step * 100 + 80;
            picture += &format!(", PjitFunction(apply) {at}..{}", at + 10);
        }
        let tables = Tables::new(Arc::new(draw(&picture)));
        let durs: Vec<i64> = tables.get::<Step>().iter().map(|it| it.dur_ps / 1_000_000).collect();
        assert_eq!(durs[..5], [100; 5]);
    }

    #[test]
    fn recurring_names_make_a_step_without_any_mark() {
        check(
            "gpu0/stream1: a 0..10, b 10..20, b 20..30, c 30..40, a 50..60, b 60..70, b 70..80, \
             c 80..90, a 100..110, b 110..120, b 120..130, c 130..140",
            &[
                (0, 50, "period", true, false),
                (50, 50, "period", true, false),
                (100, 40, "period", false, false),
            ],
        );
    }

    #[test]
    fn a_loop_inside_a_graph_is_found_on_all_its_threads_together() {
        let iteration = |at: i64, thread: i64| {
            let op = |name: &str, from: i64, thread: i64| {
                format!("host/tf_Compute/{thread}: {name}:{name} {from}..{}\n", from + 8)
            };
            op("A", at, thread) + &op("B", at + 10, 1 - thread) + &op("C", at + 20, thread)
        };
        // The ops come to the threads as it happens: on none of them alone they are regular.
        let threads = [0, 0, 1, 0, 1, 1, 1, 0, 0, 1];
        let mut picture = "host/python: EagerExecute 0..500\n".to_owned();
        for (step, thread) in threads.into_iter().enumerate() {
            picture += &iteration(step as i64 * 50, thread);
        }
        let tables = Tables::new(Arc::new(draw(&picture)));
        let steps = tables.get::<Step>();
        let durs: Vec<i64> = steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps).collect();
        assert_eq!(durs, [50_000_000; 9]);
        assert_eq!(steps[0].found_by, "period");
    }

    /// One batch of Keras on a GPU: the call, its kernels and the wait for them, then the callback
    /// that writes the graph and stops the profiler.
    const ONE_BATCH: &str = "
        host/python: train_function{traced=false} 0..5500, cuLaunchKernel@1 100..110, \
            cuLaunchKernel@2 5000..5010, cuStreamSynchronize 5600..8300, tf.constant 33500..33600, \
            EagerExecute 33600..33900, cuLaunchKernel@3 33610..33620, \
            EagerLocalExecute: WriteSummary 34000..34100, EagerLocalExecute: FlushSummaryWriter 35000..36000
        gpu0/stream1: gemm@1 200..5200, relu@2 5200..8250, LogicalAnd@3 33700..33702
    ";

    #[test]
    fn one_batch_is_its_call_and_what_it_waits_for() {
        check(ONE_BATCH, &[(0, 8300, "calls", true, false)]);
        let tables = Tables::new(Arc::new(draw(ONE_BATCH)));
        let step = &tables.get::<Step>()[0];
        assert_eq!((step.marker.as_str(), step.confidence), ("train_function", 0.5));
    }

    #[test]
    fn a_marker_that_runs_on_into_the_callback_ends_with_its_batch() {
        let marked = ONE_BATCH.replace("host/python: ", "host/python: train#7 0..37000, ");
        check(&marked, &[(0, 8300, "markers", true, false)]);
    }

    #[test]
    fn a_mark_of_the_callback_alone_is_no_step() {
        let mut marked = "host/python: x 0..1".to_owned();
        for it in 0..4 {
            let at = it * 100;
            marked += &format!(
                ", train#{it} {at}..{}, train_function{{traced=false}} {}..{}",
                at + 99,
                at + 1,
                at + 90
            );
        }
        marked += ", train#4 500..600, EagerLocalExecute: WriteSummary 510..520";
        let tables = Tables::new(Arc::new(draw(&marked)));
        assert_eq!(tables.get::<Step>().len(), 4);
    }

    #[test]
    fn one_batch_without_kernels_is_its_call() {
        check(
            "
            host/python: train_function{traced=false} 20..54520, tf.constant 744000..744300, \
                EagerLocalExecute: WriteSummary 746000..746090
            host/tf_data_iterator_get_next/1: IteratorGetNextOp::DoCompute 300..43800
            ",
            &[(20, 54500, "calls", true, false)],
        );
    }

    #[test]
    fn a_single_program_that_another_language_runs_is_a_step() {
        check(
            "
            host/julia: PjRtStreamExecutorLoadedExecutable::Execute 100..7700
            gpu0/s: fusion 5000..5002
            ",
            &[(100, 7600, "calls", true, false)],
        );
    }

    #[test]
    fn a_small_call_beside_a_single_large_one_is_no_step() {
        check(
            "host/python: PjitFunction(add) 0..10, PjitFunction(train) 100..1000",
            &[(100, 900, "calls", true, false)],
        );
        check(
            "host/python: PjitFunction(a) 0..10, PjitFunction(b) 20..30, PjitFunction(c) 40..50",
            &[],
        );
    }

    #[test]
    fn batches_at_the_ends_of_a_profile_lack_their_marker() {
        check(
            "host/python: train_function{traced=false} 0..80, train#31 100..190, \
             train_function{traced=false} 101..180, train#32 200..290, \
             train_function{traced=false} 201..280, train_function{traced=false} 301..380, \
             EagerLocalExecute: WriteSummary 500..510",
            &[
                (0, 100, "markers", true, false),
                (100, 100, "markers", true, false),
                (200, 101, "markers", true, false),
                (301, 90, "markers", true, false),
            ],
        );
    }

    #[test]
    fn stopping_the_profiler_is_no_step_and_part_of_none() {
        let step = |at: i64| {
            format!("PjitFunction(f) {at}..{}, PjitFunction(g) {}..{}", at + 30, at + 40, at + 70)
        };
        check(
            &format!(
                "host/python: {}, {}, {}, $profiler.py:213 stop_trace 290..900, {}",
                step(0),
                step(100),
                step(200),
                step(300)
            ),
            &[
                (0, 100, "calls", true, false),
                (100, 100, "calls", true, false),
                (200, 90, "calls", true, false),
            ],
        );
    }

    #[test]
    fn a_device_clock_that_was_moved_lowers_the_confidence() {
        let picture = |early: i64| {
            let mut rows = ["host/python: x 0..1", "gpu0/s: y 0..1"].map(str::to_owned);
            for it in 1..=5 {
                let at = it * 1000;
                rows[0] += &format!(
                    ", train#{it} {at}..{}, cuLaunchKernel@{it} {}..{}",
                    at + 990,
                    at + 10,
                    at + 20
                );
                rows[1] += &format!(", k@{it} {}..{}", at + 30 - early, at + 900 - early);
            }
            let tables = Tables::new(Arc::new(draw(&rows.join("\n"))));
            tables.get::<Step>()[0].confidence
        };
        assert_eq!(picture(0), 0.98);
        assert!(picture(300) < 0.9);
    }

    #[test]
    fn among_three_steps_the_first_can_be_warm_up() {
        assert!(first_is_warmup(&[24, 4, 5], &[0, 0, 0]), "many times as long");
        assert!(!first_is_warmup(&[24, 4, 20], &[0, 0, 0]), "a slow step comes again");
        assert!(!first_is_warmup(&[12, 10, 9], &[0, 0, 0]));
        assert!(first_is_warmup(&[20, 10, 10], &[8, 0, 0]), "compiling explains it");
        assert!(!first_is_warmup(&[20, 10, 10], &[8, 6, 6]), "all compile");
        assert!(first_is_warmup(&[20, 10], &[8, 0]));
        assert!(!first_is_warmup(&[20, 5], &[0, 0]), "of two, who is slow?");
    }

    #[test]
    fn warm_up_is_a_change_of_level() {
        assert_eq!(warmup_of(&[800, 700, 100, 101, 99, 100, 102]), 2);
        assert_eq!(warmup_of(&[100, 101, 99, 100, 102]), 0);
        assert_eq!(warmup_of(&[349, 331, 287, 309, 251, 226, 264, 216]), 0, "drift");
        assert_eq!(warmup_of(&[100, 10, 10, 100, 10, 10, 100, 10]), 0, "a slow step comes again");
    }

    #[test]
    fn percentiles_are_values_in_the_order_of_their_shares() {
        assert_eq!(percentile(&mut [], 0.95), None);
        assert_eq!(percentile(&mut [7], 0.95), Some(7));
        assert_eq!(percentile(&mut [30, 10, 20], 0.5), Some(20));
        // Of five the longest is both: anything between the last two would be less than p90.
        let mut five = [50, 10, 30, 20, 40];
        assert_eq!([0.9, 0.95].map(|it| percentile(&mut five, it)), [Some(50); 2]);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3, 1, 2]), Some(2));
        assert_eq!(median(&mut [4, 1, 2, 3]), Some(2));
    }
}
