//! Bytes in, trace out: one file per format, each with its own sniff.
//!
//! No bytes, however broken, make a source panic: damage becomes notes, and an error means that
//! nothing useful could be read.

pub mod chrome;
mod file;
pub mod hardware;
pub mod python;
pub mod tfevents;
mod wire;
pub mod xplane;

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use trace::TraceBuilder;

pub use file::{Bytes, Change, FileBytes, Pieces, Sequence};

/// What a program does before a file is read in thousands of blocks of some hundreds of kilobytes,
/// such as a setting of its allocator.
pub static BEFORE_MANY_BLOCKS: OnceLock<fn()> = OnceLock::new();

/// Reads one file format into the canonical trace.
pub trait Source: Sync {
    fn name(&self) -> &'static str;
    /// What a file in a folder is, as far as its name says it.
    fn claim(&self, file: Listed<'_>) -> Claim;
    /// What files are called that are runs by themselves; for people. Empty if none is.
    fn profiles(&self) -> &'static str {
        ""
    }
    /// Formats that say of a run what this one says, and more: in one folder with a file of theirs,
    /// a file of this one is a copy.
    fn copies(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether these are the first bytes of such a file. No other source may agree.
    fn sniff(&self, head: &[u8]) -> bool;
    /// Reads all of `input`. Damage inside the file becomes notes; an error means
    /// nothing useful could be read.
    fn read(&self, input: &Input<'_>, out: &mut TraceBuilder) -> Result<(), SourceError>;
}

/// A file as it stands in a folder.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    pub name: &'a str,
    /// The user named the folder: any file in it may be meant.
    pub is_named: bool,
    /// At the top of a folder that a capture of ours wrote.
    pub in_capture: bool,
}

impl Listed<'_> {
    /// The name without the ending of zipped files.
    fn unzipped(&self) -> &str {
        self.name.strip_suffix(".gz").unwrap_or(self.name)
    }
}

/// What a format says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    No,
    /// A profile if its first bytes say so.
    Perhaps,
    /// A run by itself, or one host of a run.
    Profile,
    /// Recorded beside profiles.
    Beside,
    /// A training log, which joins the run that is opened.
    Log,
}

/// A file that a format claims.
#[derive(Clone, Copy)]
pub struct Claimed {
    pub source: &'static dyn Source,
    /// Neither `No` nor `Perhaps`.
    pub claim: Claim,
}

impl fmt::Debug for Claimed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} of {}", self.claim, self.source.name())
    }
}

/// Which format claims a file. `head`: its first bytes, unzipped, if a name is not enough.
pub fn claim(file: Listed<'_>, head: impl FnOnce() -> Vec<u8>) -> Option<Claimed> {
    let mut open = Vec::new();
    for &source in ALL {
        match source.claim(file) {
            Claim::No => (),
            Claim::Perhaps => open.push(source),
            claim => return Some(Claimed { source, claim }),
        }
    }
    if open.is_empty() {
        return None;
    }
    let head = head();
    let source = open.into_iter().find(|it| it.sniff(&head))?;
    Some(Claimed { source, claim: Claim::Profile })
}

/// What profiles are called; for people.
pub fn profiles() -> String {
    let named: Vec<&str> = ALL.iter().rev().map(|it| it.profiles()).collect();
    named.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; or ")
}

/// One file: its bytes, as they lie on the disk or decompressed, and where they came from.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    pub bytes: Bytes,
    pub path: &'a Path,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("the file is empty\n  hint: was the job killed before the profiler stopped?")]
    Empty,
    #[error("the file cannot be read: {why}")]
    Unreadable { why: String },
    #[error(
        "not enough memory for the {n_events} events of this file\n  hint: capture fewer steps"
    )]
    NoMemory { n_events: usize },
    #[error("not a profile that strobe can read\n  hint: readable are: {known}")]
    UnknownFormat { known: String },
    #[error("{what}\n  reader: {reader}")]
    Broken { reader: &'static str, what: String },
}

/// As many first bytes as a source is shown, to say whether it knows the file: what was put before
/// the events of a trace can be some ten thousand.
pub const HEAD: usize = 64 << 10;

/// Every source.
pub static ALL: &[&dyn Source] =
    &[&chrome::Chrome, &hardware::Hardware, &python::Python, &tfevents::TfEvents, &xplane::XPlane];

/// Reads one file with the source that knows it.
pub fn read(input: &Input<'_>, out: &mut TraceBuilder) -> Result<&'static str, SourceError> {
    if input.bytes.size() == 0 {
        return Err(SourceError::Empty);
    }
    let (mut head, pieces) = (Vec::new(), Pieces::new(&*input.bytes));
    let head = pieces.read(0..HEAD, &mut head);
    if head.is_empty() {
        pieces.refuse_fault()?;
    }
    let Some(source) = ALL.iter().find(|it| it.sniff(head)) else {
        let known = ALL.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
        return Err(SourceError::UnknownFormat { known });
    };
    source.read(input, out)?;
    Ok(source.name())
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn every_file_is_registered() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some())
            .map(|it| it.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|it| !["lib", "file", "wire"].contains(&it.as_str()))
            .collect();
        files.sort();
        let mut names: Vec<&str> = ALL.iter().map(|it| it.name()).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }
}
