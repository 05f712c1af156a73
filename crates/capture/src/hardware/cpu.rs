//! How busy the cores are, how many threads want one, and how fast they run.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::text::{Buffer, Growth, Kept, lines, number_in, number_of, numbers, word_of};
use super::{Machine, Moment, Opened, Reader};

/// The kernel counts these in ticks of 10 ms: over less than some of them a share is mere noise.
pub const OF_TICKS: Duration = Duration::from_millis(40);

pub fn open(machine: &Machine, root_pid: u32, opened: &mut Opened) {
    let host = word_of(&machine.proc.join("sys/kernel/hostname"));
    opened.facts.insert("host".to_owned(), json!(host.unwrap_or_else(|| "host".to_owned())));
    let cores = Cores::open(machine);
    if let Ok(cores) = &cores {
        opened.facts.insert("cores".to_owned(), json!(cores.names.len()));
    }
    let status = std::fs::read(machine.proc.join(format!("{root_pid}/status"))).unwrap_or_default();
    if let Some(allowed) = allowed(&status) {
        opened.facts.insert("cores_allowed".to_owned(), json!(allowed));
    }
    opened.add("cpu", cores);
    opened.add("cpu/clock", Clock::open(machine));
}

/// How many cores a process may run on: `Cpus_allowed_list: 0-3,8`.
fn allowed(status: &[u8]) -> Option<u64> {
    let text = lines(status).find_map(|it| it.strip_prefix(b"Cpus_allowed_list:"))?;
    let text = std::str::from_utf8(text).ok()?.trim();
    text.split(',').try_fold(0, |sum, part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let n = to.parse::<u64>().ok()?.checked_sub(from.parse().ok()?)?.checked_add(1)?;
        Some(sum + n)
    })
}

/// `/proc/stat`: ticks of each core by what it did, and how many threads are ready to run.
struct Cores {
    file: Kept,
    buffer: Buffer,
    names: Vec<u64>,
    /// Of all cores, then of each.
    last: Vec<Ticks>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ticks {
    busy: u64,
    /// Another guest of the same machine ran.
    stolen: u64,
    all: u64,
}

impl Ticks {
    /// `user nice system idle iowait irq softirq steal`; guests' time is in user's already.
    fn of(line: &[u8]) -> Ticks {
        let mut it = Ticks::default();
        for (at, ticks) in numbers(line).take(8).enumerate() {
            it.all += ticks;
            match at {
                3 | 4 => (),
                7 => it.stolen = ticks,
                _ => it.busy += ticks,
            }
        }
        it
    }

    /// Shares busy and stolen since; unknown where the clock of ticks stood still or went back.
    fn since(self, before: Ticks) -> Option<(f64, f64)> {
        let all = self.all.checked_sub(before.all).filter(|&it| it > 0)? as f64;
        let share = |now: u64, before: u64| (now.saturating_sub(before) as f64 / all).min(1.0);
        Some((share(self.busy, before.busy), share(self.stolen, before.stolen)))
    }
}

impl Cores {
    fn open(machine: &Machine) -> Result<Cores, String> {
        let mut buffer = Buffer::default();
        let file = Kept::try_open(&machine.proc.join("stat"), &mut buffer)?;
        let text = file.read(&mut buffer).map_err(|it| it.to_string())?;
        let names = cores(text).filter_map(|(core, _)| core).collect();
        Ok(Cores { file, buffer, names, last: Vec::new() })
    }
}

/// Lines of cores: `None` is all of them.
fn cores(text: &[u8]) -> impl Iterator<Item = (Option<u64>, &[u8])> {
    let of_cores = lines(text).map_while(|it| it.strip_prefix(b"cpu"));
    of_cores.map(|it| {
        let digits = it.iter().take_while(|it| it.is_ascii_digit()).count();
        (numbers(&it[..digits]).next(), &it[digits..])
    })
}

impl Reader for Cores {
    fn columns(&self) -> Vec<String> {
        let mut columns = ["cpu/runnable", "cpu/stolen", "cpu/all"].map(str::to_owned).to_vec();
        columns.extend(self.names.iter().map(|it| format!("cpu/core {it}")));
        columns
    }

    fn fastest(&self) -> Duration {
        OF_TICKS
    }

