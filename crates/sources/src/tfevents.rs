//! Reads TensorBoard's event files (`events.out.tfevents.*`): the scalars of a training log.
//!
//! | theirs                                   | ours                              |
//! |------------------------------------------|-----------------------------------|
//! | the folder of the file                   | run of a series                   |
//! | `Summary.Value.tag`                      | tag of a series                   |
//! | `simple_value`                           | scalar                            |
//! | `tensor` of the plugin `scalars`         | scalar                            |
//! | `Event.step`, `Event.wall_time`          | step and Unix time of a scalar    |
//! | other plugins, images, histograms, graphs | counted by kind                  |
//!
//! ```text
//! record = length u64 ─ masked CRC-32C of it u32 ─ Event ─ masked CRC-32C of the event u32
//! ```
//!
//! The formats are those of
//! <https://github.com/tensorflow/tensorflow/blob/v2.20.0/tensorflow/core/util/event.proto>,
//! [summary.proto](https://github.com/tensorflow/tensorflow/blob/v2.20.0/tensorflow/core/framework/summary.proto) and
//! [record_writer.h](https://github.com/openxla/xla/blob/main/xla/tsl/lib/io/record_writer.h).
//! A writer may name the plugin of a tag only once, as TensorFlow 1 does; what it said first holds.
//!
//! A job that goes on leaves a last record that is cut off: what came before is kept. Nothing here
//! says when a trace began or how long it is, so a log of hours leaves a profile's window alone.

mod tensor;

use std::path::Path;
use std::sync::Arc;

use hashbrown::HashMap;
use trace::{NoteKind, Scalar, SeriesId, TraceBuilder};

use crate::wire::{Damage, Field, Fields, Value};
use crate::{Change, Claim, Input, Listed, Pieces, Source, SourceError};

#[derive(Debug)]
pub struct TfEvents;

const READER: &str = "tfevents";

/// Names stand in every row of a table.
const LONGEST_NAME: usize = 1024;
/// More points than anybody looks at; as many take half a gigabyte.
const MOST_SCALARS: usize = 16_000_000;
/// Kinds of what is left out: there are about ten, a damaged file could name any number.
const MOST_KINDS: usize = 100;
/// Larger ones hold a graph or video: a record is in memory as a whole.
const LARGEST_RECORD: usize = 256 << 20;
/// How much is read at once, at least: records are short.
const WINDOW: usize = 1 << 20;

impl Source for TfEvents {
    fn name(&self) -> &'static str {
        READER
    }

    /// A record whose length has the right sum, and in it an event: they begin with their time.
    /// Records of examples are framed alike and begin with something else.
    /// TensorBoard's own rule; but for the files that say only that there is a profile.
    fn claim(&self, file: Listed<'_>) -> Claim {
        match file.name.contains("tfevents") && !file.name.ends_with(".profile-empty") {
            true => Claim::Log,
            false => Claim::No,
        }
    }

    fn sniff(&self, head: &[u8]) -> bool {
        is_framed(head) && head.get(HEADER) == Some(&WALL_TIME_TAG)
    }

    fn read(&self, input: &Input<'_>, out: &mut TraceBuilder) -> Result<(), SourceError> {
        let pieces = Pieces::new(&*input.bytes);
        let mut window = pieces.window(WINDOW);
        let mut log = Log::new(input.path);
        let (mut at, size) = (0, window.size());
        while at < size {
            // What the file does not hold is not asked for.
            let len = record_len(window.get(at..at + HEADER));
            let len = len.filter(|it| *it <= size - at).unwrap_or(HEADER);
            if len > LARGEST_RECORD {
                log.leave_out("large_records");
                at += len;
                continue;
            }
            match record(window.get(at..at.saturating_add(len))) {
                Record::Whole { event, len } => {
                    log.event(event, at, out);
                    at += len;
                }
                Record::WrongSum { len } => {
                    out.note(NoteKind::Malformed, || log.place(at, "has a wrong checksum"));
                    at += len;
                }
                Record::Cut => {
                    out.note(NoteKind::Truncated, || log.place(at, "is cut off"));
                    break;
                }
                // Where the next one would begin is not known.
                Record::Lost => {
                    let what = "has a length that is damaged; the rest is not read";
                    out.note(NoteKind::Malformed, || log.place(at, what));
                    break;
                }
            }
            input.bytes.done_with(len);
        }
        log.finish(out);
        pieces.note(input.path.display(), Change::Grown, out);
        Ok(())
    }
}

/// Length and sum in front of each record, and the sum behind it.
const HEADER: usize = 12;
const FOOTER: usize = 4;
/// Field 1, eight bytes.
const WALL_TIME_TAG: u8 = 0x09;

/// Whether a file begins with a record's length and the sum of that.
pub fn is_framed(head: &[u8]) -> bool {
    let Some((length, rest)) = head.split_first_chunk::<8>() else { return false };
    rest.first_chunk().is_some_and(|it| u32::from_le_bytes(*it) == masked_sum(length))
}

