//! Says who holds an allocator's memory at its highest level.
//!
//! ```text
//! moves   +conv +tanh +mul -mul +mul ▲ -tanh …
//!                                    peak: conv, tanh, mul live; the rest of the level is older
//! ```
//!
//! What was allocated before the capture has no holder in it: variables, optimizer state, caches.
//! It is one row, and in use.

use hashbrown::HashMap;
use trace::{EventId, FactValue, Trace};

use crate::memory::{Allocator, Move, Moves, StepClock};
use crate::step::Step;
use crate::{Analysis, Tables};

table! {
    /// Who holds the memory of each allocator when it is fullest, largest first.
    pub struct MemoryPeak = "memory_peak" {
        /// The host whose process allocates.
        host: String,
        /// The allocator, as in the table memory.
        allocator: String,
        /// How the holder is known: op (the framework says it), call (the event around the
        /// allocation), before (allocated before the capture: variables and whatever else lives
        /// long), reserved (for the temporaries of compiled programs), small (many small blocks
        /// together) or unknown.
        held_by: &'static str,
        /// The op or call that allocated; null for the others.
        op: Option<String>,
        /// The name scope of the op.
        scope: Option<String>,
        /// Bytes held at the peak.
        bytes: i64,
        /// Part of the peak's level, 0 to 1.
        share: f64,
        /// Blocks held; null for those from before the capture.
        count: Option<i64>,
        /// In how many different steps these blocks were allocated.
        n_steps: i64,
        /// Bytes of blocks allocated in steps before the peak's: kept from step to step.
        earlier_bytes: i64,
        /// What for, as the framework says: output, temp, persist or dynamic.
        region_type: Option<String>,
        /// Type of the elements, as float32.
        data_type: Option<String>,
        /// Shape of the largest tensor.
        shape: Option<String>,
        /// Number of the event that allocated the largest block; null for those from before.
        event: Option<i64>,
    }
}

impl Analysis for MemoryPeak {
    fn run(tables: &Tables) -> Vec<MemoryPeak> {
        let trace = tables.trace();
        let moves = tables.model::<Moves>();
        let steps = tables.get::<Step>();
        moves.allocators.iter().flat_map(|it| holders(trace, it, &steps)).collect()
    }
}

/// Only so many blocks are asked for their op; the smaller rest is one row.
/// Source: choice, a bound on the work.
const MOST_BLOCKS: usize = 100_000;

fn holders(trace: &Trace, allocator: &Allocator, steps: &[Step]) -> Vec<MemoryPeak> {
    let Some(peak) = allocator.peak() else { return Vec::new() };
    let host = trace.track_name(allocator.host);
    let (level, at) = (allocator.moves[peak].level, allocator.moves[peak].time);
    let mut live = live_at(allocator, peak);
    live.sort_by_key(|it| (std::cmp::Reverse(it.bytes), it.event));
    let row = |held_by, op: Option<String>| MemoryPeak {
        host: host.to_owned(),
        allocator: allocator.name.clone(),
        held_by,
        scope: op.as_deref().filter(|_| held_by == "op").and_then(scope),
        op,
        bytes: 0,
        share: 0.0,
        count: None,
        n_steps: 0,
        earlier_bytes: 0,
        region_type: None,
        data_type: None,
        shape: None,
        event: None,
    };

    let mut rows: Vec<MemoryPeak> = Vec::new();
    let mut steps_of: Vec<Vec<i64>> = Vec::new();
    let mut place: HashMap<Holder, usize> = HashMap::new();
    let clock = StepClock::of(steps, host);
    let peak_step = clock.step_at(at);
    for (rank, block) in live.iter().enumerate() {
        let (holder, shape) = if rank < MOST_BLOCKS {
            Holder::of(trace, block.event)
        } else {
            (Holder { held_by: "small", ..Holder::default() }, None)
        };
        let next = rows.len();
        let of = *place.entry(holder).or_insert_with_key(|it| {
            rows.push(MemoryPeak {
                count: Some(0),
                region_type: it.region_type.clone(),
                data_type: it.data_type.clone(),
                shape,
                event: Some(i64::from(block.event.0)),
                ..row(it.held_by, it.op.clone())
            });
            steps_of.push(Vec::new());
            next
        });
        let step = clock.step_at(block.time);
        rows[of].bytes = rows[of].bytes.saturating_add(block.bytes);
        rows[of].count = rows[of].count.map(|it| it + 1);
        if step < peak_step && step.is_some() {
            rows[of].earlier_bytes = rows[of].earlier_bytes.saturating_add(block.bytes);
        }
        steps_of[of].extend(step);
    }
    for (row, mut steps) in rows.iter_mut().zip(steps_of) {
        steps.sort_unstable();
        steps.dedup();
        row.n_steps = steps.len() as i64;
    }
    let known = rows.iter().fold(0_i64, |sum, it| sum.saturating_add(it.bytes));
    let reserved = allocator.moves[peak].reserved;
    let before = level.saturating_sub(known).saturating_sub(reserved);
    for (held_by, bytes) in [("reserved", reserved), ("before", before)] {
        if bytes > 0 {
            rows.push(MemoryPeak { bytes, ..row(held_by, None) });
        }
    }
    for row in &mut rows {
        row.share = row.bytes as f64 / level.max(1) as f64;
    }
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.op.cmp(&b.op)));
    rows
}

