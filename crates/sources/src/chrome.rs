//! Reads Chrome trace JSON: what PyTorch's profiler (Kineto) writes, and everybody else who writes
//! for `chrome://tracing`, TensorFlow, JAX and viztracer among them.
//!
//! | theirs                                  | ours                                         |
//! |-----------------------------------------|----------------------------------------------|
//! | a file                                  | one host of the trace: a rank, a process     |
//! | `pid`, `tid`                            | process and thread tracks                    |
//! | `pid`, `tid` of work on a device        | device and stream tracks                     |
//! | what a profiler draws over them         | summary tracks                               |
//! | `ph: "X"`, `"B"` with `"E"`, `"b"` with `"e"` | event                                  |
//! | `ph: "i"`, `"n"`                        | event without length                         |
//! | `cat`, and the name                     | kind (`chrome/kinds.rs`)                     |
//! | `ph: "M"`                               | names of tracks                              |
//! | `correlation`                           | launch edge, host → device                   |
//! | `ph: "s"`, `"t"`, `"f"`                 | flow edge, as from an op to its backward op; launches have `correlation` |
//! | `External id`                           | detail: the op that a kernel works for       |
//! | `ProfilerStep#7`                        | step, with its number                        |
//! | `grid`, `block`, `bytes`, …             | detail                                       |
//! | `[memory]`                              | `MemoryAllocation`, `MemoryDeallocation` and the allocator's counter |
//! | `ph: "C"`                               | counter                                      |
//! | `deviceProperties`, `distributedInfo`   | facts of devices and the host                |
//! | `baseTimeNanoseconds`                   | Unix time of the trace's zero                |
//! | all other arguments                     | arguments, decoded when asked for            |
//!
//! The list of events is cut at bytes that look like the start of an event, and the pieces are read
//! in parallel. Where the one before turns out not to end there, the guess was wrong, and the piece
//! is read again.
//!
//! Not read: object snapshots, samples, colours; `est. achieved occupancy %`, which counts blocks
//! that a small grid does not have, as no other source's occupancy does.

mod arguments;
mod chunk;
mod element;
mod join;
mod json;
mod kinds;

use hashbrown::HashMap;
use rayon::prelude::*;
use serde_json::Value;
use trace::{NoteKind, TraceBuilder};

use self::arguments::Arguments;
use self::chunk::{Decoded, border};
use self::element::Element;
use self::join::Joined;
use self::json::Cursor;
use crate::{Change, Claim, Input, Listed, Pieces, Source, SourceError};

#[derive(Debug)]
pub struct Chrome;

impl Source for Chrome {
    fn name(&self) -> &'static str {
        "chrome"
    }

    fn claim(&self, file: Listed<'_>) -> Claim {
        let name = file.unzipped();
        // Of a folder of data not every file is opened: only where it was named itself.
        let may_be = name.ends_with("trace.json") || (file.is_named && name.ends_with(".json"));
        match name.ends_with(".pt.trace.json") {
            true => Claim::Profile,
            false if may_be => Claim::Perhaps,
            false => Claim::No,
        }
    }

    fn profiles(&self) -> &'static str {
        "a trace of PyTorch, *.pt.trace.json"
    }

    /// TensorFlow and JAX write such a file beside a profile.
    fn copies(&self) -> &'static [&'static str] {
        &["xplane"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        matches!(shape_of(head), Some(Shape::Events | Shape::Object))
    }

    fn read(&self, input: &Input<'_>, out: &mut TraceBuilder) -> Result<(), SourceError> {
        let source = out.next_source().ok_or_else(|| broken("more files than a trace can hold"))?;
        let pieces = Pieces::new(&*input.bytes);
        if pieces.file().size() > MANY_BLOCKS
            && let Some(prepare) = crate::BEFORE_MANY_BLOCKS.get()
        {
            prepare();
        }
        let read = Reader::new(&pieces).read(input, source, out);
        pieces.note(input.path.display(), Change::None, out);
        read?;
        let name = input.path.file_name().map(|it| it.to_string_lossy().into_owned());
        out.source(Box::new(Arguments::new(input.bytes.clone(), name.unwrap_or_default())));
        Ok(())
    }
}

fn broken(what: &str) -> SourceError {
    SourceError::Broken { reader: "chrome", what: what.to_owned() }
}

/// What the first bytes show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A list of events.
    Events,
    /// An object that has one.
    Object,
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Keys that only such files have at their top, beside their list.
const TELLING: [&str; 8] = [
    "traceEvents",
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "displayTimeUnit",
    "computeProperties",
    "baseTimeNanoseconds",
    "traceName",
];

