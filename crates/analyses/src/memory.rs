//! Follows every allocator through the capture: how full it got, when, and whether it grows.
//!
//! ```text
//! level          .-'-.        .-'-.        .-'-.      peak
//!             .-'     '-.  .-'     '-.  .-'     '-.
//! floor     -'           '-           '-                lowest level of each step: what stays
//! steps     |----- 0 -----|----- 1 -----|----- 2 …      a floor that rises is growth
//! ```
//!
//! Levels are the allocator's own, so dropped events do not bend them. Known from the events of
//! allocators alone: what a library takes from the system itself is not seen, nor what TensorFlow
//! allocates on a CPU without oneDNN's allocator, nor there blocks below 256 KiB.

use rayon::prelude::*;
use trace::{EventId, FactValue, OpKind, Trace, TrackId, TrackKind};

use crate::step::{Step, median};
use crate::{Analysis, Model, Tables};

table! {
    /// How full each allocator got, when, and whether it grows from step to step.
    ///
    /// Empty where the profile holds no allocator's events.
    pub struct Memory = "memory" {
        /// The host whose process allocates.
        host: String,
        /// The allocator, as GPU_0_bfc.
        allocator: String,
        /// Which memory it manages: host or device.
        memory: &'static str,
        /// Highest level in the capture, what is reserved for programs included.
        peak_bytes: i64,
        /// When that was, since the start of the trace; the last time, of several.
        peak_ps: i64,
        /// In which step; null outside of all steps.
        peak_step: Option<i64>,
        /// Level when the capture began.
        start_bytes: i64,
        /// Level when the capture ended.
        end_bytes: i64,
        /// What stays between steps: the lowest level of a step, as the median of the steps that
        /// count.
        floor_bytes: Option<i64>,
        /// What it may use: in use and available, at the peak.
        capacity_bytes: Option<i64>,
        /// Part of the capacity that was in use at the peak, 0 to 1.
        peak_share: Option<f64>,
        /// Highest level since the process began, as the allocator says.
        lifetime_peak_bytes: Option<i64>,
        /// How scattered the free memory was at the peak, as the allocator says: 0 is one piece.
        fragmentation: Option<f64>,
        /// Blocks taken.
        n_allocations: i64,
        /// Blocks given back.
        n_deallocations: i64,
        /// Steps that count, on which the figures per step rest.
        n_steps: i64,
        /// Bytes taken in a step, given back or not: the mean of the steps that count.
        allocated_bytes_per_step: Option<i64>,
        /// How much the floor rises from step to step: the median slope between all pairs of steps
        /// (Theil–Sen). Null for fewer than four steps.
        growth_bytes_per_step: Option<i64>,
        /// Lower end of the slope's range, which holds it in 95 of 100 cases.
        growth_low_bytes: Option<i64>,
        /// Upper end of the slope's range.
        growth_high_bytes: Option<i64>,
        /// Events of allocators that were not read, since there were more than a million; counts
        /// are then of the part around the peak.
        n_unread: i64,
    }
}

