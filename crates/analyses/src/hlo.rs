//! Reads compiled programs: the proto's fields, and an instruction of it as XLA writes it.
//!
//! Field numbers as in <https://github.com/openxla/xla/blob/main/xla/service/hlo.proto> and
//! `xla/xla_data.proto` beside it. Only what is needed is read, by hand: the proto of a large
//! program is tens of megabytes.

use std::fmt::Write;

use hashbrown::HashMap;
use trace::{EventId, Trace};

/// An instruction of a compiled program, of which an event is the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// As in XLA's text: `%dot.2 = f32[8,16]{1,0} dot(%x, %w)`; below it what it calls, if that
    /// is a fusion.
    pub text: String,
    /// File and line of the code that it came from.
    pub source: Option<String>,
}

/// The instruction that an event ran. `None` where the profile does not hold its program.
pub fn instruction(trace: &Trace, event: EventId) -> Option<Instruction> {
    let detail = trace.detail(event);
    let op = trace.text(detail.hlo_op?);
    let mut of_module = trace.programs().filter(|it| {
        let (name, id) = name_and_id(it.name());
        match (detail.program_id, id) {
            (Some(program), Some(id)) => program == id,
            _ => detail.hlo_module.is_some_and(|it| trace.text(it) == name),
        }
    });
    of_module.find_map(|it| find(&it.bytes()?, op))
}

/// A program's name and number, of `jit_train_step(10)`.
pub(crate) fn name_and_id(program: &str) -> (&str, Option<i64>) {
    let Some((name, id)) = program.rsplit_once('(') else { return (program, None) };
    let id = id.trim_end_matches(')');
    // Written as unsigned, read as signed.
    (name, id.parse().ok().or_else(|| id.parse::<u64>().ok().map(|it| it as i64)))
}

/// Instructions of a fusion that are written out.
/// Source: choice, two screens.
const MOST_CALLED: usize = 60;
/// Fields of an instruction that are written out as they are.
/// Source: document, `HloInstructionProto` in XLA's `hlo.proto`.
const WRITTEN_OUT: [(u32, &str); 2] = [(11, "kind"), (28, "custom_call_target")];
/// Operands and parts of a tuple that are written out.
/// Source: choice, some lines of text.
const MOST_PARTS: usize = 16;
/// A broken proto may have tuples in tuples without end.
/// Source: choice, a bound against broken files.
const DEEPEST: usize = 4;

fn find(proto: &[u8], op: &str) -> Option<Instruction> {
    let op = op.trim_start_matches('%').as_bytes();
    // HloProto.hlo_module, its computations and their instructions.
    let module = Fields(proto).find_map(|it| it.message(1))?;
    let computations = || Fields(module).filter_map(|it| it.message(3));
    let is_it = |it: &&[u8]| text(it, 1) == op;
    let (computation, found) =
        computations().find_map(|it| Some((it, instructions(it).find(is_it)?)))?;
    let mut out = line(found, &names(computation));
    let mut source = source(module, found);
    if text(found, 2) == b"fusion" {
        let called = numbers(found, 38).next();
        let called = called.and_then(|id| computations().find(|it| number(it, 5) == id));
        if let Some(called) = called {
            write_called(called, &mut out);
            // The compiler made the fusion; its last part that somebody wrote stands for it.
            let written = instructions(called).filter_map(|it| self::source(module, it)).last();
            source = source.or(written);
        }
    }
    Some(Instruction { text: out, source })
}

fn instructions(computation: &[u8]) -> impl Iterator<Item = &[u8]> {
    Fields(computation).filter_map(|it| it.message(2))
}

/// Names of a computation's instructions, by number.
fn names(computation: &[u8]) -> HashMap<u64, &[u8]> {
    instructions(computation).map(|it| (number(it, 35), text(it, 1))).collect()
}

fn write_called(computation: &[u8], out: &mut String) {
    let names = names(computation);
    let _ = write!(out, "\n\n%{} {{", lossy(text(computation, 1)));
    for it in instructions(computation).take(MOST_CALLED) {
        let _ = write!(out, "\n  {}", line(it, &names));
    }
    let more = names.len().saturating_sub(MOST_CALLED);
    let _ = if more > 0 { write!(out, "\n  … {more} more\n}}") } else { write!(out, "\n}}") };
}

