//! Reads the kernel's text files cheaply: kept open, into one buffer, parsed as bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// A file of the kernel that is opened once and read again and again.
#[derive(Debug)]
pub struct Kept(File);

impl Kept {
    pub fn open(path: &Path) -> io::Result<Kept> {
        File::open(path).map(Kept)
    }

    /// Opened and read once, or why not, in words for a header.
    pub fn try_open(path: &Path, buffer: &mut Buffer) -> Result<Kept, String> {
        let file = Kept::open(path).map_err(|it| reason(path, &it))?;
        file.read(buffer).map_err(|it| reason(path, &it))?;
        Ok(file)
    }

    /// All of a file that the kernel writes in one piece.
    pub fn read<'a>(&self, buffer: &'a mut Buffer) -> io::Result<&'a [u8]> {
        loop {
            let n = self.0.read_at(&mut buffer.0, 0)?;
            if n < buffer.0.len() {
                return Ok(&buffer.0[..n]);
            }
            // It may go on: ask anew with more room.
            buffer.0.resize(buffer.0.len() * 2, 0);
        }
    }

    /// All of a file that the kernel hands out page by page.
    pub fn read_pages<'a>(&self, buffer: &'a mut Buffer) -> io::Result<&'a [u8]> {
        let mut len = 0;
        loop {
            if len == buffer.0.len() {
                buffer.0.resize(buffer.0.len() * 2, 0);
            }
            match self.0.read_at(&mut buffer.0[len..], len as u64)? {
                0 => return Ok(&buffer.0[..len]),
                n => len += n,
            }
        }
    }
}

/// Room for a file's text, used again and again.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer(vec![0; 8 << 10])
    }
}

/// Why a file cannot be read, for people.
pub fn reason(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("{path} is not there"),
        io::ErrorKind::PermissionDenied => format!("no permission to read {path}"),
        _ => format!("{path}: {error}"),
    }
}

pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&it| it == b'\n')
}

pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|it| it.is_ascii_whitespace()).filter(|it| !it.is_empty())
}

/// The number that a text begins with.
pub fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|it| it.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    text[..digits]
        .iter()
        .try_fold(0_u64, |sum, it| sum.checked_mul(10)?.checked_add(u64::from(it - b'0')))
}

/// The numbers of a line, as far as they are some.
pub fn numbers(line: &[u8]) -> impl Iterator<Item = u64> {
    words(line).map_while(number)
}

/// The number behind a name at the start of a line: `MemTotal:  123 kB`.
pub fn number_of(text: &[u8], name: &str) -> Option<u64> {
    let line = lines(text).find_map(|it| {
        let rest = it.strip_prefix(name.as_bytes())?;
        rest.strip_prefix(b":").or_else(|| rest.first()?.is_ascii_whitespace().then_some(rest))
    })?;
    numbers(line).next()
}

/// A small file's whole text, without what is around it.
pub fn word_of(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|it| !it.is_empty())
}

/// The number in a small file.
pub fn number_in(path: &Path) -> Option<u64> {
    word_of(path)?.parse().ok()
}

/// How much a total grew since it was last looked at.
#[derive(Debug, Default)]
pub struct Growth {
    last: Option<(Instant, f64)>,
    shrunk: u8,
}

/// What a process used is in nobody's figures between its end and its parent's notice: a sum that
/// is lower once or twice comes back.
const MOST_SHRUNK: u8 = 3;

impl Growth {
    /// By the second. Unknown the first time, and where the total shrank.
    pub fn per_second(&mut self, at: Instant, total: Option<f64>) -> Option<f64> {
        let total = total?;
        let Some((then, before)) = self.last else {
            self.last = Some((at, total));
            return None;
        };
        if total < before {
            self.shrunk += 1;
            if self.shrunk >= MOST_SHRUNK {
                *self = Growth { last: Some((at, total)), shrunk: 0 };
            }
            return None;
        }
        *self = Growth { last: Some((at, total)), shrunk: 0 };
        let seconds = at.saturating_duration_since(then).as_secs_f64();
        (seconds > 0.0).then(|| (total - before) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Growth, number, number_of, numbers};

    #[test]
    fn numbers_are_found_in_lines() {
        let text = b"MemTotal:       16106 kB\nMemAvailable: 7 kB\nnr_periods 12\nnr_throttled 3";
        assert_eq!(number_of(text, "MemTotal"), Some(16106));
        assert_eq!(number_of(text, "MemAvailable"), Some(7));
        assert_eq!(number_of(text, "nr_throttled"), Some(3));
        assert_eq!(number_of(text, "nr"), None, "only whole names");
        assert_eq!(numbers(b"  3 4 x 5").collect::<Vec<_>>(), [3, 4]);
        assert_eq!(number(b"99999999999999999999"), None, "too large");
        assert_eq!(number(b""), None);
    }

    #[test]
    fn growth_is_unknown_at_first_and_where_it_shrinks() {
        let mut growth = Growth::default();
        let at = Instant::now();
        let later = |seconds| at + Duration::from_secs(seconds);
        assert_eq!(growth.per_second(at, Some(10.0)), None);
        assert_eq!(growth.per_second(later(2), Some(30.0)), Some(10.0));
        assert_eq!(growth.per_second(later(3), None), None);
        assert_eq!(growth.per_second(later(4), Some(50.0)), Some(10.0), "over both seconds");
        assert_eq!(growth.per_second(later(5), Some(5.0)), None);
        assert_eq!(growth.per_second(later(6), Some(60.0)), Some(5.0), "it came back");
        let fallen = [7, 8, 9].map(|it| growth.per_second(later(it), Some(5.0)));
        assert_eq!(fallen, [None; 3]);
        assert_eq!(growth.per_second(later(10), Some(6.0)), Some(1.0), "it stays low");
    }
}