/// Blocks taken in the capture that are still held when `peak` is reached.
fn live_at(allocator: &Allocator, peak: usize) -> Vec<Move> {
    let mut live: HashMap<i64, Move> = HashMap::new();
    for it in &allocator.moves[..=peak] {
        if it.takes {
            live.insert(it.address, *it);
        } else {
            live.remove(&it.address);
        }
    }
    live.into_values().collect()
}

/// Names of calls are cut to so many characters.
/// Source: choice, a bound on memory.
const LONGEST_CALL: usize = 256;
/// Names of ops are scopes upon scopes; what is longer is no name.
/// Source: choice, a bound on memory.
const LONGEST_TEXT: usize = 4096;

/// What blocks are added up by.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct Holder {
    held_by: &'static str,
    op: Option<String>,
    region_type: Option<String>,
    data_type: Option<String>,
}

impl Holder {
    /// Who took a block, and its shape.
    fn of(trace: &Trace, event: EventId) -> (Holder, Option<String>) {
        let mut holder = Holder { held_by: "op", ..Holder::default() };
        let mut shape = None;
        for (key, value) in trace.args.of(event) {
            match (key.as_str(), value) {
                // Rows repeat it.
                (_, FactValue::Text(text)) if text.len() > LONGEST_TEXT => (),
                // What the writer had no text for, it wrote so.
                (_, FactValue::Text(text)) if text.is_empty() || text == "(null)" => (),
                ("tf_op", FactValue::Text(text)) => holder.op = Some(text),
                ("region_type", FactValue::Text(text)) => holder.region_type = Some(text),
                ("shape" | "tensor_shapes", FactValue::Text(text)) => shape = Some(text),
                ("data_type", FactValue::Text(text)) => holder.data_type = Some(text),
                ("data_type", FactValue::Int(number)) => holder.data_type = data_type(number),
                _ => (),
            }
        }
        if holder.op.is_none() {
            holder.op = trace
                .events
                .parent(event)
                .map(|it| trace.name(it).chars().take(LONGEST_CALL).collect());
            holder.held_by = if holder.op.is_some() { "call" } else { "unknown" };
        }
        (holder, shape)
    }
}

/// The scope of an op, without what TensorFlow puts in front of every op of a function.
fn scope(op: &str) -> Option<String> {
    let op = op.trim_start_matches("StatefulPartitionedCall/");
    op.rsplit_once('/').map(|it| it.0.to_owned())
}

