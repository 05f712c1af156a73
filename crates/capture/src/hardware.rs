//! Samples the machine, a process tree and its GPUs, and writes `hardware.jsonl`.
//!
//! ```text
//! /proc, /sys ──readers, each in its own rhythm──▶ board ──a row each tick──▶ hardware.jsonl
//! drivers of GPUs ──a thread of their own──────────▶  └──────────────────────▶ latest()
//! ```
//!
//! A reader that costs much is asked less often, so that all of them together stay below one
//! hundredth of a core however many cores, processes and GPUs there are; in the rows between, its
//! columns are null. What cannot be read at all is named in the file's first line, with the reason.

#[cfg(target_os = "linux")]
mod amd;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod gpu;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod nvidia;
#[cfg(target_os = "linux")]
mod text;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod waiting;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use self::write::Rows;
use crate::private;

/// How often samples are taken where nobody says otherwise.
pub const EVERY: Duration = Duration::from_millis(50);

/// Faster than this, drivers and the kernel's own clocks say nothing new.
const FASTEST: Duration = Duration::from_millis(10);
/// Slower than this, a stopped sampler is not to be told from a patient one.
const SLOWEST: Duration = Duration::from_secs(60);

/// The file in the run folder.
pub const FILE: &str = "hardware.jsonl";

/// Why no samples can be taken.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    #[error("the file for hardware samples cannot be written: {source}\n  file: {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("no thread for hardware samples could be started: {0}")]
    Thread(io::Error),
}

/// Where the machine shows itself. Tests point it elsewhere.
#[derive(Debug, Clone)]
pub struct Machine {
    /// In front of every path that the kernel tells, as those of mounted control groups.
    pub root: PathBuf,
    pub proc: PathBuf,
    pub sys: PathBuf,
    /// NVIDIA's management library; `None` for the one the system knows.
    pub nvml: Option<PathBuf>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            root: "/".into(),
            proc: "/proc".into(),
            sys: "/sys".into(),
            nvml: std::env::var_os("STROBE_NVML_PATH").map(PathBuf::from),
        }
    }
}

/// One row: a moment, and what each column held.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub time_unix_ns: i64,
    pub columns: Arc<[String]>,
    /// One for each column, as last read; `None` is unknown.
    pub values: Vec<Option<f64>>,
}

impl Sample {
    /// The value of a column, if it is there and known.
    pub fn get(&self, column: &str) -> Option<f64> {
        let at = self.columns.iter().position(|it| it == column)?;
        self.values.get(at).copied().flatten()
    }
}

/// Takes samples until it is stopped or dropped.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts to sample this machine and the processes below `root_pid` into `hardware.jsonl`.
    ///
    /// Returns at once: drivers are asked by the thread that samples.
    pub fn start(folder: &Path, root_pid: u32, every: Duration) -> Result<Sampler, SampleError> {
        Sampler::start_on(Machine::default(), folder, root_pid, every)
    }

    /// The same where the machine shows itself elsewhere.
    pub fn start_on(
        machine: Machine,
        folder: &Path,
        root_pid: u32,
        every: Duration,
    ) -> Result<Sampler, SampleError> {
        let path = folder.join(FILE);
        let file =
            private::create_file(&path).map_err(|source| SampleError::File { path, source })?;
        let shared = Arc::new(Shared::new(every));
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("strobe-hardware".to_owned())
            .spawn(move || sample(&machine, root_pid, Rows::new(file), &theirs))
            .map_err(SampleError::Thread)?;
        Ok(Sampler { shared, thread: Some(thread) })
    }

    /// Samples in another rhythm from now on: a capture has ended, and the run may last for days.
    pub fn slow_down(&self, every: Duration) {
        self.shared.state().every = bounded(every);
        self.shared.wake.notify_all();
    }

    /// The last row, for a live view; columns that were not due keep what they held.
    pub fn latest(&self) -> Option<Sample> {
        self.shared.state().latest.clone()
    }

    /// Writes what is left and ends; answers what could not be written.
    pub fn stop(mut self) -> Option<io::Error> {
        self.end();
        self.shared.state().failed.take()
    }

    fn end(&mut self) {
        self.shared.state().stop = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to write.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

fn bounded(every: Duration) -> Duration {
    every.clamp(FASTEST, SLOWEST)
}

/// What the sampler's threads and its owner tell each other.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    every: Duration,
    stop: bool,
    latest: Option<Sample>,
    failed: Option<io::Error>,
}