impl Analysis for Memory {
    fn run(tables: &Tables) -> Vec<Memory> {
        let trace = tables.trace();
        let moves = tables.model::<Moves>();
        let steps = tables.get::<Step>();
        let mut rows = Vec::with_capacity(moves.allocators.len());
        for allocator in &moves.allocators {
            let host = trace.track_name(allocator.host);
            let Some(peak) = allocator.peak() else { continue };
            let at_peak = &allocator.moves[peak];
            // Where not all was read, the level is known from the first move on.
            let known_from = if moves.n_unread > 0 { allocator.moves[0].time } else { i64::MIN };
            let known = |it: &&Step| it.host == host && it.start_ps >= known_from;
            let levels = Levels::of(allocator, steps.iter().filter(known));
            let growth = growth(&levels.floors);
            let capacity = at_peak.available.map(|it| it.saturating_add(at_peak.level));
            let capacity = capacity.filter(|&it| it > 0);
            let n_allocations = allocator.moves.iter().filter(|it| it.takes).count();
            rows.push(Memory {
                host: host.to_owned(),
                allocator: allocator.name.clone(),
                memory: allocator.memory(),
                peak_bytes: at_peak.level,
                peak_ps: at_peak.time,
                peak_step: StepClock::of(&steps, host).step_at(at_peak.time),
                start_bytes: allocator.start_bytes(),
                end_bytes: allocator.moves.last().map_or(0, |it| it.level),
                floor_bytes: median(&mut levels.floors.iter().map(|it| it.1).collect::<Vec<_>>()),
                capacity_bytes: capacity,
                peak_share: capacity.map(|it| at_peak.level as f64 / it as f64),
                lifetime_peak_bytes: allocator.moves.iter().filter_map(|it| it.lifetime_peak).max(),
                fragmentation: at_peak.fragmentation.map(f64::from),
                n_allocations: n_allocations as i64,
                n_deallocations: (allocator.moves.len() - n_allocations) as i64,
                n_steps: levels.floors.len() as i64,
                allocated_bytes_per_step: levels.allocated_bytes_per_step(),
                growth_bytes_per_step: growth.map(|it| it.0),
                growth_low_bytes: growth.map(|it| it.1),
                growth_high_bytes: growth.map(|it| it.2),
                n_unread: moves.n_unread,
            });
        }
        rows
    }
}

/// Every block taken or given back, by allocator: read once, questioned by several tables.
#[derive(Debug, Default)]
pub struct Moves {
    /// By host, then name.
    pub allocators: Vec<Allocator>,
    n_unread: i64,
}

#[derive(Debug)]
pub struct Allocator {
    pub host: TrackId,
    pub name: String,
    /// In the order of time.
    pub moves: Vec<Move>,
}

/// A block taken or given back.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    pub event: EventId,
    pub time: i64,
    pub takes: bool,
    pub bytes: i64,
    /// In use afterwards, what is reserved for programs included.
    pub level: i64,
    pub reserved: i64,
    pub address: i64,
    available: Option<i64>,
    lifetime_peak: Option<i64>,
    fragmentation: Option<f32>,
}

/// Decoding a million events takes a second or two of one core. A capture of some steps holds
/// thousands; one that holds more is read where it matters, around the peak.
/// Source: choice, a bound on the work.
const MOST_MOVES: usize = 1 << 20;

/// So many are decoded at a time, and their allocators' names kept once.
/// Source: choice, small enough to share out among cores.
const CHUNK_MOVES: usize = 1 << 12;
/// A process has a few for each of its devices; a broken file can name another in every event.
/// Source: choice, a bound against broken files.
const MOST_ALLOCATORS: usize = 256;
/// Allocators have short names, which tables repeat in every row.
/// Source: choice, a bound on memory.
const LONGEST_NAME: usize = 256;

impl Model for Moves {
    fn build(tables: &Tables) -> Moves {
        let trace = tables.trace();
        let mut rows: Vec<(u32, TrackId)> = Vec::new();
        for track in trace.track_ids() {
            let host = trace.ancestor(track, TrackKind::Host).unwrap_or(track);
            let memory = trace.rows_of(track, OpKind::Memory);
            rows.extend(memory.map(|it| (it as u32, host)));
        }
        let n_all = rows.len();
        if n_all > MOST_MOVES {
            keep_around_peak(trace, &mut rows);
        }
        let n_unread = (n_all - rows.len()) as i64;
        let chunks: Vec<Vec<Allocator>> =
            rows.par_chunks(CHUNK_MOVES).map(|it| Allocator::read_all(trace, it)).collect();
        let mut allocators: Vec<Allocator> = Vec::new();
        for chunk in chunks.into_iter().flatten() {
            chunk.join(&mut allocators);
        }
        for allocator in &mut allocators {
            allocator.moves.sort_by_key(|it| it.time);
        }
        allocators.sort_by(|a, b| (a.host, &a.name).cmp(&(b.host, &b.name)));
        Moves { allocators, n_unread }
    }
}

/// Whether a counter is an allocator's level: those of samples beside the run hang below a host.
pub(crate) fn is_allocator(trace: &Trace, counter: TrackId) -> bool {
    trace.tracks[counter.row()].parent.is_none()
}

/// One part in so many of what is kept is from after the peak.
/// Source: choice, a guess: what was held is told by what came before.
const AFTER_PEAK: usize = 4;

