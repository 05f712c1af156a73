//! A run while it goes on: reads what was added to its folder, and says how things stand.
//!
//! ```text
//! manifest.json ──────────────────┐
//! python-PID.jsonl ──tail──▶ steps ├──▶ Snapshot
//! hardware.jsonl ────tail──▶ cells ┘
//! ```
//!
//! Nothing is read twice, and a run of days takes no more memory than one of minutes.

mod cells;
mod hardware;
mod process;
mod tail;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde_json::Value;

use self::cells::second_of;
use self::hardware::Machine;
use self::process::Process;
use self::tail::Tail;
use crate::running;

/// What "now" means for the rate of steps.
pub const RATE_OVER_NS: i64 = 10_000_000_000;
/// How many of the last steps the median is of.
pub const STATISTICS_OVER: i64 = 100;

/// What both files may hold back: the last second that is whole in both is this far behind.
const HELD_BACK_S: i64 = 2;
/// Samples of ten minutes and more: what is drawn is within the last of them.
const LAST_SAMPLES: u64 = 4 << 20;
/// Whether processes live costs more to find out than what they wrote.
const ASK_PROCESSES_EVERY: Duration = Duration::from_secs(2);

/// Why a folder cannot be watched. The path comes last.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error("there is no such run folder\n  path: {}", path.display())]
    Missing { path: PathBuf },
    #[error(
        "this is no folder of `strobe run`: it has no manifest.json that can be read\n  path: {}",
        path.display()
    )]
    NoRun { path: PathBuf },
    #[error("{source}\n  path: {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Searching,
    WarmingUp,
    Capturing,
    Captured,
    /// Steps are timed, and nothing will be captured.
    OnlyTimed,
    Ended,
}

impl State {
    pub fn in_words(self) -> &'static str {
        match self {
            State::Searching => "searching for steps",
            State::WarmingUp => "warming up",
            State::Capturing => "capturing",
            State::Captured => "captured",
            State::OnlyTimed => "only timed",
            State::Ended => "ended",
        }
    }
}

/// How things stand. What is not known is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub folder: PathBuf,
    pub unix_ns: i64,
    /// The script, or the command where no script is known.
    pub name: String,
    pub command: Vec<String>,
    pub host: Option<String>,
    pub elapsed_ns: Option<i64>,
    pub state: State,
    /// Why it is in this state, in words; may be empty.
    pub reason: String,
    /// Name and version.
    pub frameworks: BTreeMap<String, String>,
    pub python: Option<String>,
    /// The process whose steps are shown.
    pub pid: Option<i64>,
    /// How many processes take steps.
    pub n_stepping: usize,
    pub steps: Option<Steps>,
    /// When the profile that is there was saved: another time is another profile.
    pub saved_unix_ns: Option<i64>,
    pub hardware: Option<Hardware>,
    pub damaged_lines: u64,
}

/// How the steps go.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    pub count: i64,
    /// What counts as a step: an optimizer's call, a function's, a batch.
    pub kind: String,
    pub name: String,
    /// A second, over the last ten; it falls when steps stop.
    pub rate_now: Option<f64>,
    /// A second, since such steps began.
    pub rate_run: Option<f64>,
    pub median_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    /// How many steps these two are of.
    pub statistics_over: i64,
    pub examples_per_step: Option<i64>,
    pub examples_now: Option<f64>,
    /// No step began for so long, and that is unusual.
    pub silent_ns: Option<i64>,
    /// The slowest step of each second, the newest last.
    pub slowest_ns: Vec<Option<f64>>,
}

/// A value now, and its mean over each of the last seconds, the newest last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    pub now: Option<f64>,
    pub cells: Vec<Option<f64>>,
}

impl Series {
    pub fn is_unknown(&self) -> bool {
        self.now.is_none() && self.cells.iter().all(Option::is_none)
    }
}

