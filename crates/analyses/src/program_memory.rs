//! Reads from compiled programs how much memory each needs while it runs.
//!
//! The compiler decides that beforehand and writes it into the program's proto, as a list of
//! allocations with what each is for. Only the few fields needed are read, by hand: the proto of a
//! large program is tens of megabytes, nearly all of it instructions.
//!
//! Not read: the order in which temporaries come and go inside their block.

use std::cmp::Reverse;

use hashbrown::HashSet;
use rayon::prelude::*;
use trace::{Program, Trace};

use crate::hlo::{Fields, Value, lossy, name_and_id, number};
use crate::{Analysis, Tables};

table! {
    /// How much memory each compiled program needs, as its compiler planned it.
    ///
    /// Empty without compiled programs in the profile. Programs are of XLA: JAX, or TensorFlow
    /// with `jit_compile=True`.
    pub struct ProgramMemory = "program_memory" {
        /// The program, as jit_train_step(10).
        program: String,
        /// Whether anything of it ran in the capture.
        ran: bool,
        /// All that is held while it runs.
        peak_bytes: i64,
        /// What is given to it: weights, optimizer state, the batch.
        argument_bytes: i64,
        /// What it gives back, but for what it writes over arguments.
        output_bytes: i64,
        /// Part of the arguments that outputs are written over (donated).
        alias_bytes: i64,
        /// What it needs in between: activations kept for the backward pass, and scratch.
        temp_bytes: i64,
        /// Constants within the program.
        constant_bytes: i64,
        /// What makes the largest buffer among the temporaries: the framework's op where the
        /// program names it, else the instruction.
        largest_temp: Option<String>,
        /// Size of that buffer.
        largest_temp_bytes: Option<i64>,
    }
}

impl Analysis for ProgramMemory {
    fn run(tables: &Tables) -> Vec<ProgramMemory> {
        let trace = tables.trace();
        let programs: Vec<Program<'_>> = trace.programs().collect();
        let mut rows: Vec<ProgramMemory> =
            programs.par_iter().filter_map(|it| program(it.name(), &it.bytes()?)).collect();
        let ran = Ran::of(trace);
        for row in &mut rows {
            row.ran = ran.has(&row.program);
        }
        rows.sort_by(|a, b| {
            b.peak_bytes.cmp(&a.peak_bytes).then_with(|| a.program.cmp(&b.program))
        });
        rows
    }
}

/// Programs of which something ran: the profile holds others, compiled before.
#[derive(Default)]
struct Ran {
    ids: HashSet<i64>,
    names: HashSet<String>,
}

impl Ran {
    fn of(trace: &Trace) -> Ran {
        let ids = trace.details.iter().filter_map(|it| it.program_id).collect();
        let modules = trace.details.iter().filter_map(|it| it.hlo_module);
        let names = modules.map(|it| trace.text(it).to_owned()).collect();
        Ran { ids, names }
    }

    /// `jit_train_step(10)`: by number where events say it, else by name.
    fn has(&self, program: &str) -> bool {
        let (name, id) = name_and_id(program);
        if self.ids.is_empty() {
            self.names.contains(name)
        } else {
            id.is_some_and(|it| self.ids.contains(&it))
        }
    }
}

/// One allocation of a program.
#[derive(Default)]
struct Allocation<'a> {
    bytes: i64,
    thread_local: bool,
    argument: bool,
    output: bool,
    constant: bool,
    /// Where its buffers lie: their messages.
    assigned: Vec<&'a [u8]>,
}

fn program(name: &str, proto: &[u8]) -> Option<ProgramMemory> {
    // HloProto.buffer_assignment
    let assignment = Fields(proto).find_map(|it| it.message(3))?;
    let mut row = ProgramMemory {
        program: lossy(name.as_bytes()),
        ran: false,
        peak_bytes: 0,
        argument_bytes: 0,
        output_bytes: 0,
        alias_bytes: 0,
        temp_bytes: 0,
        constant_bytes: 0,
        largest_temp: None,
        largest_temp_bytes: None,
    };
    let mut largest: Option<(i64, Reverse<u64>)> = None;
    let mut any = false;
    for field in Fields(assignment) {
        let Some(message) = field.message(3) else { continue };
        any = true;
        let it = Allocation::read(message);
        // A thread's own memory lives on its stack.
        if it.thread_local {
            continue;
        }
        let add = |to: &mut i64| *to = to.saturating_add(it.bytes);
        add(&mut row.peak_bytes);
        match (it.argument, it.output, it.constant) {
            (true, out, _) => {
                add(&mut row.argument_bytes);
                if out {
                    add(&mut row.alias_bytes);
                }
            }
            (_, true, _) => add(&mut row.output_bytes),
            (_, _, true) => add(&mut row.constant_bytes),
            _ => {
                add(&mut row.temp_bytes);
                let sizes =
                    it.assigned.iter().map(|it| (number(it, 3) as i64, Reverse(number(it, 1))));
                largest = largest.max(sizes.max());
            }
        }
    }
    if let Some((bytes, buffer)) = largest {
        row.largest_temp_bytes = Some(bytes);
        row.largest_temp = maker(proto, assignment, buffer.0);
    }
    any.then_some(row)
}

