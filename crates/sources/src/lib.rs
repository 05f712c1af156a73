//! Bytes in, trace out: one file per format, each with its own sniff.
//!
//! No bytes, however broken, make a source panic: damage becomes notes, and an error means that
//! nothing useful could be read.

mod wire;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use trace::TraceBuilder;

/// Bytes that live as long as the trace: arguments stay in them.
pub type Bytes = Arc<dyn FileBytes>;

/// A file in memory, mapped or read.
pub trait FileBytes: AsRef<[u8]> + Send + Sync {
    /// The reader is through with this part; it may be asked for again, but not soon.
    fn done_with(&self, part: Range<usize>) {
        let _ = part;
    }

    /// Bytes that the reader was through with so far, to show how far it is.
    fn n_done(&self) -> u64 {
        0
    }
}

impl FileBytes for Vec<u8> {}

impl fmt::Debug for dyn FileBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.as_ref().len())
    }
}

/// Reads one file format into the canonical trace.
pub trait Source: Sync {
    fn name(&self) -> &'static str;
    /// Whether these are the first bytes of such a file. No other source may agree.
    fn sniff(&self, head: &[u8]) -> bool;
    /// Reads all of `input`. Damage inside the file becomes notes; an error means
    /// nothing useful could be read.
    fn read(&self, input: &Input<'_>, out: &mut TraceBuilder) -> Result<(), SourceError>;
}

/// One file: mapped or decompressed bytes, and where they came from.
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
    #[error("not a profile that strobe can read\n  hint: readable are: {known}")]
    UnknownFormat { known: String },
    #[error("{what}\n  reader: {reader}")]
    Broken { reader: &'static str, what: String },
}

/// Every source. The list is the `mod` line and the registration.
macro_rules! registry {
    ($($module:ident :: $source:ident),* $(,)?) => {
        $(pub mod $module;)*
        pub static ALL: &[&dyn Source] = &[$(&$module::$source),*];
    };
}

registry![hardware::Hardware, python::Python, tfevents::TfEvents, xplane::XPlane];

/// Reads one file with the source that knows it.
pub fn read(input: &Input<'_>, out: &mut TraceBuilder) -> Result<&'static str, SourceError> {
    let bytes = (*input.bytes).as_ref();
    if bytes.is_empty() {
        return Err(SourceError::Empty);
    }
    let head = &bytes[..bytes.len().min(4096)];
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
            .filter(|it| !["lib", "wire"].contains(&it.as_str()))
            .collect();
        files.sort();
        let mut names: Vec<&str> = ALL.iter().map(|it| it.name()).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }
}