/// `%fusion.3 = f32[128]{0} fusion(%p0, %dot.2), kind=kLoop, op_name="jit(f)/add"`
fn line(instruction: &[u8], names: &HashMap<u64, &[u8]>) -> String {
    let mut out = format!("%{} = ", lossy(text(instruction, 1)));
    let result = Fields(instruction).find_map(|it| it.message(3)).unwrap_or_default();
    shape(result, 0, &mut out);
    let opcode = lossy(text(instruction, 2));
    let _ = write!(out, " {opcode}(");
    if opcode == "parameter" {
        let _ = write!(out, "{}", number(instruction, 9));
    }
    for (at, id) in numbers(instruction, 36).enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        if at == MOST_PARTS {
            let _ = write!(out, "{comma}…");
            break;
        }
        // A cut or broken program may not hold what it names.
        let name = names.get(&id).map_or_else(|| id.to_string(), |it| lossy(it));
        let _ = write!(out, "{comma}%{name}");
    }
    out.push(')');
    for (field, word) in WRITTEN_OUT {
        let said = text(instruction, field);
        if !said.is_empty() {
            let _ = write!(out, ", {word}={}", lossy(said));
        }
    }
    let metadata = Fields(instruction).find_map(|it| it.message(7)).unwrap_or_default();
    let op = text(metadata, 2);
    if !op.is_empty() {
        let _ = write!(out, ", op_name=\"{}\"", lossy(op));
    }
    out
}

/// `f32[8,16]{1,0}`, or `(f32[8], s32[])`.
fn shape(shape: &[u8], depth: usize, out: &mut String) {
    /// The element type of a tuple.
    /// Source: document, `PrimitiveType` in XLA's `xla_data.proto`.
    const TUPLE: u64 = 13;
    let element = number(shape, 2);
    if element == TUPLE {
        out.push('(');
        for (at, part) in Fields(shape).filter_map(|it| it.message(4)).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            out.push_str(comma);
            if at == MOST_PARTS || depth == DEEPEST {
                out.push('…');
                break;
            }
            self::shape(part, depth + 1, out);
        }
        out.push(')');
        return;
    }
    out.push_str(&array(shape));
    let layout = Fields(shape).find_map(|it| it.message(5));
    let order = layout.map(|it| list(it, 1)).unwrap_or_default();
    if !order.is_empty() {
        let _ = write!(out, "{{{order}}}");
    }
}

/// `f32[8,16]`
pub(crate) fn array(shape: &[u8]) -> String {
    format!("{}[{}]", type_name(number(shape, 2)), list(shape, 3))
}

fn list(message: &[u8], field: u32) -> String {
    let all: Vec<String> =
        numbers(message, field).take(MOST_PARTS).map(|it| it.to_string()).collect();
    all.join(",")
}

fn type_name(number: u64) -> &'static str {
    const NAMES: [&str; 30] = [
        "?",
        "pred",
        "s8",
        "s16",
        "s32",
        "s64",
        "u8",
        "u16",
        "u32",
        "u64",
        "f16",
        "f32",
        "f64",
        "tuple",
        "opaque",
        "c64",
        "bf16",
        "token",
        "c128",
        "f8e5m2",
        "f8e4m3fn",
        "s4",
        "u4",
        "f8e4m3b11fnuz",
        "f8e5m2fnuz",
        "f8e4m3fnuz",
        "s2",
        "u2",
        "f8e4m3",
        "f8e3m4",
    ];
    usize::try_from(number).ok().and_then(|it| NAMES.get(it)).copied().unwrap_or("?")
}

/// Where the code stands: in the metadata itself, or by a number into the module's stack frames.
fn source(module: &[u8], instruction: &[u8]) -> Option<String> {
    let metadata = Fields(instruction).find_map(|it| it.message(7))?;
    let file = text(metadata, 3);
    if !file.is_empty() {
        return Some(format!("{}:{}", lossy(file), number(metadata, 4)));
    }
    let index = Fields(module).find_map(|it| it.message(17))?;
    // All numbers count from one; nought is none.
    let nth = |field, id: u64| {
        let at = usize::try_from(id.checked_sub(1)?).ok()?;
        Fields(index).filter_map(move |it| it.message(field)).nth(at)
    };
    let frame = nth(4, number(metadata, 15))?;
    let location = nth(3, number(frame, 1))?;
    let file = nth(1, number(location, 1))?;
    Some(format!("{}:{}", lossy(file), number(location, 3)))
}

/// The name of a compiled op can be its whole text.
/// Source: choice, a bound on memory.
const LONGEST_NAME: usize = 256;

pub(crate) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(LONGEST_NAME).collect()
}

/// A text of a message; what is absent is empty, as everywhere in protobuf.
pub(crate) fn text(message: &[u8], number: u32) -> &[u8] {
    Fields(message).find_map(|it| it.message(number)).unwrap_or_default()
}

/// A number of a message; what is absent is 0.
pub(crate) fn number(message: &[u8], number: u32) -> u64 {
    numbers(message, number).next().unwrap_or(0)
}

/// The numbers of a repeated field, packed or one by one.
fn numbers(message: &[u8], number: u32) -> impl Iterator<Item = u64> {
    Fields(message).filter(move |it| it.number == number).flat_map(|it| {
        let (one, mut packed) = match it.value {
            Value::Number(it) => (Some(it), Fields(&[])),
            Value::Bytes(it) => (None, Fields(it)),
            Value::Other => (None, Fields(&[])),
        };
        one.into_iter().chain(std::iter::from_fn(move || packed.varint()))
    })
}