/// The machine and its GPUs. Shares are 0 to 1, rates are bytes a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hardware {
    /// No sample came for so long.
    pub silent_ns: Option<i64>,
    /// That the processes may use.
    pub cores: Option<f64>,
    /// In cores.
    pub cpu_process: Series,
    pub cpu_all: Series,
    pub memory: Memory,
    pub disk_read: Series,
    pub disk_write: Series,
    pub network_in: Series,
    pub network_out: Series,
    pub gpus: Vec<Gpu>,
    /// What could not be sampled, and why.
    pub missing: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    pub process: Series,
    /// What there is: the container's limit or the machine's memory.
    pub of_bytes: Option<f64>,
    pub is_limit: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub memory_bytes: Option<f64>,
    pub max_clock_mhz: Option<f64>,
    pub power_limit_w: Option<f64>,
    pub busy: Series,
    pub memory: Series,
    pub clock: Series,
    pub power: Series,
    pub temperature: Series,
    /// Why the clock is held back; empty where it is not.
    pub throttled: Option<Vec<&'static str>>,
}

/// A run folder that is being watched.
#[derive(Debug)]
pub struct Live {
    folder: PathBuf,
    manifest: Value,
    /// When the manifest was written, and its size.
    manifest_written: Option<(SystemTime, u64)>,
    processes: BTreeMap<PathBuf, (Tail, Process)>,
    samples: Tail,
    machine: Machine,
    goes_on: bool,
    asked_processes: Option<Instant>,
}

impl Live {
    /// Reads what is there.
    pub fn open(folder: &Path) -> Result<Live, LiveError> {
        if !folder.exists() {
            return Err(LiveError::Missing { path: folder.to_owned() });
        }
        let mut live = Live {
            folder: folder.to_owned(),
            manifest: Value::Null,
            manifest_written: None,
            processes: BTreeMap::new(),
            samples: Tail::only_last(folder.join("hardware.jsonl"), LAST_SAMPLES),
            machine: Machine::default(),
            goes_on: false,
            asked_processes: None,
        };
        live.look()?;
        match live.manifest["schema"].as_i64() {
            Some(_) => Ok(live),
            None => Err(LiveError::NoRun { path: folder.to_owned() }),
        }
    }

    /// Reads what was added since the last look.
    pub fn look(&mut self) -> Result<(), LiveError> {
        // First: who wrote the end had written everything else before.
        self.look_at_manifest();
        let io_error = |path: &Path, source| LiveError::Io { path: path.to_owned(), source };
        let entries = fs::read_dir(&self.folder).map_err(|it| io_error(&self.folder, it))?;
        for entry in entries.filter_map(|it| it.ok()) {
            let name = entry.file_name();
            if !runlog::is_log(&name.to_string_lossy()) {
                continue;
            }
            let path = entry.path();
            let (tail, process) = self
                .processes
                .entry(path.clone())
                .or_insert_with(|| (Tail::new(path.clone()), Process::default()));
            tail.look(process).map_err(|it| io_error(&path, it))?;
        }
        self.samples
            .look(&mut self.machine)
            .map_err(|it| io_error(&self.folder.join("hardware.jsonl"), it))
    }

    fn look_at_manifest(&mut self) {
        // Before the manifest is read: a run that ended in between has written its end by then.
        if self.asked_processes.is_none_or(|it| it.elapsed() >= ASK_PROCESSES_EVERY) {
            self.goes_on = running::is_going_on(&self.folder);
            self.asked_processes = Some(Instant::now());
        }
        let path = self.folder.join("manifest.json");
        let written = fs::metadata(&path).and_then(|it| Ok((it.modified()?, it.len()))).ok();
        if written == self.manifest_written {
            return;
        }
        self.manifest_written = written;
        if let Some(manifest) = running::read_manifest(&self.folder) {
            self.manifest = manifest;
        }
        if self.manifest.get("ended_unix_ns").is_some() {
            self.goes_on = false;
        }
    }

