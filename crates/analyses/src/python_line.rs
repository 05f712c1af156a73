//! Which lines of Python were running, by sampled stacks.
//!
//! ```text
//! driving thread   |-- step ------|-- step ------|     what of it was Python: step_time
//!                  · · · · · · · · · · · · · · ·       samples: which line that was
//! other threads        · · · ·       · · · ·           in a generator or py_function: input
//! ```

use std::collections::BTreeMap;

use trace::dialect;
use trace::{Frame, Process, Stacks, StrId, Trace, TrackKind};

use crate::span::holds;
use crate::step::Counted;
use crate::step_time::HostTimes;
use crate::{Analysis, Tables};

table! {
    /// Lines of Python that were running in the steps that count, where stacks were sampled. The
    /// innermost line outside of installed libraries stands for all it calls.
    pub struct PythonLine = "python_line" {
        /// `python`: the driving thread, while nothing of the framework ran; `framework`: the
        /// driving thread, inside the framework; `input`: any thread, making batches. Without
        /// steps: `driving` and `other`.
        activity: String,
        /// The function.
        function: String,
        /// Its file.
        file: String,
        /// The line that was running; null where it could not be made out.
        line: Option<i64>,
        /// The function that it had called, innermost: where the time went inside of libraries.
        /// Null where most of it went into the line itself, or into what is not written in Python.
        inside: Option<String>,
        /// How many samples saw it.
        samples: i64,
        /// What they stand for, of a mean step; null without steps.
        per_step_ps: Option<i64>,
    }
}

#[derive(Default)]
struct Sum {
    samples: i64,
    /// By what it had called; `None`: the line itself, or what is not written in Python.
    inside: BTreeMap<Option<StrId>, i64>,
}

type Key = (&'static str, StrId, StrId, u32);

impl Analysis for PythonLine {
    fn run(tables: &Tables) -> Vec<PythonLine> {
        let trace = tables.trace();
        let mut rows = Vec::new();
        for process in trace.processes.iter().filter(|it| !it.stacks.samples.is_empty()) {
            rows.extend(lines_of(tables, trace, process));
        }
        rows.sort_by(|a, b| {
            (b.samples, &a.activity, &a.file, a.line).cmp(&(
                a.samples,
                &b.activity,
                &b.file,
                b.line,
            ))
        });
        rows
    }
}

fn lines_of(tables: &Tables, trace: &Trace, process: &Process) -> Vec<PythonLine> {
    let stacks = &process.stacks;
    let counted = Counted::of(tables);
    let times = tables.model::<HostTimes>();
    let host =
        |name: &str| trace.tracks_of(TrackKind::Host).find(|&it| trace.track_name(it) == name);
    let doing = counted.as_ref().and_then(|it| times.of(host(&it.host)?));
    let window = counted.as_ref().map(|it| it.window);
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    let (mut n_times, mut last) = (0, None);
    for sample in &stacks.samples {
        let time = sample.time.0;
        if window.is_some_and(|it| time < it.0 || time >= it.1) {
            continue;
        }
        n_times += i64::from(last.replace(time) != Some(time));
        let drives = process.driving_thread == Some(sample.thread);
        let makes_input = makes_input(trace, stacks, sample.place);
        let activity = match doing {
            _ if makes_input => "input",
            Some(it) if drives && holds(&it.python, time) => "python",
            Some(_) if drives => "framework",
            Some(_) => continue,
            None if drives => "driving",
            None => "other",
        };
        let Some((frame, line)) = own_line(trace, stacks, sample.place) else { continue };
        let sum = sums.entry((activity, frame.file, frame.function, line)).or_default();
        sum.samples += 1;
        let mut theirs = stacks.stack(sample.place).filter(|it| !is_ours(trace.text(it.0.file)));
        let innermost = theirs.next().map(|it| it.0);
        let called = innermost
            .filter(|it| (it.file, it.function) != (frame.file, frame.function))
            .map(|it| it.function);
        *sum.inside.entry(called).or_default() += 1;
    }
    let per_step = |samples: i64| {
        let counted = counted.as_ref()?;
        let whole = i128::from(counted.window.1 - counted.window.0) / i128::from(counted.n.max(1));
        i64::try_from(whole * i128::from(samples) / i128::from(n_times.max(1))).ok()
    };
    sums.into_iter()
        .map(|((activity, file, function, line), sum)| PythonLine {
            activity: activity.to_owned(),
            function: trace.text(function).to_owned(),
            file: trace.text(file).to_owned(),
            line: (line > 0).then_some(i64::from(line)),
            inside: sum
                .inside
                .iter()
                .max_by_key(|it| it.1)
                .and_then(|it| Some(trace.text((*it.0)?).to_owned())),
            samples: sum.samples,
            per_step_ps: per_step(sum.samples),
        })
        .collect()
}

/// The innermost line of code that is the user's own; where all is of libraries, the innermost.
fn own_line<'a>(trace: &Trace, stacks: &'a Stacks, place: u32) -> Option<(&'a Frame, u32)> {
    let own = |it: &(&Frame, u32)| !is_library(trace.text(it.0.file));
    stacks.stack(place).find(own).or_else(|| stacks.stack(place).next())
}

