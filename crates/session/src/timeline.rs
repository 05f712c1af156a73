//! Answers windows of the timeline at any zoom, without losing an event.
//!
//! ```text
//! trace ──lanes──▶ index of each track ──▶ tiles, counters       what is drawn
//!   └────────────────────────────────────▶ search, range, event  what is asked about it
//! ```
//!
//! Built once a session, in one pass over the events; some six bytes an event on tracks where
//! events nest, less than one where they follow one another. No request makes it panic or gives
//! more than was asked for: what cannot be answered is a [`TimelineError`].

mod counters;
mod event;
mod lanes;
mod overview;
mod peaks;
mod range;
mod search;
mod tile;
pub mod wire;

use std::ops::Range;
use std::sync::Arc;

use analyses::Tables;
use analyses::step::Step;
use rayon::prelude::*;
use trace::{EventId, Trace, TrackId, TrackKind};

pub use counters::{CounterCell, CounterTile};
pub use event::{Ancestor, Detail, Histogram, OfStep, Related, SameName};
pub use overview::{Counter, Kind, Overview, StepMark, TrackMark};
pub use range::{Inside, RangeRow};
pub use search::{Found, Hit, NameHits, Search};
pub use tile::{CELLS, LEVELS, Span, Tile, TrackTile};

use lanes::Lanes;

/// The timeline of a run.
pub struct Timeline {
    tables: Arc<Tables>,
    /// By track.
    lanes: Vec<Lanes>,
    /// Tracks of values, by number.
    counters: Vec<counters::Samples>,
}

/// Why something of the timeline cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    #[error("there is no level {0}\n  hint: levels are 10 to 63")]
    Level(u8),
    #[error("there is no track {}\n  hint: the timeline lists the tracks", .0.0)]
    Track(TrackId),
    #[error("there is no event {}", .0.0)]
    Event(EventId),
    #[error("the range ends at {to} ps, before it begins at {from} ps")]
    Range { from: i64, to: i64 },
}

impl std::fmt::Debug for Timeline {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Timeline({} tracks)", self.lanes.len())
    }
}

impl Timeline {
    pub fn new(tables: Arc<Tables>) -> Timeline {
        let trace = tables.trace();
        let lanes = trace.tracks.par_iter().map(|it| Lanes::new(&trace.events, it)).collect();
        let counters = counters::all(trace);
        Timeline { tables, lanes, counters }
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn trace(&self) -> &Trace {
        self.tables.trace()
    }

    /// The lane that an event lies on; 0 where there is no such event.
    pub fn lane_of(&self, event: EventId) -> u8 {
        let track = self.trace().track_of(event);
        self.lanes.get(track.row()).map_or(0, |it| it.lane_of(event))
    }

    /// Bytes held beside the trace.
    pub fn heap_bytes(&self) -> usize {
        let of_lanes = |it: &Lanes| size_of::<Lanes>() + it.heap_bytes();
        self.lanes.iter().map(of_lanes).sum::<usize>()
            + self.counters.iter().map(counters::Samples::heap_bytes).sum::<usize>()
    }

    /// The tracks, each once, if there are such.
    fn known(&self, tracks: &[TrackId]) -> Result<Vec<TrackId>, TimelineError> {
        let mut is_new = vec![true; self.lanes.len()];
        let mut known = Vec::new();
        for &track in tracks {
            let Some(is_new) = is_new.get_mut(track.row()) else {
                return Err(TimelineError::Track(track));
            };
            if std::mem::take(is_new) {
                known.push(track);
            }
        }
        Ok(known)
    }
}

/// The steps of each host, to tell in which one a moment lies.
struct Steps {
    table: Arc<Vec<Step>>,
    /// Each host's rows.
    hosts: Vec<(TrackId, Range<usize>)>,
}

impl Steps {
    fn new(tables: &Tables) -> Steps {
        let table = tables.get::<Step>();
        let trace = tables.trace();
        // Two hosts may share a name: the track that drives a step says whose it is.
        let host_of = |it: &Step| {
            let track = TrackId(u32::try_from(it.track).ok()?);
            trace.ancestor(track, TrackKind::Host)
        };
        let mut hosts = Vec::new();
        let mut from = 0;
        for steps in table.chunk_by(|a, b| a.track == b.track || host_of(a) == host_of(b)) {
            let rows = from..from + steps.len();
            from = rows.end;
            if let Some(host) = steps.first().and_then(host_of) {
                hosts.push((host, rows));
            }
        }
        Steps { table, hosts }
    }

    fn of(&self, host: Option<TrackId>) -> &[Step] {
        let rows = self.hosts.iter().find(|it| Some(it.0) == host).map(|it| it.1.clone());
        rows.and_then(|it| self.table.get(it)).unwrap_or_default()
    }
}

/// The step that a moment lies in; steps touch, and are sorted.
fn step_at(steps: &[Step], time: i64) -> Option<&Step> {
    let after = steps.partition_point(|it| it.start_ps <= time);
    steps.get(after.checked_sub(1)?).filter(|it| is_in(it, time))
}

fn is_in(step: &Step, time: i64) -> bool {
    step.start_ps <= time && time < step.start_ps.saturating_add(step.dur_ps)
}

/// Whether an event lies in a range of time, or a part of it does.
fn overlaps(start: i64, end: i64, from: i64, to: i64) -> bool {
    start < to && (end > from || start >= from)
}