    /// How things stand now.
    pub fn snapshot(&self) -> Snapshot {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.snapshot_at(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
    }

    fn snapshot_at(&self, unix_ns: i64) -> Snapshot {
        let processes = || self.processes.values().map(|it| &it.1);
        // Ranks of one job step alike; what only reads data steps less.
        let shown = processes().max_by_key(|it| (it.n_steps, !it.frameworks.is_empty(), -it.pid));
        let now_ns = self.goes_on.then_some(unix_ns);
        let last_ns =
            processes().filter_map(|it| it.last_step_ns()).chain(self.machine.last_row_ns);
        let last_ns = last_ns.max();
        let last_second = match (now_ns, last_ns) {
            (Some(now_ns), _) => second_of(now_ns) - HELD_BACK_S,
            (None, last_ns) => second_of(last_ns.unwrap_or(unix_ns)),
        };
        let started_ns = self.manifest["started_unix_ns"].as_i64();
        let ended_ns = self.manifest["ended_unix_ns"].as_i64();
        let until_ns = ended_ns.or(now_ns).or(last_ns);
        let saved = processes().filter_map(|it| it.last_said("saved")).map(|it| it.unix_ns).max();
        let (state, reason) = self.state(shown, saved.is_some());
        let mut frameworks = BTreeMap::new();
        for process in processes() {
            frameworks.extend(process.frameworks.clone());
        }
        let command: Vec<String> = self.manifest["command"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect();
        let script = shown.map(|it| it.script.clone()).filter(|it| !it.is_empty());
        let mut hardware = self.machine.hardware(now_ns, last_second);
        if let Some(it) = hardware.as_mut().map(|it| &mut it.memory) {
            let machine = &self.manifest["machine"]["memory_bytes"];
            it.of_bytes = it.of_bytes.or_else(|| machine.as_f64());
        }
        Snapshot {
            folder: self.folder.clone(),
            unix_ns,
            name: one_line(&script.unwrap_or_else(|| command.join(" "))),
            command,
            host: self.manifest["machine"]["host"].as_str().map(str::to_owned),
            elapsed_ns: started_ns.zip(until_ns).map(|(from, until)| (until - from).max(0)),
            state,
            reason: one_line(&reason),
            frameworks,
            python: shown.map(|it| it.python.clone()).filter(|it| !it.is_empty()),
            pid: shown.map(|it| it.pid).filter(|&it| it > 0),
            n_stepping: processes().filter(|it| it.n_steps > 0).count(),
            steps: shown.and_then(|it| it.steps(now_ns, last_second)),
            saved_unix_ns: saved,
            hardware,
            damaged_lines: self.machine.damaged + processes().map(|it| it.damaged).sum::<u64>(),
        }
    }

    fn state(&self, shown: Option<&Process>, is_saved: bool) -> (State, String) {
        let captured = if is_saved { "its steps are captured" } else { "nothing was captured" };
        if self.manifest.get("ended_unix_ns").is_some() {
            let exit = &self.manifest["exit"];
            let how = match (exit["code"].as_i64(), exit["signal"].as_i64()) {
                (Some(code), _) => format!("with exit code {code}; {captured}"),
                (_, Some(signal)) => format!("by signal {signal}; {captured}"),
                _ => captured.to_owned(),
            };
            return (State::Ended, how);
        }
        if !self.goes_on {
            let how = format!("its processes are gone, and none wrote down how; {captured}");
            return (State::Ended, how);
        }
        let Some(process) = shown else {
            let why = "no process has imported TensorFlow, JAX or PyTorch yet";
            return (State::Searching, why.to_owned());
        };
        self.state_of(process, is_saved)
    }

    fn state_of(&self, process: &Process, is_saved: bool) -> (State, String) {
        let asks_for_none = self.manifest["settings"]["capture"] == Value::Bool(false);
        for said in process.said.iter().rev() {
            let text = said.text.clone();
            match said.what.as_str() {
                "window-start" => {
                    // How long the profiler took is for the report.
                    let why = text.split("; the profiler took").next().unwrap_or_default();
                    return (State::Capturing, why.to_owned());
                }
                "window-end" => {
                    return (State::Capturing, format!("{text}; the profile is being saved"));
                }
                "saved" => {
                    let steps = process.last_said("window-end").map(|it| it.text.clone());
                    return (State::Captured, steps.unwrap_or_default());
                }
                "failed" if is_saved => {
                    return (State::Captured, format!("watching ended afterwards: {text}"));
                }
                "failed" | "none" => return (State::OnlyTimed, format!("not captured: {text}")),
                "own-profiler" => {
                    let why = format!("the program uses the profiler itself: {text}");
                    return (State::OnlyTimed, why);
                }
                "busy" => {
                    return (State::WarmingUp, format!("the profiler could not start: {text}"));
                }
                _ => (),
            }
        }
        match process.step {
            _ if asks_for_none => (State::OnlyTimed, "no capture, as asked".to_owned()),
            Some(_) => (State::WarmingUp, "until steps keep their pace".to_owned()),
            None => (State::Searching, "no call came again often enough yet".to_owned()),
        }
    }
}

/// What errors and scripts call themselves may hold anything; a terminal would obey it.
fn one_line(text: &str) -> String {
    text.split(char::is_control).filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
