//! Samples the Python stacks of a running process from outside, by reading its memory.
//!
//! The process is never paused and runs no code of ours. So a stack may be read while it changes:
//! what cannot be made sense of is dropped and counted, and a frame may now and then come from
//! the moment before. Which Pythons can be read is up to `py-spy`: 3.3 to 3.15.
//!
//! Not available this way: what the framework does. There are no steps, no ops and no input
//! pipeline in these samples, only where Python was.

mod permission;
mod source;
mod stacks;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use py_spy::config::{LineNo, LockingStrategy};
use py_spy::{Config, PythonSpy, StackTrace};
use serde_json::json;

use self::source::Sources;
use self::stacks::Stacks;
use crate::folder::unix_ns;
use crate::private;

/// How to sample.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time between samples.
    pub every: Duration,
    /// The largest file that is written; sampling ends there.
    pub max_bytes: u64,
    /// What the file's name begins with: `stacks` where the process itself writes `python`.
    pub file: &'static str,
}

/// What is wanted of a sampler at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Be ready: finding the interpreter takes longer than a sample.
    Soon,
    Now,
    NoMore,
}

impl Default for Options {
    fn default() -> Options {
        Options { every: Duration::from_millis(10), max_bytes: 1 << 30, file: "python" }
    }
}

/// What was sampled.
#[derive(Debug, Clone)]
pub struct Sampled {
    /// Below the run folder.
    pub file: PathBuf,
    pub python: String,
    /// Times at which the process was looked at.
    pub readings: u64,
    /// Of these, the times at which its stacks could not be made sense of.
    pub missed: u64,
    /// The process ended, or the file reached its limit, before sampling was to end.
    pub ended_early: Option<String>,
}

/// Why a process could not be sampled.
#[derive(Debug, thiserror::Error)]
pub enum PidError {
    #[error(
        "there is no process {pid}\n  hint: pgrep -af python lists those that may be meant{}",
        port_hint(*pid)
    )]
    NoProcess { pid: u32 },
    #[error("this system does not allow reading the memory of process {pid}: {why}\n  hint: {fix}")]
    Denied { pid: u32, why: String, fix: String },
    #[error("no Python was found in process {pid} ({name}): {why}{}", children_hint(children))]
    NoPython { pid: u32, name: String, why: String, children: Vec<u32> },
    #[error("the samples could not be written: {source}\n  path: {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

fn port_hint(pid: u32) -> String {
    match u16::try_from(pid) {
        Ok(port) => format!("; a port of this machine is written :{port}"),
        Err(_) => String::new(),
    }
}

fn children_hint(children: &[u32]) -> String {
    match children.is_empty() {
        true => String::new(),
        false => {
            let pids: Vec<String> = children.iter().map(u32::to_string).collect();
            format!("\n  hint: its children are {}; one of them may be meant", pids.join(", "))
        }
    }
}

/// How often to look for the interpreter in a process that may just be starting.
const ATTEMPTS: u64 = 10;
/// So many readings in a row that fail mean that the process has ended, or Python has in it.
const MOST_MISSED_IN_A_ROW: u32 = 200;
/// A capture that is killed loses no more than this.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Where in its turn the nth reading is taken, 0 to 1. Steps have a rhythm of their own: samples at
/// equal distances would see the same part of each. Multiples of the golden ratio fall anywhere,
/// and evenly.
fn offset(nth: u64) -> f64 {
    (nth as f64 * 0.618_033_988_749_895).fract()
}

