//! Answers a tile: a window of a track, as spans no finer than can be seen.
//!
//! ```text
//! tile    |cell|cell|cell|cell|cell|cell|  … 1024 of them, 2^level ps together
//! lane  ----------|  ||| |------------|    goes on from before · three merged · one of its own
//! ```
//!
//! An event that is at least a cell long is a span of its own; shorter ones that begin in the same
//! cell are merged. Nothing is dropped: over all tiles of a level, counts and times add to those
//! of the events. A tile costs as much as it has cells, not as it has events.

use rayon::prelude::*;
use trace::{EventId, Events, OpKind, StrId, TrackId};

use super::lanes::{Lanes, OnLane, end};
use super::{Timeline, TimelineError};

/// Cells of a tile.
pub const CELLS: u32 = 1 << CELL_BITS;
const CELL_BITS: u8 = 10;

/// Levels at which there are tiles: from cells of a picosecond to tiles of half of all time.
pub const LEVELS: std::ops::RangeInclusive<u8> = CELL_BITS..=63;

/// So many cells, at most as many pixels, must a span be wide for its name to be told: two
/// letters need that.
const LABEL_CELLS: i64 = 16;

/// A window of some tracks.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    pub level: u8,
    /// It begins at so many times 2^level ps.
    pub tile: i64,
    pub tracks: Vec<TrackTile>,
}

/// A window of a track.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackTile {
    pub track: TrackId,
    /// Sorted by lane, then start.
    pub spans: Vec<Span>,
}

/// One event or several that cannot be told apart at this level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub lane: u8,
    pub kind: OpKind,
    /// Where it begins and ends, in 2^-32 of the tile; the right one is the largest number where
    /// it reaches the tile's end or goes on.
    pub left: u32,
    pub right: u32,
    /// Events that begin in this tile: 0 where it is one that began in an earlier tile.
    pub count: u32,
    /// Their time; unlike `right` it does not end with the tile. 0 where the count is 0.
    pub total_ps: i128,
    /// The event, or the longest of the merged.
    pub event: EventId,
    /// Only where there is room to write it.
    pub name: Option<StrId>,
}

impl Timeline {
    /// The spans of some tracks in one tile; a track that is named twice is answered once.
    pub fn tile(&self, level: u8, tile: i64, tracks: &[TrackId]) -> Result<Tile, TimelineError> {
        let window = Window::new(level, tile)?;
        let tracks = self.known(tracks)?;
        let events = &self.trace().events;
        let tracks = tracks.into_par_iter().map(|track| TrackTile {
            track,
            spans: window.spans(events, &self.lanes[track.row()]),
        });
        Ok(Tile { level, tile, tracks: tracks.collect() })
    }
}

/// The time of a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    level: u8,
    /// Tiles can be asked for that lie beyond all time.
    pub begin: i128,
}

impl Window {
    pub fn new(level: u8, tile: i64) -> Result<Window, TimelineError> {
        if !LEVELS.contains(&level) {
            return Err(TimelineError::Level(level));
        }
        Ok(Window { level, begin: i128::from(tile) << level })
    }

    pub fn end(&self) -> i128 {
        self.begin + (1 << self.level)
    }

    /// The cell that a moment of the tile is in.
    pub fn cell(&self, time: i64) -> u32 {
        ((i128::from(time) - self.begin) >> (self.level - CELL_BITS)) as u32
    }

    pub fn cell_end(&self, cell: u32) -> i128 {
        self.begin + ((i128::from(cell) + 1) << (self.level - CELL_BITS))
    }

    fn cell_ps(&self) -> i64 {
        1 << (self.level - CELL_BITS)
    }

    /// A moment in 2^-32 of the tile.
    fn fraction(&self, time: i64) -> u32 {
        let since = (i128::from(time) - self.begin).max(0) << 32;
        u32::try_from(since >> self.level).unwrap_or(u32::MAX)
    }

    fn spans(&self, events: &Events, lanes: &Lanes) -> Vec<Span> {
        let mut spans = Vec::new();
        for lane in 0..=u8::MAX {
            let Some(on) = lanes.on(events, lane) else { break };
            self.spans_on(events, lane, &on, &mut spans);
        }
        spans
    }

    fn spans_on(&self, events: &Events, lane: u8, on: &OnLane<'_>, out: &mut Vec<Span>) {
        let mut place = on.first_from(0, self.begin);
        // A tile beyond all time has nothing that reaches into it.
        if let Ok(begin) = i64::try_from(self.begin) {
            on.running(place, begin, |row| {
                out.push(Span { count: 0, total_ps: 0, ..self.alone(events, lane, row) });
            });
        }
        let to = on.first_from(place, self.end());
        let mut long = Vec::new();
        let mut time = on.time_until(place);
        while place < to {
            let cell = self.cell(on.start(place));
            let next = on.first_from(place + 1, self.cell_end(cell));
            let time_before = time;
            time = on.time_on(time, place..next);
            long.clear();
            let longest = on.split(place..next, self.cell_ps(), |row| long.push(row));
            let first_of_cell = out.len();
            if let Some(longest) = longest {
                let mut merged = Span {
                    count: (next - place - long.len()) as u32,
                    total_ps: time - time_before,
                    ..self.alone(events, lane, longest)
                };
                for &row in &long {
                    merged.total_ps -= i128::from(events.dur[row as usize].0.max(0));
                }
                if merged.count > 1 {
                    // Those that are long ascend, as all do on a lane.
                    let is_short = |it: &u32| long.binary_search(it).is_err();
                    let mut short = (place..next).map(|it| on.row(it)).filter(is_short);
                    let first = short.next().unwrap_or(longest);
                    let last = short.next_back().unwrap_or(first);
                    let until = [first, last, longest].map(|it| end(events, it));
                    merged.left = self.fraction(events.start[first as usize].0);
                    merged.right = self.fraction(until.into_iter().max().unwrap_or_default());
                }
                out.push(merged);
            }
            out.extend(long.iter().map(|&row| self.alone(events, lane, row)));
            out[first_of_cell..].sort_by_key(|it| it.left);
            place = next;
        }
    }

    /// A span of one event.
    fn alone(&self, events: &Events, lane: u8, row: u32) -> Span {
        let at = row as usize;
        let is_wide = events.dur[at].0 >= self.cell_ps().saturating_mul(LABEL_CELLS);
        Span {
            lane,
            kind: events.kind[at],
            left: self.fraction(events.start[at].0),
            right: self.fraction(end(events, row)),
            count: 1,
            total_ps: i128::from(events.dur[at].0.max(0)),
            event: EventId(row),
            name: is_wide.then(|| events.name[at]),
        }
    }
}