/// Whether the bytes begin as a Chrome trace does: a list whose first object has a phase, or an
/// object with a list of events or one of the keys that stand beside it.
fn shape_of(head: &[u8]) -> Option<Shape> {
    let head = head.strip_prefix(BOM).unwrap_or(head);
    let mut cursor = Cursor::new(head, 0);
    match cursor.peek().ok()? {
        b'[' => {
            cursor.at += 1;
            if cursor.peek().ok()? != b'{' {
                return None;
            }
            cursor.at += 1;
            let (mut first, mut known) = (true, false);
            // A name or a time alone does not make it one; a phase does.
            while let Ok(Some(key)) = cursor.key(first) {
                first = false;
                if key == b"ph" {
                    known = matches!(cursor.value().ok()?, [b'"', _, b'"']);
                    break;
                }
                if cursor.value().is_err() {
                    break;
                }
            }
            known.then_some(Shape::Events)
        }
        b'{' => {
            cursor.at += 1;
            let mut first = true;
            // What is longer than the head is passed over: its key may tell.
            while let Ok(Some(key)) = cursor.key(first) {
                first = false;
                if TELLING.iter().any(|it| it.as_bytes() == key) {
                    return Some(Shape::Object);
                }
                let value = cursor.value();
                if key == b"metadata" || key == b"otherData" {
                    let is_object = cursor.bytes.get(cursor.at.min(cursor.bytes.len()));
                    // A trace that was edited may begin with what the editor says of it.
                    if value.is_err() && is_object.is_none() && has_events_behind(head) {
                        return Some(Shape::Object);
                    }
                }
                if value.is_err() {
                    return None;
                }
            }
            None
        }
        _ => None,
    }
}

/// Whether a key of such a file stands anywhere in the head.
fn has_events_behind(head: &[u8]) -> bool {
    TELLING.iter().any(|it| {
        let quoted = format!("\"{it}\"");
        head.windows(quoted.len()).any(|at| at == quoted.as_bytes())
    })
}

/// Events are decoded in pieces of about this size, so that all cores work.
const CHUNK_BYTES: usize = 4 << 20;
/// A larger file's pieces are worth preparing for.
const MANY_BLOCKS: usize = 64 << 20;
/// Read behind a piece, so that its last event is whole.
const OVERHANG: usize = 64 << 10;
/// Read before a piece: what shows that an event begins there.
const LOOKBACK: usize = 256;
/// No event of any profiler is this long; one that is, is passed over.
const LONGEST_EVENT: usize = 64 << 20;
/// What stands beside the events is small, but for logs of the profiler.
const LONGEST_VALUE: usize = 4 << 20;
/// As much is looked at to find where a value begins.
const WINDOW: usize = 64 << 10;

struct Reader<'p, 'a> {
    pieces: &'p Pieces<'a>,
    size: usize,
    /// What stands beside the list, by key.
    beside: HashMap<String, Value>,
    base_us: Option<i64>,
    decoded: Vec<Decoded>,
    cut: bool,
    n_long: u64,
}

impl<'p, 'a> Reader<'p, 'a> {
    fn new(pieces: &'p Pieces<'a>) -> Reader<'p, 'a> {
        Reader {
            pieces,
            size: pieces.file().size(),
            beside: HashMap::new(),
            base_us: None,
            decoded: Vec::new(),
            cut: false,
            n_long: 0,
        }
    }

    fn read(
        mut self,
        input: &Input<'_>,
        source: u16,
        out: &mut TraceBuilder,
    ) -> Result<(), SourceError> {
        self.top(out);
        let n_events = self.decoded.iter().map(|it| it.start.len()).sum();
        if n_events == 0 {
            self.pieces.refuse_fault()?;
            let hint = match self.cut {
                true => "the file ends before its first event",
                false => "no event in this trace could be read",
            };
            return Err(broken(&format!(
                "{hint}\n  hint: was the job killed before the profiler stopped?"
            )));
        }
        if !out.has_room(n_events) {
            return Err(SourceError::NoMemory { n_events });
        }
        if self.cut {
            let size = self.size;
            out.note(NoteKind::CutOff, || {
                format!("the file ends at byte {size}, inside its list of events")
            });
        }
        out.note_many(NoteKind::Malformed, self.n_long, || {
            format!("an event is longer than {} MiB", LONGEST_EVENT >> 20)
        });
        Joined::of(self.decoded, self.beside, self.base_us.unwrap_or(0))
            .hand_over(input, source, out);
        Ok(())
    }