/// Samples `pid` into `folder` until `stop` says so.
pub fn sample(
    pid: u32,
    options: &Options,
    folder: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<Sampled, PidError> {
    let wanted = || if stop() { Wanted::NoMore } else { Wanted::Now };
    sample_when(pid, options, folder, &wanted, &|| ())
}

/// Samples `pid` into `folder` whenever it is `wanted`; says when it is `ready`.
pub fn sample_when(
    pid: u32,
    options: &Options,
    folder: &Path,
    wanted: &dyn Fn() -> Wanted,
    ready: &dyn Fn(),
) -> Result<Sampled, PidError> {
    permission::check(pid)?;
    let no_python = |why: String| PidError::NoPython {
        pid,
        name: permission::name(pid),
        why,
        children: permission::children(pid),
    };
    let config = Config {
        blocking: LockingStrategy::NonBlocking,
        collect_thread_names: false,
        ..Config::default()
    };
    let py_pid = py_spy::Pid::try_from(pid).map_err(|_| PidError::NoProcess { pid })?;
    let spy = guarded(|| PythonSpy::retry_new(py_pid, &config, ATTEMPTS));
    let mut spy = Spy { pid, spy: spy.map_err(no_python)? };
    let first = spy.read().map_err(no_python)?;

    let name = format!("{}-{pid}.jsonl", options.file);
    let path = folder.join(&name);
    let write_error = |source| PidError::Write { path: path.clone(), source };
    let mut file = BufWriter::new(private::create_file(&path).map_err(write_error)?);
    let python = spy.spy.version.to_string();
    let thread = first.iter().find(|it| it.is_main).map_or(0, |it| it.id);
    let head = json!({
        "strobe": "python", "version": 1, "host": permission::host(), "pid": pid,
        "thread": thread, "python": python,
    });
    writeln!(file, "{head}").map_err(write_error)?;

    let mut stacks = Stacks::new(Sources::of(pid));
    let (mut readings, mut missed, mut missed_in_a_row) = (0, 0, 0);
    let mut ended_early = None;
    let (mut next, mut flushed) = (Instant::now(), Instant::now());
    ready();
    loop {
        match wanted() {
            Wanted::NoMore => break,
            Wanted::Now => (),
            Wanted::Soon => {
                if permission::is_gone(pid) {
                    break;
                }
                std::thread::sleep(options.every);
                next = Instant::now();
                continue;
            }
        }
        let now = SystemTime::now();
        readings += 1;
        match spy.read() {
            Ok(threads) => {
                missed_in_a_row = 0;
                if threads.iter().any(|it| stacks.is_news(&it.frames)) {
                    stacks.learn_first_lines(&threads, &spy.first_lines());
                }
                stacks.write(unix_ns(now), &threads, &mut file).map_err(write_error)?;
            }
            Err(_) => {
                missed += 1;
                missed_in_a_row += 1;
            }
        }
        if missed_in_a_row > 0 && permission::is_gone(pid) {
            ended_early = Some("the process ended".to_owned());
        } else if missed_in_a_row >= MOST_MISSED_IN_A_ROW {
            ended_early = Some("its stacks can no longer be read".to_owned());
        } else if stacks.bytes > options.max_bytes {
            ended_early = Some(format!("the samples reached {} bytes", options.max_bytes));
        }
        if ended_early.is_some() {
            break;
        }
        if flushed.elapsed() >= FLUSH_EVERY {
            file.flush().map_err(write_error)?;
            flushed = Instant::now();
        }
        // After a delay the old rhythm goes on; what was missed is not made up for.
        next += options.every;
        let now = Instant::now();
        match (next + options.every.mul_f64(offset(readings))).checked_duration_since(now) {
            Some(pause) => std::thread::sleep(pause),
            None => next = now,
        }
    }
    file.flush().map_err(write_error)?;
    Ok(Sampled { file: name.into(), python, readings, missed, ended_early })
}

/// One thread's stack at one moment, innermost frame first.
#[derive(Debug)]
struct Thread {
    /// The operating system's id, or 0 where it is unknown.
    id: u64,
    is_main: bool,
    frames: Vec<Frame>,
}

#[derive(Debug, PartialEq, Eq)]
struct Frame {
    file: String,
    function: String,
    line: i32,
}

struct Spy {
    pid: u32,
    spy: PythonSpy,
}

impl Spy {
    fn read(&mut self) -> Result<Vec<Thread>, String> {
        let traces = guarded(|| self.spy.get_stack_traces())?;
        Ok(threads(self.pid, traces))
    }

    /// The same stacks, or those of a moment later, with the first line of each function.
    fn first_lines(&mut self) -> Vec<Thread> {
        self.spy.config.lineno = LineNo::First;
        let threads = self.read().unwrap_or_default();
        self.spy.config.lineno = LineNo::LastInstruction;
        threads
    }
}

/// What is read while it changes can be any bytes; nothing that follows from them may end us.
fn guarded<T, E: fmt::Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| format!("{error:#}")),
        Err(_) => Err("what was read makes no sense".to_owned()),
    }
}

fn threads(pid: u32, traces: Vec<StackTrace>) -> Vec<Thread> {
    // The main thread has the id of the process. Before Python 3.11 a thread does not know its
    // id, and in a container it knows another one; but new threads are put in front of the list.
    let own = u64::from(pid);
    let main = traces.iter().position(|it| it.os_thread_id == Some(own));
    let main = main.or(traces.len().checked_sub(1));
    let thread = |(at, trace): (usize, StackTrace)| {
        let is_main = Some(at) == main;
        let frames = trace.frames.into_iter().map(|it| Frame {
            file: it.filename,
            function: it.name,
            line: it.line,
        });
        Thread {
            id: trace.os_thread_id.unwrap_or(if is_main { own } else { 0 }),
            is_main,
            frames: frames.collect(),
        }
    };
    traces.into_iter().enumerate().map(thread).collect()
}

#[cfg(test)]
mod tests {
    use super::offset;

    #[test]
    fn readings_fall_evenly_on_every_part_of_a_turn() {
        let mut tenths = [0; 10];
        for nth in 1..=200 {
            tenths[(offset(nth) * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|it| (18..=22).contains(it)), "{tenths:?}");
        // Neighbours are apart: no rhythm of few steps meets the same part again.
        assert!((1..200).all(|it| (offset(it) - offset(it + 1)).abs() > 0.3));
    }
}
