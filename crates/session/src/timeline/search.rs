//! Finds events by a part of their name.
//!
//! Each distinct text is looked at once; then one pass over the column of names counts.

use std::collections::BinaryHeap;

use rayon::prelude::*;
use trace::{EventId, StrId, TrackId};

use super::lanes::end;
use super::{Timeline, TimelineError, overlaps};

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search<'a> {
    /// A part of the name, in capitals or not.
    pub text: &'a str,
    /// So many names and so many hits are told; all are counted.
    pub limit: usize,
    /// Only events of which a part lies in this range, in ps.
    pub range: Option<(i64, i64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Events found.
    pub total: u64,
    /// The names found, those of the most time first.
    pub names: Vec<NameHits>,
    /// The first events found, by start.
    pub hits: Vec<Hit>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NameHits {
    pub name: String,
    pub count: u64,
    /// All of the events' time, also what lies outside the range.
    pub total_ps: i128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub event: EventId,
    pub track: TrackId,
    pub lane: u8,
    pub start_ps: i64,
    pub dur_ps: i64,
}

/// Names that every core may count on its own, all cores together.
const COUNTED_AT_ONCE: usize = 1 << 22;

/// Of one piece of the rows: count and time of each name that fits, and the first hits.
struct Piece {
    names: Vec<(u64, i128)>,
    first: BinaryHeap<(i64, u32)>,
}

impl Timeline {
    pub fn search(&self, search: &Search<'_>) -> Result<Found, TimelineError> {
        let (from, to) = search.range.unwrap_or((i64::MIN, i64::MAX));
        if to < from {
            return Err(TimelineError::Range { from, to });
        }
        let trace = self.trace();
        let events = &trace.events;
        let text = search.text.to_lowercase();
        let fits = |it: &StrId| trace.text(*it).to_lowercase().contains(&text);
        let ids = (0..trace.strings.len() as u32).into_par_iter().map(StrId);
        let names: Vec<StrId> = ids.filter(fits).collect();
        let mut place_of = vec![u32::MAX; trace.strings.len()];
        for (place, name) in names.iter().enumerate() {
            place_of[name.row()] = place as u32;
        }

        let n_pieces = rayon::current_num_threads()
            .min(COUNTED_AT_ONCE / names.len().max(1))
            .clamp(1, events.len().max(1));
        let n_rows = events.len().div_ceil(n_pieces).max(1);
        let pieces = events.name.par_chunks(n_rows).enumerate().map(|(piece, of_events)| {
            let mut found = Piece { names: vec![(0, 0); names.len()], first: BinaryHeap::new() };
            let rows = (piece * n_rows) as u32..;
            for (row, name) in rows.zip(of_events) {
                let place = place_of[name.row()];
                if place == u32::MAX {
                    continue;
                }
                let start = events.start[row as usize].0;
                if search.range.is_some() && !overlaps(start, end(events, row), from, to) {
                    continue;
                }
                let sum = &mut found.names[place as usize];
                *sum = (sum.0 + 1, sum.1 + i128::from(events.dur[row as usize].0));
                if found.first.len() < search.limit {
                    found.first.push((start, row));
                } else if found.first.peek().is_some_and(|it| (start, row) < *it) {
                    found.first.pop();
                    found.first.push((start, row));
                }
            }
            found
        });
        let pieces: Vec<Piece> = pieces.collect();

        let mut sums: Vec<(u64, i128, StrId)> = names.iter().map(|&it| (0, 0, it)).collect();
        for piece in &pieces {
            for (sum, of_piece) in sums.iter_mut().zip(&piece.names) {
                *sum = (sum.0 + of_piece.0, sum.1 + of_piece.1, sum.2);
            }
        }
        sums.retain(|it| it.0 > 0);
        sums.sort_unstable_by_key(|it| (std::cmp::Reverse((it.1, it.0)), it.2));
        let total = sums.iter().map(|it| it.0).sum();
        let mut first: Vec<(i64, u32)> = pieces.into_iter().flat_map(|it| it.first).collect();
        first.sort_unstable();
        first.truncate(search.limit);
        let names = sums.iter().take(search.limit).map(|&(count, total_ps, name)| NameHits {
            name: trace.text(name).to_owned(),
            count,
            total_ps,
        });
        Ok(Found {
            total,
            names: names.collect(),
            hits: first.iter().map(|it| self.hit(EventId(it.1))).collect(),
        })
    }

    /// Where one of the trace's events lies.
    pub(crate) fn hit(&self, event: EventId) -> Hit {
        let trace = self.trace();
        let track = trace.track_of(event);
        Hit {
            event,
            track,
            lane: self.lanes[track.row()].lane_of(event),
            start_ps: trace.events.start[event.row()].0,
            dur_ps: trace.events.dur[event.row()].0,
        }
    }
}
