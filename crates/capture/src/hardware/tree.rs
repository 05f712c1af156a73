//! What a process and all that it started use.
//!
//! ```text
//! root ── launcher ── python ── data worker
//!                        └───── data worker   which may live for less than a sample
//! ```
//!
//! Processes are found by their parents. All are listed again only when something was started
//! since (`/proc/loadavg` tells the last number given), and only new ones are asked who started
//! them. When a process has ended and its parent has taken note, the kernel adds what it used to
//! its parent's figures; so sums over the living miss nothing, not even of those never seen.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::cpu::OF_TICKS;
use super::files::Files;
use super::text::{Buffer, Growth, Kept, number, number_of, reason, words};
use super::waiting::Waiting;
use super::{BUDGET, Machine, Missing, Moment, Opened, Reader, Rhythm, thread_time};

pub fn open(machine: &Machine, root_pid: u32, opened: &mut Opened) {
    match Tree::open(machine, root_pid) {
        Ok(tree) => {
            if let Err(why) = &tree.waiting {
                opened.missing.push(Missing::new("cpu/waiting", why));
            }
            if let Some(why) = &tree.no_io {
                opened.missing.push(Missing::new("process/read, process/write", why));
            }
            opened.readers.push(Box::new(tree));
        }
        Err(why) => opened.missing.push(Missing::new("process", why)),
    }
}

struct Tree {
    proc: PathBuf,
    processes: Vec<Process>,
    /// All that were listed last, ours and others', sorted.
    listed: Vec<u32>,
    /// Says which number was given last.
    loadavg: Option<Kept>,
    last_given: Option<u64>,
    listing: Rhythm,
    buffer: Buffer,
    /// Why bytes of storage are not known.
    no_io: Option<String>,
    /// Where the machine has none, nothing is swapped out.
    has_swap: bool,
    swap: Rhythm,
    swapped: Option<f64>,
    spent_apart: Duration,
    tick_seconds: f64,
    page_bytes: f64,
    growths: Growths,
    /// Or why it is not known.
    waiting: Result<Waiting, String>,
    files: Files,
}

#[derive(Default)]
struct Growths {
    cpu: Growth,
    read: Growth,
    written: Growth,
    minor: Growth,
    major: Growth,
}

/// A process of the tree. Files that stay open cannot speak of another that got its number later.
struct Process {
    pid: u32,
    stat: File,
    io: File,
}

/// A file of a process: kept open, or only its place where too many would be open at once.
enum File {
    Kept(Kept),
    At(PathBuf),
}

/// Two files each, below the usual limit of 1024 for a process.
const MOST_KEPT: usize = 128;

impl File {
    fn new(path: PathBuf, keep: bool) -> File {
        match Kept::open(&path) {
            Ok(it) if keep => File::Kept(it),
            _ => File::At(path),
        }
    }

    fn read<'a>(&self, buffer: &'a mut Buffer) -> io::Result<&'a [u8]> {
        match self {
            File::Kept(it) => it.read(buffer),
            File::At(path) => Kept::open(path)?.read(buffer),
        }
    }
}

/// What `/proc/PID/stat` says, of a process and of its children that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stat {
    parent: u32,
    minor_faults: u64,
    major_faults: u64,
    ticks: u64,
    threads: u64,
    resident_pages: u64,
}

impl Stat {
    /// The name in front may hold anything, also brackets: the last one ends it.
    fn parse(text: &[u8]) -> Option<Stat> {
        let behind = text.iter().rposition(|&it| it == b')')?;
        let mut words = words(&text[behind + 1..]);
        let state = words.next()?;
        let mut fields = [0_u64; 21];
        for field in &mut fields {
            // Some may be negative, none of those that are asked for.
            *field = number(words.next()?).unwrap_or(0);
        }
        // Numbered as in proc(5), where the parent is field 4.
        let field = |n: usize| fields[n - 4];
        let sum = |numbers: &[usize]| {
            numbers.iter().fold(0_u64, |sum, &it| sum.saturating_add(field(it)))
        };
        let is_dead = matches!(state, b"Z" | b"X");
        Some(Stat {
            parent: u32::try_from(field(4)).ok()?,
            minor_faults: sum(&[10, 11]),
            major_faults: sum(&[12, 13]),
            ticks: sum(&[14, 15, 16, 17]),
            threads: if is_dead { 0 } else { field(20) },
            resident_pages: if is_dead { 0 } else { field(24) },
        })
    }
}

/// Sums over the living.
#[derive(Debug, Default)]
struct Sums {
    stat: Stat,
    read_bytes: u64,
    written_bytes: u64,
}

