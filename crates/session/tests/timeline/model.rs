//! What tiles must show, found the slow way: by looking at every event.

use std::collections::{BTreeMap, BTreeSet};

use session::timeline::{CELLS, Span, Timeline, TrackTile};
use trace::{EventId, Trace, TrackId};

use crate::wire;

const LAST_LANE: u8 = u8::MAX;

/// An event, as it is drawn.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    row: u32,
    lane: u8,
    start: i64,
    end: i64,
    dur: i64,
}

fn drawn(trace: &Trace, timeline: &Timeline, track: TrackId) -> Vec<Drawn> {
    let events = &trace.events;
    let of_row = |row: u32| Drawn {
        row,
        lane: timeline.lane_of(EventId(row)),
        start: events.start[row as usize].0,
        end: events.end(EventId(row)).0,
        dur: events.dur[row as usize].0,
    };
    trace.tracks[track.row()].events.clone().map(of_row).collect()
}

/// On a lane nothing overlaps but on the last, and it is the first lane below the parent's where
/// that is so.
pub fn check_lanes(trace: &Trace, timeline: &Timeline) {
    for track in trace.track_ids() {
        let mut until: BTreeMap<u8, i64> = BTreeMap::new();
        for it in drawn(trace, timeline, track) {
            let parent = trace.events.parent(EventId(it.row));
            let below = parent.map_or(0, |it| u16::from(timeline.lane_of(it)) + 1);
            let free = |lane: &u16| until.get(&(*lane as u8)).is_none_or(|&it_| it_ <= it.start);
            let first = (below..256).find(free).unwrap_or(255);
            assert_eq!(u16::from(it.lane), first, "of event {}", it.row);
            let until = until.entry(it.lane).or_insert(it.end);
            *until = (*until).max(it.end);
        }
    }
}

/// Every tile of a level in which an event begins, and some that events reach into.
pub fn check_level(trace: &Trace, timeline: &Timeline, level: u8) {
    for track in trace.track_ids() {
        let events = drawn(trace, timeline, track);
        let mut by_tile: BTreeMap<i64, Vec<Drawn>> = BTreeMap::new();
        for &it in &events {
            by_tile.entry(it.start >> level).or_default().push(it);
        }
        let (mut count, mut time) = (0_u64, 0_i128);
        for (&tile, begun) in &by_tile {
            let spans = tile_of(trace, timeline, level, tile, track);
            let begun_spans: Vec<&Span> = spans.iter().filter(|it| it.count > 0).collect();
            count += begun_spans.iter().map(|it| u64::from(it.count)).sum::<u64>();
            time += begun_spans.iter().map(|it| it.total_ps).sum::<i128>();
            check_begun(trace, level, tile, begun, &begun_spans);
        }
        assert_eq!(count, events.len() as u64, "events at level {level}");
        let all: i128 = events.iter().map(|it| i128::from(it.dur)).sum();
        assert_eq!(time, all, "time at level {level}");

        for tile in some_tiles(&events, level) {
            let spans = tile_of(trace, timeline, level, tile, track);
            check_continuing(level, tile, &events, &spans);
            assert_eq!(by_tile.contains_key(&tile), spans.iter().any(|it| it.count > 0));
        }
    }
}

/// One tile, also over the wire and back.
fn tile_of(trace: &Trace, timeline: &Timeline, level: u8, tile: i64, track: TrackId) -> Vec<Span> {
    let answer = timeline.tile(level, tile, &[track, track]).unwrap();
    wire::check(trace, &answer);
    assert_eq!(answer.tracks.len(), 1, "once, though asked for twice");
    let TrackTile { track: of, spans } = &answer.tracks[0];
    assert_eq!(*of, track);
    assert!(spans.is_sorted_by_key(|it| (it.lane, it.left)), "sorted by lane and start");
    spans.clone()
}

fn fraction(level: u8, tile: i64, time: i64) -> u32 {
    let since = i128::from(time) - i128::from(tile) * (1_i128 << level);
    u32::try_from(since.max(0) * (1 << 32) / (1_i128 << level)).unwrap_or(u32::MAX)
}