    /// The kernel counts all interrupts of all cores for it.
    fn part(&self) -> f64 {
        0.25
    }

    fn read(&mut self, _: Moment, out: &mut [Option<f64>]) -> bool {
        out.fill(None);
        let Ok(text) = self.file.read(&mut self.buffer) else { return true };
        let before = std::mem::take(&mut self.last);
        self.last = vec![Ticks::default(); 1 + self.names.len()];
        for (core, line) in cores(text) {
            // A core may be taken away or added while the run goes on.
            let at = match core {
                None => Some(0),
                Some(core) => self.names.binary_search(&core).ok().map(|it| it + 1),
            };
            let Some(at) = at else { continue };
            self.last[at] = Ticks::of(line);
            let share = before.get(at).and_then(|it| self.last[at].since(*it));
            out[2 + at] = share.map(|it| it.0);
            if at == 0 {
                out[1] = share.map(|it| it.1);
            }
        }
        // The thread that reads this is running, and does not count.
        out[0] = number_of(text, "procs_running").map(|it| it.saturating_sub(1) as f64);
        true
    }
}

/// The clocks of the cores, as the kernel last set or saw them.
struct Clock {
    files: Vec<Kept>,
    buffer: Buffer,
}

/// So many stand for all: each read may ask another core.
const MOST_CLOCKS: usize = 16;

impl Clock {
    fn open(machine: &Machine) -> Result<Clock, String> {
        let folder = machine.sys.join("devices/system/cpu");
        let path = |core: usize| folder.join(format!("cpu{core}/cpufreq/scaling_cur_freq"));
        let files: Vec<PathBuf> = (0..4096).map(path).take_while(|it| it.exists()).collect();
        let step = files.len().div_ceil(MOST_CLOCKS).max(1);
        let files: Vec<Kept> =
            files.iter().step_by(step).filter_map(|it| Kept::open(it).ok()).collect();
        if files.is_empty() || number_in(&path(0)).is_none() {
            return Err("the kernel shows no clocks (cpufreq), as in most virtual machines".into());
        }
        Ok(Clock { files, buffer: Buffer::default() })
    }
}

impl Reader for Clock {
    fn columns(&self) -> Vec<String> {
        vec!["cpu/clock".to_owned()]
    }

    fn fastest(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn read(&mut self, _: Moment, out: &mut [Option<f64>]) -> bool {
        let (mut sum, mut n) = (0.0, 0);
        for file in &self.files {
            if let Ok(text) = file.read(&mut self.buffer)
                && let Some(khz) = numbers(text).next()
            {
                sum += khz as f64 / 1000.0;
                n += 1;
            }
        }
        out[0] = (n > 0).then(|| (sum / f64::from(n)).round());
        true
    }
}

/// Shares of time from a total in microseconds.
pub fn share_of_us(growth: &mut Growth, now: Moment, total_us: Option<u64>) -> Option<f64> {
    let per_second = growth.per_second(now.at, total_us.map(|it| it as f64))?;
    Some((per_second / 1e6).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::{Ticks, allowed, cores};

    #[test]
    fn ticks_become_shares() {
        let before = Ticks::of(b" 100 0 50 800 50 0 0 10 0 0");
        let after = Ticks::of(b" 130 0 60 840 60 0 0 20 30 0");
        assert_eq!(after.since(before), Some((0.4, 0.1)));
        assert_eq!(after.since(after), None, "no tick, nothing known");
        assert_eq!(before.since(after), None, "the clock went back");
    }

    #[test]
    fn lines_of_cores_end_where_others_begin() {
        let text = b"cpu  1 2 3\ncpu0 4 5\ncpu12 6 7\nintr 8\ncpu99 1";
        let found: Vec<_> = cores(text).map(|it| it.0).collect();
        assert_eq!(found, [None, Some(0), Some(12)]);
    }

    #[test]
    fn allowed_cores_are_counted() {
        assert_eq!(allowed(b"Name:\tx\nCpus_allowed_list:\t0-3,8\n"), Some(5));
        assert_eq!(allowed(b"Cpus_allowed_list:\t0\n"), Some(1));
        assert_eq!(allowed(b"Cpus_allowed_list:\t3-1\n"), None);
        assert_eq!(allowed(b"Name:\tx\n"), None);
    }
}
