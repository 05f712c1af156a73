//! The runs that can be looked at: found again and again, opened when first asked for, a few at a
//! time kept open.
//!
//! A log folder grows while training goes on. So whoever asks for the list has the folders
//! searched, a run that could not be read is tried again once its files have changed, and a run's
//! number stays its own.

use std::collections::BTreeSet;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use session::{Bytes, OpenError, Progress, Run, Session};

use crate::limits::Limits;

/// All runs below the paths that the user named.
#[derive(Debug, Default)]
pub struct Runs {
    list: Mutex<List>,
    limits: Limits,
    clock: AtomicU64,
    /// Held by who reads: one run at a time, which uses all cores.
    reading: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct List {
    /// What the user named.
    paths: Vec<PathBuf>,
    /// Every run that was ever found, by its number.
    entries: Vec<Arc<Entry>>,
    /// Numbers of those that are there, by path and newest first.
    order: Vec<usize>,
    searched: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    name: String,
    /// For people, and for opening.
    path: PathBuf,
    /// Where below `path` the run is.
    folder: PathBuf,
    state: Mutex<State>,
    /// When it was last asked for; what was not for longest is closed first.
    used: AtomicU64,
}

#[derive(Debug)]
enum State {
    Unopened,
    Opening(Opening),
    Ready { session: Arc<Session>, seconds: f64 },
    Failed { error: String, since: Instant, files: Stamp },
}

impl State {
    /// Of an open run.
    fn held_bytes(&self) -> Option<u64> {
        match self {
            State::Ready { session, .. } => Some(session.held_bytes()),
            _ => None,
        }
    }
}

/// What tells whether a run's files have changed. None where they cannot be found.
type Stamp = Option<Vec<FileStamp>>;

#[derive(Debug, PartialEq)]
struct FileStamp {
    path: PathBuf,
    n_bytes: u64,
    changed: Option<SystemTime>,
}

/// What failed for another reason than its files, such as a disk that was away, is tried again
/// after so long.
const RETRY_AFTER: Duration = Duration::from_secs(10);

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

/// Whether a run is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunState {
    Unopened,
    Opening,
    Ready,
    Failed,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub state: RunState,
    pub phase: String,
    pub bytes: u64,
    pub total_bytes: u64,
    pub seconds: f64,
    pub error: Option<String>,
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub id: usize,
    pub name: String,
    pub path: PathBuf,
    pub state: RunState,
}

impl Runs {
    /// The runs below each path, newest first.
    pub fn find(paths: &[PathBuf]) -> Result<Runs, OpenError> {
        let mut list = List { paths: paths.to_vec(), ..List::default() };
        let found = paths.iter().map(|it| Run::find(it)).collect::<Result<Vec<Run>, _>>()?;
        list.take(&found);
        list.searched = Some(Instant::now());
        Ok(Runs { list: Mutex::new(list), ..Runs::default() })
    }

    /// A run that is open already, as the demo's.
    pub fn opened(session: Session) -> Runs {
        let (name, path) = (session.run.name.clone(), session.run.path.clone());
        let entry = Entry {
            name,
            folder: path.clone(),
            path,
            state: Mutex::new(State::Ready { session: Arc::new(session), seconds: 0.0 }),
            used: AtomicU64::new(0),
        };
        let list = List { entries: vec![Arc::new(entry)], order: vec![0], ..List::default() };
        Runs { list: Mutex::new(list), ..Runs::default() }
    }

    pub(crate) fn with_limits(self, limits: Limits) -> Runs {
        Runs { limits, ..self }
    }

    fn locked(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(|it| it.into_inner())
    }

    fn entry(&self, run: usize) -> Option<Arc<Entry>> {
        self.locked().entries.get(run).cloned()
    }

