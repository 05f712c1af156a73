//! A file's bytes, read in pieces when they are needed.
//!
//! ```text
//! FileBytes ──read_at──▶ Pieces: whole pieces, and what went wrong, counted
//!                          └──▶ Window: a piece that follows whoever reads
//! ```
//!
//! Nothing is mapped: a file that is cut while it is mapped ends the process that looks at it. What
//! is read here may change under the reader at any time; then less comes back, and a note says so.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use trace::{NoteKind, TraceBuilder};

use crate::SourceError;

/// Bytes that live as long as the trace: arguments stay in them.
pub type Bytes = Arc<dyn FileBytes>;

/// A file, on a disk or in memory.
pub trait FileBytes: Send + Sync {
    /// As long as it was when it was opened.
    fn size(&self) -> usize;

    /// Fills `to` with what stands from `at` on, or with a part of it, as [`Read::read`] does.
    fn read_at(&self, at: usize, to: &mut [u8]) -> io::Result<usize>;

    /// All of it, where it is in memory.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }

    /// What happened to it since it was opened.
    fn change(&self) -> Change {
        Change::None
    }

    /// The reader is through with so many bytes more.
    fn done_with(&self, n_bytes: usize) {
        let _ = n_bytes;
    }

    /// Bytes that the reader was through with so far, to show how far it is.
    fn n_done(&self) -> u64 {
        0
    }
}

/// What others did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    None,
    /// It is longer. A log grows, and what stood there before stands there still.
    Grown,
    /// Written to, and no longer than before.
    Rewritten,
}

impl FileBytes for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }

    fn read_at(&self, at: usize, to: &mut [u8]) -> io::Result<usize> {
        self.get(at..).unwrap_or_default().read(to)
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl fmt::Debug for dyn FileBytes + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.size())
    }
}

/// Reads pieces of a file, and counts what could not be read.
#[derive(Debug)]
pub struct Pieces<'a> {
    file: &'a dyn FileBytes,
    n_faults: AtomicU64,
    first_fault: OnceLock<String>,
}

impl<'a> Pieces<'a> {
    pub fn new(file: &'a dyn FileBytes) -> Pieces<'a> {
        Pieces { file, n_faults: AtomicU64::new(0), first_fault: OnceLock::new() }
    }

    pub fn file(&self) -> &'a dyn FileBytes {
        self.file
    }

