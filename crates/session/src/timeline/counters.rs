//! Values over time, cell by cell: the least, the greatest and the last of each.

use std::ops::Range;

use rayon::prelude::*;
use trace::{Counter, Trace, TrackId};

use super::peaks::{Heights, Peaks};
use super::tile::Window;
use super::{Timeline, TimelineError};

/// The samples of one track.
#[derive(Debug)]
pub(super) struct Samples {
    pub track: TrackId,
    /// In the trace's column.
    pub rows: Range<usize>,
    greatest: Peaks<f64>,
    least: Peaks<f64>,
}

/// A window of a track of values.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterTile {
    pub track: TrackId,
    /// Only those with a sample.
    pub cells: Vec<CounterCell>,
}

/// The samples of a cell; not a number where none of them is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterCell {
    pub cell: u32,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

/// Samples by their value, times a sign; what is not a number is below all that are.
struct Values<'a>(&'a [Counter], f64);

impl Heights for Values<'_> {
    type Key = f64;
    fn at(&self, place: usize) -> u32 {
        place as u32
    }
    fn key(&self, thing: u32) -> f64 {
        let value = self.0[thing as usize].value * self.1;
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }
}

/// The tracks that have samples.
pub(super) fn all(trace: &Trace) -> Vec<Samples> {
    let mut all = Vec::new();
    let mut from = 0;
    for samples in trace.counters.chunk_by(|a, b| a.track == b.track) {
        let rows = from..from + samples.len();
        from = rows.end;
        let greatest = Peaks::new(samples.len(), &Values(samples, 1.0));
        let least = Peaks::new(samples.len(), &Values(samples, -1.0));
        all.extend(samples.first().map(|it| Samples { track: it.track, rows, greatest, least }));
    }
    all
}

impl Samples {
    /// The least and the greatest of some samples, counted from the track's first.
    pub fn bounds(&self, trace: &Trace, of: Range<usize>) -> (f64, f64) {
        let samples = &trace.counters[self.rows.clone()];
        let value = |it: Option<u32>| it.map_or(f64::NAN, |it| samples[it as usize].value);
        let least = self.least.largest(of.clone(), &Values(samples, -1.0));
        let greatest = self.greatest.largest(of, &Values(samples, 1.0));
        (value(least), value(greatest))
    }

    fn cells(&self, trace: &Trace, window: &Window) -> Vec<CounterCell> {
        let samples = &trace.counters[self.rows.clone()];
        let before = |from: usize, time: i128| {
            from + samples[from..].partition_point(|it| i128::from(it.time.0) < time)
        };
        let mut cells = Vec::new();
        let mut place = before(0, window.begin);
        let to = before(place, window.end());
        while place < to {
            let cell = window.cell(samples[place].time.0);
            let next = before(place, window.cell_end(cell)).max(place + 1);
            let (min, max) = self.bounds(trace, place..next);
            cells.push(CounterCell { cell, min, max, last: samples[next - 1].value });
            place = next;
        }
        cells
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Samples>() + self.greatest.heap_bytes() + self.least.heap_bytes()
    }
}

impl Timeline {
    pub(super) fn samples(&self, track: TrackId) -> Option<&Samples> {
        let at = self.counters.binary_search_by_key(&track, |it| it.track).ok()?;
        self.counters.get(at)
    }

    /// The values of some tracks in one tile; a track without values has no cells.
    pub fn counters(
        &self,
        level: u8,
        tile: i64,
        tracks: &[TrackId],
    ) -> Result<Vec<CounterTile>, TimelineError> {
        let window = Window::new(level, tile)?;
        let tracks = self.known(tracks)?;
        let cells = |it| self.samples(it).map(|it| it.cells(self.trace(), &window));
        let tiles = tracks
            .into_par_iter()
            .map(|track| CounterTile { track, cells: cells(track).unwrap_or_default() });
        Ok(tiles.collect())
    }
}
