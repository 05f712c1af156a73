//! What holds of every trace and its tables, whatever bytes they were made of.

use std::collections::BTreeMap;
use std::ops::Range;

use analyses::Tables;
use analyses::python_stack::PythonStack;
use analyses::scope_step::ScopeStep;
use analyses::scope_time::ScopeTime;
use analyses::step::Step;
use analyses::step_time::{CATEGORIES, StepTime};
use trace::{EventId, Trace};

/// What was read is in order, and what was left in the file can be asked for.
pub fn check_trace(trace: &Trace) {
    check_rows(trace);
    for blob in &trace.blobs {
        assert!(trace.args.bytes(blob).is_some(), "a blob lies in its file");
    }
}

/// Tracks partition the rows; a track's events are sorted, and nest.
pub fn check_rows(trace: &Trace) {
    let events = &trace.events;
    let n = events.len();
    let columns = [events.name.len(), events.kind.len(), events.dur.len(), events.detail.len()];
    assert_eq!(columns, [n; 4]);
    let mut at = 0;
    for (row, track) in trace.tracks.iter().enumerate() {
        assert!(track.parent.is_none_or(|it| it.row() < row), "parents before children");
        assert_eq!(track.events.start, at, "tracks partition the rows");
        at = track.events.end;
        for row in track.rows() {
            let (start, dur) = (events.start[row], events.dur[row]);
            assert!(dur.0 >= 0);
            if row > track.rows().start {
                let before = (events.start[row - 1], events.dur[row - 1]);
                let sorted = before.0 < start || before.0 == start && before.1 >= dur;
                assert!(sorted, "{before:?} before {:?}", (start, dur));
            }
            let event = EventId(row as u32);
            if let Some(parent) = events.parent(event) {
                assert!(parent < event && track.events.contains(&parent.0), "a parent precedes");
                assert!(
                    events.start[parent.row()] <= start && events.end(event) <= events.end(parent)
                );
            }
            assert!(events.detail[row].row() < trace.details.len());
            assert!(events.name[row].row() < trace.strings.len());
        }
    }
    assert_eq!(at as usize, n, "tracks hold every row");
    for track in &trace.tracks {
        check_parents(trace, track.rows());
    }
    assert!(trace.edges.to.is_sorted());
    assert_eq!([trace.edges.from.len(), trace.edges.kind.len()], [trace.edges.to.len(); 2]);
    assert!(trace.edges.from.iter().chain(&trace.edges.to).all(|it| it.row() < n));
    assert!(trace.numbers.is_sorted() && trace.numbers.iter().all(|it| it.event.row() < n));
    assert!(trace.notes.iter().all(|it| it.count > 0));
    for row in [0, n / 2, n.saturating_sub(1)] {
        let event = EventId(row as u32);
        trace.args.of(event);
        if row < n {
            assert!(trace.tracks[trace.track_of(event).row()].events.contains(&event.0));
        }
    }
}

/// A parent is the last event before that ends no earlier; looked at for some, since this way it
/// takes quadratic time.
fn check_parents(trace: &Trace, rows: Range<usize>) {
    let events = &trace.events;
    let end = |row: usize| events.end(EventId(row as u32));
    for row in rows.clone().take(50) {
        let holds = |&it: &usize| {
            let overlaps = trace.details[events.detail[it].row()].overlaps;
            events.dur[it].0 > 0 && !overlaps && end(it) >= end(row)
        };
        let around = (rows.start..row).rev().find(holds).map(|it| EventId(it as u32));
        assert_eq!(events.parent(EventId(row as u32)), around, "the innermost around {row}");
    }
}

/// Every table can be made and every cell read; the categories of a step add up to it.
pub fn check_tables(tables: &Tables) {
    check_steps(tables);
    check_stacks(&tables.get::<PythonStack>());
    check_scopes(tables);
    for table in analyses::ALL {
        let rows = table.rows(tables);
        for row in 0..rows.len() {
            for column in 0..table.columns().len() {
                rows.cell(row, column);
            }
        }
    }
    check_findings(tables);
}

/// What rules say is in bounds and can be opened.
pub fn check_findings(tables: &Tables) {
    let diagnosis = rules::diagnose(tables);
    let symptoms = diagnosis.causes.iter().flat_map(|it| &it.symptoms).map(|it| (it.0, &it.1));
    for (rule, it) in diagnosis.causes.iter().map(|it| (it.rule, &it.finding)).chain(symptoms) {
        assert!(it.cost.0 >= 0, "{rule} costs {}", it.cost);
        assert!((0.0..=1.0).contains(&it.confidence), "{rule}");
        if let Some(gain) = it.gain {
            let sorted = 0.0 < gain.low && gain.low <= gain.speedup && gain.speedup <= gain.high;
            assert!(sorted && gain.high.is_finite(), "{rule}: {gain:?}");
        }
        for evidence in &it.evidence {
            let n_events = tables.trace().events.len();
            assert!(evidence.events.iter().all(|it| it.row() < n_events), "{rule}");
            if let Some(table) = evidence.table.and_then(analyses::find) {
                let n_rows = table.rows(tables).len();
                assert!(evidence.rows.iter().all(|&it| it < n_rows), "{rule}");
            } else {
                assert_eq!(evidence.table, None, "{rule} names a table that is not there");
            }
        }
    }
}

/// What a call holds is inside of it and never exceeds it; self times are what is left.
fn check_stacks(calls: &[PythonStack]) {
    let mut inside = vec![0_i64; calls.len()];
    for call in calls {
        assert!(call.dur_ps > 0 && (0..=call.dur_ps).contains(&call.self_ps), "{call:?}");
        let Some(parent) = call.parent.and_then(|it| usize::try_from(it).ok()) else { continue };
        let around = &calls[parent];
        assert!(around.call < call.call && around.start_ps <= call.start_ps, "{call:?}");
        assert_eq!((around.step, around.lane), (call.step, call.lane), "{call:?}");
        inside[parent] += call.dur_ps;
    }
    for (call, inside) in calls.iter().zip(inside) {
        assert_eq!(call.dur_ps - inside, call.self_ps, "{call:?}");
    }
}

/// Steps add to what scopes have in all.
fn check_scopes(tables: &Tables) {
    let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    let steps = tables.get::<ScopeStep>();
    for it in steps.iter() {
        let sum = sums.entry((it.side, &it.scope)).or_default();
        *sum = sum.saturating_add(it.total_ps);
    }
    for all in tables.get::<ScopeTime>().iter() {
        let of = |side| sums.get(&(side, all.scope.as_str())).copied().unwrap_or(0);
        assert_eq!(of("host"), all.total_ps, "{all:?}");
        assert_eq!(of("device"), all.device_ps.unwrap_or(0), "{all:?}");
    }
}

pub fn check_steps(tables: &Tables) {
    let steps = tables.get::<Step>();
    for pair in steps.windows(2).filter(|it| it[0].host == it[1].host) {
        assert_eq!(pair[0].span().1, pair[1].start_ps, "steps touch");
    }
    for row in tables.get::<StepTime>().iter() {
        let parts = CATEGORIES.map(|(_, of)| of(row));
        assert!(parts.iter().all(|it| (0..=row.dur_ps).contains(it)), "{row:?}");
        assert_eq!(parts.iter().sum::<i64>(), row.dur_ps, "categories add to the step");
    }
}