/// Walks the fields of a protobuf message. Bytes that do not follow the format end the walk.
pub(crate) struct Fields<'a>(pub &'a [u8]);

pub(crate) struct Field<'a> {
    pub number: u32,
    pub value: Value<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of fixed length, which nothing here is.
    Other,
}

impl<'a> Field<'a> {
    pub fn message(&self, number: u32) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(it) if self.number == number => Some(it),
            _ => None,
        }
    }
}

/// The longest number of variable length has ten bytes.
/// Source: document, the encoding of Protocol Buffers.
const VARINT_BITS: u32 = 70;
/// Bits in each of its bytes.
/// Source: document, the encoding of Protocol Buffers.
const VARINT_BYTE_BITS: usize = 7;
/// Bytes of numbers of fixed length.
/// Source: document, the encoding of Protocol Buffers.
const FIXED_BYTES: [u64; 2] = [8, 4];

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..VARINT_BITS).step_by(VARINT_BYTE_BITS) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let tag = self.varint()?;
        let value = match tag & 0x7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(FIXED_BYTES[0]).map(|_| Value::Other)?,
            2 => {
                let len = self.varint()?;
                Value::Bytes(self.take(len)?)
            }
            5 => self.take(FIXED_BYTES[1]).map(|_| Value::Other)?,
            _ => return None,
        };
        Some(Field { number: u32::try_from(tag >> 3).ok()?, value })
    }
}

/// Writes small protos for tests.
#[cfg(test)]
pub(crate) mod writing {
    pub fn bytes(number: u32, body: &[u8]) -> Vec<u8> {
        [varint(u64::from(number) << 3 | 2), varint(body.len() as u64), body.to_vec()].concat()
    }

    pub fn number(number: u32, value: u64) -> Vec<u8> {
        [varint(u64::from(number) << 3), varint(value)].concat()
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value > 0x7F {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::writing::{bytes, number};
    use super::{Instruction, find};

    fn instruction(id: u64, name: &str, opcode: &str, more: &[Vec<u8>]) -> Vec<u8> {
        let layout = bytes(5, &bytes(1, &[1, 0]));
        let shape = [number(2, 11), bytes(3, &[8, 16]), layout].concat();
        let own = [bytes(1, name.as_bytes()), bytes(2, opcode.as_bytes()), bytes(3, &shape)];
        bytes(2, &[own.concat(), number(35, id), more.concat()].concat())
    }

    /// A fusion of a tanh; its line of code is said by a stack frame, that of the tanh in place.
    fn proto() -> Vec<u8> {
        let by_frame = bytes(7, &[bytes(2, b"jit(f)/tanh"), number(15, 1)].concat());
        let in_place = bytes(7, &[bytes(3, b"old.py"), number(4, 7)].concat());
        let entry = [
            instruction(1, "x.1", "parameter", &[number(9, 0)]),
            instruction(
                2,
                "fusion.2",
                "fusion",
                &[bytes(36, &[1]), bytes(11, b"kLoop"), number(38, 9), by_frame],
            ),
        ];
        let called = [
            bytes(1, b"fused"),
            instruction(3, "p.3", "parameter", &[number(9, 0)]),
            instruction(4, "tanh.4", "tanh", &[bytes(36, &[3]), in_place]),
            number(5, 9),
        ];
        let index = [
            bytes(1, b"train.py"),
            bytes(2, b"f"),
            bytes(3, &[number(1, 1), number(2, 1), number(3, 42)].concat()),
            bytes(4, &number(1, 1)),
        ];
        let module =
            [bytes(3, &called.concat()), bytes(3, &entry.concat()), bytes(17, &index.concat())];
        bytes(1, &module.concat())
    }

    #[test]
    fn an_instruction_reads_as_in_the_programs_text() {
        let text = "%fusion.2 = f32[8,16]{1,0} fusion(%x.1), kind=kLoop, op_name=\"jit(f)/tanh\"\n\n\
                    %fused {\n  %p.3 = f32[8,16]{1,0} parameter(0)\n  \
                    %tanh.4 = f32[8,16]{1,0} tanh(%p.3)\n}";
        let source = Some("train.py:42".to_owned());
        let expected = Instruction { text: text.to_owned(), source };
        assert_eq!(find(&proto(), "fusion.2"), Some(expected));
        let source = find(&proto(), "%tanh.4").and_then(|it| it.source);
        assert_eq!(source.as_deref(), Some("old.py:7"));
        assert_eq!(find(&proto(), "none"), None);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let proto = proto();
        for end in 0..proto.len() {
            find(&proto[..end], "fusion.2");
        }
        for at in 0..proto.len() {
            for byte in [0, 0x7F, 0xFF] {
                let mut broken = proto.clone();
                broken[at] = byte;
                find(&broken, "fusion.2");
            }
        }
    }
}