impl Shared {
    fn new(every: Duration) -> Shared {
        let state = State { every: bounded(every), stop: false, latest: None, failed: None };
        Shared { state: Mutex::new(state), wake: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Sleeps until a rhythm after `last`, or until told otherwise. False when it is time to stop.
    fn sleep_from(&self, last: Instant) -> bool {
        let mut state = self.state();
        loop {
            if state.stop {
                return false;
            }
            let left = (last + state.every).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let woken = self.wake.wait_timeout(state, left);
            state = woken.unwrap_or_else(|it| it.into_inner()).0;
        }
    }
}

/// When a reading was taken, on the wall's clock and on one that never jumps.
#[derive(Debug, Clone, Copy)]
struct Moment {
    unix_ns: i64,
    at: Instant,
}

impl Moment {
    fn now() -> Moment {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { unix_ns: i64::try_from(unix.as_nanos()).unwrap_or(i64::MAX), at: Instant::now() }
    }
}

/// Reads some columns, one file or a few.
trait Reader {
    fn columns(&self) -> Vec<String>;

    /// Faster than this its source says nothing new, or not enough for what it costs.
    fn fastest(&self) -> Duration {
        Duration::ZERO
    }

    /// Which part of the budget it may use.
    fn part(&self) -> f64 {
        1.0 / 16.0
    }

    /// What the last reading spent on things that have a rhythm of their own.
    fn spent_apart(&self) -> Duration {
        Duration::ZERO
    }

    /// What is no number and only now known, for a line of its own.
    fn said(&mut self) -> Option<Value> {
        None
    }

    /// Fills the columns; false where there is nothing new, and they stay as they were.
    fn read(&mut self, now: Moment, out: &mut [Option<f64>]) -> bool;
}

/// What a machine lacks, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Missing {
    what: String,
    why: String,
}

impl Missing {
    fn new(what: impl Into<String>, why: impl Into<String>) -> Missing {
        Missing { what: what.into(), why: why.into() }
    }
}

/// All that a machine can be asked, and what is said of it once.
#[derive(Default)]
struct Opened {
    readers: Vec<Box<dyn Reader>>,
    missing: Vec<Missing>,
    /// For the header.
    facts: Map<String, Value>,
}

impl Opened {
    fn add<R: Reader + 'static>(&mut self, what: &str, reader: Result<R, String>) {
        match reader {
            Ok(it) => self.readers.push(Box::new(it)),
            Err(why) => self.missing.push(Missing::new(what, why)),
        }
    }
}

#[cfg(target_os = "linux")]
fn open(machine: &Machine, root_pid: u32, shared: &Arc<Shared>) -> Opened {
    let mut opened = Opened::default();
    // First, so that drivers wake up while the rest is opened.
    let gpus = gpu::Gpus::start(machine, shared);
    cpu::open(machine, root_pid, &mut opened);
    host::open(machine, root_pid, &mut opened);
    cgroup::open(machine, root_pid, &mut opened);
    tree::open(machine, root_pid, &mut opened);
    gpu::open(gpus, shared, &mut opened);
    opened
}

#[cfg(not(target_os = "linux"))]
fn open(_: &Machine, _: u32, _: &Arc<Shared>) -> Opened {
    let why = "samples are taken on Linux only";
    Opened { missing: vec![Missing::new("this machine", why)], ..Opened::default() }
}

/// Of a core, for everything that is read. What is left below a hundredth is for writing.
const BUDGET: f64 = 0.005;

/// How often something may be done so that it stays within its part of the budget.
#[derive(Debug)]
struct Rhythm {
    due: Instant,
    fastest: Duration,
    /// Of a core.
    share: f64,
    /// Smoothed, so that one slow reading does not silence a reader for long.
    cost: Option<f64>,
}

impl Rhythm {
    fn new(fastest: Duration, share: f64) -> Rhythm {
        Rhythm { due: Instant::now(), fastest, share, cost: None }
    }

    /// A little early counts as due: otherwise a rhythm equal to the tick's would miss every other.
    fn is_due(&self, now: Instant) -> bool {
        now + Duration::from_millis(2) >= self.due
    }

