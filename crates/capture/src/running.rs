//! Finds the run folders that are being written, and whose process belongs to which.
//!
//! A process is known by its number, and numbers are used again: one that began before the run, or
//! after what names it was written, is another process.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::folder::run_folders;

/// A run on another machine, or in another container, is known by its files only.
const SILENT: Duration = Duration::from_secs(30);

/// The run folders that are being written, newest first: those of the usual place, and those
/// whose processes can be seen.
pub fn going_on() -> Vec<PathBuf> {
    let mut folders = run_folders();
    for folder in folders_of_processes() {
        if !folders.contains(&folder) && folder.join("manifest.json").is_file() {
            folders.push(folder);
        }
    }
    let mut found: Vec<(i64, PathBuf)> = folders
        .into_iter()
        .filter_map(|it| {
            let named = Named::of(&it)?;
            named.is_going_on().then_some((named.started_unix_ns, it))
        })
        .collect();
    found.sort_by_key(|it| std::cmp::Reverse(it.0));
    found.into_iter().map(|it| it.1).collect()
}

/// The run that a process, or one it came from, belongs to.
pub fn run_of_process(pid: u32) -> Option<PathBuf> {
    if !exists(pid) {
        // Of a process that is gone its run may have been kept.
        let names = |it: &PathBuf| Named::of(it).is_some_and(|named| named.pids.contains(&pid));
        return run_folders().into_iter().find(names);
    }
    if let Some(folder) = folder_of(pid).filter(|it| it.join("manifest.json").is_file()) {
        return Some(folder);
    }
    let family: BTreeSet<u32> = std::iter::successors(Some(pid), |&it| parent(it)).collect();
    going_on().into_iter().find(|it| {
        Named::of(it).is_some_and(|named| named.pids.iter().any(|it| family.contains(it)))
    })
}

/// Whether a run goes on.
pub(crate) fn is_going_on(folder: &Path) -> bool {
    Named::of(folder).is_some_and(|it| it.is_going_on())
}

/// What a run folder says of its processes.
struct Named {
    started_unix_ns: i64,
    has_ended: bool,
    is_attached: bool,
    host: Option<String>,
    /// Who writes the manifest.
    writer: Option<u32>,
    /// All of them.
    pids: BTreeSet<u32>,
    /// When something was last written.
    written_unix_ns: i64,
}

impl Named {
    fn of(folder: &Path) -> Option<Named> {
        let manifest = read_manifest(folder)?;
        let pid_of = |it: &Value| u32::try_from(it["pid"].as_i64()?).ok();
        let writer = pid_of(&manifest);
        let mut pids: BTreeSet<u32> = writer.into_iter().collect();
        pids.extend(manifest["processes"].as_array().into_iter().flatten().filter_map(pid_of));
        let mut written_unix_ns = 0;
        for entry in fs::read_dir(folder).ok()?.filter_map(|it| it.ok()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(stem) = name.strip_suffix(".jsonl") else { continue };
            pids.extend(stem.strip_prefix("python-").and_then(|it| it.parse::<u32>().ok()));
            if stem == "hardware" {
                pids.extend(first_line(&entry.path()).as_ref().and_then(pid_of));
            }
            let written = entry.metadata().and_then(|it| it.modified()).ok();
            written_unix_ns = written_unix_ns.max(written.map_or(0, unix_ns));
        }
        Some(Named {
            started_unix_ns: manifest["started_unix_ns"].as_i64()?,
            has_ended: manifest.get("ended_unix_ns").is_some(),
            is_attached: manifest["kind"] == "attach",
            host: manifest["machine"]["host"].as_str().map(str::to_owned),
            writer,
            pids,
            written_unix_ns,
        })
    }

    fn is_going_on(&self) -> bool {
        if self.has_ended {
            return false;
        }
        let here = fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let is_here = match (&here, &self.host) {
            (Some(here), Some(host)) => here.trim() == host,
            _ => here.is_some(),
        };
        if !is_here {
            let silent = SystemTime::now().duration_since(UNIX_EPOCH + as_duration(self.written()));
            return silent.is_ok_and(|it| it < SILENT);
        }
        self.pids.iter().any(|&pid| match (self.writer == Some(pid), self.is_attached) {
            (true, _) => lives(pid, 0..=self.started_unix_ns),
            // What was attached to may be older than the run; what a run started is not.
            (false, true) => lives(pid, 0..=self.written()),
            (false, false) => lives(pid, self.started_unix_ns..=self.written()),
        })
    }

    fn written(&self) -> i64 {
        self.written_unix_ns.max(self.started_unix_ns)
    }
}

fn as_duration(unix_ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(unix_ns).unwrap_or(0))
}