/// Sums are masked because a sum over bytes that hold their own sum is no good one.
fn masked_sum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

enum Record<'a> {
    Whole { event: &'a [u8], len: usize },
    WrongSum { len: usize },
    Cut,
    Lost,
}

/// How long the record with this header is, with its header and all.
fn record_len(header: &[u8]) -> Option<usize> {
    if !is_framed(header) {
        return None;
    }
    let len = u64::from_le_bytes(*header.first_chunk::<8>()?);
    usize::try_from(len).ok()?.checked_add(HEADER + FOOTER)
}

/// The record that these bytes begin with.
fn record(bytes: &[u8]) -> Record<'_> {
    let Some((length, _)) = bytes.split_first_chunk::<8>().filter(|_| bytes.len() >= HEADER) else {
        return Record::Cut;
    };
    if !is_framed(bytes) {
        return Record::Lost;
    }
    let whole = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|len| {
        let event = bytes[HEADER..].get(..len)?;
        let sum = bytes[HEADER + len..].first_chunk::<FOOTER>()?;
        Some((event, u32::from_le_bytes(*sum)))
    });
    let Some((event, sum)) = whole else { return Record::Cut };
    let len = HEADER + event.len() + FOOTER;
    match masked_sum(event) != sum {
        true => Record::WrongSum { len },
        false => Record::Whole { event, len },
    }
}

/// One file while it is read.
struct Log<'a> {
    path: &'a Path,
    run: Arc<str>,
    tags: HashMap<Box<[u8]>, Tag>,
    kinds: Vec<(String, u64)>,
}

