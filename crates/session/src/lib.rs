//! Opens a path and answers questions about what is there.
//!
//! ```text
//! path ─discover─▶ files of one run ─map, unzip─▶ sources ─▶ trace ─▶ tables, timeline
//! ```
//!
//! Nothing is ever written beside the user's files.

pub mod bench;
mod discover;
pub mod edit_diff;
mod mapped;
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
use sources::{Input, SourceError};
use trace::{NoteKind, TraceBuilder};

pub use discover::Run;
use mapped::Mapped;
pub use sources::Bytes;
pub use sql::{QueryResult, SqlError, SqlLimits, SqlTable, SqlValue, schema};
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
        "no profile in this folder\n  hint: a profile is a file *.xplane.pb, mostly below \
         plugins/profile/<run>; Keras puts that below train/\n  path: {}",
        path.display()
    )]
    NoProfile { path: PathBuf },
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
        let run = Run::find(path)?;
        let sizes = run.files.iter().filter_map(|it| it.metadata().ok()).map(|it| it.len());
        progress(Progress::Found { total_bytes: sizes.sum() });
        let mut out = TraceBuilder::new();
        let mut first_error = None;
        let mut read_any = false;
        for file in &run.files {
            match read_file(file, &mut out, progress) {
                Ok(()) => read_any = true,
                Err(error) => {
                    // One host's broken file must not hide the others.
                    out.note(NoteKind::UnreadableFile, || {
                        error.to_string().lines().next().unwrap_or_default().to_owned()
                    });
                    first_error.get_or_insert(error);
                }
            }
        }
        if run.is_log_only() && run.path.is_dir() && out.n_scalars() == 0 {
            return Err(OpenError::NoProfile { path: path.to_owned() });
        }
        if let Some(error) = first_error.filter(|_| !read_any) {
            return Err(error);
        }
        out.note_many(NoteKind::TooManyFiles, run.n_left_out as u64, || {
            format!("event files, of {} that belong here", run.files.len() + run.n_left_out)
        });
        name_runs(&mut out, &run.log_folder);
        for file in &run.unread {
            let file = file.strip_prefix(&run.path).unwrap_or(file).display();
            out.note(NoteKind::UnreadableFile, || {
                format!(
                    "{file}: PyTorch's profile is kept, and cannot be read yet; Perfetto shows it"
                )
            });
        }
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
            name: name.to_owned(),
            files: Vec::new(),
            log_folder,
            n_left_out: 0,
            unread: Vec::new(),
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

    /// The run's timeline, made when it is first asked for.
    pub fn timeline(&self) -> Arc<Timeline> {
        self.timeline.get_or_init(|| Arc::new(Timeline::new(self.tables.clone()))).clone()
    }

    /// Answers a query over the tables of [`schema`].
    pub fn sql(&self, query: &str, limits: &SqlLimits) -> Result<QueryResult, SqlError> {
        sql::query(&self.tables, query, limits)
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

fn read_file(
    path: &Path,
    out: &mut TraceBuilder,
    progress: &dyn Fn(Progress<'_>),
) -> Result<(), OpenError> {
    let io_error = |source| OpenError::Io { path: path.to_owned(), source };
    let (bytes, damage) = load_part(path).map_err(io_error)?;
    if let Some(damage) = damage {
        let cut = damage.kind() == io::ErrorKind::UnexpectedEof;
        let kind = if cut { NoteKind::CutOff } else { NoteKind::Malformed };
        out.note(kind, || format!("while unzipping {}: {damage}", path.display()));
    }
    progress(Progress::Reading { file: path, bytes: &bytes });
    let input = Input { bytes, path };
    sources::read(&input, out)
        .map(|_| ())
        .map_err(|source| OpenError::Source { path: path.to_owned(), source })
}

/// A file's bytes: mapped, or unzipped into memory.
pub fn load(path: &Path) -> io::Result<Bytes> {
    match load_part(path)? {
        (bytes, None) => Ok(bytes),
        (_, Some(damage)) => Err(damage),
    }
}

/// A file's bytes, and what stopped the unzipping early.
fn load_part(path: &Path) -> io::Result<(Bytes, Option<io::Error>)> {
    // Before it is opened: opening a pipe waits until somebody writes to it.
    let about = path.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("this is no regular file\n  hint: copy it into one"));
    }
    if about.len() == 0 {
        // An empty file cannot be mapped.
        return Ok((Arc::new(Vec::new()), None));
    }
    let mapped = Mapped::open(path)?;
    if mapped.starts_with(&[0x1F, 0x8B]) {
        let (bytes, damage) = unzip(&mapped)?;
        return Ok((Arc::new(bytes), damage));
    }
    Ok((Arc::new(mapped), None))
}

/// Profiles shrink to a tenth, seldom to a thirtieth; zeros to a thousandth, and a few megabytes
/// of those would fill the memory.
const MOST_UNZIPPED: u64 = 128 << 20;
const MOST_TIMES_LARGER: u64 = 100;

fn unzip(zipped: &[u8]) -> io::Result<(Vec<u8>, Option<io::Error>)> {
    let most = MOST_UNZIPPED + zipped.len() as u64 * MOST_TIMES_LARGER;
    let mut bytes = Vec::new();
    let mut unzipped = flate2::read::MultiGzDecoder::new(zipped).take(most);
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
