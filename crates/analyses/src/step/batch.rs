//! Steps of profiles that hold one or two of them, as callbacks write by default.
//!
//! ```text
//! profiler        |on ------------------------------------------------------- off|
//! marker   ───────┐ |-- train 31 --|   |-- train 32 --|   ┌─────── never recorded
//! call      |train_function| |train_function| |train_function| |train_function|
//! ```
//!
//! The profiler is started and stopped inside a batch, so the first and the last one lack their
//! marker; their call is there.

use hashbrown::{HashMap, HashSet};
use trace::dialect;
use trace::{EventId, OpKind, StrId, Trace, TrackId, TrackKind};

use super::closing::{self, Closing};
use super::{Found, TellingNames, is_pipeline_thread, top_calls};

/// More calls than this have a rhythm of their own.
/// Source: choice, three calls are the fewest with two equal distances.
const FEW: usize = 2;

/// One batch says nothing of the next.
/// Source: choice, as likely as not.
const CONFIDENCE: f64 = 0.5;

/// Calls of one name on one thread.
struct Calls {
    track: TrackId,
    name: StrId,
    events: Vec<EventId>,
    time: i64,
}

/// One or two batches, by the function that trains on one.
///
/// The runtime's own line of steps runs on into the callback that ends such a profile: it is
/// believed only where it tells many more steps apart, as inside a loop of a compiled function.
pub fn by_batch_function(
    trace: &Trace,
    host: TrackId,
    closing: Option<Closing>,
    names: &TellingNames,
) -> Option<Found> {
    let calls = candidates(trace, host, closing, names, |it| dialect::any(|one| one.is_batch(it)));
    let calls = calls.into_iter().max_by_key(|it| it.time)?;
    let marked = trace
        .tracks_below(host, TrackKind::Steps)
        .map(|it| trace.tracks[it.row()].events.len())
        .max()
        .unwrap_or(0);
    if marked > calls.events.len() + 1 {
        return None;
    }
    few(trace, host, calls)
}

/// One or two calls of anything that takes most of the time of all calls.
pub fn by_single_call(
    trace: &Trace,
    host: TrackId,
    closing: Option<Closing>,
    names: &TellingNames,
) -> Option<Found> {
    let calls = candidates(trace, host, closing, names, |_| true);
    let all = calls.iter().fold(0_i64, |sum, it| sum.saturating_add(it.time));
    let main = calls.into_iter().max_by_key(|it| (it.time, std::cmp::Reverse(it.track)))?;
    if main.time < all / 2 {
        return None;
    }
    few(trace, host, main)
}

fn few(trace: &Trace, host: TrackId, calls: Calls) -> Option<Found> {
    let last = *calls.events.last()?;
    if calls.events.len() > FEW {
        return None;
    }
    let ends_at = closing::settled(trace, host, last);
    let marks: Vec<_> = calls.events.iter().map(|&it| (it, None)).collect();
    Some(Found {
        track: calls.track,
        by: "calls",
        confidence: CONFIDENCE,
        marker: trace.text(calls.name).to_owned(),
        starts: super::starts_of(trace, &marks),
        ends_at: Some(ends_at),
    })
}

/// Calls that could be a step, by thread and name.
fn candidates(
    trace: &Trace,
    host: TrackId,
    closing: Option<Closing>,
    names: &TellingNames,
    is_step: impl Fn(&str) -> bool,
) -> Vec<Calls> {
    let mut found = Vec::new();
    for track in trace.tracks_below(host, TrackKind::Thread) {
        if is_pipeline_thread(trace.track_name(track)) {
            continue;
        }
        let mut calls = top_calls(trace, track).0;
        if calls.is_empty() && !names.executions.is_empty() {
            calls = outermost(trace, track, &names.executions);
        }
        let mut by_name: HashMap<StrId, Calls> = HashMap::new();
        for (event, name) in calls {
            let row = event.row();
            let at = trace.events.start[row].0;
            if trace.events.kind[row] == OpKind::InputWait
                || !is_step(trace.text(name))
                || closing.is_some_and(|it| it.contains(at))
            {
                continue;
            }
            let group = by_name.entry(name).or_insert_with(|| Calls {
                track,
                name,
                events: Vec::new(),
                time: 0,
            });
            group.events.push(event);
            group.time = group.time.saturating_add(trace.events.dur[row].0);
        }
        let mut groups: Vec<Calls> = by_name.into_values().collect();
        groups.sort_by_key(|it| it.name);
        found.append(&mut groups);
    }
    found
}