    /// What is there of `range`; `buffer` is for what is not in memory yet.
    pub fn read<'b>(&self, range: Range<usize>, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        let range = range.start..range.end.min(self.file.size());
        if let Some(all) = self.file.in_memory() {
            return all.get(range).unwrap_or_default();
        }
        let n = range.len();
        // Zeroed only where it grows: the same buffer serves many pieces.
        if buffer.len() < n {
            if buffer.try_reserve_exact(n - buffer.len()).is_err() {
                self.fault(|| format!("no memory for {n} bytes from byte {} on", range.start));
                return &[];
            }
            buffer.resize(n, 0);
        }
        let mut done = 0;
        while done < n {
            let at = range.start + done;
            match self.file.read_at(at, &mut buffer[done..n]) {
                Ok(0) => {
                    self.fault(|| format!("truncated at byte {at} after it was opened"));
                    break;
                }
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => {
                    self.fault(|| format!("at byte {at}: {error}"));
                    break;
                }
            }
        }
        &buffer[..done.min(n)]
    }

    /// A window of at least so many bytes at once, where there are as many.
    pub fn window(&self, n_bytes: usize) -> Window<'_, 'a> {
        self.window_with(n_bytes, KeptPiece::default())
    }

    /// The same, with what another window of this file has read.
    pub fn window_with(&self, n_bytes: usize, kept: KeptPiece) -> Window<'_, 'a> {
        Window { pieces: self, n_bytes, piece: kept }
    }

    /// Tells of each line. Of one that is longer than `longest` only the beginning is told.
    pub fn each_line(&self, longest: usize, mut each: impl FnMut(&Line)) {
        let mut file = BufReader::with_capacity(LINES_AT_ONCE, Sequence::new(self));
        let mut line = Line { bytes: Vec::new(), nth: 0, is_whole: true };
        loop {
            line.bytes.clear();
            let part = (&mut file).take(longest as u64).read_until(b'\n', &mut line.bytes);
            // What went wrong is counted here.
            if part.is_err() || line.bytes.is_empty() {
                return;
            }
            line.is_whole = line.bytes.pop_if(|it| *it == b'\n').is_some();
            if !line.is_whole && line.bytes.len() == longest {
                line.is_whole = file.skip_until(b'\n').is_ok();
            }
            each(&line);
            line.nth += 1;
        }
    }

    fn fault(&self, what: impl FnOnce() -> String) {
        self.n_faults.fetch_add(1, Ordering::Relaxed);
        self.first_fault.get_or_init(what);
    }

    /// What could not be read, if anything.
    pub fn first_fault(&self) -> Option<&str> {
        self.first_fault.get().map(String::as_str)
    }

    /// An error where something could not be read: of a file without anything to show, that is why.
    pub fn refuse_fault(&self) -> Result<(), SourceError> {
        match self.first_fault() {
            Some(why) => Err(SourceError::Unreadable { why: why.to_owned() }),
            None => Ok(()),
        }
    }

    /// Notes what could not be read, and a change of the file that may matter.
    pub fn note(&self, name: impl fmt::Display, harmless: Change, out: &mut TraceBuilder) {
        let n_faults = self.n_faults.load(Ordering::Relaxed);
        out.note_many(NoteKind::LostBytes, n_faults, || {
            format!("{name}: {}", self.first_fault().unwrap_or_default())
        });
        if ![Change::None, harmless].contains(&self.file.change()) {
            out.note(NoteKind::FileChanged, || format!("{name} was modified while it was read"));
        }
    }
}

/// Lines are short.
const LINES_AT_ONCE: usize = 256 << 10;

/// One line, without its end.
#[derive(Debug)]
pub struct Line {
    pub bytes: Vec<u8>,
    /// From 0.
    pub nth: usize,
    /// It has an end: a writer that was killed leaves a last line without.
    pub is_whole: bool,
}

/// A file from its beginning to its end.
#[derive(Debug)]
pub struct Sequence<'a> {
    pieces: &'a Pieces<'a>,
    at: usize,
}

impl<'a> Sequence<'a> {
    pub fn new(pieces: &'a Pieces<'a>) -> Sequence<'a> {
        Sequence { pieces, at: 0 }
    }
}

impl Read for Sequence<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let file = self.pieces.file;
        let n = to.len().min(file.size().saturating_sub(self.at));
        if n == 0 {
            return Ok(0);
        }
        // Unzipping does not try again by itself.
        let read = loop {
            match file.read_at(self.at, &mut to[..n]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                other => break other,
            }
        };
        match &read {
            Ok(0) => {
                let at = self.at;
                self.pieces.fault(|| format!("truncated at byte {at} after it was opened"));
            }
            Ok(n) => self.at += n,
            Err(error) => self.pieces.fault(|| format!("at byte {}: {error}", self.at)),
        }
        read
    }
}

/// A piece of a file that follows whoever reads it.
#[derive(Debug)]
pub struct Window<'p, 'a> {
    pieces: &'p Pieces<'a>,
    n_bytes: usize,
    piece: KeptPiece,
}

/// What a window has read.
#[derive(Debug, Default)]
pub struct KeptPiece {
    buffer: Vec<u8>,
    /// Which bytes of the file stand in the buffer.
    holds: Range<usize>,
}

impl Window<'_, '_> {
    /// What it has read, for the next window; not where something long went through it.
    pub fn keep(self) -> KeptPiece {
        match self.piece.buffer.len() <= 4 * self.n_bytes {
            true => self.piece,
            false => KeptPiece::default(),
        }
    }