    /// The next byte that is no blank, and where it stands.
    fn peek(&self, mut at: usize) -> Option<(usize, u8)> {
        let mut buffer = Vec::new();
        loop {
            let piece = self.pieces.read(at..at.saturating_add(4096), &mut buffer);
            if piece.is_empty() {
                return None;
            }
            match piece.iter().position(|it| !matches!(it, b' ' | b'\n' | b'\r' | b'\t')) {
                Some(n) => return Some((at + n, piece[n])),
                None => at += piece.len(),
            }
        }
    }

    /// Walks what surrounds the list of events.
    fn top(&mut self, out: &mut TraceBuilder) {
        let mut head = Vec::new();
        let start = if self.pieces.read(0..3, &mut head) == BOM { 3 } else { 0 };
        let Some((mut at, first)) = self.peek(start) else { return };
        if first == b'[' {
            // Its end may be missing: then it was written to the last.
            at = self.events(at + 1);
            self.trailing(at, out);
            return;
        }
        at += 1;
        loop {
            let Some((next, byte)) = self.peek(at) else {
                self.cut |= !self.decoded.is_empty();
                return;
            };
            at = next;
            match byte {
                b'}' => return self.trailing(at + 1, out),
                b',' => {
                    at += 1;
                    continue;
                }
                b'"' => (),
                _ => {
                    out.note(NoteKind::Malformed, || format!("at byte {at}, beside the events"));
                    return;
                }
            }
            let mut buffer = Vec::new();
            let piece = self.pieces.read(at..at.saturating_add(WINDOW), &mut buffer);
            let mut cursor = Cursor::new(piece, 0);
            let key = cursor.string().ok().map(|it| json::unescaped(it).into_owned());
            let value_at = match (cursor.expect(b':'), key.is_some()) {
                (Ok(()), true) => at + cursor.at,
                _ => {
                    out.note(NoteKind::Malformed, || format!("at byte {at}, beside the events"));
                    return;
                }
            };
            let key = key.unwrap_or_default();
            let Some((value_at, first)) = self.peek(value_at) else {
                self.cut = true;
                return;
            };
            if key == "traceEvents" && first == b'[' {
                at = self.events(value_at + 1);
                continue;
            }
            let Some(end) = self.end_of_value(value_at) else {
                self.cut = true;
                return;
            };
            if end - value_at <= LONGEST_VALUE {
                let mut buffer = Vec::new();
                let value = self.pieces.read(value_at..end, &mut buffer);
                if let Ok(value) = serde_json::from_slice(value) {
                    self.beside.insert(key, value);
                }
            }
            at = end;
        }
    }

    /// Anything behind the end is damage.
    fn trailing(&self, at: usize, out: &mut TraceBuilder) {
        if let Some((at, _)) = self.peek(at).filter(|_| !self.cut) {
            out.note(NoteKind::Malformed, || format!("at byte {at}, behind the end of the trace"));
        }
    }