/// What is known of a tag.
#[derive(Clone, Copy, Default)]
struct Tag {
    plugin: Plugin,
    series: Option<SeriesId>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Plugin {
    #[default]
    NotSaid,
    Scalars,
    /// A row of [`Log::kinds`].
    Other(usize),
}

/// The one thing a value holds.
enum Held<'a> {
    Nothing,
    Simple(f32),
    Tensor(&'a [u8]),
    Old(&'static str),
}

/// When something was logged.
#[derive(Clone, Copy, Default)]
struct When {
    step: i64,
    unix_ns: Option<i64>,
}

impl<'a> Log<'a> {
    fn new(path: &'a Path) -> Log<'a> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let run = folder.to_string_lossy().into();
        Log { path, run, tags: HashMap::new(), kinds: Vec::new() }
    }

    fn place(&self, at: usize, what: &str) -> String {
        format!("a record of an event file, at byte {at}, {what}: {}", self.path.display())
    }

    fn event(&mut self, event: &[u8], at: usize, out: &mut TraceBuilder) {
        if self.contents(event, out).is_err() {
            out.note(NoteKind::Malformed, || self.place(at, "holds no event"));
        }
    }

    fn contents(&mut self, event: &[u8], out: &mut TraceBuilder) -> Result<(), Damage> {
        let mut when = When::default();
        let mut summary = None;
        let mut fields = Fields::new(event);
        while let Some(Field { number, value, .. }) = fields.next()? {
            match (number, value) {
                (1, Value::Fixed64(bits)) => when.unix_ns = self.time(f64::from_bits(bits), out),
                (2, Value::Varint(it)) => when.step = it.cast_signed(),
                (4, Value::Bytes(_)) => self.leave_out("graphs"),
                (5, Value::Bytes(it)) => {
                    // No writer writes two; the format would make them one.
                    if let Some(before) = summary.replace(it) {
                        self.summary(before, when, out)?;
                    }
                }
                (6, Value::Bytes(_)) => self.leave_out("log_messages"),
                (8, Value::Bytes(_)) => self.leave_out("run_metadata"),
                (9, Value::Bytes(_)) => self.leave_out("meta_graphs"),
                // The format's version, the state of a session, the name of the writer.
                _ => (),
            }
        }
        // Its time and step may stand behind it.
        summary.map_or(Ok(()), |it| self.summary(it, when, out))
    }

    fn time(&self, seconds: f64, out: &mut TraceBuilder) -> Option<i64> {
        let time = unix_ns(seconds);
        if time.is_none() {
            out.note(NoteKind::BadTimestamp, || {
                format!("an event at {seconds} s: {}", self.path.display())
            });
        }
        time
    }

    fn summary(
        &mut self,
        summary: &[u8],
        when: When,
        out: &mut TraceBuilder,
    ) -> Result<(), Damage> {
        let mut fields = Fields::new(summary);
        while let Some(Field { number, value, .. }) = fields.next()? {
            if let (1, Value::Bytes(value)) = (number, value) {
                self.value(value, when, out)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, bytes: &[u8], when: When, out: &mut TraceBuilder) -> Result<(), Damage> {
        let (mut name, mut held, mut metadata) = ([].as_slice(), Held::Nothing, None);
        let mut fields = Fields::new(bytes);
        while let Some(Field { number, value, .. }) = fields.next()? {
            match (number, value) {
                (1, Value::Bytes(it)) => name = it,
                (2, Value::Fixed32(bits)) => held = Held::Simple(f32::from_bits(bits)),
                (3 | 5, Value::Bytes(_)) => held = Held::Old("histograms"),
                (4, Value::Bytes(_)) => held = Held::Old("images"),
                (6, Value::Bytes(_)) => held = Held::Old("audio"),
                (8, Value::Bytes(it)) => held = Held::Tensor(it),
                (9, Value::Bytes(it)) => metadata = Some(it),
                _ => (),
            }
        }
        let mut tag = self.tags.get(name).copied().unwrap_or_default();
        let before = tag;
        if let (Plugin::NotSaid, Some(metadata)) = (tag.plugin, metadata) {
            tag.plugin = self.plugin(metadata)?;
        }
        // A writer that was closed and opened again names no plugin in its second file.
        if tag.plugin == Plugin::NotSaid
            && matches!(held, Held::Tensor(_))
            && out.has_series(&self.run, &text(name))
        {
            tag.plugin = Plugin::Scalars;
        }
        let number = match (held, tag.plugin) {
            (Held::Simple(it), _) => Some(f64::from(it)),
            (Held::Tensor(it), Plugin::Scalars) => {
                let number = tensor::number(it)?;
                if number.is_none() {
                    out.note(NoteKind::Malformed, || {
                        format!("{:?} holds no single number: {}", text(name), self.path.display())
                    });
                }
                number
            }
            (Held::Old(kind), _) => {
                self.leave_out(kind);
                None
            }
            (_, Plugin::Other(kind)) => {
                self.kinds[kind].1 += 1;
                None
            }
            (Held::Tensor(_), Plugin::NotSaid) => {
                self.leave_out("tensors");
                None
            }
            (Held::Nothing, _) => None,
        };
        if let Some(value) = number {
            if out.n_scalars() >= MOST_SCALARS {
                out.note(NoteKind::TooManyEvents, || {
                    format!("at most {MOST_SCALARS} scalars are read: {}", self.path.display())
                });
                return Ok(());
            }
            let series = *tag.series.get_or_insert_with(|| {
                if std::str::from_utf8(name).is_err() {
                    out.note(NoteKind::BadText, || format!("a tag: {:?}", text(name)));
                }
                out.series(&self.run, &text(name))
            });
            out.scalar(Scalar { series, step: when.step, unix_ns: when.unix_ns, value });
        }
        if before.plugin != tag.plugin || before.series != tag.series {
            self.tags.insert(name.into(), tag);
        }
        Ok(())
    }

    /// Which plugin a tag is for, by the name in its metadata.
    fn plugin(&mut self, metadata: &[u8]) -> Result<Plugin, Damage> {
        let mut name = [].as_slice();
        let mut fields = Fields::new(metadata);
        while let Some(Field { number, value, .. }) = fields.next()? {
            let (1, Value::Bytes(plugin)) = (number, value) else { continue };
            let mut fields = Fields::new(plugin);
            while let Some(Field { number, value, .. }) = fields.next()? {
                if let (1, Value::Bytes(it)) = (number, value) {
                    name = it;
                }
            }
        }
        Ok(match name {
            b"scalars" => Plugin::Scalars,
            b"" => Plugin::Other(self.kind("tensors")),
            name => Plugin::Other(self.kind(&text(name))),
        })
    }

    fn leave_out(&mut self, kind: &str) {
        let kind = self.kind(kind);
        self.kinds[kind].1 += 1;
    }

    fn kind(&mut self, kind: &str) -> usize {
        let known = self.kinds.iter().position(|it| it.0 == kind);
        known.unwrap_or_else(|| {
            if self.kinds.len() < MOST_KINDS {
                self.kinds.push((kind.to_owned(), 0));
            }
            self.kinds.len() - 1
        })
    }

    fn finish(self, out: &mut TraceBuilder) {
        for (kind, count) in self.kinds.iter().filter(|it| it.1 > 0) {
            out.leave_out(&self.run, kind, *count);
        }
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(LONGEST_NAME).collect()
}

/// Seconds since 1970 as whole nanoseconds. Today's doubles step by 238 ns, so whole seconds are
/// taken apart first: the difference to them is exact.
fn unix_ns(seconds: f64) -> Option<i64> {
    let whole = seconds.floor();
    // Casts of what is not finite or too large would saturate.
    if !whole.is_finite() || whole.abs() >= 9e9 {
        return None;
    }
    let rest = ((seconds - whole) * 1e9).round() as i64;
    Some(whole as i64 * 1_000_000_000 + rest)
}

#[cfg(test)]
mod tests;
