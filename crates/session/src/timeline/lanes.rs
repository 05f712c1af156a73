//! Puts a track's events onto lanes, and remembers of each lane what makes tiles quick.
//!
//! ```text
//! lane 0   |------ a ------|   |--- d ---|
//! lane 1     |- b -|         |--- e ---|        e began before d and still runs: d lies above
//! lane 2      |c|                               in what was free first
//! ```
//!
//! An event lies on the first lane below its parent's on which nothing still runs. So the events
//! of a lane follow one another, and their ends ascend as their starts do. Only on the last lane
//! there can be, where all goes that finds no other, events overlap.

use std::ops::Range;

use rayon::prelude::*;
use trace::{EventId, Events, Track};

use super::peaks::{BLOCK, Heights, Peaks};

/// The last lane there can be. Python's deepest stacks come near it; what lies deeper is drawn
/// over one another.
pub(super) const LAST_LANE: u8 = u8::MAX;

/// Events in a piece of work.
const PIECE: usize = 1 << 16;

/// The lanes of one track.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The track's events.
    rows: Range<u32>,
    lanes: Vec<Lane>,
    /// Of each event its lane; empty where there is one only.
    lane_of: Vec<u8>,
    /// The events lane by lane, as they begin; empty where there is one lane only.
    order: Vec<u32>,
    pub last_ps: i64,
}

/// What is known of a lane beside its events.
#[derive(Debug, Default)]
struct Lane {
    /// Its places in `order`.
    places: Range<u32>,
    /// The time of all events up to the end of each whole block. Hostile files have more of it
    /// than 64 bits hold.
    time: Vec<i128>,
    longest: Peaks<i64>,
    /// When the first event of each whole block begins: searching the events themselves would
    /// miss the cache at every step.
    starts: Vec<i64>,
    /// Who ends last; only where events overlap, as on the last lane.
    latest: Option<Peaks<i64>>,
}

pub(super) fn end(events: &Events, row: u32) -> i64 {
    events.start[row as usize].0.saturating_add(events.dur[row as usize].0.max(0))
}

impl Lanes {
    pub fn new(events: &Events, track: &Track) -> Lanes {
        let rows = track.events.clone();
        if rows.is_empty() {
            return Lanes { rows, ..Lanes::default() };
        }
        let mut lanes = Lanes { rows, ..Lanes::default() };
        let n_on_lanes = if lanes.follow_one_another(events) {
            vec![lanes.rows.len() as u32]
        } else {
            let n_on_lanes = lanes.assign(events);
            lanes.bring_together(&n_on_lanes);
            n_on_lanes
        };
        let mut from = 0;
        let places = n_on_lanes.iter().map(|&it| {
            from += it;
            from - it..from
        });
        let places: Vec<Range<u32>> = places.collect();
        let made = places.into_par_iter().enumerate();
        lanes.lanes = made.map(|(at, it)| lanes.lane(events, at as u8, it)).collect();
        let last_ends = (0..lanes.len()).filter_map(|it| lanes.on(events, it as u8)?.last_end());
        lanes.last_ps = last_ends.max().unwrap_or_default();
        lanes
    }

    /// Whether every event ends before the next begins, and none lies in another.
    fn follow_one_another(&self, events: &Events) -> bool {
        self.rows.clone().into_par_iter().with_min_len(PIECE).all(|row| {
            let next = row + 1;
            events.parent(EventId(row)).is_none()
                && (next >= self.rows.end || end(events, row) <= events.start[next as usize].0)
        })
    }

    /// Gives every event its lane, in one pass; answers how many each lane got.
    fn assign(&mut self, events: &Events) -> Vec<u32> {
        let first = self.rows.start;
        // Until when each lane is taken, and by how many.
        let mut taken: Vec<i64> = Vec::new();
        let mut n_on_lanes: Vec<u32> = Vec::new();
        self.lane_of = Vec::with_capacity(self.rows.len());
        for row in self.rows.clone() {
            let start = events.start[row as usize].0;
            let parent = events.parent(EventId(row)).and_then(|it| it.0.checked_sub(first));
            let below = parent.and_then(|it| self.lane_of.get(it as usize));
            let from = below.map_or(0, |&it| usize::from(it) + 1).min(taken.len());
            let free = taken[from..].iter().position(|&it| it <= start);
            let lane = free.map_or(taken.len(), |it| from + it).min(usize::from(LAST_LANE));
            if lane == taken.len() {
                taken.push(i64::MIN);
                n_on_lanes.push(0);
            }
            taken[lane] = taken[lane].max(end(events, row));
            n_on_lanes[lane] += 1;
            self.lane_of.push(lane as u8);
        }
        n_on_lanes
    }

    /// Sorts the rows by lane; on each they stay as they are.
    fn bring_together(&mut self, n_on_lanes: &[u32]) {
        let mut next: Vec<usize> = Vec::with_capacity(n_on_lanes.len());
        let mut n = 0;
        for &on_lane in n_on_lanes {
            next.push(n);
            n += on_lane as usize;
        }
        self.order = vec![0; n];
        for (row, &lane) in self.rows.clone().zip(&self.lane_of) {
            let place = &mut next[usize::from(lane)];
            self.order[*place] = row;
            *place += 1;
        }
    }