const COLUMNS: [&str; 7] = [
    "cpu/process",
    "process/count",
    "process/threads",
    "memory/process",
    "memory/swap",
    "memory/minor_faults",
    "memory/major_faults",
];
/// Where the kernel lets us know.
const WAITING: [&str; 1] = ["cpu/waiting"];
const STORAGE: [&str; 2] = ["process/read", "process/write"];

impl Tree {
    fn open(machine: &Machine, root_pid: u32) -> Result<Tree, String> {
        let proc = machine.proc.clone();
        let mut buffer = Buffer::default();
        let path = proc.join(format!("{root_pid}/stat"));
        let gone = |it: &io::Error| match it.kind() {
            io::ErrorKind::NotFound => format!("there is no process {root_pid}"),
            _ => reason(&path, it),
        };
        let stat = Kept::open(&path).map_err(|it| gone(&it))?;
        stat.read(&mut buffer).map_err(|it| gone(&it))?;
        let io = proc.join(format!("{root_pid}/io"));
        let no_io = Kept::try_open(&io, &mut buffer).err();
        let waiting = Waiting::open(&proc, root_pid, &mut buffer);
        let swap = std::fs::read(proc.join("meminfo")).unwrap_or_default();
        let mut tree = Tree {
            processes: Vec::new(),
            listed: Vec::new(),
            loadavg: Kept::open(&proc.join("loadavg")).ok(),
            last_given: None,
            // New workers are seen soon; how much they use is counted from the start anyway.
            listing: Rhythm::new(Duration::from_millis(100), BUDGET / 8.0),
            buffer,
            no_io,
            has_swap: number_of(&swap, "SwapTotal") != Some(0),
            swap: Rhythm::new(Duration::from_secs(1), BUDGET / 16.0),
            swapped: None,
            spent_apart: Duration::ZERO,
            tick_seconds: 1.0 / rustix::param::clock_ticks_per_second().max(1) as f64,
            page_bytes: rustix::param::page_size() as f64,
            growths: Growths::default(),
            waiting,
            files: Files::new(),
            proc,
        };
        tree.adopt(root_pid);
        Ok(tree)
    }

    fn adopt(&mut self, pid: u32) {
        let folder = self.proc.join(pid.to_string());
        let keep = self.processes.len() < MOST_KEPT;
        let (stat, io) = (File::new(folder.join("stat"), keep), File::new(folder.join("io"), keep));
        self.processes.push(Process { pid, stat, io });
    }

    /// Looks for processes that ours have started.
    fn find_new(&mut self, now: Moment) {
        if !self.listing.is_due(now.at) {
            return;
        }
        let given = self
            .loadavg
            .as_ref()
            .and_then(|it| words(it.read(&mut self.buffer).ok()?).nth(4).and_then(number));
        if given.is_some() && given == self.last_given {
            return;
        }
        self.last_given = given;
        let before = thread_time();
        let mut listed = pids(&self.proc);
        listed.sort_unstable();
        // New ones and who started them; a child may have a lower number than its parent.
        let mut new: Vec<(u32, u32)> = Vec::new();
        for &pid in listed.iter().filter(|it| self.listed.binary_search(it).is_err()) {
            let stat = self.proc.join(format!("{pid}/stat"));
            let stat = File::At(stat).read(&mut self.buffer).ok().and_then(Stat::parse);
            new.extend(stat.map(|it| (pid, it.parent)));
        }
        loop {
            let ours = |pid: u32| self.processes.iter().any(|it| it.pid == pid);
            let Some(at) = new.iter().position(|it| !ours(it.0) && ours(it.1)) else { break };
            let (pid, _) = new.swap_remove(at);
            self.adopt(pid);
        }
        self.listed = listed;
        let cost = thread_time().saturating_sub(before);
        self.listing.spent(now.at, cost);
        self.spent_apart += cost;
    }

    /// Adds up what the living use, and forgets the others.
    fn sums(&mut self) -> Sums {
        let mut sums = Sums::default();
        let (buffer, with_io) = (&mut self.buffer, self.no_io.is_none());
        self.processes.retain(|it| {
            let Some(stat) = it.stat.read(buffer).ok().and_then(Stat::parse) else { return false };
            let all = &mut sums.stat;
            all.minor_faults = all.minor_faults.saturating_add(stat.minor_faults);
            all.major_faults = all.major_faults.saturating_add(stat.major_faults);
            all.ticks = all.ticks.saturating_add(stat.ticks);
            all.threads += stat.threads;
            all.resident_pages = all.resident_pages.saturating_add(stat.resident_pages);
            if with_io && let Ok(io) = it.io.read(buffer) {
                let of = |name: &str| number_of(io, name).unwrap_or(0);
                sums.read_bytes = sums.read_bytes.saturating_add(of("read_bytes"));
                sums.written_bytes = sums.written_bytes.saturating_add(of("write_bytes"));
            }
            true
        });
        sums
    }

