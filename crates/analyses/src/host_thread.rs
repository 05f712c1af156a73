//! Says what each thread of the host did, and how long.

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{EventId, OpKind, StrId, Trace, TrackId, TrackKind};

use crate::run_info::window;
use crate::{Analysis, Tables};

table! {
    /// The threads of the host and what they did most.
    ///
    /// Self time is time in an event and in none inside it.
    pub struct HostThread = "host_thread" {
        /// The thread's host.
        host: String,
        /// The thread's name; many threads may share it.
        thread: String,
        /// Number of its track.
        track: i64,
        /// How many events it has.
        n_events: i64,
        /// When its first event began, since the start of the trace.
        first_ps: i64,
        /// When its last event ended.
        last_ps: i64,
        /// Time in any event.
        busy_ps: i64,
        /// Of the whole capture.
        busy_share: f64,
        /// Time in ops, with all that lies inside them.
        ops_ps: i64,
        /// Self time of frames of the Python interpreter; null where those were not recorded.
        python_ps: Option<i64>,
        /// What it did most, by self time; the kinds are those of events.
        top_kind: Option<&'static str>,
        /// Self time of that kind.
        top_kind_ps: i64,
        /// The event it spent most self time in.
        top_name: Option<String>,
        /// Self time of events of that name.
        top_name_ps: i64,
    }
}

impl Analysis for HostThread {
    fn run(tables: &Tables) -> Vec<HostThread> {
        let trace = tables.trace();
        let threads: Vec<TrackId> = trace
            .tracks_of(TrackKind::Thread)
            .filter(|it| !trace.tracks[it.row()].events.is_empty())
            .collect();
        let overlaps: Vec<bool> = trace.details.iter().map(|it| it.overlaps).collect();
        let has_python = trace.events.kind.contains(&OpKind::Python);
        let window_ps = window(trace).0;
        threads
            .par_iter()
            .map(|&it| on_thread(trace, it, &overlaps, has_python, window_ps))
            .collect()
    }
}

fn on_thread(
    trace: &Trace,
    track: TrackId,
    overlaps: &[bool],
    has_python: bool,
    window_ps: i64,
) -> HostThread {
    let events = &trace.events;
    let rows = trace.tracks[track.row()].rows();
    let mut by_kind = [0_i64; OpKind::ALL.len()];
    let mut by_name: HashMap<StrId, i64> = HashMap::new();
    let (mut last_ps, mut busy_ps, mut ops_ps, mut ops_until) = (i64::MIN, 0, 0, i64::MIN);
    for row in rows.clone() {
        let (start, dur) = (events.start[row].0, events.dur[row].0);
        let end = start.saturating_add(dur);
        if end > last_ps {
            busy_ps += end - start.max(last_ps);
            last_ps = end;
        }
        let kind = events.kind[row];
        if end > ops_until && is_op(kind) {
            ops_ps += end - start.max(ops_until);
            ops_until = end;
        }
        if dur == 0 {
            continue;
        }
        let mut add = |row: usize, dur: i64| {
            // Overlapping events of a broken profile can come to more than time has.
            let kind = &mut by_kind[events.kind[row] as usize];
            *kind = kind.saturating_add(dur);
            let name = by_name.entry(events.name[row]).or_insert(0);
            *name = name.saturating_add(dur);
        };
        add(row, dur);
        // What overlaps by intent takes nothing from what it happens to lie in.
        if let Some(around) = events.parent(EventId(row as u32))
            && !overlaps[events.detail[row].row()]
        {
            add(around.row(), -dur);
        }
    }
    let host = trace.ancestor(track, TrackKind::Host);
    let top_kind = OpKind::ALL.into_iter().rev().max_by_key(|it| by_kind[*it as usize]);
    let top_kind = top_kind.filter(|it| by_kind[*it as usize] > 0);
    let top_name = by_name.into_iter().max_by_key(|it| (it.1, std::cmp::Reverse(it.0)));
    let top_name = top_name.filter(|it| it.1 > 0);
    HostThread {
        host: host.map(|it| trace.track_name(it).to_owned()).unwrap_or_default(),
        thread: trace.track_name(track).to_owned(),
        track: i64::from(track.0),
        n_events: rows.len() as i64,
        first_ps: events.start[rows.start].0,
        last_ps,
        busy_ps,
        busy_share: if window_ps > 0 { busy_ps as f64 / window_ps as f64 } else { 0.0 },
        ops_ps,
        python_ps: has_python.then(|| by_kind[OpKind::Python as usize].max(0)),
        top_kind: top_kind.map(OpKind::name),
        top_kind_ps: top_kind.map_or(0, |it| by_kind[it as usize]),
        top_name: top_name.map(|it| trace.text(it.0).to_owned()),
        top_name_ps: top_name.map_or(0, |it| it.1),
    }
}

fn is_op(kind: OpKind) -> bool {
    use OpKind::{CallOp, Collective, Op, Program, PythonOp, Save};
    matches!(kind, Op | CallOp | PythonOp | Collective | Save | Program)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::HostThread;
    use crate::Tables;

    /// Thread; events; busy, ops, Python in µs; what it did most.
    fn check(picture: &str, expected: &[&str]) {
        let us = |ps: i64| ps / 1_000_000;
        let tables = Tables::new(Arc::new(draw(picture)));
        let found: Vec<String> = tables
            .get::<HostThread>()
            .iter()
            .map(|it| {
                let python = it.python_ps.map_or("-".to_owned(), |it| us(it).to_string());
                let kind = it.top_kind.unwrap_or("-");
                let name = it.top_name.as_deref().unwrap_or("-");
                format!(
                    "{}: {} events {}..{}, {} {} {python}, {kind} {}, {name} {}",
                    it.thread,
                    it.n_events,
                    us(it.first_ps),
                    us(it.last_ps),
                    us(it.busy_ps),
                    us(it.ops_ps),
                    us(it.top_kind_ps),
                    us(it.top_name_ps),
                )
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn self_time_says_what_a_thread_did_most() {
        check(
            "
            host/python: $a.py:1 main 0..100, TFE_Py_Execute 10..80, EagerExecute 120..125
            host/python: a/MatMul:MatMul 20..40, b/MatMul:MatMul 30..35
            host/worker: x:MatMul 10..20, x:MatMul 30..45, ThreadpoolListener::Record 50..50
            gpu0/stream1: kernel 0..100
            ",
            &[
                "python: 5 events 0..125, 105 20 30, runtime 55, TFE_Py_Execute 50",
                "worker: 3 events 10..50, 25 25 0, op 25, x:MatMul 25",
            ],
        );
    }

    #[test]
    fn a_thread_of_moments_did_nothing_most() {
        check(
            "host/t: ThreadpoolListener::Record 5..5, ThreadpoolListener::Record 7..7",
            &["t: 2 events 5..7, 0 0 -, - 0, - 0"],
        );
    }
}
