//! What is recorded beside a run, from outside its processes: hardware, and stacks of Python.
//!
//! ```text
//! hook      .hook/stacks-PID: "soon" … "now" … removed      when stacks are wanted
//! beside    .hook/outside-PID                                ready: the hook need not sample
//! ```
//!
//! From inside, a sampler waits for Python's lock and so sees a thread only where that thread
//! lets go of it, which hides just the short callbacks of input pipelines. From outside it does not.
//! Where the system does not allow that, the hook samples from inside.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::hardware::{self, Sampler};
use crate::pid::{self, Wanted};
use crate::private;

/// How often to look whether stacks are wanted.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// After a capture, and in runs without one after a while, fewer samples are enough: some a second
/// for a minute, which shows whether memory grows, then one.
const AT_MOST_FAST: Duration = Duration::from_secs(600);
const SLOWER: Duration = Duration::from_millis(250);
const SLOWER_FOR: Duration = Duration::from_secs(60);
const SLOWLY: Duration = Duration::from_secs(1);
/// A driver or a file system may take any time to answer.
const LONGEST_STOP: Duration = Duration::from_secs(5);
/// More processes than this are never captured at once.
const MOST_PROCESSES: usize = 64;

pub(crate) struct Beside {
    over: Arc<AtomicBool>,
    /// What could not be written, when all is done.
    done: Receiver<Option<io::Error>>,
}

impl Beside {
    /// Starts with the command; `hook` is where the processes say what they want.
    pub fn start(run: &Path, hook: Option<&Path>, pid: u32) -> Beside {
        let over = Arc::new(AtomicBool::new(false));
        let (run, hook) = (run.to_owned(), hook.map(Path::to_owned));
        let is_over = Arc::clone(&over);
        // A run without samples is still a run: the report says what is missing.
        let (tell, done) = mpsc::channel();
        let _ = std::thread::Builder::new().name("beside".to_owned()).spawn(move || {
            let _ = tell.send(record(&run, hook.as_deref(), pid, &is_over));
        });
        Beside { over, done }
    }

    /// What could not be written. The command has ended, and whoever waits for it does not wait
    /// for a driver that hangs.
    pub fn stop(self) -> Option<io::Error> {
        self.over.store(true, Ordering::Relaxed);
        self.done.recv_timeout(LONGEST_STOP).ok().flatten()
    }
}

fn record(run: &Path, hook: Option<&Path>, pid: u32, over: &AtomicBool) -> Option<io::Error> {
    let (hardware, failed) = match Sampler::start(run, pid, hardware::EVERY) {
        Ok(it) => (Some(it), None),
        Err(hardware::SampleError::File { source, .. }) => (None, Some(source)),
        Err(_) => (None, None),
    };
    let began = Instant::now();
    let (mut slowed, mut captured): (Option<(Duration, Instant)>, bool) = (None, false);
    let sampled = &Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        while !over.load(Ordering::Relaxed) {
            let asking = hook.map(asking).unwrap_or_default();
            for &pid in &asking {
                let mut known = lock(sampled);
                if known.len() >= MOST_PROCESSES || !known.insert(pid) {
                    continue;
                }
                captured = true;
                let Some(hook) = hook else { continue };
                scope.spawn(move || {
                    stacks_of(pid, run, hook, over);
                    // It may ask again, for a window that replaces this one.
                    lock(sampled).remove(&pid);
                });
            }
            let done = captured && asking.is_empty();
            let next = match slowed {
                None if done || began.elapsed() > AT_MOST_FAST => Some(SLOWER),
                Some((SLOWER, since)) if since.elapsed() > SLOWER_FOR => Some(SLOWLY),
                _ => None,
            };
            if let Some(every) = next {
                slowed = Some((every, Instant::now()));
                if let Some(it) = &hardware {
                    it.slow_down(every);
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    });
    failed.or(hardware.and_then(Sampler::stop))
}

/// The processes that want their stacks sampled.
fn asking(hook: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(hook) else { return Vec::new() };
    entries
        .filter_map(|it| it.ok()?.file_name().to_str()?.strip_prefix("stacks-")?.parse().ok())
        .collect()
}

fn stacks_of(pid: u32, run: &Path, hook: &Path, over: &AtomicBool) {
    let asks = hook.join(format!("stacks-{pid}"));
    let outside: PathBuf = hook.join(format!("outside-{pid}"));
    let wanted = || match fs::read(&asks) {
        _ if over.load(Ordering::Relaxed) => Wanted::NoMore,
        Ok(it) if it == b"now" => Wanted::Now,
        Ok(_) => Wanted::Soon,
        Err(_) => Wanted::NoMore,
    };
    let ready = || {
        let _ = private::write_file(&outside, b"");
    };
    let options = pid::Options { file: "stacks", ..pid::Options::default() };
    // Not allowed, or no Python of a known kind: the hook sees that nobody is ready.
    let _ = pid::sample_when(pid, &options, run, &wanted, &ready);
    let _ = fs::remove_file(outside);
    // A process that cannot be sampled goes on asking until its window ends.
    while wanted() != Wanted::NoMore {
        std::thread::sleep(LOOK_EVERY);
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
