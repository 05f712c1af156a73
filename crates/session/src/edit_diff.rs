//! Makes a diff of the user's own file from a line and a change to it.
//!
//! ```text
//! Site (train.py:42) ─▶ file, as it is now ──same text?──▶ tokens ──certain?──▶ edits ─▶ unified diff
//!                                     └─ no: why            └─ no: why
//! ```
//!
//! Nothing is written to the file. `git apply` and `patch -p1` take the diff.

pub mod advice;
mod call;
mod change;
mod compiled;
mod seldom;
mod source;
#[cfg(test)]
mod tests;
mod unified;

use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use analyses::Tables;
use analyses::code_site::Site;

pub use change::{CHANGES, Change};
use source::Source;

/// An edit of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    pub change: Change,
    pub file: PathBuf,
    /// The file as it would be.
    pub edited: String,
    /// The unified diff, with the path relative to the current folder.
    pub text: String,
}

/// Why there is no diff.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDiff {
    #[error("the source could not be read: {why}\n  file: {}", file.display())]
    Unreadable { file: PathBuf, why: String },
    #[error(
        "the file is not below the current folder\n  hint: run this from the project's folder\n  \
         file: {}",
        file.display()
    )]
    Outside { file: PathBuf },
    #[error("{place} has changed since the run\n  hint: capture again")]
    Changed { place: String },
    #[error("no certain edit for {place}: {why}")]
    NotCertain { place: String, why: String },
    #[error("no finding of this report names a line that strobe can edit{}", if *has_sites { "" } else {
        "\n  hint: `strobe run` notes the lines of your code; other captures do not"
    })]
    NoLine { has_sites: bool },
}

/// Of a longer statement only so many characters are recorded (`_capture/sites.py`).
const LONGEST_TEXT: usize = 2000;
/// A source that is longer is none that a person wrote.
const LONGEST_SOURCE: u64 = 8 << 20;

/// The diff of a change at a line of the user's code.
pub fn diff_for(tables: &Tables, change: Change, site: &Site) -> Result<Diff, NoDiff> {
    let folder = std::env::current_dir().unwrap_or_default();
    diff_below(&folder, tables, change, site)
}

/// The same, with paths relative to this folder.
pub fn diff_below(
    folder: &Path,
    tables: &Tables,
    change: Change,
    site: &Site,
) -> Result<Diff, NoDiff> {
    let file = PathBuf::from(&site.file);
    let path = relative(folder, &file).ok_or_else(|| NoDiff::Outside { file: file.clone() })?;
    let unreadable = |why: String| NoDiff::Unreadable { file: file.clone(), why };
    let about = file.metadata().map_err(|it| unreadable(it.to_string()))?;
    if !about.is_file() || about.len() > LONGEST_SOURCE {
        return Err(unreadable("it is no source of Python".to_owned()));
    }
    let text = std::fs::read_to_string(&file).map_err(|it| unreadable(it.to_string()))?;
    let modified = about.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    let began = tables.trace().origin_unix_ns;
    let is_older = match (modified, began) {
        (Some(modified), Some(began)) => {
            i128::try_from(modified.as_nanos()).is_ok_and(|it| it < began.into())
        }
        _ => false,
    };
    if !is_unchanged(&text, site, is_older) {
        return Err(NoDiff::Changed { place: site.place() });
    }
    let (edited, text) = edit(text, change, site, &path)
        .map_err(|why| NoDiff::NotCertain { place: site.place(), why })?;
    Ok(Diff { change, file, edited, text })
}

impl Diff {
    /// The lines as they would be, from the left margin on.
    pub fn new_lines(&self) -> String {
        let added = |it: &&str| it.starts_with('+') && !it.starts_with("+++");
        let lines: Vec<&str> = self.text.lines().filter(added).map(|it| &it[1..]).collect();
        let margin = |it: &&str| it.len() - it.trim_start().len();
        let margin = lines.iter().map(margin).min().unwrap_or(0);
        lines.iter().map(|it| &it[margin..]).collect::<Vec<_>>().join("\n")
    }
}

/// The edited text, and the diff to it.
fn edit(text: String, change: Change, site: &Site, path: &str) -> Result<(String, String), String> {
    let source = Source::parse(text)?;
    let mut edits = change.edits(&source, site)?;
    edits.sort_by_key(|it| it.at.start);
    let edited = unified::apply(&source.text, &edits);
    // What comes out must be a source as well.
    Source::parse(edited.clone())?;
    let diff = unified::diff(&source, &edits, path);
    Ok((edited, diff))
}

/// Whether the file still says what the run saw. Of a line without a text: whether the file is
/// older than the run.
fn is_unchanged(text: &str, site: &Site, is_older: bool) -> bool {
    if site.text.is_empty() {
        return is_older;
    }
    let Some(first) = usize::try_from(site.text_line).ok().and_then(|it| it.checked_sub(1)) else {
        return false;
    };
    let is_cut = site.text.chars().count() >= LONGEST_TEXT;
    let mut lines = text.lines().skip(first);
    let mut recorded = site.text.lines().peekable();
    while let Some(line) = recorded.next() {
        let Some(now) = lines.next() else { return false };
        let is_last = recorded.peek().is_none();
        if now != line && !(is_last && is_cut && now.starts_with(line)) {
            return false;
        }
    }
    true
}

/// A path as diffs have it: below the folder, with slashes.
fn relative(folder: &Path, file: &Path) -> Option<String> {
    let below = |folder: &Path, file: &Path| file.strip_prefix(folder).ok().map(Path::to_owned);
    // One of them may lead through a link.
    let path = below(folder, file)
        .or_else(|| below(&folder.canonicalize().ok()?, &file.canonicalize().ok()?))
        .or_else(|| file.is_relative().then(|| file.to_owned()))?;
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(it) => parts.push(it.to_str()?),
            Component::CurDir => (),
            _ => return None,
        }
    }
    // A tab or a line's end would have to be quoted.
    let path = parts.join("/");
    (!path.is_empty() && !path.contains(['\n', '\t', '"'])).then_some(path)
}