/// Three quarters of what is kept lie before the highest level, so that holders are found.
fn keep_around_peak(trace: &Trace, rows: &mut Vec<(u32, TrackId)>) {
    let levels = trace.counters.iter().filter(|it| is_allocator(trace, it.track));
    let highest = levels.max_by(|a, b| a.value.total_cmp(&b.value));
    let peak = highest.map_or(i64::MAX, |it| it.time.0);
    rows.sort_by_key(|it| trace.events.start[it.0 as usize]);
    let at = rows.partition_point(|it| trace.events.start[it.0 as usize].0 <= peak);
    let end = (at + MOST_MOVES / AFTER_PEAK).clamp(MOST_MOVES, rows.len());
    rows.truncate(end);
    rows.drain(..end - MOST_MOVES);
}

impl Move {
    /// The allocator's name and what it did; `None` where the event does not say.
    fn read(trace: &Trace, event: EventId) -> Option<(String, Move)> {
        let (mut name, mut ordinal, mut level) = (None, None, None);
        let mut it = Move {
            event,
            time: trace.events.start[event.row()].0,
            takes: trace.name(event) == "MemoryAllocation",
            bytes: 0,
            level: 0,
            reserved: 0,
            address: 0,
            available: None,
            lifetime_peak: None,
            fragmentation: None,
        };
        for (key, value) in trace.args.of(event) {
            match (key.as_str(), value) {
                ("allocator_name", FactValue::Text(text)) => {
                    name = Some(text.chars().take(LONGEST_NAME).collect::<String>());
                }
                ("device_ordinal" | "index_on_host", FactValue::Int(n)) => ordinal = Some(n),
                ("bytes_allocated", FactValue::Int(n)) => level = Some(n),
                ("bytes_reserved", FactValue::Int(n)) => it.reserved = n,
                ("bytes_available", FactValue::Int(n)) => it.available = Some(n),
                ("peak_bytes_in_use", FactValue::Int(n)) => it.lifetime_peak = Some(n),
                ("allocation_bytes", FactValue::Int(n)) => it.bytes = n,
                ("addr" | "address", FactValue::Int(n)) => it.address = n,
                ("fragmentation", FactValue::Float(n)) => it.fragmentation = Some(n as f32),
                ("fragmentation", FactValue::Int(n)) => it.fragmentation = Some(n as f32),
                _ => (),
            }
        }
        it.level = level?.saturating_add(it.reserved);
        let name = name.or_else(|| ordinal.map(|it| format!("device {it}")))?;
        Some((name, it))
    }
}

impl Allocator {
    fn read_all(trace: &Trace, rows: &[(u32, TrackId)]) -> Vec<Allocator> {
        let mut allocators: Vec<Allocator> = Vec::new();
        for &(row, host) in rows {
            if let Some((name, it)) = Move::read(trace, EventId(row)) {
                Allocator { host, name, moves: vec![it] }.join(&mut allocators);
            }
        }
        allocators
    }

    /// Adds what it did to the allocator of the same name. Past the bound nothing is added.
    fn join(mut self, to: &mut Vec<Allocator>) {
        // There are few, and neighbours are mostly of the last one met.
        match to.iter().rposition(|it| it.host == self.host && it.name == self.name) {
            Some(at) => to[at].moves.append(&mut self.moves),
            None if to.len() < MOST_ALLOCATORS => to.push(self),
            None => (),
        }
    }

    /// Which memory it manages. Pinned memory of a GPU's host is the host's.
    pub fn memory(&self) -> &'static str {
        let name = self.name.to_ascii_lowercase();
        if name.contains("host") || name.contains("cpu") { "host" } else { "device" }
    }

    /// The move that reached the highest level; the last one, of several.
    pub fn peak(&self) -> Option<usize> {
        (0..self.moves.len()).max_by_key(|&it| self.moves[it].level)
    }

    /// Level before the first move.
    fn start_bytes(&self) -> i64 {
        let Some(first) = self.moves.first() else { return 0 };
        let change = if first.takes { first.bytes } else { -first.bytes };
        first.level.saturating_sub(change).max(0)
    }

    /// Level at a moment, and the first move at or after it.
    fn level_at(&self, time: i64) -> (i64, usize) {
        let next = self.moves.partition_point(|it| it.time < time);
        let before = next.checked_sub(1).map(|it| self.moves[it].level);
        (before.unwrap_or_else(|| self.start_bytes()), next)
    }
}

