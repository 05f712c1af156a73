//! Random traces: nothing is lost at any level, and no question makes a panic.

use proptest::prelude::*;
use session::timeline::{LEVELS, Search, Timeline};
use trace::{Detail, Dur, EventId, Time, Trace, TraceBuilder, TrackId, TrackKind};

use crate::model::{check_lanes, check_level};
use crate::timeline_of;

/// Track, start, duration, name, whether it overlaps by intent.
type Random = (u8, i64, i64, u8, bool);

fn build(events: &[Random], scale: i64, from: i64) -> Trace {
    let mut out = TraceBuilder::new();
    let host = out.track(None, TrackKind::Host, "host");
    let tracks = ["a", "b", "c"].map(|it| out.track(Some(host), TrackKind::Thread, it));
    for &(track, start, dur, name, overlaps) in events {
        let start = start.saturating_mul(scale).saturating_add(from);
        let track = tracks[usize::from(track) % tracks.len()];
        let dur = Dur(dur.saturating_mul(scale));
        let id = out.event(track, &format!("name {name}"), Time(start), dur);
        if overlaps {
            out.describe(id, Detail { overlaps, ..Detail::default() });
        }
    }
    out.finish()
}

/// Equal starts, nesting, partial overlaps and events without length all come up.
fn crowded() -> impl Strategy<Value = Vec<Random>> {
    let dur = prop_oneof![3 => Just(0), 6 => 1..12_i64, 3 => 10..80_i64, 1 => 100..400_i64];
    let event = (0..3_u8, 0..300_i64, dur, 0..5_u8, prop::bool::weighted(0.1));
    prop::collection::vec(event, 0..200)
}

/// Far more events at once than there are lanes, among others.
fn piled() -> impl Strategy<Value = Vec<Random>> {
    let pile = (0..40_i64, 50..4000_i64, 0..5_u8).prop_map(|it| (0, it.0, it.1, it.2, false));
    let pile = prop::collection::vec(pile, 300..2500);
    (pile, crowded()).prop_map(|(mut pile, others)| {
        pile.extend(others);
        pile
    })
}

fn placed() -> impl Strategy<Value = (i64, i64)> {
    let scale = prop_oneof![
        Just(1),
        Just(37),
        Just(1000),
        Just(1 << 20),
        Just(999_999_937),
        Just(1 << 44),
        Just(1 << 60)
    ];
    // Tiles of every level meet at zero: among the events it is looked at most closely.
    let from = prop_oneof![
        3 => -300..0_i64,
        1 => Just(0),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX - 4000),
        1 => any::<i64>()
    ];
    (scale, from)
}

