//! Adds up what lies in a range of time, by name.
//!
//! ```text
//!            from            to
//!   |---- a ---|-------|      |       a counts with the part inside, b with all of it;
//!              |  |-b-|       |       a's own time is its part without b's
//! ```

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{EventId, OpKind, StrId, TrackId};

use super::lanes::end;
use super::{Timeline, TimelineError};

/// What lies in a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    /// The most time of its own first.
    pub rows: Vec<RangeRow>,
    /// Events, of all rows.
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RangeRow {
    pub name: String,
    pub kind: OpKind,
    pub count: u64,
    /// The parts inside the range.
    pub total_ps: i128,
    /// Of these, without what lies in the events.
    pub self_ps: i128,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    total: i128,
    own: i128,
}

type Sums = HashMap<(StrId, OpKind), Sum>;

/// Events in a piece of work.
const PIECE: usize = 1 << 16;

impl Timeline {
    /// What lies in a range, on some tracks or on all. The part of an event that lies inside
    /// counts; one without length counts where it begins there.
    pub fn range(
        &self,
        from: i64,
        to: i64,
        tracks: Option<&[TrackId]>,
    ) -> Result<Inside, TimelineError> {
        if to < from {
            return Err(TimelineError::Range { from, to });
        }
        let trace = self.trace();
        let tracks = match tracks {
            Some(tracks) => self.known(tracks)?,
            None => trace.track_ids().collect(),
        };
        let sums = tracks.into_par_iter().map(|it| self.on_track(it, from, to));
        let sums = sums.reduce(Sums::default, add_up);

        let mut rows: Vec<((StrId, OpKind), Sum)> = sums.into_iter().collect();
        rows.sort_unstable_by_key(|(key, sum)| {
            (std::cmp::Reverse((sum.own, sum.total, sum.count)), *key)
        });
        let count = rows.iter().map(|it| it.1.count).sum();
        let rows = rows.into_iter().filter(|it| it.1.count > 0).map(|((name, kind), sum)| {
            let name = trace.text(name).to_owned();
            // Where events in one event overlap, they come to more than it has.
            let self_ps = sum.own.max(0);
            RangeRow { name, kind, count: sum.count, total_ps: sum.total, self_ps }
        });
        Ok(Inside { rows: rows.collect(), count })
    }

    fn on_track(&self, track: TrackId, from: i64, to: i64) -> Sums {
        let trace = self.trace();
        let events = &trace.events;
        let rows = trace.tracks[track.row()].events.clone();
        let starts = &events.start[rows.start as usize..rows.end as usize];
        let first = rows.start + starts.partition_point(|it| it.0 < from) as u32;
        let last = rows.start + starts.partition_point(|it| it.0 < to) as u32;
        let mut sums = Sums::default();
        // An empty range has nothing inside.
        if from < to {
            self.running(track, from, |row| self.add(&mut sums, row, from, to));
        }
        let pieces = (first..last.max(first)).into_par_iter().with_min_len(PIECE);
        let begun = pieces.fold(Sums::default, |mut sums, row| {
            self.add(&mut sums, row, from, to);
            sums
        });
        add_up(begun.reduce(Sums::default, add_up), sums)
    }

    /// The events of a track that began before a time and still run.
    fn running(&self, track: TrackId, time: i64, mut each: impl FnMut(u32)) {
        let events = &self.trace().events;
        for lane in 0..=u8::MAX {
            let Some(on) = self.lanes[track.row()].on(events, lane) else { break };
            let n = on.first_from(0, i128::from(time));
            on.running(n, time, &mut each);
        }
    }

    fn add(&self, sums: &mut Sums, row: u32, from: i64, to: i64) {
        let trace = self.trace();
        let events = &trace.events;
        let at = row as usize;
        let part = i128::from(end(events, row).min(to)) - i128::from(events.start[at].0.max(from));
        let part = part.max(0);
        let sum = sums.entry((events.name[at], events.kind[at])).or_default();
        sum.count += 1;
        sum.total += part;
        sum.own += part;
        // What overlaps by intent takes nothing from what it happens to lie in.
        if let Some(around) = events.parent(EventId(row))
            && !trace.detail(EventId(row)).overlaps
        {
            let key = (events.name[around.row()], events.kind[around.row()]);
            sums.entry(key).or_default().own -= part;
        }
    }
}

fn add_up(mut to: Sums, mut from: Sums) -> Sums {
    if to.len() < from.len() {
        std::mem::swap(&mut to, &mut from);
    }
    for (key, it) in from {
        let sum = to.entry(key).or_default();
        sum.count += it.count;
        sum.total += it.total;
        sum.own += it.own;
    }
    to
}