/// Long events are spans of their own, others are merged by their cell.
fn check_begun(trace: &Trace, level: u8, tile: i64, begun: &[Drawn], spans: &[&Span]) {
    let cell_ps = 1_i64 << (level - CELLS.ilog2() as u8);
    let mut groups: BTreeMap<(u8, i64, Option<u32>), Vec<Drawn>> = BTreeMap::new();
    for &it in begun {
        let alone = (it.dur >= cell_ps).then_some(it.row);
        groups.entry((it.lane, it.start.div_euclid(cell_ps), alone)).or_default().push(it);
    }
    assert_eq!(spans.len(), groups.len(), "spans of tile {tile} at level {level}");
    for ((lane, cell, alone), group) in groups {
        let belongs = |it: &&&Span| match alone {
            Some(row) => it.event == EventId(row),
            None => {
                let start = trace.events.start[it.event.row()].0;
                let long = trace.events.dur[it.event.row()].0 >= cell_ps;
                it.lane == lane && start.div_euclid(cell_ps) == cell && !long
            }
        };
        let spans: Vec<&&Span> = spans.iter().filter(belongs).collect();
        assert_eq!(spans.len(), 1, "one span for {group:?}");
        let span = spans[0];
        assert_eq!(span.lane, lane);
        assert_eq!(span.count as usize, group.len());
        assert_eq!(span.total_ps, group.iter().map(|it| i128::from(it.dur)).sum::<i128>());
        let longest = group.iter().rev().max_by_key(|it| it.dur).unwrap();
        assert_eq!(span.event, EventId(longest.row), "the first of the longest stands for all");
        assert_eq!(span.kind, trace.events.kind[longest.row as usize]);
        assert_eq!(span.left, fraction(level, tile, group[0].start));
        let until = group.iter().map(|it| it.end).max().unwrap();
        let right = fraction(level, tile, until);
        if lane == LAST_LANE && group.len() > 1 {
            assert!((span.left..=right).contains(&span.right), "right of merged, overlapping ones");
        } else {
            assert_eq!(span.right, right);
        }
        let wide = longest.dur >= 16 * cell_ps;
        let name = wide.then(|| trace.events.name[longest.row as usize]);
        assert_eq!(span.name, name, "named where it can be written");
    }
}

/// What began earlier and still runs, and nothing else, continues.
fn check_continuing(level: u8, tile: i64, events: &[Drawn], spans: &[Span]) {
    let begin = i128::from(tile) << level;
    let runs = |it: &&Drawn| i128::from(it.start) < begin && i128::from(it.end) > begin;
    let expected: BTreeMap<u32, &Drawn> =
        events.iter().filter(runs).map(|it| (it.row, it)).collect();
    let continuing: Vec<&Span> = spans.iter().filter(|it| it.count == 0).collect();
    let rows: BTreeSet<u32> = continuing.iter().map(|it| it.event.0).collect();
    assert_eq!(rows.len(), continuing.len(), "each once");
    assert!(rows.iter().eq(expected.keys()), "tile {tile} at level {level}");
    for span in continuing {
        let event = expected[&span.event.0];
        assert_eq!((span.left, span.total_ps, span.lane), (0, 0, event.lane));
        assert_eq!(span.right, fraction(level, tile, event.end));
    }
}

/// Tiles around the ends of events, in their middle, and where nothing is.
fn some_tiles(events: &[Drawn], level: u8) -> BTreeSet<i64> {
    let mut tiles = BTreeSet::from([0, -1]);
    let step = events.len().div_ceil(12).max(1);
    for it in events.iter().step_by(step).chain(events.last()) {
        let (first, last) = (it.start >> level, it.end >> level);
        let middle = first + (last - first) / 2;
        let around = [first, first.saturating_add(1), middle, last, last.saturating_add(1)];
        tiles.extend(around);
    }
    tiles
}