    fn spent(&mut self, now: Instant, cost: Duration) {
        let cost = cost.as_secs_f64();
        let smooth = self.cost.map_or(cost, |it| it + (cost - it) * 0.2);
        self.cost = Some(smooth);
        // A reading that hung for seconds must not silence a reader for good.
        let pause = Duration::from_secs_f64((smooth / self.share).clamp(0.0, 30.0));
        self.due = now + self.fastest.max(pause);
    }
}

/// Processor time of the thread that asks.
#[cfg(target_os = "linux")]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let [seconds, nanos] = [time.tv_sec, time.tv_nsec].map(|it| u64::try_from(it).unwrap_or(0));
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

#[cfg(not(target_os = "linux"))]
fn thread_time() -> Duration {
    Duration::ZERO
}

/// A reader, its columns and its rhythm.
struct Turn {
    reader: Box<dyn Reader>,
    columns: std::ops::Range<usize>,
    rhythm: Rhythm,
}

/// The thread: opens, writes the header, then a row each tick until it is told to stop.
fn sample(machine: &Machine, root_pid: u32, mut rows: Rows, shared: &Arc<Shared>) {
    let opened = open(machine, root_pid, shared);
    let mut columns: Vec<String> = Vec::new();
    let mut turns: Vec<Turn> = Vec::new();
    for reader in opened.readers {
        let from = columns.len();
        columns.extend(reader.columns());
        let rhythm = Rhythm::new(reader.fastest(), BUDGET * reader.part());
        turns.push(Turn { columns: from..columns.len(), rhythm, reader });
    }
    let every = shared.state().every;
    rows.header(&header(root_pid, every, opened.facts, &columns, &opened.missing));

    let columns: Arc<[String]> = columns.into();
    let mut values: Vec<Option<f64>> = vec![None; columns.len()];
    let mut fresh = vec![false; columns.len()];
    let mut first = true;
    loop {
        let now = Moment::now();
        fresh.fill(false);
        for turn in &mut turns {
            if !turn.rhythm.is_due(now.at) {
                continue;
            }
            let before = thread_time();
            let out = &mut values[turn.columns.clone()];
            let is_new = turn.reader.read(Moment { at: Instant::now(), ..now }, out);
            fresh[turn.columns.clone()].fill(is_new);
            let cost = thread_time().saturating_sub(before);
            turn.rhythm.spent(now.at, cost.saturating_sub(turn.reader.spent_apart()));
            if let Some(said) = turn.reader.said() {
                rows.say(&said);
            }
        }
        // Rates need two readings: the first row would be mostly empty, and promises nothing.
        if !first || columns.is_empty() {
            rows.row(now.unix_ns, &values, &fresh);
            let values = values.clone();
            let columns = columns.clone();
            let sample = Sample { time_unix_ns: now.unix_ns, columns, values };
            shared.state().latest = Some(sample);
        }
        first = false;
        if !shared.sleep_from(now.at) {
            break;
        }
    }
    shared.state().failed = rows.end();
}

fn header(
    root_pid: u32,
    every: Duration,
    facts: Map<String, Value>,
    columns: &[String],
    missing: &[Missing],
) -> Value {
    let mut header = Map::new();
    header.insert("strobe".to_owned(), json!("hardware"));
    header.insert("version".to_owned(), json!(1));
    header.insert("pid".to_owned(), json!(root_pid));
    header.insert("every_ms".to_owned(), json!(every.as_secs_f64() * 1e3));
    header.extend(facts);
    header.insert("columns".to_owned(), json!(columns));
    let missing: Vec<Value> =
        missing.iter().map(|it| json!({"what": it.what, "why": it.why})).collect();
    header.insert("missing".to_owned(), json!(missing));
    Value::Object(header)
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, Rhythm};

    #[test]
    fn what_costs_much_is_asked_less_often() {
        let now = Instant::now();
        let mut cheap = Rhythm::new(Duration::from_millis(40), 0.001);
        cheap.spent(now, Duration::from_micros(10));
        assert_eq!(cheap.due - now, Duration::from_millis(40));
        let mut dear = Rhythm::new(Duration::from_millis(40), 0.001);
        dear.spent(now, Duration::from_millis(1));
        assert_eq!(dear.due - now, Duration::from_secs(1));
        dear.spent(now, Duration::from_secs(100));
        assert_eq!(dear.due - now, Duration::from_secs(30), "never silenced for good");
    }
}
