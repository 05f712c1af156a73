//! Says what the longest ops compute with: the element type and shape of what they produce.
//!
//! ```text
//! tf_Compute   |-- dense/MatMul:MatMul --|      known by the block that it allocates inside
//!                 ' MemoryAllocation {data_type=2, shape=[256,512]}
//! tf_XLAEigen  |-- dot.4 --|                    known by its program: %dot.4 = f64[256,512] dot(…)
//! ```
//!
//! Not here: ops that write into a block that is there already, and ops of profiles with neither
//! allocations nor programs.

use std::cmp::Reverse;

use hashbrown::HashMap;
use trace::{EventId, FactValue, OpKind, OpName, StrId, Trace};

use crate::hlo;
use crate::memory::Moves;
use crate::memory_peak::data_type;
use crate::{Analysis, Tables};

table! {
    /// What the longest ops compute with, as far as the profile tells.
    ///
    /// TensorFlow's allocators and compiled programs know it; a profile that holds neither has no
    /// rows here.
    pub struct OpTensor = "op_tensor" {
        /// The op with its scopes, or the instruction of a compiled program.
        op: String,
        /// The type of its elements, such as float32.
        element_type: String,
        /// The shape of what it produces, such as `[256,512]`.
        shape: Option<String>,
        /// What tells it: allocation or program.
        known_by: &'static str,
        /// Time of the op, added over threads or streams; of long captures, in their first part.
        total_ps: i64,
        /// An event of it.
        event: i64,
    }
}

/// As many ops are looked up: together they are nearly all of the time.
/// Source: choice, finding an instruction in a large program takes milliseconds.
const MOST_OPS: usize = 60;

impl Analysis for OpTensor {
    fn run(tables: &Tables) -> Vec<OpTensor> {
        let trace = tables.trace();
        let allocated = allocated(tables);
        let has_programs = trace.programs().next().is_some();
        if allocated.is_empty() && !has_programs {
            return Vec::new();
        }
        let mut ops: Vec<Longest> = longest(trace).into_values().collect();
        ops.sort_by_key(|it| (Reverse(it.total_ps), it.event));
        let rows = ops.iter().take(MOST_OPS).filter_map(|it| {
            let (tensor, known_by) = match allocated.get(&trace.events.name[it.event.0 as usize]) {
                Some(tensor) => (tensor.clone(), "allocation"),
                None => (of_program(trace, it.event)?, "program"),
            };
            let name = trace.name(it.event);
            Some(OpTensor {
                op: OpName::parse(name).map_or(name, |it| it.name).to_owned(),
                element_type: tensor.element_type,
                shape: tensor.shape,
                known_by,
                total_ps: it.total_ps,
                event: i64::from(it.event.0),
            })
        });
        rows.collect()
    }
}

/// An op's time, and its first event.
struct Longest {
    total_ps: i64,
    event: EventId,
}

/// Ops come back in every step: the first ones of a thread or stream stand for all.
/// Source: choice, a bound on the work: some steps of a large program.
const MOST_EVENTS: usize = 50_000;

/// Ops by name and instruction.
fn longest(trace: &Trace) -> HashMap<(StrId, Option<StrId>), Longest> {
    let mut found: HashMap<(StrId, Option<StrId>), Longest> = HashMap::new();
    let tracks = trace.track_ids().map(|it| trace.tracks[it.row()].rows().take(MOST_EVENTS));
    for row in tracks.flatten() {
        if !matches!(trace.events.kind[row], OpKind::Op | OpKind::Kernel) {
            continue;
        }
        let instruction = trace.details[trace.events.detail[row].row()].hlo_op;
        let event = EventId(row as u32);
        let op = found
            .entry((trace.events.name[row], instruction))
            .or_insert(Longest { total_ps: 0, event });
        op.total_ps = op.total_ps.saturating_add(trace.events.dur[row].0);
    }
    found
}

#[derive(Debug, Clone)]
struct Tensor {
    element_type: String,
    shape: Option<String>,
}

/// The largest block that each op allocated, by the name of its event.
fn allocated(tables: &Tables) -> HashMap<StrId, Tensor> {
    let trace = tables.trace();
    let mut largest: HashMap<StrId, (i64, EventId)> = HashMap::new();
    let moves = tables.model::<Moves>();
    for it in moves.allocators.iter().flat_map(|it| &it.moves).filter(|it| it.takes) {
        let Some(parent) = trace.events.parent(it.event) else { continue };
        let block = largest.entry(trace.events.name[parent.0 as usize]).or_insert((0, it.event));
        if it.bytes > block.0 {
            *block = (it.bytes, it.event);
        }
    }
    let tensors = largest.into_iter();
    tensors.filter_map(|(name, (_, event))| Some((name, of_allocation(trace, event)?))).collect()
}

fn of_allocation(trace: &Trace, event: EventId) -> Option<Tensor> {
    let (mut element_type, mut shape) = (None, None);
    for (key, value) in trace.args.of(event) {
        match (key.as_str(), value) {
            ("data_type", FactValue::Text(text)) => element_type = Some(text),
            ("data_type", FactValue::Int(number)) => element_type = data_type(number),
            ("shape" | "tensor_shapes", FactValue::Text(text)) => shape = Some(text),
            _ => (),
        }
    }
    Some(Tensor { element_type: element_type?, shape })
}

/// `%dot.4 = f64[256,512]{1,0} dot(…)`, of a tuple its first part.
fn of_program(trace: &Trace, event: EventId) -> Option<Tensor> {
    let text = hlo::instruction(trace, event)?.text;
    let (_, result) = text.split_once(" = ")?;
    let result = result.trim_start_matches('(');
    let (element, rest) = result.split_once('[')?;
    let shape = rest.split_once(']').map(|it| format!("[{}]", it.0));
    Some(Tensor { element_type: in_words(element).to_owned(), shape })
}

/// XLA's short names in the framework's words.
fn in_words(element: &str) -> &str {
    match element {
        "f64" => "float64",
        "f32" => "float32",
        "f16" => "float16",
        "bf16" => "bfloat16",
        "s64" => "int64",
        "s32" => "int32",
        "pred" => "bool",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::OpTensor;
    use crate::Tables;

    fn tables(picture: &str) -> Tables {
        Tables::new(Arc::new(draw(picture)))
    }

    #[test]
    fn an_op_computes_with_what_it_allocates() {
        let block = "MemoryAllocation{allocator_name=cpu;bytes_allocated=8;allocation_bytes=8";
        let tables = tables(&format!(
            "host/tf_Compute: a/MatMul:MatMul 0..50, {block};addr=1;data_type=2;shape=[2]}} 1..1, \
             b/Mul:Mul 60..70, {block};addr=2;data_type=1;shape=[4]}} 61..61, c/Sub:Sub 80..90"
        ));
        let rows = tables.get::<OpTensor>();
        let seen: Vec<(&str, &str, &str)> = rows
            .iter()
            .map(|it| (it.op.as_str(), it.element_type.as_str(), it.shape.as_deref().unwrap_or("")))
            .collect();
        assert_eq!(seen, [("a/MatMul", "float64", "[2]"), ("b/Mul", "float32", "[4]")]);
    }

    #[test]
    fn without_allocations_and_programs_nothing_is_known() {
        let tables = tables("host/tf_Compute: a/MatMul:MatMul 0..50");
        assert!(tables.get::<OpTensor>().is_empty());
    }
}
