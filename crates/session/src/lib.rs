//! Opens a path and answers questions about what is there.
//!
//! ```text
//! path ─discover─▶ files of one run ─pieces, unzipped─▶ sources ─▶ trace ─▶ tables, timeline
//! ```
//!
//! Nothing is ever written beside the user's files.

pub mod bench;
pub mod compare;
pub mod counter_line;
mod discover;
mod disk;
pub mod edit_diff;
pub mod report;
pub mod spotlight;
mod sql;
pub mod step_times;
pub mod timeline;
pub mod value;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use analyses::Tables;
use sources::{Change, Input, Pieces, Sequence, SourceError};
use trace::{NoteKind, TraceBuilder};

pub use discover::{Run, Unreadable};
pub use disk::{Disk, Files};
pub use sources::BEFORE_MANY_BLOCKS;
pub use sources::Bytes;
pub use sql::{QueryResult, SqlError, SqlLimits, SqlTable, SqlValue, StopFlag, schema};
use timeline::Timeline;

/// One run, opened.
#[derive(Debug)]
pub struct Session {
    pub run: Run,
    tables: Arc<Tables>,
    timeline: OnceLock<Arc<Timeline>>,
}

/// Why a path could not be opened. The path comes last.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no such file or folder\n  path: {}", path.display())]
    Missing { path: PathBuf },
    #[error(
        "no profile in this folder\n  hint: a profile is a file {}\n  path: {}",
        sources::profiles(),
        path.display()
    )]
    NoProfile { path: PathBuf },
    #[error("no profile in this folder, as far as it can be read\n  {unreadable}\n  path: {}", path.display())]
    UnreadableFolder { path: PathBuf, unreadable: Unreadable },
    #[error("{source}\n  file: {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{source}\n  file: {}", path.display())]
    Source { path: PathBuf, source: SourceError },
}

/// How far opening has come.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// What belongs to the run is known: so much is to be read.
    Found {
        total_bytes: u64,
    },
    Reading {
        file: &'a Path,
        bytes: &'a Bytes,
    },
    /// All files are read: sorting, nesting, joining.
    Sorting,
}

impl Session {
    /// Opens a file, a run folder or a log folder; of several runs the newest.
    pub fn open(path: &Path) -> Result<Session, OpenError> {
        Session::open_with(path, &|_| ())
    }