/// What the steps that count say of one allocator.
struct Levels {
    /// The step's number in the capture, and its lowest level.
    floors: Vec<(i64, i64)>,
    allocated_bytes: i64,
}

impl Levels {
    fn of<'a>(allocator: &Allocator, steps: impl Iterator<Item = &'a Step>) -> Levels {
        let mut levels = Levels { floors: Vec::new(), allocated_bytes: 0 };
        for step in steps.filter(|it| it.counts()) {
            let (from, to) = step.span();
            let (mut floor, first) = allocator.level_at(from);
            for it in allocator.moves[first..].iter().take_while(|it| it.time < to) {
                floor = floor.min(it.level);
                if it.takes {
                    levels.allocated_bytes = levels.allocated_bytes.saturating_add(it.bytes);
                }
            }
            levels.floors.push((step.step, floor));
        }
        levels
    }

    fn allocated_bytes_per_step(&self) -> Option<i64> {
        self.allocated_bytes.checked_div(self.floors.len() as i64)
    }
}

/// Bytes of the host's memory in use, by all processes, and bytes there are: as tf.data last said.
pub fn host_ram(trace: &Trace) -> Option<(i64, i64)> {
    let (root, _) = trace.strings.iter().find(|it| it.1 == "Iterator::Root")?;
    let rows = (0..trace.events.len()).filter(|&it| trace.events.name[it] == root);
    let last = rows.max_by_key(|&it| trace.events.start[it])?;
    let args = trace.args.of(EventId(last as u32));
    let (_, FactValue::Text(said)) = args.iter().find(|it| it.0 == "ram_usage_megabytes")? else {
        return None;
    };
    // 13613 out of 25274 (53.86%)
    let mut words = said.split_whitespace();
    let mut next_mb = |skip| words.nth(skip)?.parse::<i64>().ok()?.checked_mul(1 << 20);
    Some((next_mb(0)?, next_mb(2)?)).filter(|it| it.1 > 0)
}

/// Times the runtime stopped to move blocks together, since none was large enough.
pub fn defragmentations(trace: &Trace) -> Vec<EventId> {
    let names = trace.strings.iter().filter(|it| it.1.ends_with("::DefragmentMemory"));
    let names: Vec<_> = names.map(|it| it.0).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let rows = (0..trace.events.len()).filter(|&it| names.contains(&trace.events.name[it]));
    rows.map(|it| EventId(it as u32)).collect()
}

/// A host's steps, for asking which one holds a moment.
#[derive(Debug)]
pub struct StepClock(Vec<(i64, i64, i64)>);

impl StepClock {
    pub fn of(steps: &[Step], host: &str) -> StepClock {
        let own = steps.iter().filter(|it| it.host == host);
        StepClock(own.map(|it| (it.span().0, it.span().1, it.step)).collect())
    }

    pub fn step_at(&self, time: i64) -> Option<i64> {
        let after = self.0.partition_point(|it| it.0 <= time);
        let step = self.0[..after].last().filter(|it| time < it.1)?;
        Some(step.2)
    }
}

/// Pairs grow with the square of the steps; so many of them say as much as all.
/// Source: choice, a bound on the work: 45,000 pairs.
const MOST_FLOORS: usize = 300;

/// Standard deviations that chance exceeds in one case of twenty.
/// Source: physical, the normal distribution.
const ONE_IN_TWENTY: f64 = 1.96;

/// Of the number of pairs in order less those that are not, among `n` values without any trend.
fn kendall_variance(n: f64) -> f64 {
    /// The numbers in the variance of Kendall's statistic.
    /// Source: document, Kendall, Rank Correlation Methods: n (n - 1) (2n + 5) / 18.
    const OF_KENDALL: [f64; 2] = [5.0, 18.0];
    let [more, by] = OF_KENDALL;
    n * (n - 1.0) * (2.0 * n + more) / by
}

