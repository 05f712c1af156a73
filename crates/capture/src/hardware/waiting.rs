//! How long threads were ready to run and got no core.
//!
//! The kernel counts it for each thread (`/proc/PID/task/TID/schedstat`). A step is held up by as
//! much as the thread that waited most: others wait for it, or wait at the same time.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::text::{Buffer, Kept, numbers};
use super::{BUDGET, Moment, Rhythm, thread_time};

#[derive(Debug)]
pub struct Waiting {
    rhythm: Rhythm,
    last: Option<Instant>,
    /// By thread, in nanoseconds since it began.
    waited_ns: HashMap<u32, u64>,
}

impl Waiting {
    pub fn open(proc: &Path, root_pid: u32, buffer: &mut Buffer) -> Result<Waiting, String> {
        let path = proc.join(format!("{root_pid}/schedstat"));
        let file = Kept::try_open(&path, buffer)?;
        let text = file.read(buffer).map_err(|it| it.to_string())?;
        // A process that was started has run; a kernel that does not count says zeros.
        if numbers(text).next().unwrap_or(0) == 0 {
            return Err("the kernel does not count it (schedstats)".to_owned());
        }
        Ok(Waiting {
            // A file for each thread, of which there may be hundreds.
            rhythm: Rhythm::new(Duration::from_millis(100), BUDGET / 4.0),
            last: None,
            waited_ns: HashMap::new(),
        })
    }

    /// The share of the time since the last look in which the thread that waited most did; `None`
    /// where it is not time to look, or too early to tell. Also answers what looking cost.
    pub fn look(
        &mut self,
        now: Moment,
        proc: &Path,
        pids: impl Iterator<Item = u32>,
        buffer: &mut Buffer,
    ) -> (Option<f64>, Duration) {
        if !self.rhythm.is_due(now.at) {
            return (None, Duration::ZERO);
        }
        let before = thread_time();
        let last = self.last.replace(now.at);
        let known = std::mem::take(&mut self.waited_ns);
        let mut most_ns = None;
        for pid in pids {
            let folder = proc.join(pid.to_string()).join("task");
            let Ok(threads) = std::fs::read_dir(&folder) else { continue };
            for thread in threads.filter_map(|it| it.ok()) {
                let Some(id) = thread.file_name().to_str().and_then(|it| it.parse().ok()) else {
                    continue;
                };
                let Ok(file) = Kept::open(&thread.path().join("schedstat")) else { continue };
                // Ran, waited, how often.
                let waited = file.read(buffer).ok().and_then(|it| numbers(it).nth(1));
                let Some(waited) = waited else { continue };
                self.waited_ns.insert(id, waited);
                // What a thread waited before it was first seen is not of this time.
                if let Some(before) = known.get(&id) {
                    most_ns = most_ns.max(Some(waited.saturating_sub(*before)));
                }
            }
        }
        let cost = thread_time().saturating_sub(before);
        self.rhythm.spent(now.at, cost);
        let passed = last.map(|it| now.at.saturating_duration_since(it).as_secs_f64());
        let share = most_ns
            .zip(passed.filter(|&it| it > 0.0))
            .map(|(waited, passed)| (waited as f64 / 1e9 / passed).min(1.0));
        (share, cost)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::super::text::Buffer;
    use super::{Moment, Waiting};

    /// Threads with what they ran and waited, in milliseconds.
    fn write(proc: &Path, threads: &[(u32, u64, u64)]) {
        let pid = threads[0].0;
        for (thread, ran, waited) in threads {
            let folder = proc.join(format!("{pid}/task/{thread}"));
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("{}000000 {}000000 5\n", ran, waited);
            std::fs::write(folder.join("schedstat"), &text).unwrap();
            if *thread == pid {
                std::fs::write(proc.join(format!("{pid}/schedstat")), text).unwrap();
            }
        }
    }

    #[test]
    fn the_thread_that_waited_most_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (proc, mut buffer) = (folder.path(), Buffer::default());
        write(proc, &[(7, 100, 5000), (8, 1, 0)]);
        let mut waiting = Waiting::open(proc, 7, &mut buffer).unwrap();
        let start = Instant::now();
        let mut look = |seconds: f64| {
            let at = start + Duration::from_secs_f64(seconds);
            waiting.look(Moment { unix_ns: 0, at }, proc, [7, 9].into_iter(), &mut buffer).0
        };
        assert_eq!(look(0.0), None, "nothing to compare with");
        write(proc, &[(7, 100, 5000), (8, 1, 400), (10, 1, 900)]);
        // Of the thread that is new it is not known when it waited.
        assert_eq!(look(60.0), Some(0.4 / 60.0));
        assert_eq!(look(60.001), None, "not each time");
        write(proc, &[(7, 100, 65_000), (8, 1, 400), (10, 1, 900)]);
        assert_eq!(look(120.0), Some(1.0));
    }

    #[test]
    fn a_kernel_that_does_not_count_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut buffer = Buffer::default();
        assert!(Waiting::open(folder.path(), 7, &mut buffer).is_err());
        write(folder.path(), &[(7, 0, 0)]);
        let why = Waiting::open(folder.path(), 7, &mut buffer).unwrap_err();
        assert!(why.contains("does not count"), "{why}");
    }
}
