//! Reads what was appended to a file since the last look.

use std::fs::{self, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use runlog::LONGEST_LINE;

/// Who is told of lines.
pub trait Lines {
    /// The file was cut or replaced: whatever was read of it is void.
    fn anew(&mut self);
    /// A whole line, without its end.
    fn line(&mut self, line: &[u8]);
    /// A line that cannot be one: it grew too long.
    fn damaged(&mut self);
}

const CHUNK: usize = 64 << 10;

/// A place in a file that grows.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    offset: u64,
    /// The beginning of a line whose end is not written yet.
    held: Vec<u8>,
    /// The rest of this line is not wanted.
    passes_over: bool,
    /// Behind the first line only so many of the last bytes are of interest.
    only_last: Option<u64>,
    has_first_line: bool,
}

impl Tail {
    pub fn new(path: PathBuf) -> Tail {
        Tail {
            path,
            identity: None,
            offset: 0,
            held: Vec::new(),
            passes_over: false,
            only_last: None,
            has_first_line: false,
        }
    }

    /// Gives the first line and then only the last `bytes` of what was not read yet.
    pub fn only_last(path: PathBuf, bytes: u64) -> Tail {
        Tail { only_last: Some(bytes), ..Tail::new(path) }
    }

    /// Tells of all lines that were completed since the last look. A missing file has none.
    pub fn look(&mut self, to: &mut impl Lines) -> io::Result<()> {
        let about = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        if !about.is_file() {
            return Ok(());
        }
        let identity = identity(&about);
        let is_another = self.identity.is_some_and(|it| it != identity);
        if is_another || about.len() < self.offset {
            let path = std::mem::take(&mut self.path);
            *self = Tail { only_last: self.only_last, ..Tail::new(path) };
            to.anew();
        }
        self.identity = Some(identity);
        if about.len() == self.offset {
            return Ok(());
        }
        let mut file = match runlog::open(&self.path) {
            // Taken away since: there is nothing to read now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        self.read_on(&mut file, about.len(), to)
    }

    /// From where the last look ended, also where that one failed.
    fn read_on(
        &mut self,
        file: &mut (impl Read + Seek),
        length: u64,
        to: &mut impl Lines,
    ) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.offset))?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let n = match file.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if n == 0 {
                return Ok(());
            }
            self.offset += n as u64;
            self.take(&chunk[..n], to);
            let behind = length.saturating_sub(self.offset);
            if let Some(most) = self.only_last.filter(|&it| self.has_first_line && behind > it) {
                self.offset = length - most;
                file.seek(SeekFrom::Start(self.offset))?;
                self.held.clear();
                self.passes_over = true;
            }
        }
    }

    fn take(&mut self, bytes: &[u8], to: &mut impl Lines) {
        for part in bytes.split_inclusive(|&it| it == b'\n') {
            let line = part.strip_suffix(b"\n");
            if self.passes_over {
                self.passes_over = line.is_none();
                continue;
            }
            match line {
                Some(line) if self.held.is_empty() => to.line(line),
                Some(line) => {
                    self.held.extend_from_slice(line);
                    to.line(&self.held);
                    self.held.clear();
                }
                None => self.held.extend_from_slice(part),
            }
            self.has_first_line |= line.is_some();
            if self.held.len() > LONGEST_LINE {
                self.held = Vec::new();
                self.passes_over = true;
                to.damaged();
            }
        }
    }
}

#[cfg(unix)]
fn identity(about: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (about.dev(), about.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::{self, Cursor, Read, Seek, SeekFrom, Write as _};
    use std::path::Path;

    use super::{LONGEST_LINE, Lines, Tail};

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Lines for Seen {
        fn anew(&mut self) {
            self.0.push("anew".to_owned());
        }

        fn line(&mut self, line: &[u8]) {
            self.0.push(String::from_utf8_lossy(line).into_owned());
        }

        fn damaged(&mut self) {
            self.0.push("damaged".to_owned());
        }
    }

    fn look(tail: &mut Tail) -> Vec<String> {
        let mut seen = Seen::default();
        tail.look(&mut seen).unwrap();
        seen.0
    }

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_line_is_told_once_and_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = Tail::new(path.clone());
        assert!(look(&mut tail).is_empty(), "there is no file yet");
        append(&path, "one\ntw");
        assert_eq!(look(&mut tail), ["one"]);
        assert!(look(&mut tail).is_empty());
        append(&path, "o\n\nthree");
        assert_eq!(look(&mut tail), ["two", ""]);
        append(&path, "\n");
        assert_eq!(look(&mut tail), ["three"]);
    }

    /// Gives a few bytes at a time, is interrupted before each, and cannot be read at one place
    /// as long as it is broken.
    struct FaultyFile {
        bytes: Cursor<Vec<u8>>,
        n_reads: usize,
        broken_at: Option<u64>,
    }

    impl Read for FaultyFile {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.n_reads += 1;
            if self.n_reads % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let before = self.broken_at.map_or(u64::MAX, |it| it - self.bytes.position());
            if before == 0 {
                return Err(io::Error::other("the disk is broken"));
            }
            let n = to.len().min(3).min(usize::try_from(before).unwrap_or(usize::MAX));
            self.bytes.read(&mut to[..n])
        }
    }

    impl Seek for FaultyFile {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.bytes.seek(to)
        }
    }

    #[test]
    fn a_read_that_fails_loses_and_doubles_nothing() {
        let text = "one\ntwo\n\nthree\n";
        let length = text.len() as u64;
        for broken_at in (0..length).map(Some) {
            let bytes = Cursor::new(text.as_bytes().to_vec());
            let mut file = FaultyFile { bytes, n_reads: 0, broken_at };
            let mut tail = Tail::new("unused".into());
            let mut seen = Seen::default();
            assert!(tail.read_on(&mut file, length, &mut seen).is_err(), "{broken_at:?}");
            file.broken_at = None;
            tail.read_on(&mut file, length, &mut seen).unwrap();
            assert_eq!(seen.0, ["one", "two", "", "three"], "{broken_at:?}");
        }
    }

    #[test]
    fn a_file_that_was_cut_or_replaced_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = Tail::new(path.clone());
        append(&path, "one\ntwo\nthr");
        look(&mut tail);
        fs::write(&path, "four\n").unwrap();
        assert_eq!(look(&mut tail), ["anew", "four"]);
        // Longer than before, and another file.
        let other = folder.path().join("other");
        fs::write(&other, "five\nsix\nseven\n").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(look(&mut tail), ["anew", "five", "six", "seven"]);
    }

    #[test]
    fn of_a_long_past_only_the_first_line_and_the_end_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text: String = (0..100_000).map(|it| format!("line {it}\n")).collect();
        append(&path, &text);
        let mut tail = Tail::only_last(path.clone(), 100);
        let lines = look(&mut tail);
        assert_eq!(lines[0], "line 0");
        assert_eq!(lines.last().unwrap(), "line 99999");
        assert!(lines.len() < 10_000, "{}", lines.len());
        assert!(lines.iter().all(|it| text.contains(&format!("{it}\n"))), "no line is cut");
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        append(&path, &"x".repeat(3 * LONGEST_LINE));
        let mut tail = Tail::new(path.clone());
        assert_eq!(look(&mut tail), ["damaged"]);
        assert!(tail.held.len() <= LONGEST_LINE);
        append(&path, "\nnext\n");
        assert_eq!(look(&mut tail), ["next"]);
    }
}