fn unix_ns(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// More than a manifest of ours can be.
const LARGEST_MANIFEST: u64 = 16 << 20;

pub(crate) fn read_manifest(folder: &Path) -> Option<Value> {
    use std::io::{BufReader, Read as _};
    let file = runlog::open(&folder.join("manifest.json")).ok()?;
    serde_json::from_reader(BufReader::new(file.take(LARGEST_MANIFEST))).ok()
}

fn first_line(path: &Path) -> Option<Value> {
    use std::io::{BufRead as _, BufReader, Read as _};
    let file = runlog::open(path).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.take(1 << 20)).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// When machines start, their clocks are set: what the kernel says of a start may be so far off.
const CLOCK_SLACK_NS: i64 = 60_000_000_000;

/// Whether the process that began within a span of time still runs.
fn lives(pid: u32, began_unix_ns: RangeInclusive<i64>) -> bool {
    let earliest = began_unix_ns.start().saturating_sub(CLOCK_SLACK_NS);
    let latest = began_unix_ns.end().saturating_add(CLOCK_SLACK_NS);
    exists(pid) && started_unix_ns(pid).is_none_or(|it| (earliest..=latest).contains(&it))
}

/// Whether there is such a process. Zombies have ended: nobody asked how.
pub fn exists(pid: u32) -> bool {
    match stat(pid) {
        Some(fields) => !matches!(fields.first().map(String::as_str), Some("Z" | "X")),
        None => !Path::new("/proc/self").exists() && can_be_signalled(pid),
    }
}

#[cfg(unix)]
fn can_be_signalled(pid: u32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|it| matches!(test_kill_process(it), Ok(()) | Err(Errno::PERM)))
}

#[cfg(not(unix))]
fn can_be_signalled(_: u32) -> bool {
    false
}

/// The fields of `/proc/PID/stat` behind the name, which may hold anything: the state comes first.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok().filter(|&it| it > 1)
}

pub(crate) fn started_unix_ns(pid: u32) -> Option<i64> {
    // The kernel shows such times in hundredths of a second wherever Rust's library runs.
    const TICK_NS: i64 = 10_000_000;
    let ticks: i64 = stat(pid)?.get(19)?.parse().ok()?;
    let kernel = fs::read_to_string("/proc/stat").ok()?;
    let boot = kernel.lines().find_map(|it| it.strip_prefix("btime "))?;
    boot.trim()
        .parse::<i64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(ticks.checked_mul(TICK_NS)?)
}

/// The run folders that processes of ours were told to write to.
fn folders_of_processes() -> BTreeSet<PathBuf> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeSet::new() };
    entries
        .filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(folder_of)
        .collect()
}

#[cfg(unix)]
fn folder_of(pid: u32) -> Option<PathBuf> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    // Readable for the user's own processes; of the variables only ours is looked at.
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|&it| it == 0);
    let folder = variables.find_map(|it| it.strip_prefix(b"STROBE_RUN_FOLDER="))?;
    Some(PathBuf::from(OsStr::from_bytes(folder)))
}

#[cfg(not(unix))]
fn folder_of(_: u32) -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::{exists, is_going_on, lives};

    #[test]
    fn a_run_goes_on_while_one_of_its_processes_does() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = |value: serde_json::Value| {
            fs::write(folder.path().join("manifest.json"), value.to_string()).unwrap();
            is_going_on(folder.path())
        };
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let machine = json!({"host": host.trim()});
        let now = super::unix_ns(std::time::SystemTime::now());
        let me = std::process::id();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let gone = child.id();
        assert!(manifest(json!({"started_unix_ns": now, "pid": me, "machine": machine})));
        assert!(!manifest(json!({"started_unix_ns": now, "pid": gone, "machine": machine})));
        let ended =
            json!({"started_unix_ns": now, "ended_unix_ns": now, "pid": me, "machine": machine});
        assert!(!manifest(ended));
        // Its number is used by another process, which began much later than the run.
        assert!(!manifest(json!({"started_unix_ns": 1, "pid": me, "machine": machine})));
        fs::write(folder.path().join(format!("python-{me}.jsonl")), "").unwrap();
        assert!(manifest(json!({"started_unix_ns": now, "pid": gone, "machine": machine})));
        // On another machine only what is written tells.
        assert!(manifest(json!({"started_unix_ns": now, "machine": {"host": "elsewhere"}})));
    }

    #[test]
    fn processes_are_told_apart_by_when_they_began() {
        let me = std::process::id();
        assert!(exists(me));
        assert!(lives(me, 0..=i64::MAX));
        if std::path::Path::new("/proc/stat").exists() {
            assert!(!lives(me, 0..=0), "it began later");
            assert!(!lives(me, i64::MAX..=i64::MAX), "it began before");
        }
    }
}