/// Names for the numbers of `tensorflow/core/framework/types.proto`, which never change.
pub(crate) fn data_type(number: i64) -> Option<String> {
    let name = match number {
        0 => return None,
        1 => "float32",
        2 => "float64",
        3 => "int32",
        4 => "uint8",
        5 => "int16",
        6 => "int8",
        7 => "string",
        8 => "complex64",
        9 => "int64",
        10 => "bool",
        14 => "bfloat16",
        18 => "complex128",
        19 => "float16",
        20 => "resource",
        21 => "variant",
        22 => "uint32",
        23 => "uint64",
        other => return Some(format!("type {other}")),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::MemoryPeak;
    use crate::Tables;

    /// How held, by whom, bytes, blocks, steps, bytes from earlier steps.
    fn check(picture: &str, expected: &[&str]) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let rows = tables.get::<MemoryPeak>();
        let found: Vec<String> = rows
            .iter()
            .map(|it| {
                let count = it.count.map_or("-".to_owned(), |it| it.to_string());
                let op = it.op.as_deref().unwrap_or("-");
                let (bytes, steps, earlier) = (it.bytes, it.n_steps, it.earlier_bytes);
                format!("{} {op}: {bytes} in {count}, {steps} steps, {earlier} earlier", it.held_by)
            })
            .collect();
        assert_eq!(found, expected);
    }

    const STEPS: &str = "host/python: train#1 0..100, train#2 100..200, train#3 200..300\n";

    /// Drawn moves: µs, taken or (negative) given back, level afterwards, address, op.
    fn moves(moves: &[(i64, i64, i64, i64, &str)]) -> String {
        let mut picture = STEPS.to_owned();
        for (at, bytes, level, address, op) in moves {
            let name = if *bytes > 0 { "MemoryAllocation" } else { "MemoryDeallocation" };
            picture += &format!(
                "host/pool: {name}{{allocator_name=GPU_0_bfc;bytes_allocated={level};\
                 allocation_bytes={};addr={address};tf_op={op};data_type=1;shape=[2]}} {at}..{at}\n",
                bytes.abs()
            );
        }
        picture
    }

    #[test]
    fn what_lives_at_the_peak_is_held_by_its_op() {
        check(
            &moves(&[
                (10, 50, 150, 1, "m/conv"),
                (20, 30, 180, 2, "m/tanh"),
                (30, -50, 130, 1, ""),
                (40, 60, 190, 1, "m/conv"),
                (50, 20, 210, 3, "m/conv"),
                (60, -30, 180, 2, ""),
            ]),
            &[
                "before -: 100 in -, 0 steps, 0 earlier",
                "op m/conv: 80 in 2, 1 steps, 0 earlier",
                "op m/tanh: 30 in 1, 1 steps, 0 earlier",
            ],
        );
    }

    #[test]
    fn what_is_kept_from_step_to_step_is_told_apart() {
        check(
            &moves(&[(10, 40, 40, 1, "keep"), (110, 40, 80, 2, "keep"), (120, 10, 90, 3, "new")]),
            &["op keep: 80 in 2, 2 steps, 40 earlier", "op new: 10 in 1, 1 steps, 0 earlier"],
        );
    }

    #[test]
    fn without_an_op_the_call_around_it_stands() {
        check(
            "host/python: PjitFunction(f) 0..50, MemoryAllocation{allocator_name=GPU_0_bfc;\
             bytes_allocated=8;allocation_bytes=8;addr=1;tf_op=(null)} 10..10",
            &["call PjitFunction(f): 8 in 1, 1 steps, 0 earlier"],
        );
    }

    #[test]
    fn what_is_reserved_is_no_memory_from_before() {
        check(
            "host/python: MemoryAllocation{index_on_host=0;bytes_allocated=12;bytes_reserved=30;\
             allocation_bytes=8;addr=1} 10..10",
            &[
                "reserved -: 30 in -, 0 steps, 0 earlier",
                "unknown -: 8 in 1, 0 steps, 0 earlier",
                "before -: 4 in -, 0 steps, 0 earlier",
            ],
        );
    }

    #[test]
    fn the_row_names_scope_type_and_shape() {
        let tables = Tables::new(Arc::new(draw(&moves(&[(10, 8, 8, 1, "a/b/conv")]))));
        let rows = tables.get::<MemoryPeak>();
        assert_eq!(rows[0].scope.as_deref(), Some("a/b"));
        assert_eq!(rows[0].data_type.as_deref(), Some("float32"));
        assert_eq!(rows[0].shape.as_deref(), Some("[2]"));
        assert_eq!(rows[0].share, 1.0);
    }
}
