//! The runs that can be looked at: opened when first asked for, a few at a time kept open.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use session::{Bytes, OpenError, Progress, Run, Session};

/// A comparison needs two; one more, so that going back does not read again.
const KEPT_OPEN: usize = 3;

/// All runs below the paths that the user named.
#[derive(Debug, Default)]
pub struct Runs {
    entries: Vec<Arc<Entry>>,
    clock: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub name: String,
    pub path: PathBuf,
    state: Mutex<State>,
    /// When it was last asked for; what was not for longest is closed first.
    used: AtomicU64,
}

#[derive(Debug)]
enum State {
    Unopened,
    Opening(Opening),
    Ready { session: Arc<Session>, seconds: f64 },
    Failed(String),
}

#[derive(Debug, Clone)]
struct Opening {
    since: Instant,
    phase: String,
    /// Of files that are read to their end.
    bytes: u64,
    total_bytes: u64,
    /// The file that is being read.
    reading: Option<Bytes>,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub state: &'static str,
    pub phase: String,
    pub bytes: u64,
    pub total_bytes: u64,
    pub seconds: f64,
    pub error: Option<String>,
}

impl Runs {
    /// The runs below each path, newest first.
    pub fn find(paths: &[PathBuf]) -> Result<Runs, OpenError> {
        let mut runs = Runs::default();
        for path in paths {
            let newest = Run::find(path)?;
            runs.add(newest.name.clone(), path.clone(), State::Unopened);
            for other in &newest.others {
                let name = other.strip_prefix(path).unwrap_or(other).display().to_string();
                runs.add(name, other.clone(), State::Unopened);
            }
        }
        runs.tell_apart();
        Ok(runs)
    }

    /// Profilers call many runs alike: then the folder that the user named says which it is.
    fn tell_apart(&mut self) {
        let names: Vec<String> = self.entries.iter().map(|it| it.name.clone()).collect();
        for entry in &mut self.entries {
            let is_shared = names.iter().filter(|it| **it == entry.name).count() > 1;
            let folder = entry.path.file_name().map(|it| it.to_string_lossy().into_owned());
            if let (true, Some(entry), Some(folder)) = (is_shared, Arc::get_mut(entry), folder) {
                entry.name = if entry.name == folder {
                    entry.path.display().to_string()
                } else {
                    format!("{folder} · {}", entry.name)
                };
            }
        }
    }

    /// A run that is open already, as the demo's.
    pub fn opened(session: Session) -> Runs {
        let mut runs = Runs::default();
        let (name, path) = (session.run.name.clone(), session.run.path.clone());
        runs.add(name, path, State::Ready { session: Arc::new(session), seconds: 0.0 });
        runs
    }

    fn add(&mut self, name: String, path: PathBuf, state: State) {
        let entry = Entry { name, path, state: Mutex::new(state), used: AtomicU64::new(0) };
        self.entries.push(Arc::new(entry));
    }

    pub(crate) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// How far a run is; opens it where nobody did. `None`: there is no such run.
    pub(crate) fn status(&self, run: usize) -> Option<Status> {
        let entry = self.entries.get(run)?;
        self.open(entry);
        Some(entry.status())
    }

    /// The run, if it is open; opens it where nobody did.
    pub(crate) fn session(&self, run: usize) -> Option<Result<Arc<Session>, Status>> {
        let entry = self.entries.get(run)?;
        self.open(entry);
        Some(match &*entry.state() {
            State::Ready { session, .. } => Ok(Arc::clone(session)),
            other => Err(describe(other)),
        })
    }

    fn open(&self, entry: &Arc<Entry>) {
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        {
            let mut state = entry.state();
            if !matches!(*state, State::Unopened) {
                return;
            }
            *state = State::Opening(Opening {
                since: Instant::now(),
                phase: "looking for files".to_owned(),
                bytes: 0,
                total_bytes: 0,
                reading: None,
            });
        }
        self.close_some(entry);
        let entry = Arc::clone(entry);
        // Not in the runtime: reading uses all cores for as long as it takes.
        thread::spawn(move || entry.read());
    }

    fn close_some(&self, but: &Arc<Entry>) {
        let mut open: Vec<&Arc<Entry>> = self
            .entries
            .iter()
            .filter(|it| !Arc::ptr_eq(it, but) && it.can_be_reopened())
            .collect();
        open.sort_by_key(|it| std::cmp::Reverse(it.used.load(Ordering::Relaxed)));
        for entry in open.into_iter().skip(KEPT_OPEN - 1) {
            *entry.state() = State::Unopened;
        }
    }
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    pub(crate) fn status(&self) -> Status {
        describe(&self.state())
    }

    /// The demo lies in no file.
    fn can_be_reopened(&self) -> bool {
        matches!(*self.state(), State::Ready { .. }) && self.path.exists()
    }

    fn read(&self) {
        let since = Instant::now();
        let opened =
            std::panic::catch_unwind(|| Session::open_with(&self.path, &|it| self.say(it)));
        *self.state() = match opened {
            Ok(Ok(session)) => {
                State::Ready { session: Arc::new(session), seconds: since.elapsed().as_secs_f64() }
            }
            Ok(Err(error)) => State::Failed(error.to_string()),
            Err(_) => State::Failed("this profile broke the reader: please report it".to_owned()),
        };
    }

    fn say(&self, progress: Progress<'_>) {
        if let State::Opening(opening) = &mut *self.state() {
            match progress {
                Progress::Found { total_bytes } => opening.total_bytes = total_bytes,
                Progress::Reading { file, bytes } => {
                    let name = file.file_name().map(|it| it.to_string_lossy().into_owned());
                    opening.phase = format!("reading {}", name.unwrap_or_default());
                    let before = opening.reading.replace(Arc::clone(bytes));
                    opening.bytes += before.map_or(0, |it| it.size() as u64);
                }
                Progress::Sorting => {
                    opening.phase = "sorting events".to_owned();
                    opening.bytes = opening.total_bytes;
                    opening.reading = None;
                }
            }
        }
    }
}

fn describe(state: &State) -> Status {
    let blank = Status {
        state: "unopened",
        phase: String::new(),
        bytes: 0,
        total_bytes: 0,
        seconds: 0.0,
        error: None,
    };
    match state {
        State::Unopened => blank,
        State::Opening(it) => Status {
            state: "opening",
            phase: it.phase.clone(),
            // Unzipped, a file is larger than it lies on the disk.
            bytes: it.total_bytes.min(it.bytes + it.reading.as_ref().map_or(0, |it| it.n_done())),
            total_bytes: it.total_bytes,
            seconds: it.since.elapsed().as_secs_f64(),
            ..blank
        },
        State::Ready { seconds, .. } => Status { state: "ready", seconds: *seconds, ..blank },
        State::Failed(error) => Status { state: "failed", error: Some(error.clone()), ..blank },
    }
}