/// Programs run by a client that is not Python: `PjRtStreamExecutorLoadedExecutable::Execute`.
pub(super) fn is_execution(name: &str) -> bool {
    name.ends_with("Executable::Execute") && !name.starts_with("Scheduled ")
}

fn outermost(trace: &Trace, track: TrackId, names: &HashSet<StrId>) -> Vec<(EventId, StrId)> {
    let (mut found, mut over) = (Vec::new(), i64::MIN);
    for row in trace.tracks[track.row()].rows() {
        let name = trace.events.name[row];
        if names.contains(&name) && trace.events.start[row].0 >= over {
            let event = EventId(row as u32);
            over = trace.events.end(event).0;
            found.push((event, name));
        }
    }
    found
}

/// Adds the batches at both ends of a profile whose markers it could not record.
pub fn add_unmarked(trace: &Trace, names: &TellingNames, mut marked: Found) -> Found {
    let (Some(&first), Some(&last)) = (marked.starts.first(), marked.starts.last()) else {
        return marked;
    };
    if !names.tells_tracing {
        return marked;
    }
    let traced = |it: &(EventId, StrId)| trace.detail(it.0).traced.is_some();
    let calls: Vec<_> = top_calls(trace, marked.track).0.into_iter().filter(traced).collect();
    let start = |it: &(EventId, StrId)| trace.events.start[it.0.row()].0;
    // Every marker must hold the same one call, or it is not the marker's.
    let mut inside = Vec::new();
    for &(from, to, _) in &marked.starts {
        let here = calls.partition_point(|it| start(it) < from);
        let next = calls.partition_point(|it| start(it) < to);
        match &calls[here..next] {
            [one] => inside.push(one.1),
            _ => return marked,
        }
    }
    inside.dedup();
    let &[name] = &inside[..] else { return marked };
    let before: Vec<_> = calls.iter().filter(|it| it.1 == name && start(it) < first.0).collect();
    let after: Vec<_> = calls.iter().filter(|it| it.1 == name && start(it) >= last.1).collect();
    let span = |it: &(EventId, StrId)| (start(it), trace.events.end(it.0).0);
    if let [one] = before[..] {
        let (from, to) = span(one);
        marked.starts.insert(0, (from, to, first.2.and_then(|it| it.checked_sub(1))));
    }
    if let [one] = after[..] {
        let (from, to) = span(one);
        marked.starts.push((from, to, last.2.and_then(|it| it.checked_add(1))));
    }
    marked
}

/// Without steps that a mark gives to the callback which ends the profile, and with the last one
/// ending where its batch is done.
pub fn without_callback(trace: &Trace, host: TrackId, mut found: Found) -> Found {
    // Most profiles have no such callback, and need not be searched for batches.
    let threads = trace
        .tracks_below(host, TrackKind::Thread)
        .filter(|&it| !is_pipeline_thread(trace.track_name(it)))
        .filter(|&it| closing::writes_summary(trace, it, i64::MIN, i64::MAX));
    let batches = threads
        .flat_map(|it| top_calls(trace, it).0)
        .filter(|it| trace.detail(it.0).traced.is_some());
    let Some((last, _)) = batches.max_by_key(|it| trace.events.start[it.0.row()]) else {
        return found;
    };
    let track = trace.track_of(last);
    let done = closing::settled(trace, host, last);
    let first = trace.events.start[last.row()].0;
    // A loop that writes summaries itself does so after other batches, too.
    if !closing::writes_summary(trace, track, done, i64::MAX)
        || closing::writes_summary(trace, track, i64::MIN, first)
    {
        return found;
    }
    while found.starts.len() > 1 && found.starts.last().is_some_and(|it| it.0 >= done) {
        found.starts.pop();
    }
    if let Some(it) = found.starts.last_mut().filter(|it| it.0 < done && it.1 > done) {
        it.1 = done;
    }
    found
}
