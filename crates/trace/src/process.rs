//! What a process said about itself, beside its events: its steps, and where its Python was.

use crate::{StrId, Time};

/// One process of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Process {
    pub pid: i64,
    /// The thread whose calls make the steps, as the operating system numbers it.
    pub driving_thread: Option<i64>,
    /// What is called once a step.
    pub step_name: Option<String>,
    /// The steps of the whole run, by time.
    pub steps: Vec<StepCount>,
    /// When its profiler was on.
    pub windows: Vec<Window>,
    /// Examples in a step.
    pub examples: Option<i64>,
    /// That it imported.
    pub frameworks: Vec<String>,
    pub stacks: Stacks,
    /// Lines of the user's code that make something, as they were first reached.
    pub sites: Vec<Site>,
}

/// A call in the user's own code that makes something: a stage of a dataset, a compiled function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// `dataset.map`, `tf.function`, `keras.fit`, …
    pub kind: String,
    /// Of the function that is passed, or of the class.
    pub name: Option<String>,
    pub file: String,
    /// Of the call, and of its end.
    pub line: u32,
    pub end_line: u32,
    /// Bytes of the last line up to the end of the call.
    pub end_col: Option<u32>,
    /// The whole statement, and the line on which it begins.
    pub text: String,
    pub text_line: u32,
    /// In short: `ds.map(augment)`.
    pub call: Option<String>,
    /// Arguments that matter for speed, as given.
    pub args: Vec<(String, String)>,
    /// Sites of what it is made of; all of them earlier.
    pub inputs: Vec<u32>,
    /// The earlier site whose function makes it.
    pub inside: Option<u32>,
    /// Where the function that is passed begins: its file and line.
    pub defined: Option<(String, u32)>,
    /// When it was first reached.
    pub time: Option<Time>,
}

/// So many steps had begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepCount {
    pub time: Time,
    pub count: i64,
    /// Something else counts as a step from here on: no step lies before it.
    pub anew: bool,
}

/// The profiler was on from `start`, and the process worked on again from `until`: starting and
/// saving take time of their own. Without an end the process did not live to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start: Time,
    pub end: Option<Time>,
    pub until: Option<Time>,
}

/// Stacks of Python threads, sampled: a tree of places, and who was where.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stacks {
    pub frames: Vec<Frame>,
    /// Parents before children.
    pub places: Vec<Place>,
    /// By time.
    pub samples: Vec<StackSample>,
    /// What lines of the user's own code say, where they were noted.
    pub sources: Vec<SourceLine>,
}

/// A line of a file, without its indent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine {
    pub file: StrId,
    pub line: u32,
    pub text: StrId,
}

/// A function of Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub file: StrId,
    pub function: StrId,
    pub first_line: u32,
}

/// A line of a function, reached from another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub parent: Option<u32>,
    pub frame: u32,
    pub line: u32,
}

/// Where a thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackSample {
    pub time: Time,
    /// As the operating system numbers it; 0 where it is unknown.
    pub thread: i64,
    pub place: u32,
}

impl Stacks {
    /// The stack of a place, innermost first.
    pub fn stack(&self, place: u32) -> impl Iterator<Item = (&Frame, u32)> {
        let places = std::iter::successors(self.places.get(place as usize), |it| {
            self.places.get(it.parent? as usize)
        });
        places.filter_map(|it| Some((self.frames.get(it.frame as usize)?, it.line)))
    }
}