/// Installed code: packages, the standard library, and what has no file.
pub(crate) fn is_library(file: &str) -> bool {
    let installed =
        ["/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "\\Lib\\"];
    file.starts_with('<') || is_ours(file) || installed.iter().any(|it| file.contains(it))
}

/// What `strobe run` puts in front of the program.
pub(crate) fn is_ours(file: &str) -> bool {
    file.contains("/.hook/_capture/")
}

/// Whether Python was called to make a batch: by an input pipeline or in a loader.
pub(crate) fn makes_input(trace: &Trace, stacks: &Stacks, place: u32) -> bool {
    stacks.stack(place).any(|it| calls_for_input(trace.text(it.0.file)))
}

/// Whether what this file calls makes a batch.
pub(crate) fn calls_for_input(file: &str) -> bool {
    dialect::any(|it| it.calls_for_input(file))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;
    use trace::{Frame, Place, Process, StackSample, Stacks, Time};

    use super::PythonLine;
    use crate::Tables;

    /// Steps of 100 µs: 40 in the framework, then Python; a sample every 10 µs, of the driving
    /// thread at this place.
    fn sampled(driving_at: impl Fn(i64) -> u32) -> Tables {
        let step = |n: i64| {
            format!(
                "train#{n} {0}..{1}, EagerExecute {0}..{2}",
                n * 100,
                n * 100 + 100,
                n * 100 + 40
            )
        };
        let steps: Vec<String> = (0..4).map(step).collect();
        let mut trace = draw(&format!(
            "host/python: {}, /me/train.py 0..0, log 0..0, /lib/python3.12/json.py 0..0, dumps 0..0, \
             /x/site-packages/tensorflow/python/ops/script_ops.py 0..0, load 0..0",
            steps.join(", ")
        ));
        let text = |it: &str| trace.strings.iter().find(|(_, text)| *text == it).unwrap().0;
        let frame = |file: &str, function: &str| Frame {
            file: text(file),
            function: text(function),
            first_line: 1,
        };
        let place = |parent, frame, line| Place { parent, frame, line };
        let mut samples = Vec::new();
        for at in 0..40 {
            let time = Time(at * 10_000_000 + 5_000_000);
            samples.push(StackSample { time, thread: 1, place: driving_at(at) });
            samples.push(StackSample { time, thread: 0, place: 3 });
            samples.push(StackSample { time, thread: 5, place: 0 });
        }
        let stacks = Stacks {
            frames: vec![
                frame("/me/train.py", "log"),
                frame("/lib/python3.12/json.py", "dumps"),
                frame("/x/site-packages/tensorflow/python/ops/script_ops.py", "dumps"),
                frame("/me/train.py", "load"),
            ],
            places: vec![
                place(None, 0, 12),
                place(Some(0), 1, 7),
                place(None, 2, 9),
                place(Some(2), 3, 33),
            ],
            samples,
            ..Stacks::default()
        };
        trace.processes.push(Process {
            pid: 1,
            driving_thread: Some(1),
            stacks,
            ..Process::default()
        });
        Tables::new(Arc::new(trace))
    }

    #[test]
    fn a_call_now_and_then_is_not_where_the_time_goes() {
        // Three of four samples are of the line itself, as of one that sleeps.
        let tables = sampled(|at| u32::from(at % 4 == 0));
        let rows = tables.get::<PythonLine>();
        let python = rows.iter().find(|it| it.activity == "python").unwrap();
        assert_eq!((python.function.as_str(), python.inside.as_deref()), ("log", None));
    }

    #[test]
    fn the_users_own_line_holds_what_it_calls() {
        let tables = sampled(|_| 1);
        let rows = tables.get::<PythonLine>();
        let rows: Vec<_> = rows
            .iter()
            .map(|it| {
                let us = it.per_step_ps.unwrap() / 1_000_000;
                (
                    it.activity.as_str(),
                    it.function.as_str(),
                    it.line.unwrap(),
                    it.inside.as_deref(),
                    us,
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("input", "load", 33, None, 100),
                ("python", "log", 12, Some("dumps"), 60),
                ("framework", "log", 12, Some("dumps"), 40),
            ]
        );
    }
}
