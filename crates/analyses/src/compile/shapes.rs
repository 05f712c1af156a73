//! What the compiled programs of a function take, read from the programs kept in the profile.
//!
//! Of a program only the shapes of its arguments are read; everything else is skipped over.
//! Field numbers are those of `xla/service/hlo.proto` and `xla/xla_data.proto`.

use trace::Trace;

/// A compiled program and what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The module's name, as the compiler gave it.
    pub module: String,
    /// Counts up with every compilation of a process.
    pub id: i64,
    /// `f32[64,128]`, in the program's order.
    pub arguments: Vec<String>,
}

/// The programs in the profile, in the order they were compiled.
pub fn programs(trace: &Trace) -> Vec<Program> {
    let mut all: Vec<Program> = trace
        .blobs
        .iter()
        .filter(|it| it.kind == "hlo_proto")
        .filter_map(|blob| {
            // `jit_train_step(12)`: the number is the program's.
            let (module, id) = blob.name.strip_suffix(')')?.rsplit_once('(')?;
            let arguments = arguments(trace.args.bytes(blob)?)?;
            Some(Program { module: module.to_owned(), id: id.parse().ok()?, arguments })
        })
        .collect();
    all.sort_by_key(|it| it.id);
    all
}

/// What differs between programs of one function, in words; `None` where there are not two.
pub fn difference(programs: &[&Program]) -> Option<String> {
    let (first, others) = programs.split_first()?;
    if others.is_empty() {
        return None;
    }
    let n = first.arguments.len();
    if let Some(other) = others.iter().find(|it| it.arguments.len() != n) {
        return Some(format!("it takes {n} arrays, then {}", other.arguments.len()));
    }
    for (at, shape) in first.arguments.iter().enumerate() {
        let mut seen = vec![shape.as_str()];
        for other in others {
            let shape = other.arguments[at].as_str();
            if !seen.contains(&shape) {
                seen.push(shape);
            }
        }
        if seen.len() > 1 {
            let more = match seen.len() {
                4.. => format!(" and {} more", seen.len() - 3),
                _ => String::new(),
            };
            seen.truncate(3);
            let shapes = seen.join(", then ");
            return Some(format!("array {} of {n} that it takes is {shapes}{more}", at + 1));
        }
    }
    Some("the shapes of all arrays stay the same".to_owned())
}

/// Whether `difference` found the shapes of arrays to differ.
pub fn is_shapes(difference: &str) -> bool {
    difference.contains("that it takes is")
}

fn arguments(proto: &[u8]) -> Option<Vec<String>> {
    let module = message(proto, 1)?;
    let program_shape = message(module, 4)?;
    Some(
        fields(program_shape)
            .filter_map(|it| match it {
                (1, Value::Bytes(shape)) => Some(shape_text(shape)),
                _ => None,
            })
            .collect(),
    )
}

fn shape_text(shape: &[u8]) -> String {
    const TYPES: [&str; 19] = [
        "?", "bool", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64",
        "tuple", "opaque", "c64", "bf16", "token", "c128",
    ];
    let (mut kind, mut sides) = (0, Vec::new());
    for field in fields(shape) {
        match field {
            (2, Value::Number(it)) => kind = it as usize,
            (3, Value::Number(it)) => sides.push(it.to_string()),
            (3, Value::Bytes(mut packed)) => {
                while let Some(it) = varint(&mut packed) {
                    sides.push(it.to_string());
                }
            }
            _ => (),
        }
    }
    format!("{}[{}]", TYPES.get(kind).unwrap_or(&"?"), sides.join(","))
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The first message under a field.
fn message(bytes: &[u8], number: u64) -> Option<&[u8]> {
    fields(bytes).find_map(|it| match it {
        (field, Value::Bytes(inner)) if field == number => Some(inner),
        _ => None,
    })
}

/// Fields until the end, or until bytes that are none.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || {
        let tag = varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut rest)?),
            1 => Value::Bytes(take(&mut rest, 8)?),
            2 => {
                let size = varint(&mut rest)?;
                Value::Bytes(take(&mut rest, size)?)
            }
            5 => Value::Bytes(take(&mut rest, 4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    })
}

fn take<'a>(rest: &mut &'a [u8], size: u64) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(usize::try_from(size).ok()?)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Program, arguments, difference};

    fn program(arguments: &[&str]) -> Program {
        let arguments = arguments.iter().map(|&it| it.to_owned()).collect();
        Program { module: "jit_f".to_owned(), id: 0, arguments }
    }

    #[test]
    fn arguments_are_read_from_the_proto() {
        // Module { program shape { f32[66,128], s32[] } }
        let proto = [
            10, 17, 34, 15, 10, 7, 16, 11, 26, 3, 66, 128, 1, 10, 2, 16, 4, 18, 0,
        ];
        assert_eq!(arguments(&proto), Some(vec!["f32[66,128]".to_owned(), "s32[]".to_owned()]));
        for end in 0..proto.len() {
            let _ = arguments(&proto[..end]);
        }
    }

    #[test]
    fn differences_are_told_in_words() {
        let same = program(&["f32[8]", "f32[64,128]"]);
        let [a, b, c] = ["f32[65,128]", "f32[66,128]", "f32[67,128]"].map(|it| program(&["f32[8]", it]));
        assert_eq!(difference(&[&same]), None);
        assert_eq!(
            difference(&[&same, &same]).as_deref(),
            Some("the shapes of all arrays stay the same")
        );
        assert_eq!(
            difference(&[&same, &a, &b, &c]).as_deref(),
            Some(
                "array 2 of 2 that it takes is f32[64,128], then f32[65,128], then f32[66,128] \
                 and 1 more"
            )
        );
        let fewer = program(&["f32[8]"]);
        assert_eq!(difference(&[&same, &fewer]).as_deref(), Some("it takes 2 arrays, then 1"));
    }
}