    /// Where a value ends, however long it is.
    fn end_of_value(&self, start: usize) -> Option<usize> {
        let (mut at, mut buffer) = (start, Vec::new());
        let (mut depth, mut in_text, mut escaped, mut any) = (0_usize, false, false, false);
        loop {
            let piece = self.pieces.read(at..at.saturating_add(CHUNK_BYTES), &mut buffer);
            if piece.is_empty() {
                return None;
            }
            for (n, &byte) in piece.iter().enumerate() {
                if in_text {
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        b'"' => {
                            in_text = false;
                            if depth == 0 {
                                return Some(at + n + 1);
                            }
                        }
                        _ => (),
                    }
                    continue;
                }
                match byte {
                    b'"' => in_text = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth <= 1 => {
                        // Of a number the bracket around it is no part.
                        return Some(at + n + depth);
                    }
                    b'}' | b']' => depth -= 1,
                    b',' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 && any => {
                        return Some(at + n);
                    }
                    _ => (),
                }
                any = true;
            }
            at += piece.len();
        }
    }

    /// Reads the list from behind its bracket on; answers where it ends.
    fn events(&mut self, start: usize) -> usize {
        if self.base_us.is_none() {
            self.base_us = Some(self.base_of(start));
        }
        let base_us = self.base_us.unwrap_or(0);
        let n_pieces = rayon::current_num_threads().clamp(1, 64);
        let mut at = start;
        loop {
            let bounds: Vec<usize> =
                (0..=n_pieces).map(|it| at.saturating_add(it * CHUNK_BYTES)).collect();
            let guesses: Vec<Option<Decoded>> = (0..n_pieces)
                .into_par_iter()
                .map_init(Vec::new, |buffer, nth| {
                    let (from, until) = (bounds[nth], bounds[nth + 1]);
                    if from >= self.size {
                        return None;
                    }
                    self.piece(from, until, nth > 0, base_us, buffer)
                })
                .collect();
            let mut expected = at;
            for (nth, guess) in guesses.into_iter().enumerate() {
                let until = bounds[nth + 1];
                if expected >= until {
                    continue;
                }
                let guess = guess.filter(|it| it.first_byte == expected);
                let mut decoded = match guess {
                    Some(it) => it,
                    None => Decoded { next: expected, ..Decoded::default() },
                };
                loop {
                    let (next, done) = (decoded.next, decoded.is_last || decoded.cut);
                    let (cut, lost) = (decoded.cut, decoded.lost);
                    self.keep(decoded);
                    if done {
                        self.cut |= cut;
                        return next;
                    }
                    if next >= until && !lost {
                        expected = next;
                        break;
                    }
                    match self.more(next, until.max(next + 1), base_us, lost) {
                        Some(it) => decoded = it,
                        None => {
                            self.cut = true;
                            return self.size;
                        }
                    }
                }
            }
            at = expected;
            if at >= self.size {
                self.cut = true;
                return self.size;
            }
        }
    }

    fn keep(&mut self, decoded: Decoded) {
        self.decoded.push(decoded);
    }

    /// Events that begin from `from` on and before `until`, as far as they are in one read.
    fn piece(
        &self,
        from: usize,
        until: usize,
        guess: bool,
        base_us: i64,
        buffer: &mut Vec<u8>,
    ) -> Option<Decoded> {
        let look = if guess { from.saturating_sub(LOOKBACK) } else { from };
        let bytes = self.pieces.read(look..until.saturating_add(OVERHANG), buffer);
        let is_end = look + bytes.len() >= self.size;
        let begin = if guess { border(bytes, from - look)? } else { 0 };
        let bytes = bytes.get(begin..)?;
        Some(Decoded::read(bytes, look + begin, until, base_us, is_end).fitted())
    }

    /// Goes on where a piece ended too early: inside an event that is longer than what was read, or
    /// in damage.
    fn more(&mut self, from: usize, until: usize, base_us: i64, lost: bool) -> Option<Decoded> {
        let mut buffer = Vec::new();
        let from = match lost {
            false => from,
            true => {
                let mut at = from;
                loop {
                    let look = at.saturating_sub(LOOKBACK);
                    let bytes = self.pieces.read(look..at.saturating_add(CHUNK_BYTES), &mut buffer);
                    if look + bytes.len() <= at {
                        return None;
                    }
                    if let Some(found) = border(bytes, at - look) {
                        break look + found;
                    }
                    at = look + bytes.len();
                }
            }
        };
        let mut n_bytes = until.saturating_sub(from).max(1) + OVERHANG;
        loop {
            let bytes = self.pieces.read(from..from.saturating_add(n_bytes), &mut buffer);
            let is_end = from + bytes.len() >= self.size || bytes.len() < n_bytes;
            let decoded = Decoded::read(bytes, from, until.max(from + 1), base_us, is_end);
            if decoded.next > from || decoded.is_last || decoded.cut {
                return Some(decoded);
            }
            if n_bytes >= LONGEST_EVENT {
                self.n_long += 1;
                let next = self.end_of_value(from)?;
                return Some(Decoded { first_byte: from, next, ..Decoded::default() });
            }
            n_bytes *= 4;
        }
    }

    /// The whole microsecond that times are counted from: the middle one of the first events, so
    /// that one that lies does not matter.
    fn base_of(&self, start: usize) -> i64 {
        let mut buffer = Vec::new();
        let bytes = self.pieces.read(start..start.saturating_add(CHUNK_BYTES / 4), &mut buffer);
        let mut cursor = Cursor::new(bytes, 0);
        let mut times = Vec::new();
        while times.len() < 64 {
            match cursor.peek() {
                Ok(b',') => cursor.at += 1,
                Ok(b'{') => match Element::read(&mut cursor) {
                    Ok(it) if it.is_event() => times.extend(it.ts.map(|it| it.whole)),
                    Ok(_) => (),
                    Err(_) => break,
                },
                _ => break,
            }
        }
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or(0)
    }
}
