//! Where the profile's own end begins. What stops the profiler and writes its outcome down belongs
//! to no step.
//!
//! ```text
//! JAX     |- step -|- step -|- step -|------ stop_trace ------|
//! Keras   |- train_function -|-sync-|        |WriteSummary||FlushSummaryWriter|
//!                                   '- here the batch is done; the rest is its callback's
//! ```

use hashbrown::HashSet;
use trace::{EdgeKind, EventId, OpKind, StrId, Trace, TrackId, TrackKind};

/// The time in which a host's profiler is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    pub start: i64,
    pub end: i64,
}

impl Closing {
    /// By the last call that stops the profiler, with all around it that belongs to it.
    pub fn of(trace: &Trace, host: TrackId, stops: &HashSet<StrId>) -> Option<Closing> {
        if stops.is_empty() {
            return None;
        }
        let is_stop = |it: EventId| stops.contains(&trace.events.name[it.row()]);
        let events = trace
            .tracks_below(host, TrackKind::Thread)
            .flat_map(|it| trace.tracks[it.row()].rows())
            .map(|it| EventId(it as u32));
        let last =
            events.filter(|&it| is_stop(it)).max_by_key(|it| trace.events.start[it.row()])?;
        let outer = trace.events.ancestors(last).filter(|&it| is_stop(it)).last().unwrap_or(last);
        let start = trace.events.start[outer.row()].0;
        Some(Closing { start, end: trace.events.end(outer).0 })
    }

    pub fn contains(&self, moment: i64) -> bool {
        (self.start..self.end).contains(&moment)
    }
}

/// Whether an event of this name stops a profiler or writes down what it recorded.
pub(super) fn stops_profiler(name: &str) -> bool {
    const FUNCTIONS: &[&str] =
        &["stop_trace", "_stop_trace", "_stop_profiler", "stop_profiler", "stop_and_export"];
    let Some(frame) = name.strip_prefix('$') else {
        let of_session = name.contains("ProfilerSession")
            && ["stop", "Stop", "Collect", "export", "Export"].iter().any(|it| name.contains(it));
        return of_session || FUNCTIONS.contains(&name);
    };
    // A frame of Python: file, line and function, as in `$profiler.py:213 stop_trace`.
    let (place, function) = frame.rsplit_once(' ').unwrap_or(("", frame));
    let function = function.rsplit('.').next().unwrap_or(function);
    FUNCTIONS.contains(&function)
        || (place.starts_with("profiler") && matches!(function, "stop" | "export"))
}

/// When what a call handed over is done: its kernels, and the host's wait for them.
pub fn settled(trace: &Trace, host: TrackId, call: EventId) -> i64 {
    let track = trace.track_of(call);
    let (start, end) = (trace.events.start[call.row()].0, trace.events.end(call).0);
    let after = || {
        let rows = trace.tracks[track.row()].rows();
        let first = trace.events.start[rows.clone()].partition_point(|it| it.0 < end);
        rows.skip(first)
    };
    let mut done = end;
    let mut launched = false;
    for edge in trace.all_below(host).iter().flat_map(|&it| trace.edges_into(it)) {
        let (from, to) = (trace.edges.from[edge], trace.edges.to[edge]);
        if trace.edges.kind[edge] == EdgeKind::Launch
            && (start..end).contains(&trace.events.start[from.row()].0)
        {
            launched = true;
            done = done.max(trace.events.end(to).0);
        }
    }
    if !launched {
        // Nothing says who launched what: all that begins before the thread does something else.
        let next = after().find(|&it| trace.events.kind[it] != OpKind::Sync);
        let until = next.map_or(end, |it| trace.events.start[it].0);
        for stream in trace.tracks_below(host, TrackKind::Stream) {
            let rows = trace.tracks[stream.row()].rows();
            let starts = &trace.events.start[rows.clone()];
            let from = starts.partition_point(|it| it.0 < start);
            let to = starts.partition_point(|it| it.0 < until);
            let ends = (rows.start + from..rows.start + to)
                .map(|it| trace.events.end(EventId(it as u32)).0);
            done = ends.fold(done, i64::max);
        }
    }
    // A wait that began while this was running is a wait for it.
    let running = done;
    let waits = after()
        .take_while(|&it| trace.events.start[it].0 < running)
        .filter(|&it| trace.events.kind[it] == OpKind::Sync);
    waits.map(|it| trace.events.end(EventId(it as u32)).0).fold(done, i64::max)
}

/// Whether a thread writes a summary within a time: after the last batch of a profile, and after
/// no other, that is the callback which ends it.
pub fn writes_summary(trace: &Trace, track: TrackId, from: i64, to: i64) -> bool {
    trace.rows_of(track, OpKind::Save).any(|row| {
        let name = trace.name(EventId(row as u32));
        let at = trace.events.start[row].0;
        (from..to).contains(&at) && name.contains("Summary")
    })
}

#[cfg(test)]
mod tests {
    use super::stops_profiler;

    #[test]
    fn names_that_end_a_profile() {
        for name in [
            "$profiler.py:213 stop_trace",
            "$profiler_v2.py:141 stop",
            "$tensorboard.py:800 _stop_trace",
            "$callbacks.py:2664 _stop_profiler",
            "ProfilerSession::CollectData",
            "$ ProfilerSession.stop_and_export",
        ] {
            assert!(stops_profiler(name), "{name}");
        }
        for name in [
            "$profiler.py:101 start_trace",
            "$profiler.py:356 wrapper",
            "$lax.py:3537 stop",
            "$lax.py:3492 stop_gradient",
            "ProfilerSession::Start",
            "train_function",
        ] {
            assert!(!stops_profiler(name), "{name}");
        }
    }
}
