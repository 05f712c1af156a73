//! Which lines of the loop that takes the steps were running, by sampled stacks.
//!
//! ```text
//! train.py    for step in range(n):               the loop, as the hook noted it
//!                 loss = train_step(x)            ◀ the step itself: calls train_step
//!                 log_gradients(log, loss)        ◀ sample, sample, sample: all that it calls is its
//! ```

use std::collections::BTreeMap;

use trace::{Frame, Process, StrId, Trace, TrackKind};

use super::{CodeSite, Site};
use crate::Tables;
use crate::python_line::{is_library, makes_input};
use crate::span::{Span, holds};
use crate::step::Counted;
use crate::step_time::{HostTime, HostTimes};

/// What the thread that drives the steps was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Anything,
    /// Nothing of the framework.
    Python,
    /// Writing a checkpoint or a summary, with the Python around it.
    Saving,
    /// Inside the framework.
    Framework,
}

/// A line of the loop, with all that it calls.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopLine {
    pub site: Site,
    /// The user's function that it calls, where most samples are in one.
    pub calls: Option<Site>,
    /// The step itself begins on this line.
    pub is_step: bool,
    /// Of the samples of this kind.
    pub share: f64,
    pub samples: i64,
}

#[derive(Default)]
struct Sum {
    samples: i64,
    calls: BTreeMap<Option<(StrId, StrId, u32)>, i64>,
}

/// Lines of the loop by how often they were seen, most first; none without a loop or samples.
pub fn loop_lines(tables: &Tables, doing: Doing) -> Vec<LoopLine> {
    let rows = tables.get::<CodeSite>();
    let loops = rows.iter().filter(|it| it.kind == "loop");
    let found = loops.map(|it| lines_of(tables, it, doing));
    found.max_by_key(|it| it.iter().map(|it| it.samples).sum::<i64>()).unwrap_or_default()
}

fn lines_of(tables: &Tables, around: &CodeSite, doing: Doing) -> Vec<LoopLine> {
    let trace = tables.trace();
    let (Some(process), Some(counted)) = (super::process(tables), Counted::of(tables)) else {
        return Vec::new();
    };
    let host = trace.tracks_of(TrackKind::Host).find(|&it| trace.track_name(it) == counted.host);
    let times = tables.model::<HostTimes>();
    let Some(times) = host.and_then(|it| times.of(it)) else { return Vec::new() };
    let mut all = 0;
    let mut sums: BTreeMap<u32, Sum> = BTreeMap::new();
    for sample in &process.stacks.samples {
        let time = sample.time.0;
        let is_one = process.driving_thread == Some(sample.thread)
            && (counted.window.0..counted.window.1).contains(&time)
            && doing.holds(times, time)
            && !makes_input(trace, &process.stacks, sample.place);
        if !is_one {
            continue;
        }
        all += 1;
        let Some((line, called)) = line_in(trace, process, around, sample.place) else { continue };
        let sum = sums.entry(line).or_default();
        sum.samples += 1;
        *sum.calls.entry(called.map(|it| (it.file, it.function, it.first_line))).or_default() += 1;
    }
    let step_line = around.arg("step_line").and_then(|it| it.parse().ok());
    let mut lines: Vec<LoopLine> = sums
        .into_iter()
        .map(|(line, sum)| {
            let line = i64::from(line);
            let most = sum.calls.into_iter().max_by_key(|it| it.1);
            let calls = most.filter(|it| it.1 * 2 > sum.samples).and_then(|it| it.0);
            let function = |(file, function, first): (StrId, StrId, u32)| Site {
                name: Some(trace.text(function).to_owned()),
                ..Site::at_line("function", &whole(around, trace.text(file)), i64::from(first))
            };
            LoopLine {
                site: Site {
                    args: format!("loop={}", around.line),
                    ..Site::at_line("line", &around.file, line)
                },
                calls: calls.filter(|it| it.2 > 0).map(function),
                is_step: step_line == Some(line),
                share: sum.samples as f64 / f64::from(all).max(1.0),
                samples: sum.samples,
            }
        })
        .collect();
    lines.sort_by_key(|it| std::cmp::Reverse(it.samples));
    lines
}

/// The line of the loop at which a stack is, and the user's function that it called there.
fn line_in<'a>(
    trace: &Trace,
    process: &'a Process,
    around: &CodeSite,
    place: u32,
) -> Option<(u32, Option<&'a Frame>)> {
    let function = around.arg("function");
    let mut inner = None;
    for (frame, line) in process.stacks.stack(place) {
        let is_it = (around.line..=around.end_line).contains(&i64::from(line))
            && function == Some(trace.text(frame.function))
            && is_file(&around.file, trace.text(frame.file));
        if is_it {
            return Some((line, inner));
        }
        inner = Some(frame).filter(|it| !is_library(trace.text(it.file)));
    }
    None
}