    /// The runs that are there now, by path and newest first.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let mut list = self.locked();
        if list.searched.is_some_and(|it| it.elapsed() >= self.limits.search_every) {
            // A path that is away for a while keeps its runs: they are as they were.
            let found: Result<Vec<Run>, _> = list.paths.iter().map(|it| Run::find(it)).collect();
            if let Ok(found) = found {
                list.take(&found);
            }
            list.searched = Some(Instant::now());
        }
        list.lines()
    }

    /// The run, if it is open already.
    pub(crate) fn ready(&self, run: usize) -> Option<Arc<Session>> {
        let entry = self.entry(run)?;
        self.touch(&entry);
        match &*entry.state() {
            State::Ready { session, .. } => Some(Arc::clone(session)),
            _ => None,
        }
    }

    fn touch(&self, entry: &Entry) {
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// How far a run is; opens it where nobody did. `None`: there is no such run.
    ///
    /// Files of a run that failed are looked at: not in the runtime.
    pub(crate) fn status(self: &Arc<Runs>, run: usize) -> Option<Status> {
        let entry = self.entry(run)?;
        self.open(&entry);
        Some(entry.status())
    }

    /// The run, if it is open; opens it where nobody did. Likewise not in the runtime.
    pub(crate) fn session(self: &Arc<Runs>, run: usize) -> Option<Result<Arc<Session>, Status>> {
        let entry = self.entry(run)?;
        self.open(&entry);
        Some(match &*entry.state() {
            State::Ready { session, .. } => Ok(Arc::clone(session)),
            other => Err(describe(other)),
        })
    }

    fn open(self: &Arc<Runs>, entry: &Arc<Entry>) {
        self.touch(entry);
        {
            let mut state = entry.state();
            let wants_reading = match &*state {
                State::Unopened => true,
                State::Opening(_) | State::Ready { .. } => false,
                State::Failed { since, files, .. } => {
                    since.elapsed() >= RETRY_AFTER || *files != entry.stamp()
                }
            };
            if !wants_reading {
                return;
            }
            *state = State::Opening(Opening {
                since: Instant::now(),
                phase: "waiting for another run to be read".to_owned(),
                bytes: 0,
                total_bytes: 0,
                reading: None,
            });
        }
        let (runs, entry) = (Arc::clone(self), Arc::clone(entry));
        // Not in the runtime: reading takes long.
        thread::spawn(move || {
            let _turn = runs.reading.lock().unwrap_or_else(|it| it.into_inner());
            runs.make_room(0);
            let opened = entry.read();
            runs.make_room(opened.held_bytes().unwrap_or(0));
            *entry.state() = opened;
        });
    }

    /// Closes what was not asked for for longest, until one more run of this size can be open.
    fn make_room(&self, n_bytes: u64) {
        let entries = self.locked().entries.clone();
        let mut open: Vec<(&Arc<Entry>, u64)> =
            entries.iter().filter_map(|it| Some((it, it.state().held_bytes()?))).collect();
        open.sort_by_key(|it| std::cmp::Reverse(it.0.used.load(Ordering::Relaxed)));
        let mut bytes = n_bytes;
        for (rank, (entry, held)) in open.into_iter().enumerate() {
            bytes = bytes.saturating_add(held);
            let is_too_much = rank + 1 >= self.limits.runs || bytes > self.limits.run_bytes;
            if is_too_much && entry.can_be_reopened() {
                *entry.state() = State::Unopened;
            }
        }
    }
}

impl List {
    /// Adds what is new of what was found at each path, and remembers which runs there are.
    fn take(&mut self, found: &[Run]) {
        self.order.clear();
        for run in found {
            // A run keeps its path, which also says how it was named; what came later to a
            // folder is named by its own.
            let is_first = !self.entries.iter().any(|it| it.path == run.path);
            let newest = if is_first { &run.path } else { &run.folder };
            let name = if is_first { run.name.clone() } else { below(&run.folder, &run.path) };
            self.add(name, newest, &run.folder);
            for other in &run.others {
                self.add(below(other, &run.path), other, other);
            }
        }
    }