    pub fn size(&self) -> usize {
        self.pieces.file.size()
    }

    /// What is there of `range`.
    pub fn get(&mut self, range: Range<usize>) -> &[u8] {
        let range = range.start..range.end.min(self.size());
        if range.is_empty() {
            return &[];
        }
        if let Some(all) = self.pieces.file.in_memory() {
            return all.get(range).unwrap_or_default();
        }
        let KeptPiece { buffer, holds } = &mut self.piece;
        if range.start < holds.start || range.end > holds.end {
            let wanted = range.start..range.end.max(range.start.saturating_add(self.n_bytes));
            let n = self.pieces.read(wanted, buffer).len();
            *holds = range.start..range.start + n;
        }
        let from = range.start - holds.start;
        let to = range.end.min(holds.end).saturating_sub(holds.start);
        buffer.get(from..to.max(from)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{FileBytes, Pieces};

    /// Gives a few bytes at a time, is interrupted often, and cannot be read from `broken` on.
    struct Reluctant {
        bytes: Vec<u8>,
        n_reads: AtomicUsize,
        broken: usize,
    }

    impl FileBytes for Reluctant {
        fn size(&self) -> usize {
            self.bytes.len()
        }

        fn read_at(&self, at: usize, to: &mut [u8]) -> io::Result<usize> {
            if self.n_reads.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if at >= self.broken {
                return Err(io::Error::other("the disk is broken"));
            }
            let n = to.len().min(7);
            self.bytes[..self.broken.min(self.bytes.len())].to_vec().read_at(at, &mut to[..n])
        }
    }

    fn reluctant(broken: usize) -> Reluctant {
        let text = "one\ntwo\n\nthree and many more words\nfour";
        Reluctant { bytes: text.into(), n_reads: AtomicUsize::new(0), broken }
    }

    fn lines(file: &Reluctant) -> (Vec<(String, bool)>, Option<String>) {
        let pieces = Pieces::new(file);
        let mut lines = Vec::new();
        pieces.each_line(12, |it| {
            lines.push((String::from_utf8_lossy(&it.bytes).into_owned(), it.is_whole));
        });
        (lines, pieces.first_fault().map(str::to_owned))
    }

    #[test]
    fn pieces_are_whole_however_few_bytes_come_at_once() {
        let file = reluctant(usize::MAX);
        let (mut buffer, pieces) = (Vec::new(), Pieces::new(&file));
        for range in [0..39, 3..20, 38..39, 5..5, 30..99] {
            let expected = &file.bytes[range.start..range.end.min(file.bytes.len())];
            assert_eq!(pieces.read(range.clone(), &mut buffer), expected, "{range:?}");
            assert_eq!(pieces.window(4).get(range.clone()), expected, "{range:?}");
        }
        assert_eq!(pieces.first_fault(), None);
        let told = |text: &str, is_whole| (text.to_owned(), is_whole);
        let expected =
            [told("one", true), told("two", true), told("", true), told("three and ma", true)];
        let (lines, fault) = lines(&file);
        assert_eq!((&lines[..4], fault), (&expected[..], None));
        assert_eq!(lines[4..], [told("four", false)]);
    }

    #[test]
    fn what_came_before_a_fault_is_there_and_the_fault_is_told() {
        let file = reluctant(10);
        let pieces = Pieces::new(&file);
        assert_eq!(pieces.read(5..20, &mut Vec::new()), b"wo\n\nt");
        assert_eq!(pieces.first_fault(), Some("at byte 10: the disk is broken"));
        let (lines, fault) = lines(&file);
        assert_eq!(lines[..3], [("one".into(), true), ("two".into(), true), (String::new(), true)]);
        assert_eq!(fault.as_deref(), Some("at byte 10: the disk is broken"));
    }
}