impl<'a> Allocation<'a> {
    fn read(message: &'a [u8]) -> Allocation<'a> {
        let mut out = Allocation::default();
        for field in Fields(message) {
            match (field.number, field.value) {
                (2, Value::Number(it)) => out.bytes = (it as i64).max(0),
                (3, Value::Number(it)) => out.thread_local = it != 0,
                (5, Value::Number(it)) => out.argument = it != 0,
                (7, Value::Number(it)) => out.output = it != 0,
                (12, Value::Number(it)) => out.constant = it != 0,
                (9, Value::Bytes(it)) => out.assigned.push(it),
                _ => (),
            }
        }
        out
    }
}

/// What defines a logical buffer.
fn maker(proto: &[u8], assignment: &[u8], buffer: u64) -> Option<String> {
    let buffers = Fields(assignment).filter_map(|it| it.message(1));
    let defined_at = buffers
        .filter(|it| number(it, 1) == buffer)
        .find_map(|it| Fields(it).find_map(|it| it.message(3)))?;
    // Older writers give the instruction's name, newer ones its number.
    let name = Fields(defined_at).find_map(|it| it.message(2)).filter(|it| !it.is_empty());
    let name = name.or_else(|| name_of(proto, number(defined_at, 4)))?;
    Some(lossy(name))
}

/// The framework's name for an instruction, else its own.
fn name_of(proto: &[u8], id: u64) -> Option<&[u8]> {
    let module = Fields(proto).find_map(|it| it.message(1))?;
    let computations = Fields(module).filter_map(|it| it.message(3));
    let mut instructions = computations.flat_map(|it| Fields(it).filter_map(|it| it.message(2)));
    let instruction = instructions.find(|it| number(it, 35) == id)?;
    let metadata = Fields(instruction).find_map(|it| it.message(7)).unwrap_or_default();
    let op = Fields(metadata).find_map(|it| it.message(2)).filter(|it| !it.is_empty());
    op.or_else(|| Fields(instruction).find_map(|it| it.message(1)))
}

#[cfg(test)]
mod tests {
    use super::{ProgramMemory, program};
    use crate::hlo::writing::{bytes as message, number};

    fn numbers(fields: &[(u32, u64)]) -> Vec<u8> {
        fields.iter().flat_map(|it| number(it.0, it.1)).collect()
    }

    /// Two arguments, one of them donated; an output; a constant; a thread's own; temporaries with
    /// two buffers in one block.
    fn proto() -> Vec<u8> {
        let buffer = |id: u64, instruction: u64| {
            let defined_at = message(3, &numbers(&[(4, instruction)]));
            message(1, &[numbers(&[(1, id)]), defined_at].concat())
        };
        let instruction = |id: u64, name: &str, op: &str| {
            let (name, op) = (message(1, name.as_bytes()), message(7, &message(2, op.as_bytes())));
            message(2, &[name, op, number(35, id)].concat())
        };
        let instructions =
            [instruction(1, "dot.1", "jit(f)/dot_general"), instruction(2, "tanh.2", "")].concat();
        let temp = [
            numbers(&[(2, 100)]),
            message(9, &numbers(&[(1, 7), (3, 60)])),
            message(9, &numbers(&[(1, 8), (2, 60), (3, 40)])),
        ]
        .concat();
        let assignment = [
            buffer(7, 1),
            buffer(8, 2),
            message(3, &numbers(&[(1, 0), (2, 20), (5, 1)])),
            message(3, &numbers(&[(1, 1), (2, 30), (5, 1), (7, 1)])),
            message(3, &numbers(&[(1, 2), (2, 5), (7, 1)])),
            message(3, &numbers(&[(1, 3), (2, 3), (12, 1)])),
            message(3, &numbers(&[(1, 4), (2, 90), (3, 1)])),
            message(3, &temp),
        ]
        .concat();
        [message(1, &message(3, &instructions)), message(3, &assignment)].concat()
    }

    #[test]
    fn allocations_are_added_by_what_they_are_for() {
        let row = program("f(1)", &proto()).unwrap();
        let expected = ProgramMemory {
            program: "f(1)".to_owned(),
            ran: false,
            peak_bytes: 158,
            argument_bytes: 50,
            output_bytes: 5,
            alias_bytes: 30,
            temp_bytes: 100,
            constant_bytes: 3,
            largest_temp: Some("jit(f)/dot_general".to_owned()),
            largest_temp_bytes: Some(60),
        };
        assert_eq!(row, expected);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let proto = proto();
        for end in 0..proto.len() {
            program("cut", &proto[..end]);
        }
        for at in 0..proto.len() {
            for byte in [0, 0x7F, 0xFF] {
                let mut broken = proto.clone();
                broken[at] = byte;
                program("broken", &broken);
            }
        }
        assert_eq!(program("none", &[]), None);
    }
}
