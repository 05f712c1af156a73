//! Writes rows of samples as lines of JSON, a second's worth at a time.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What a killed run may lose of its samples.
const LONGEST_HELD: Duration = Duration::from_secs(1);
/// Rows of a machine with many cores fill this sooner.
const MOST_HELD: usize = 64 << 10;

#[derive(Debug)]
pub struct Rows<W = File> {
    file: W,
    held: String,
    written: Instant,
    /// A full disk may have taken a part of a line.
    torn: bool,
    /// What went wrong first.
    failed: Option<io::Error>,
}

impl<W: Write> Rows<W> {
    pub fn new(file: W) -> Rows<W> {
        Rows { file, held: String::new(), written: Instant::now(), torn: false, failed: None }
    }

    pub fn header(&mut self, header: &Value) {
        self.say(header);
        self.flush();
    }

    /// A line of its own.
    pub fn say(&mut self, what: &Value) {
        let _ = writeln!(self.held, "{what}");
    }

    /// What is not fresh is null: it was said before.
    pub fn row(&mut self, unix_ns: i64, values: &[Option<f64>], fresh: &[bool]) {
        let _ = write!(self.held, "[{unix_ns}");
        for (value, fresh) in values.iter().zip(fresh) {
            self.held.push(',');
            push_number(&mut self.held, value.filter(|_| *fresh));
        }
        self.held.push_str("]\n");
        if self.held.len() >= MOST_HELD || self.written.elapsed() >= LONGEST_HELD {
            self.flush();
        }
    }

    /// What could not be written, if anything.
    pub fn end(mut self) -> Option<io::Error> {
        self.flush();
        self.failed
    }

    /// What cannot be written is dropped: a full disk must not stop a training, nor fill memory.
    fn flush(&mut self) {
        if self.torn {
            self.held.insert(0, '\n');
        }
        let written = self.file.write_all(self.held.as_bytes());
        self.torn = written.is_err();
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
        self.held.clear();
        self.written = Instant::now();
    }
}

/// Whole numbers as such, others with four digits after the point and no zeros behind.
fn push_number(out: &mut String, value: Option<f64>) {
    let Some(value) = value.filter(|it| it.is_finite()) else {
        out.push_str("null");
        return;
    };
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let _ = write!(out, "{}", value as i64);
        return;
    }
    let from = out.len();
    let _ = write!(out, "{value:.4}");
    let kept = out[from..].trim_end_matches('0').trim_end_matches('.').len();
    out.truncate(from + kept);
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use serde_json::{Value, json};

    use super::{Rows, push_number};

    /// A disk that takes a few bytes at a time, is interrupted before each, and is full while
    /// fewer than `room` bytes are left of it.
    struct SmallDisk<'a> {
        written: &'a mut Vec<u8>,
        room: &'a std::cell::Cell<usize>,
        n_writes: usize,
    }

    impl Write for SmallDisk<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.n_writes += 1;
            if self.n_writes % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = bytes.len().min(7).min(self.room.get());
            if n == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room.set(self.room.get() - n);
            self.written.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Three rows, each written by itself, the second onto a disk with room for so many bytes.
    fn rows_with_room(room: usize) -> (Vec<u8>, Option<io::Error>) {
        let (mut written, left) = (Vec::new(), std::cell::Cell::new(1000));
        let mut rows = Rows::new(SmallDisk { written: &mut written, room: &left, n_writes: 0 });
        rows.header(&json!({"columns": ["cpu/all"]}));
        left.set(room);
        rows.row(11_111, &[Some(1.0)], &[true]);
        rows.flush();
        left.set(1000);
        rows.row(22_222, &[Some(2.0)], &[true]);
        let failed = rows.end();
        (written, failed)
    }

    #[test]
    fn a_disk_that_was_full_loses_rows_and_no_other_line() {
        let whole = "[11111,1]\n".len();
        for room in 0..=whole {
            let (written, failed) = rows_with_room(room);
            let text = String::from_utf8(written).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            assert!(serde_json::from_str::<Value>(lines[0]).is_ok(), "{text}");
            assert_eq!(*lines.last().unwrap(), "[22222,2]", "with room for {room}");
            assert_eq!(text.contains("[11111,1]\n"), room >= whole - 1, "with room for {room}");
            let full = failed.map(|it| it.kind());
            assert_eq!(full, (room < whole).then_some(io::ErrorKind::StorageFull));
        }
    }

    #[test]
    fn numbers_are_short_and_json() {
        let written = |it: Option<f64>| {
            let mut out = String::new();
            push_number(&mut out, it);
            out
        };
        let all = [
            Some(0.0),
            Some(0.25),
            Some(0.123_456),
            Some(-0.000_01),
            Some(16_106_127_360.0),
            Some(1e-9),
            Some(f64::NAN),
            Some(f64::INFINITY),
            None,
        ];
        assert_eq!(
            all.map(written),
            ["0", "0.25", "0.1235", "-0", "16106127360", "0", "null", "null", "null"]
        );
    }
}
