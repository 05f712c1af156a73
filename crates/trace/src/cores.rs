//! Work for all cores, in shares that are worth waking a thread for.
//!
//! A run of many hosts asks the same small question of each: done on other threads, they would
//! spend more time waking up and looking for work than working.

use rayon::prelude::*;

use crate::{Trace, TrackId};

/// Waking a thread takes as long as looking at some hundred events or more (34 µs, says
/// `bench/costs/run`); a share is ten times that.
pub const WORTH_WAKING: usize = 4096;

/// Tracks, as many for each core as have events enough between them.
pub fn at_once<'a>(
    trace: &Trace,
    tracks: &'a [TrackId],
) -> impl IndexedParallelIterator<Item = &'a TrackId> + use<'a> {
    let n_events: usize = tracks.iter().map(|it| trace.tracks[it.row()].events.len()).sum();
    let share = (tracks.len() * WORTH_WAKING).checked_div(n_events).unwrap_or(tracks.len());
    tracks.par_iter().with_min_len(share.max(1))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rayon::prelude::*;

    use super::at_once;
    use crate::testing::draw;

    #[test]
    fn a_few_events_wake_nobody() {
        let trace = draw("host/a: step 0..10\nhost/b: step 0..10\nhost/c: step 0..10");
        let tracks: Vec<_> = trace.track_ids().collect();
        let here = thread::current().id();
        assert!(at_once(&trace, &tracks).all(|_| thread::current().id() == here));
        assert_eq!(at_once(&trace, &tracks).count(), tracks.len());
        assert_eq!(at_once(&trace, &[]).count(), 0);
    }
}