    fn add(&mut self, name: String, path: &Path, folder: &Path) {
        let id = self.entries.iter().position(|it| it.folder == folder).unwrap_or_else(|| {
            self.entries.push(Arc::new(Entry {
                name,
                path: path.to_owned(),
                folder: folder.to_owned(),
                state: Mutex::new(State::Unopened),
                used: AtomicU64::new(0),
            }));
            self.entries.len() - 1
        });
        if !self.order.contains(&id) {
            self.order.push(id);
        }
    }

    fn lines(&self) -> Vec<Listed> {
        let line = |&id: &usize| {
            let it = &self.entries[id];
            Listed { id, name: it.name.clone(), path: it.path.clone(), state: it.status().state }
        };
        let mut lines: Vec<Listed> = self.order.iter().map(line).collect();
        tell_apart(&mut lines);
        lines
    }
}

/// A run's name: where it is below what the user named.
fn below(folder: &Path, path: &Path) -> String {
    folder.strip_prefix(path).unwrap_or(folder).display().to_string()
}

/// Profilers call many runs alike: then the folder that the user named says which it is.
fn tell_apart(lines: &mut [Listed]) {
    let mut names = BTreeSet::new();
    let shared: BTreeSet<String> =
        lines.iter().map(|it| &it.name).filter(|it| !names.insert(*it)).cloned().collect();
    for line in lines.iter_mut().filter(|it| shared.contains(&it.name)) {
        let Some(folder) = line.path.file_name() else { continue };
        let folder = folder.to_string_lossy();
        line.name = match line.name == folder {
            true => line.path.display().to_string(),
            false => format!("{folder} · {}", line.name),
        };
    }
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    fn status(&self) -> Status {
        describe(&self.state())
    }

    fn find(&self) -> Result<Run, OpenError> {
        Run::find_again(&self.path, &self.folder)
    }

    fn stamp(&self) -> Stamp {
        self.find().ok().map(|it| stamp(&it))
    }

    /// The demo lies in no file.
    fn can_be_reopened(&self) -> bool {
        matches!(*self.state(), State::Ready { .. }) && self.path.exists()
    }

    /// What becomes of the run when it is read.
    fn read(&self) -> State {
        let since = Instant::now();
        if let State::Opening(opening) = &mut *self.state() {
            *opening = Opening { since, phase: "looking for files".to_owned(), ..opening.clone() };
        }
        let found = self.find();
        // Before they are read: whatever is written from now on is a change.
        let files = found.as_ref().ok().map(stamp);
        let failed = |error| State::Failed { error, since: Instant::now(), files };
        let open = AssertUnwindSafe(|| Session::open_run(found?, &|it| self.say(it)));
        let opened = std::panic::catch_unwind(open);
        match opened {
            Ok(Ok(session)) => {
                State::Ready { session: Arc::new(session), seconds: since.elapsed().as_secs_f64() }
            }
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => failed("this profile broke the reader: please report it".to_owned()),
        }
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

fn stamp(run: &Run) -> Vec<FileStamp> {
    let of_file = |it: &PathBuf| {
        let about = fs::metadata(it).ok();
        let changed = about.as_ref().and_then(|it| it.modified().ok());
        FileStamp { path: it.clone(), n_bytes: about.map_or(0, |it| it.len()), changed }
    };
    run.files.iter().map(of_file).collect()
}

fn describe(state: &State) -> Status {
    let blank = Status {
        state: RunState::Unopened,
        phase: String::new(),
        bytes: 0,
        total_bytes: 0,
        seconds: 0.0,
        error: None,
    };
    match state {
        State::Unopened => blank,
        State::Opening(it) => Status {
            state: RunState::Opening,
            phase: it.phase.clone(),
            // Unzipped, a file is larger than it lies on the disk.
            bytes: it.total_bytes.min(it.bytes + it.reading.as_ref().map_or(0, |it| it.n_done())),
            total_bytes: it.total_bytes,
            seconds: it.since.elapsed().as_secs_f64(),
            ..blank
        },
        State::Ready { seconds, .. } => {
            Status { state: RunState::Ready, seconds: *seconds, ..blank }
        }
        State::Failed { error, .. } => {
            Status { state: RunState::Failed, error: Some(error.clone()), ..blank }
        }
    }
}