fn check(trace: Trace) {
    let (tables, timeline) = timeline_of(trace);
    check_lanes(tables.trace(), &timeline);
    for level in LEVELS {
        check_level(tables.trace(), &timeline, level);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_is_lost_at_any_level(events in crowded(), (scale, from) in placed()) {
        check(build(&events, scale, from));
    }

    #[test]
    fn ranges_and_searches_agree_with_a_look_at_every_event(
        events in crowded(),
        from in -10..320_i64,
        n in 0..200_i64,
        tracks in prop::collection::vec(1..4_u32, 0..4),
    ) {
        let (tables, timeline) = timeline_of(build(&events, 1, 0));
        check_range(tables.trace(), &timeline, from, from + n, &tracks);
        check_search(tables.trace(), &timeline, from, from + n);
    }

    #[test]
    fn no_question_makes_a_panic(
        events in crowded(),
        (scale, zero) in placed(),
        level in any::<u8>(),
        tile in any::<i64>(),
        tracks in prop::collection::vec(prop_oneof![0..5_u32, any::<u32>()], 0..5),
        from in any::<i64>(),
        to in any::<i64>(),
        event in prop_oneof![0..200_u32, any::<u32>()],
    ) {
        let (tables, timeline) = timeline_of(build(&events, scale, zero));
        let n_tracks = tables.trace().tracks.len() as u32;
        let tracks: Vec<TrackId> = tracks.into_iter().map(TrackId).collect();
        let known = tracks.iter().all(|it| it.0 < n_tracks);
        for level in [level, 10, 63] {
            let fine = LEVELS.contains(&level) && known;
            prop_assert_eq!(timeline.tile(level, tile, &tracks).is_ok(), fine);
            prop_assert_eq!(timeline.counters(level, tile, &tracks).is_ok(), fine);
        }
        let ordered = from <= to;
        prop_assert_eq!(timeline.range(from, to, Some(&tracks)).is_ok(), ordered && known);
        prop_assert_eq!(timeline.range(from, to, None).is_ok(), ordered);
        let search = Search { text: "NAME 1", limit: 3, range: Some((from, to)) };
        prop_assert_eq!(timeline.search(&search).is_ok(), ordered);
        let n_events = tables.trace().events.len();
        prop_assert_eq!(timeline.event(EventId(event)).is_ok(), (event as usize) < n_events);
        timeline.lane_of(EventId(event));
        timeline.overview();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_is_lost_where_lanes_run_out(events in piled(), scale in prop_oneof![Just(1), Just(1 << 30)]) {
        let (tables, timeline) = timeline_of(build(&events, scale, 0));
        check_lanes(tables.trace(), &timeline);
        let lanes = timeline.overview().tracks.iter().map(|it| it.lanes).max();
        prop_assert_eq!(lanes, Some(256));
        for level in LEVELS.step_by(3) {
            check_level(tables.trace(), &timeline, level);
        }
    }
}

fn check_range(trace: &Trace, timeline: &Timeline, from: i64, to: i64, tracks: &[u32]) {
    let tracks: Vec<TrackId> = tracks.iter().map(|&it| TrackId(it)).collect();
    let found = timeline.range(from, to, Some(&tracks)).unwrap();
    let on_these = |it: &u32| tracks.contains(&trace.track_of(EventId(*it)));
    let rows: Vec<u32> = (0..trace.events.len() as u32).filter(on_these).collect();
    let part = |row: u32| {
        let (start, end) = (trace.events.start[row as usize].0, trace.events.end(EventId(row)).0);
        let inside = (start..=end.max(start)).any(|it| from <= it && it < to)
            && start < to
            && (end > from || start >= from);
        inside.then(|| (end.min(to) - start.max(from)).max(0))
    };
    let of_name = |row: u32| trace.name(EventId(row));
    let mut names: Vec<&str> =
        rows.iter().filter(|it| part(**it).is_some()).map(|it| of_name(*it)).collect();
    assert_eq!(found.count as usize, names.len());
    names.sort_unstable();
    names.dedup();
    assert_eq!(found.rows.len(), names.len());
    assert!(found.rows.is_sorted_by(|a, b| a.self_ps >= b.self_ps));
    for row in &found.rows {
        let parts =
            || rows.iter().filter(|it| of_name(**it) == row.name).filter_map(|it| part(*it));
        assert_eq!(row.count as usize, parts().count());
        assert_eq!(row.total_ps, parts().map(i128::from).sum::<i128>());
        let inside = rows.iter().filter(|it| {
            let parent = trace.events.parent(EventId(**it));
            !trace.detail(EventId(**it)).overlaps
                && parent.is_some_and(|it| of_name(it.0) == row.name)
        });
        let inside: i64 = inside.filter_map(|it| part(*it)).sum();
        assert_eq!(row.self_ps, (row.total_ps - i128::from(inside)).max(0));
    }
}

fn check_search(trace: &Trace, timeline: &Timeline, from: i64, to: i64) {
    let search = Search { text: "AmE 3", limit: 7, range: Some((from, to)) };
    let found = timeline.search(&search).unwrap();
    let fits = |it: &u32| {
        let (start, end) = (trace.events.start[*it as usize].0, trace.events.end(EventId(*it)).0);
        trace.name(EventId(*it)) == "name 3" && start < to && (end > from || start >= from)
    };
    let mut rows: Vec<u32> = (0..trace.events.len() as u32).filter(fits).collect();
    assert_eq!(found.total as usize, rows.len());
    rows.sort_by_key(|it| (trace.events.start[*it as usize], *it));
    rows.truncate(7);
    assert!(found.hits.iter().map(|it| it.event.0).eq(rows));
    assert_eq!(found.names.len(), usize::from(found.total > 0));
    for hit in &found.hits {
        assert_eq!((hit.track, hit.lane), (trace.track_of(hit.event), timeline.lane_of(hit.event)));
    }
}

/// Times that come to more than 64 bits hold are still exact.
#[test]
fn endless_events_add_up() {
    let events: Vec<Random> = (0..500).map(|it| (0, it % 7, i64::MAX - it, 0, false)).collect();
    let trace = build(&events, 1, 0);
    let (tables, timeline) = timeline_of(trace);
    for level in [10, 11, 40, 62, 63] {
        check_level(tables.trace(), &timeline, level);
    }
    let inside = timeline.range(i64::MIN, i64::MAX, None).unwrap();
    assert_eq!(inside.count, 500);
    assert!(inside.rows[0].total_ps > i128::from(i64::MAX));
}

/// At most eight bytes an event beside the trace.
#[test]
fn the_index_is_small() {
    let follow = (0..40_000).map(|it| (0, it * 10, 9, 0, false));
    let nested = (0..40_000).map(|it| (1, it, 64 >> (it % 7), 0, false));
    let piled = (0..40_000).map(|it| (2, it, 1_000_000 - it, 0, false));
    let events: Vec<Random> = follow.chain(nested).chain(piled).collect();
    let (tables, timeline) = timeline_of(build(&events, 1000, 0));
    let lanes: Vec<usize> = timeline.overview().tracks.iter().map(|it| it.lanes).collect();
    assert!(matches!(lanes[..], [0, 1, 2..=100, 256]), "{lanes:?}");
    let per_event = timeline.heap_bytes() as f64 / tables.trace().events.len() as f64;
    assert!(per_event < 8.0, "{per_event} bytes an event");
}