    pub fn open_with(path: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Session, OpenError> {
        Session::open_run(Run::find(path)?, progress)
    }

    /// Opens a run that was found before.
    pub fn open_run(run: Run, progress: &dyn Fn(Progress<'_>)) -> Result<Session, OpenError> {
        Session::open_run_from(&Disk, run, progress)
    }

    /// Opens a path with files that need not be those of the disk.
    pub fn open_from(
        files: &dyn Files,
        path: &Path,
        progress: &dyn Fn(Progress<'_>),
    ) -> Result<Session, OpenError> {
        Session::open_run_from(files, Run::find(path)?, progress)
    }

    fn open_run_from(
        files: &dyn Files,
        run: Run,
        progress: &dyn Fn(Progress<'_>),
    ) -> Result<Session, OpenError> {
        let sizes = run.files.iter().filter_map(|it| it.metadata().ok()).map(|it| it.len());
        progress(Progress::Found { total_bytes: sizes.sum() });
        let mut out = TraceBuilder::new();
        let mut unreadable: Vec<String> = run.unreadable.iter().map(|it| it.to_string()).collect();
        let mut first_error = None;
        let mut read_any = false;
        for file in &run.files {
            match read_file(files, file, &mut out, progress) {
                Ok(()) => read_any = true,
                Err(error) => {
                    // One host's broken file must not hide the others.
                    let why = error.to_string();
                    let why = why.lines().next().unwrap_or_default();
                    unreadable.push(format!("{}: {why}", below(&run.path, file)));
                    first_error.get_or_insert(error);
                }
            }
        }
        if run.is_log_only() && run.path.is_dir() && out.n_scalars() == 0 {
            return Err(OpenError::NoProfile { path: run.path });
        }
        if let Some(error) = first_error.filter(|_| !read_any) {
            return Err(error);
        }
        out.note_many(NoteKind::TooManyFiles, run.n_left_out as u64, || {
            format!("event files, of {} that belong here", run.files.len() + run.n_left_out)
        });
        name_runs(&mut out, &run.log_folder);
        out.note_many(NoteKind::UnreadableFile, unreadable.len() as u64, || list(&unreadable));
        progress(Progress::Sorting);
        let tables = Arc::new(Tables::new(Arc::new(out.finish())));
        Ok(Session { run, tables, timeline: OnceLock::new() })
    }

    /// Opens bytes that are already in memory, as those of the demo.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Session, OpenError> {
        let path = PathBuf::from(name);
        let mut out = TraceBuilder::new();
        let input = Input { bytes: Arc::new(bytes), path: &path };
        sources::read(&input, &mut out)
            .map_err(|source| OpenError::Source { path: path.clone(), source })?;
        let log_folder = path.parent().unwrap_or(Path::new("")).to_owned();
        name_runs(&mut out, &log_folder);
        let run = Run {
            folder: path.clone(),
            name: name.to_owned(),
            files: Vec::new(),
            log_folder,
            n_left_out: 0,
            unreadable: Vec::new(),
            others: Vec::new(),
            path: path.clone(),
        };
        let tables = Arc::new(Tables::new(Arc::new(out.finish())));
        Ok(Session { run, tables, timeline: OnceLock::new() })
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    pub fn trace(&self) -> &trace::Trace {
        self.tables.trace()
    }

    /// About how much memory the run takes while it is open, its timeline included; mapped files
    /// are the system's to keep or to drop.
    pub fn held_bytes(&self) -> u64 {
        /// 33 bytes of columns, 8 of the timeline's index, and some for edges and tables.
        const BYTES_OF_EVENT: usize = 48;
        let trace = self.trace();
        let texts: usize = trace.strings.iter().map(|(_, text)| text.len() + 32).sum();
        let counters = size_of_val(trace.counters.as_slice());
        (trace.events.len() * BYTES_OF_EVENT + counters + texts) as u64
    }

    /// The run's timeline, made when it is first asked for.
    pub fn timeline(&self) -> Arc<Timeline> {
        self.timeline.get_or_init(|| Arc::new(Timeline::new(self.tables.clone()))).clone()
    }

    /// Answers a query over the tables of [`schema`].
    pub fn sql(&self, query: &str, limits: &SqlLimits) -> Result<QueryResult, SqlError> {
        self.sql_until(query, limits, &StopFlag::default())
    }

    /// The same, unless `stop` is raised before there is an answer.
    pub fn sql_until(
        &self,
        query: &str,
        limits: &SqlLimits,
        stop: &StopFlag,
    ) -> Result<QueryResult, SqlError> {
        sql::query(&self.tables, query, limits, stop)
    }
}

/// As TensorBoard names them: by where they lie below the log folder, which itself is `.`.
fn name_runs(out: &mut TraceBuilder, log_folder: &Path) {
    out.name_runs(|run| match Path::new(run).strip_prefix(log_folder) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.to_string_lossy().replace('\\', "/"),
        Err(_) => run.to_owned(),
    });
}

/// A path as seen from the run's, so that a note stays short.
fn below<'a>(run: &Path, file: &'a Path) -> std::path::Display<'a> {
    let below = file.strip_prefix(run).ok().filter(|it| !it.as_os_str().is_empty());
    below.unwrap_or(file).display()
}

/// As many files are named in one note.
const MOST_NAMED: usize = 5;

fn list(files: &[String]) -> String {
    let named = &files[..files.len().min(MOST_NAMED)];
    match files.len() - named.len() {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
}

fn read_file(
    files: &dyn Files,
    path: &Path,
    out: &mut TraceBuilder,
    progress: &dyn Fn(Progress<'_>),
) -> Result<(), OpenError> {
    let io_error = |source| OpenError::Io { path: path.to_owned(), source };
    let Loaded { bytes, unzipped } = load_part(files, path).map_err(io_error)?;
    if let Some(Unzipped { damage, change }) = unzipped {
        if let Some(damage) = damage {
            let kind = match damage.kind() {
                io::ErrorKind::UnexpectedEof => NoteKind::CutOff,
                _ if damage.raw_os_error().is_some() => NoteKind::LostBytes,
                _ => NoteKind::Malformed,
            };
            out.note(kind, || format!("while unzipping {}: {damage}", path.display()));
        }
        if change != Change::None {
            let path = path.display();
            out.note(NoteKind::FileChanged, || format!("{path} was modified while it was read"));
        }
    }
    progress(Progress::Reading { file: path, bytes: &bytes });
    let input = Input { bytes, path };
    sources::read(&input, out)
        .map(|_| ())
        .map_err(|source| OpenError::Source { path: path.to_owned(), source })
}

/// A file's bytes: those of the disk, or unzipped into memory.
pub fn load(path: &Path) -> io::Result<Bytes> {
    let Loaded { bytes, unzipped } = load_part(&Disk, path)?;
    match unzipped.and_then(|it| it.damage) {
        Some(damage) => Err(damage),
        None => Ok(bytes),
    }
}

/// A file's bytes, and how they came if they were zipped.
struct Loaded {
    bytes: Bytes,
    unzipped: Option<Unzipped>,
}

struct Unzipped {
    /// What stopped it early.
    damage: Option<io::Error>,
    /// What happened to the file meanwhile.
    change: Change,
}

fn load_part(files: &dyn Files, path: &Path) -> io::Result<Loaded> {
    let file = files.open(path)?;
    let (mut head, pieces) = (Vec::new(), Pieces::new(&*file));
    let head = pieces.read(0..2, &mut head);
    if let Some(fault) = pieces.first_fault().filter(|_| head.is_empty()) {
        return Err(io::Error::other(fault.to_owned()));
    }
    if head != [0x1F, 0x8B] {
        return Ok(Loaded { bytes: file, unzipped: None });
    }
    let (bytes, damage) = unzip(Sequence::new(&pieces), file.size())?;
    let change = file.change();
    Ok(Loaded { bytes: Arc::new(bytes), unzipped: Some(Unzipped { damage, change }) })
}

/// Profiles shrink to a tenth, seldom to a thirtieth; zeros to a thousandth.
const MOST_TIMES_LARGER: u64 = 100;
/// What any file may come to: a profile of a few events is mostly names that repeat.
const SMALL_UNZIPPED: u64 = 1 << 20;

fn unzip(zipped: impl Read, size: usize) -> io::Result<(Vec<u8>, Option<io::Error>)> {
    let most = SMALL_UNZIPPED + size as u64 * MOST_TIMES_LARGER;
    let mut bytes = Vec::new();
    let zipped = io::BufReader::with_capacity(ZIPPED_AT_ONCE, zipped);
    let mut unzipped = flate2::bufread::MultiGzDecoder::new(zipped).take(most);
    match unzipped.read_to_end(&mut bytes) {
        // What came before the damage can be read.
        Err(error) if !bytes.is_empty() => Ok((bytes, Some(error))),
        Err(error) => Err(error),
        Ok(_) if bytes.len() as u64 == most => Err(io::Error::other(format!(
            "unzipped it is more than {MOST_TIMES_LARGER} times larger, which no profile is\n  \
             hint: if it is one, unzip it first"
        ))),
        Ok(_) => Ok((bytes, None)),
    }
}

const ZIPPED_AT_ONCE: usize = 256 << 10;