    /// Bytes swapped out: a slower file, asked once a second and only where there is swap.
    fn swapped(&mut self, now: Moment) -> Option<f64> {
        if !self.has_swap {
            return Some(0.0);
        }
        if self.swap.is_due(now.at) {
            let before = thread_time();
            let mut kilobytes = 0;
            for process in &self.processes {
                let path = self.proc.join(format!("{}/status", process.pid));
                if let Ok(text) = File::At(path).read(&mut self.buffer) {
                    kilobytes += number_of(text, "VmSwap").unwrap_or(0);
                }
            }
            self.swapped = Some(kilobytes as f64 * 1024.0);
            let cost = thread_time().saturating_sub(before);
            self.swap.spent(now.at, cost);
            self.spent_apart += cost;
        }
        self.swapped
    }
}

/// All processes there are.
fn pids(proc: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(proc) else { return Vec::new() };
    entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok()).collect()
}

impl Reader for Tree {
    fn columns(&self) -> Vec<String> {
        let waiting: &[&str] = if self.waiting.is_ok() { &WAITING } else { &[] };
        let storage: &[&str] = if self.no_io.is_none() { &STORAGE } else { &[] };
        [&COLUMNS, waiting, storage].concat().into_iter().map(str::to_owned).collect()
    }

    fn fastest(&self) -> Duration {
        OF_TICKS
    }

    /// Most of all: a tree may have hundreds of processes.
    fn part(&self) -> f64 {
        0.4
    }

    fn spent_apart(&self) -> Duration {
        self.spent_apart
    }

    fn said(&mut self) -> Option<Value> {
        self.files.said()
    }

    fn read(&mut self, now: Moment, out: &mut [Option<f64>]) -> bool {
        self.spent_apart = Duration::ZERO;
        self.find_new(now);
        let pids = self.processes.iter().map(|it| it.pid);
        self.spent_apart += self.files.look(now, &self.proc, pids, &mut self.buffer);
        let sums = self.sums();
        let n = self.processes.len();
        let alive = |value: f64| (n > 0).then_some(value);
        let swapped = self.swapped(now);
        let waited = match &mut self.waiting {
            Ok(waiting) => {
                let pids = self.processes.iter().map(|it| it.pid);
                let (waited, cost) = waiting.look(now, &self.proc, pids, &mut self.buffer);
                self.spent_apart += cost;
                Some(waited)
            }
            Err(_) => None,
        };
        let (at, stat, growths) = (now.at, &sums.stat, &mut self.growths);
        let rate = |growth: &mut Growth, total: u64| growth.per_second(at, alive(total as f64));
        let mut values = vec![
            rate(&mut growths.cpu, stat.ticks).map(|it| it * self.tick_seconds),
            Some(n as f64),
            alive(stat.threads as f64),
            alive(stat.resident_pages as f64 * self.page_bytes),
            swapped.and_then(alive),
            rate(&mut growths.minor, stat.minor_faults).map(f64::round),
            rate(&mut growths.major, stat.major_faults),
        ];
        values.extend(waited);
        values.push(rate(&mut growths.read, sums.read_bytes).map(f64::round));
        values.push(rate(&mut growths.written, sums.written_bytes).map(f64::round));
        for (out, value) in out.iter_mut().zip(values) {
            *out = value;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn a_name_may_hold_anything() {
        let text = b"42 (a) R 1) (x) S 7 42 42 0 -1 4194560 100 10 5 1 30 20 4 3 20 0 9 0 777 123456 2048 184";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            stat,
            Stat {
                parent: 7,
                minor_faults: 110,
                major_faults: 6,
                ticks: 57,
                threads: 9,
                resident_pages: 2048
            }
        );
        let dead = String::from_utf8_lossy(text).replace(") S", ") Z");
        let dead = Stat::parse(dead.as_bytes()).unwrap();
        assert_eq!((dead.threads, dead.ticks), (0, 57), "what it used is still known");
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        assert_eq!(Stat::parse(b"42 (python) S 7 42"), None);
        assert_eq!(Stat::parse(b""), None);
    }
}