    fn lane(&self, events: &Events, lane: u8, places: Range<u32>) -> Lane {
        let mut made = Lane { places, ..Lane::default() };
        let on = OnLane { of: self, lane: &made, events };
        let blocks = (0..on.len() / BLOCK).into_par_iter().with_min_len(PIECE / BLOCK);
        let mut time: Vec<i128> =
            blocks.map(|it| on.time_one_by_one(it * BLOCK..(it + 1) * BLOCK)).collect();
        let mut sum = 0;
        for it in &mut time {
            sum += *it;
            *it = sum;
        }
        let longest = Peaks::new(on.len(), &Lengths(on));
        let latest = (lane == LAST_LANE).then(|| Peaks::new(on.len(), &Ends(on)));
        let starts = (0..on.len() / BLOCK).map(|it| on.start(it * BLOCK)).collect();
        made = Lane { time, longest, starts, latest, ..made };
        made
    }

    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// The lane of one of the track's events.
    pub fn lane_of(&self, event: EventId) -> u8 {
        let place = event.0.checked_sub(self.rows.start).map(|it| it as usize);
        place.and_then(|it| self.lane_of.get(it)).copied().unwrap_or(0)
    }

    pub fn on<'a>(&'a self, events: &'a Events, lane: u8) -> Option<OnLane<'a>> {
        let it = self.lanes.get(usize::from(lane))?;
        Some(OnLane { of: self, lane: it, events })
    }

    pub fn heap_bytes(&self) -> usize {
        let of_lane = |it: &Lane| {
            size_of::<Lane>()
                + it.time.capacity() * size_of::<i128>()
                + it.longest.heap_bytes()
                + it.starts.capacity() * size_of::<i64>()
                + it.latest.as_ref().map_or(0, Peaks::heap_bytes)
        };
        self.lanes.iter().map(of_lane).sum::<usize>()
            + self.lane_of.capacity()
            + self.order.capacity() * size_of::<u32>()
    }
}

/// The events of one lane by their place on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnLane<'a> {
    of: &'a Lanes,
    lane: &'a Lane,
    events: &'a Events,
}

struct Lengths<'a>(OnLane<'a>);
struct Ends<'a>(OnLane<'a>);

impl Heights for Lengths<'_> {
    type Key = i64;
    fn at(&self, place: usize) -> u32 {
        self.0.row(place)
    }
    fn key(&self, row: u32) -> i64 {
        self.0.events.dur[row as usize].0
    }
}

impl Heights for Ends<'_> {
    type Key = i64;
    fn at(&self, place: usize) -> u32 {
        self.0.row(place)
    }
    fn key(&self, row: u32) -> i64 {
        end(self.0.events, row)
    }
}

impl OnLane<'_> {
    pub fn len(&self) -> usize {
        self.lane.places.len()
    }

    pub fn row(&self, place: usize) -> u32 {
        if self.of.order.is_empty() {
            return self.of.rows.start + place as u32;
        }
        self.of.order[self.lane.places.start as usize + place]
    }

    pub fn start(&self, place: usize) -> i64 {
        self.events.start[self.row(place) as usize].0
    }

    /// The place of the first event from `from` on that does not begin before a time; quick
    /// where it is near.
    pub fn first_from(&self, from: usize, time: i128) -> usize {
        let is_before = |start: i64| i128::from(start) < time;
        // The blocks that begin before the time, of those that begin behind `from`.
        let next_block = from.div_ceil(BLOCK).min(self.lane.starts.len());
        let n_blocks = gallop(&self.lane.starts[next_block..], |it| is_before(*it));
        let (low, high) = match next_block + n_blocks {
            // Behind the last whole block there are fewer than another would have.
            last if last == self.lane.starts.len() => (last.saturating_sub(1) * BLOCK, self.len()),
            next => (next.saturating_sub(1) * BLOCK, next * BLOCK),
        };
        let (mut low, mut high) = (low.max(from), high);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(self.start(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The time of all events before a place.
    pub fn time_until(&self, place: usize) -> i128 {
        let blocks = (place / BLOCK).min(self.lane.time.len());
        let whole = blocks.checked_sub(1).map_or(0, |it| self.lane.time[it]);
        whole + self.time_one_by_one(blocks * BLOCK..place)
    }

    /// The time of all events before the end of some places, knowing it at their beginning.
    pub fn time_on(&self, until: i128, places: Range<usize>) -> i128 {
        if places.len() < BLOCK / 2 {
            return until + self.time_one_by_one(places);
        }
        self.time_until(places.end)
    }

    fn time_one_by_one(&self, places: Range<usize>) -> i128 {
        let dur = |it| i128::from(self.events.dur[self.row(it) as usize].0.max(0));
        places.map(dur).sum()
    }

    /// Hands over those that are at least `long`; answers the longest of the others.
    pub fn split(&self, places: Range<usize>, long: i64, each: impl FnMut(u32)) -> Option<u32> {
        self.lane.longest.split(places, &Lengths(*self), Some(long), each)
    }

    /// Hands over those of the first `n` that still run at a time.
    pub fn running(&self, n: usize, time: i64, mut each: impl FnMut(u32)) {
        let Some(after) = time.checked_add(1) else { return };
        if let Some(latest) = &self.lane.latest {
            latest.split(0..n, &Ends(*self), Some(after), each);
        } else if let Some(last) = n.checked_sub(1).map(|it| self.row(it))
            && end(self.events, last) >= after
        {
            each(last);
        }
    }

    fn last_end(&self) -> Option<i64> {
        let n = self.len();
        let last = match &self.lane.latest {
            Some(latest) => latest.largest(0..n, &Ends(*self)),
            None => n.checked_sub(1).map(|it| self.row(it)),
        };
        last.map(|it| end(self.events, it))
    }
}

/// How many at the beginning fit, as all before the first that does not; quick where they are few.
fn gallop<T>(sorted: &[T], fits: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut step) = (0, 1);
    while sorted.get(low + step - 1).is_some_and(&fits) {
        low += step;
        step *= 2;
    }
    let high = (low + step - 1).min(sorted.len());
    low + sorted[low..high].partition_point(fits)
}