/// Whether a stack's file is this one: a stack may have it as the command line did.
fn is_file(file: &str, seen: &str) -> bool {
    file == seen || file.strip_suffix(seen).is_some_and(|it| it.ends_with('/'))
}

/// A stack's file as sites have it.
fn whole(around: &CodeSite, seen: &str) -> String {
    if is_file(&around.file, seen) { around.file.clone() } else { seen.to_owned() }
}

impl Doing {
    fn holds(self, times: &HostTime, time: i64) -> bool {
        let saves = |it: &HostTime| any([&it.saving, &it.output], time);
        match self {
            Doing::Anything => true,
            Doing::Python => holds(&times.python, time),
            Doing::Saving => saves(times),
            Doing::Framework => !holds(&times.python, time) && !saves(times),
        }
    }
}

fn any(sets: [&Vec<Span>; 2], time: i64) -> bool {
    sets.iter().any(|it| holds(it, time))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;
    use trace::{Frame, Place, Process, Site as Noted, StackSample, Stacks, Time};

    use super::{Doing, loop_lines};
    use crate::Tables;

    /// Steps of 100 µs, of which 40 in the framework, in the loop at lines 8 to 11 of `main`: line 9
    /// is the step, line 10 logs. A sample every 10 µs.
    fn tables(seen_as: &str) -> Tables {
        let step = |n: i64| {
            let at = n * 100;
            format!("train#{n} {at}..{}, EagerExecute {at}..{}", at + 100, at + 40)
        };
        let steps: Vec<String> = (0..4).map(step).collect();
        let mut trace = draw(&format!(
            "host/python: {}, {seen_as} 0..0, main 0..0, train_step 0..0, log 0..0, \
             /x/site-packages/tf.py 0..0",
            steps.join(", ")
        ));
        let text = |it: &str| trace.strings.iter().find(|(_, text)| *text == it).unwrap().0;
        let frame = |file: &str, function: &str, first_line| Frame {
            file: text(file),
            function: text(function),
            first_line,
        };
        let place = |parent, frame, line| Place { parent, frame, line };
        let stacks = Stacks {
            frames: vec![
                frame(seen_as, "main", 6),
                frame(seen_as, "train_step", 1),
                frame(seen_as, "log", 20),
                frame("/x/site-packages/tf.py", "log", 5),
            ],
            places: vec![
                place(None, 0, 9),
                place(Some(0), 1, 3),
                place(Some(1), 3, 50),
                place(None, 0, 10),
                place(Some(3), 2, 22),
            ],
            samples: (0..40)
                .map(|at| StackSample {
                    time: Time(at * 10_000_000 + 5_000_000),
                    thread: 1,
                    place: if at % 10 < 4 { 2 } else { 4 },
                })
                .collect(),
            ..Stacks::default()
        };
        let noted = Noted {
            kind: "loop".to_owned(),
            file: "/me/train.py".to_owned(),
            line: 8,
            end_line: 11,
            args: vec![
                ("function".to_owned(), "main".to_owned()),
                ("step_line".to_owned(), "9".to_owned()),
            ],
            ..Noted::default()
        };
        trace.processes.push(Process {
            pid: 1,
            driving_thread: Some(1),
            stacks,
            sites: vec![noted],
            ..Process::default()
        });
        Tables::new(Arc::new(trace))
    }

    #[test]
    fn lines_of_the_loop_hold_what_they_call() {
        // A stack may have the file as the command line did.
        for seen_as in ["/me/train.py", "train.py"] {
            let tables = tables(seen_as);
            let python = loop_lines(&tables, Doing::Python);
            let [logs] = python.as_slice() else { panic!("{python:?}") };
            assert_eq!((logs.site.place().as_str(), logs.is_step), ("train.py:10", false));
            assert_eq!((logs.share, logs.site.arg("loop")), (1.0, Some("8")));
            let steps = loop_lines(&tables, Doing::Framework);
            assert_eq!((steps[0].site.line, steps[0].is_step), (9, true));
            let called = steps[0].calls.as_ref().unwrap();
            assert_eq!((called.name.as_deref(), called.line), (Some("train_step"), 1));
            assert_eq!(called.file, "/me/train.py");
            let all = loop_lines(&tables, Doing::Anything);
            assert_eq!(all.iter().map(|it| it.samples).collect::<Vec<_>>(), [24, 16]);
        }
    }

    #[test]
    fn other_files_and_other_lines_are_not_of_the_loop() {
        assert!(loop_lines(&tables("/me/other.py"), Doing::Anything).is_empty());
        assert!(loop_lines(&tables("/me/train.py"), Doing::Saving).is_empty());
    }
}