/// How steeply floors rise: the median slope of all pairs, and the range in which Kendall's test
/// would not tell it from chance in one case of twenty. Fewer than four steps have no such range.
pub fn growth(floors: &[(i64, i64)]) -> Option<(i64, i64, i64)> {
    let every = floors.len().div_ceil(MOST_FLOORS).max(1);
    let floors: Vec<(i64, i64)> = floors.iter().copied().step_by(every).collect();
    let n = floors.len() as f64;
    let mut slopes = Vec::with_capacity(floors.len() * floors.len() / 2);
    for (at, a) in floors.iter().enumerate() {
        for b in &floors[at + 1..] {
            slopes.push((b.1 as f64 - a.1 as f64) / (b.0 - a.0).max(1) as f64);
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let half_range = ONE_IN_TWENTY * kendall_variance(n).sqrt();
    let low = (slopes.len() as f64 - half_range) / 2.0;
    if low < 0.0 || slopes.is_empty() {
        return None;
    }
    let low = low as usize;
    let at = |it: usize| slopes[it.min(slopes.len() - 1)] as i64;
    Some((at(slopes.len() / 2), at(low), at(slopes.len() - 1 - low)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::{Memory, growth};
    use crate::Tables;

    fn memory(picture: &str) -> Vec<Memory> {
        let tables = Tables::new(Arc::new(draw(picture)));
        tables.get::<Memory>().to_vec()
    }

    #[test]
    fn a_level_rises_and_falls() {
        let rows = memory(
            "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            host/pool: MemoryAllocation{allocator_name=GPU_0_bfc;bytes_allocated=300;\
            allocation_bytes=200;bytes_available=700;fragmentation=0.5;addr=1} 110..110
            host/event: MemoryDeallocation{allocator_name=GPU_0_bfc;bytes_allocated=100;\
            allocation_bytes=200;bytes_available=900;peak_bytes_in_use=800;addr=1} 150..150
            host/pool: MemoryAllocation{allocator_name=gpu_host_bfc;bytes_allocated=8;\
            allocation_bytes=8;addr=1} 120..120
            ",
        );
        let [gpu, host] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((gpu.allocator.as_str(), gpu.memory), ("GPU_0_bfc", "device"));
        assert_eq!((gpu.start_bytes, gpu.peak_bytes, gpu.end_bytes), (100, 300, 100));
        assert_eq!((gpu.peak_ps, gpu.peak_step), (110_000_000, Some(1)));
        assert_eq!((gpu.capacity_bytes, gpu.peak_share), (Some(1000), Some(0.3)));
        assert_eq!((gpu.fragmentation, gpu.lifetime_peak_bytes), (Some(0.5), Some(800)));
        assert_eq!((gpu.n_allocations, gpu.n_deallocations), (1, 1));
        assert_eq!((gpu.n_steps, gpu.floor_bytes), (3, Some(100)));
        assert_eq!(gpu.allocated_bytes_per_step, Some(66));
        assert_eq!(gpu.growth_bytes_per_step, None, "too few steps");
        assert_eq!((host.memory, host.capacity_bytes, host.fragmentation), ("host", None, None));
    }

    #[test]
    fn without_allocators_there_are_no_rows() {
        assert_eq!(memory("host/python: train#1 0..100, MemoryAllocation 10..10"), []);
    }

    #[test]
    fn growth_is_a_slope_with_a_range() {
        let of = |floors: &[i64]| growth(&(0..).zip(floors.iter().copied()).collect::<Vec<_>>());
        assert_eq!(of(&[1, 2, 3]), None);
        assert_eq!(of(&[5, 15, 25, 35, 45]), Some((10, 10, 10)));
        assert_eq!(of(&[7; 6]), Some((0, 0, 0)));
        let (_, low, high) = of(&[5, 9, 4, 8, 5, 9, 4, 8]).unwrap();
        assert!(low <= 0 && high >= 0, "noise is no growth: {low} to {high}");
        let (slope, low, _) = of(&[10, 21, 29, 500, 50, 61, 69, 80]).unwrap();
        assert!(
            (8..=12).contains(&slope) && low > 0,
            "one step off does not matter: {slope}, {low}"
        );
    }
}
