//! What the compiled programs of a function take, read from the programs kept in the profile.
//!
//! Of a program only the shapes of its arguments are read; everything else is skipped over.

use trace::Trace;

use super::Changed;
use crate::hlo::{self, Fields};

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
        .programs()
        .filter_map(|it| {
            let (module, id) = hlo::name_and_id(it.name());
            let arguments = arguments(&it.bytes()?)?;
            Some(Program { module: module.to_owned(), id: id?, arguments })
        })
        .collect();
    all.sort_by_key(|it| it.id);
    all
}

/// What differs between programs of one function; `None` where there are not two.
pub fn difference(programs: &[&Program]) -> Option<Changed> {
    let (first, others) = programs.split_first()?;
    if others.is_empty() {
        return None;
    }
    let n = first.arguments.len();
    if let Some(other) = others.iter().find(|it| it.arguments.len() != n) {
        return Some(Changed::ArgumentCount { from: n, to: other.arguments.len() });
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
            let more = seen.len().saturating_sub(MOST_SHAPES);
            let shapes = seen.into_iter().take(MOST_SHAPES).map(str::to_owned).collect();
            return Some(Changed::Shapes { argument: at + 1, shapes, more });
        }
    }
    Some(Changed::NotShapes)
}

/// As many shapes of an argument are named.
/// Source: choice, most of a line.
const MOST_SHAPES: usize = 3;

fn arguments(proto: &[u8]) -> Option<Vec<String>> {
    // The program's own shape, of which the parameters.
    let module = Fields(proto).find_map(|it| it.message(1))?;
    let shape = Fields(module).find_map(|it| it.message(4))?;
    Some(Fields(shape).filter_map(|it| it.message(1)).map(hlo::array).collect())
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
        let proto = [10, 17, 34, 15, 10, 7, 16, 11, 26, 3, 66, 128, 1, 10, 2, 16, 4, 18, 0];
        assert_eq!(arguments(&proto), Some(vec!["f32[66,128]".to_owned(), "s32[]".to_owned()]));
        for end in 0..proto.len() {
            let _ = arguments(&proto[..end]);
        }
    }

    #[test]
    fn differences_are_told_in_words() {
        let same = program(&["f32[8]", "f32[64,128]"]);
        let [a, b, c] =
            ["f32[65,128]", "f32[66,128]", "f32[67,128]"].map(|it| program(&["f32[8]", it]));
        let difference = |of: &[&Program]| difference(of).map(|it| it.to_string());
        assert_eq!(difference(&[&same]), None);
        assert_eq!(
            difference(&[&same, &same]).as_deref(),
            Some("The shapes of all arguments stay the same")
        );
        assert_eq!(
            difference(&[&same, &a, &b, &c]).as_deref(),
            Some("Argument 2 changed shape: f32[64,128] → f32[65,128] → f32[66,128] and 1 more")
        );
        let fewer = program(&["f32[8]"]);
        assert_eq!(
            difference(&[&same, &fewer]).as_deref(),
            Some("The number of arguments changed: 2 → 1")
        );
    }
}
