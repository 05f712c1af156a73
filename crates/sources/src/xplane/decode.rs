//! The hot loop: a chunk of a line's events into reserved rows.

use std::ops::Range;

use hashbrown::HashTable;
use trace::{Args, ColumnsMut, KeyBatch, NoteKind, NumberKey};

use super::meta::{Lift, PlaneMeta, Special};
use crate::wire::{Fields, varint};

/// A piece of a line that begins and ends between events.
#[derive(Debug)]
pub struct Chunk {
    pub bytes: Range<usize>,
    pub n_events: usize,
    pub first_row: u32,
    /// Of the line, in picoseconds of the trace.
    pub start: i64,
    pub source: u16,
    pub on_host: bool,
    pub plane: usize,
}

/// What a chunk holds beside its columns.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Hash, place of the first event that has it, and its number in the trace once merged.
    pub details: Vec<(u64, usize, u32)>,
    pub correlations: KeyBatch,
    pub functions_called: KeyBatch,
    pub functions_run: KeyBatch,
    pub produced: KeyBatch,
    pub consumed: KeyBatch,
    pub numbers: Vec<(u32, NumberKey, i64)>,
    /// Place and time of allocators' records.
    pub allocations: Vec<(usize, i64)>,
    /// Kind, how many, place of the first.
    pub damage: Vec<(NoteKind, u64, usize)>,
}

impl Decoded {
    /// What few events carry, or what joins them to others.
    #[inline(always)]
    fn keep(&mut self, id: u32, event: &Event) {
        if event.has(Lift::Correlation) {
            self.correlations.push(event.correlation, id);
        }
        // Keys of different types must not meet; six bits hold them all.
        let key = |key: u64, kind: u64| key.wrapping_add(kind << 58);
        if event.has(Lift::Producer) {
            let kind = if event.has(Lift::ProducerType) { event.producer_type } else { 0 };
            if kind != THREAD_POOL {
                self.produced.push(key(event.producer, kind), id);
            }
        }
        if event.has(Lift::Consumer) {
            let kind = if event.has(Lift::ConsumerType) { event.consumer_type } else { 0 };
            if kind != THREAD_POOL {
                self.consumed.push(key(event.consumer, kind), id);
            }
        }
        if event.has(Lift::StepNumber) {
            self.numbers.push((id, NumberKey::Step, event.step as i64));
        }
        if event.has(Lift::Root) {
            self.numbers.push((id, NumberKey::Root, event.root as i64));
        }
    }

    #[cold]
    fn note(&mut self, kind: NoteKind, at: usize) {
        match self.damage.iter_mut().find(|it| it.0 == kind) {
            Some(it) => it.1 += 1,
            None => self.damage.push((kind, 1, at)),
        }
    }
}

/// No capture lasts thirteen days: a time beyond that is damage, and would overflow sums.
const LONGEST_PS: i64 = 1 << 60;

fn is_sane(time: i64) -> bool {
    -LONGEST_PS < time && time < LONGEST_PS
}

/// Thread pools count hand-overs of work under this type; there are more of them than of
/// anything else, and nothing is asked of them.
const THREAD_POOL: u64 = 15;

/// One event's values as they are met. Reused for all events of a chunk: those behind `has` keep
/// the last event's value until they are met again, so that they need no clearing.
#[derive(Default)]
struct Event {
    metadata: u64,
    offset: i64,
    dur: i64,
    /// Of the stats that make up its detail.
    hash: u64,
    /// Which of the following this event has, a bit for each [`Lift`].
    has: u16,
    correlation: u64,
    step: u64,
    root: u64,
    id: u64,
    producer_type: u64,
    producer: u64,
    consumer_type: u64,
    consumer: u64,
}

impl Event {
    #[inline(always)]
    fn clear(&mut self) {
        (self.metadata, self.offset, self.dur, self.hash, self.has) = (0, 0, 0, 0, 0);
    }

    #[inline(always)]
    fn has(&self, lift: Lift) -> bool {
        self.has & (1 << lift as u16) != 0
    }
}

pub fn decode(bytes: &[u8], chunk: &Chunk, meta: &PlaneMeta, mut rows: ColumnsMut<'_>) -> Decoded {
    let correlations = KeyBatch::with_room(chunk.n_events);
    let mut out = Decoded { correlations, ..Decoded::default() };
    let mut seen = Seen::default();
    let mut event = Event::default();
    let mut row = 0;
    // Everything behind the chunk is out of reach, so that no length can lead there.
    let bytes = &bytes[..chunk.bytes.end];
    let mut at = chunk.bytes.start;
    while at < bytes.len() && row < rows.name.len() {
        let Some((tag, tag_len)) = varint(bytes, at) else { break };
        if tag != u64::from(super::EVENT_TAG) {
            // A field of the line that stands between its events.
            let mut fields = Fields::new(&bytes[at..]);
            match fields.next() {
                Ok(Some(_)) => at += fields.position(),
                _ => break,
            }
            continue;
        }
        let place = at + tag_len;
        let Some((len, len_len)) = varint(bytes, place) else { break };
        let body = place + len_len;
        let Some(end) = body.checked_add(len as usize).filter(|&it| it <= bytes.len()) else { break };
        at = end;
        event.clear();
        if read_event(&bytes[..end], body, meta, &mut event).is_none() {
            out.note(NoteKind::Malformed, place);
            continue;
        }

        let start = chunk.start.checked_add(event.offset);
        let Some(start) = start.filter(|&it| is_sane(it) && event.dur < LONGEST_PS) else {
            out.note(NoteKind::BadTimestamp, place);
            continue;
        };
        let mut dur = event.dur;
        if dur < 0 {
            out.note(NoteKind::BadTimestamp, place);
            dur = 0;
        }
        let (name, special, base) = match meta.event_ids.get(event.metadata) {
            Some(it) => {
                let it = meta.events[it];
                (it.name, it.special, it.base)
            }
            None => {
                out.note(NoteKind::UnknownName, place);
                (meta.unnamed, Special::No, 0)
            }
        };
        let hash = if base == 0 { event.hash } else { mix(event.hash, base) };

        rows.name[row] = name;
        rows.start[row] = start;
        rows.dur[row] = dur;
        rows.args[row] = Args::place(chunk.source, place as u64);
        if hash != 0 {
            rows.detail[row] = seen.number(hash, place, &mut out.details);
        }
        let id = chunk.first_row + row as u32;
        row += 1;

        if event.has != 0 {
            out.keep(id, &event);
        }
        match special {
            Special::No => (),
            Special::Allocation => out.allocations.push((place, start)),
            Special::CallsFunction if event.has(Lift::FunctionId) => {
                out.functions_called.push(event.id, id);
            }
            Special::RunsFunction if event.has(Lift::FunctionId) => {
                out.functions_run.push(event.id, id);
            }
            _ => (),
        }
    }
    rows.give_up(row);
    out
}

/// Reads the event from `at` to the end of `bytes`.
#[inline(always)]
fn read_event(bytes: &[u8], mut at: usize, meta: &PlaneMeta, event: &mut Event) -> Option<()> {
    while let Some(&tag) = bytes.get(at) {
        at += 1;
        match tag {
            0x08 => {
                let (value, len) = varint(bytes, at)?;
                event.metadata = value;
                at += len;
            }
            0x10 => {
                let (value, len) = varint(bytes, at)?;
                event.offset = value as i64;
                at += len;
            }
            0x18 => {
                let (value, len) = varint(bytes, at)?;
                event.dur = value as i64;
                at += len;
            }
            0x22 => {
                let (size, len) = varint(bytes, at)?;
                at += len;
                let end = at.checked_add(usize::try_from(size).ok()?)?;
                read_stat(bytes.get(..end)?, at, meta, event)?;
                at = end;
            }
            _ => {
                let mut fields = Fields::new(&bytes[at - 1..]);
                fields.next().ok()??;
                at = at - 1 + fields.position();
            }
        }
    }
    Some(())
}

#[inline(always)]
fn read_stat(bytes: &[u8], mut at: usize, meta: &PlaneMeta, event: &mut Event) -> Option<()> {
    // The id comes first in every file seen; most stats are then known to be of no interest.
    let mut lift = Lift::No;
    let mut id = 0;
    if bytes.get(at) == Some(&0x08) {
        let len;
        (id, len) = varint(bytes, at + 1)?;
        at += 1 + len;
        lift = meta.lift(id);
        if lift == Lift::No {
            return Some(());
        }
    }
    let mut value = 0;
    let mut text: &[u8] = &[];
    while let Some(&tag) = bytes.get(at) {
        match tag {
            0x18 | 0x20 | 0x38 => {
                let len;
                (value, len) = varint(bytes, at + 1)?;
                at += 1 + len;
                // A reference is not the number it refers by.
                value ^= if tag == 0x38 { 1 << 63 } else { 0 };
            }
            0x2A => {
                let (size, len) = varint(bytes, at + 1)?;
                at += 1 + len;
                let end = at.checked_add(usize::try_from(size).ok()?)?;
                text = bytes.get(at..end)?;
                at = end;
            }
            0x08 => {
                let len;
                (id, len) = varint(bytes, at + 1)?;
                at += 1 + len;
                lift = meta.lift(id);
            }
            _ => {
                let mut fields = Fields::new(&bytes[at..]);
                fields.next().ok()??;
                at += fields.position();
            }
        }
    }
    let slot = match lift {
        Lift::No => return Some(()),
        Lift::Detail => {
            let value = if text.is_empty() { value } else { hash_text(text) };
            // Added up, so that the order of stats does not matter.
            event.hash = event.hash.wrapping_add(mix(value, id.wrapping_add(0x9E37)) | 1);
            return Some(());
        }
        Lift::Correlation => &mut event.correlation,
        Lift::StepNumber => &mut event.step,
        Lift::Root => &mut event.root,
        Lift::FunctionId => &mut event.id,
        Lift::ProducerType => &mut event.producer_type,
        Lift::Producer => &mut event.producer,
        Lift::ConsumerType => &mut event.consumer_type,
        Lift::Consumer => &mut event.consumer,
    };
    *slot = value;
    event.has |= 1 << lift as u16;
    Some(())
}

/// Numbers the details that a chunk meets, from 1.
#[derive(Default)]
struct Seen {
    table: HashTable<(u64, u32)>,
    /// Training repeats itself: the same few hundred details come again and again.
    recent: Vec<(u64, u32)>,
}

const RECENT: usize = 1024;

impl Seen {
    #[inline(always)]
    fn number(&mut self, hash: u64, place: usize, details: &mut Vec<(u64, usize, u32)>) -> u32 {
        if self.recent.is_empty() {
            self.recent = vec![(0, 0); RECENT];
        }
        let slot = (hash >> 32) as usize % RECENT;
        if self.recent[slot].0 == hash {
            return self.recent[slot].1;
        }
        let number = match self.table.find(hash, |it| it.0 == hash) {
            Some(&(_, number)) => number,
            None => {
                details.push((hash, place, 0));
                let number = details.len() as u32;
                self.table.insert_unique(hash, (hash, number), |it| it.0);
                number
            }
        };
        self.recent[slot] = (hash, number);
        number
    }
}

/// Two numbers into one that spreads over all bits.
#[inline(always)]
pub fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a ^ 0x9E37_79B9_7F4A_7C15) * u128::from(b ^ 0xD1B5_4A32_D192_ED03);
    (wide as u64) ^ ((wide >> 64) as u64)
}

fn hash_text(text: &[u8]) -> u64 {
    let word = |it: &[u8]| {
        let mut word = [0; 8];
        word[..it.len()].copy_from_slice(it);
        u64::from_le_bytes(word)
    };
    let (chunks, rest) = text.as_chunks::<16>();
    let mut hash = text.len() as u64;
    for chunk in chunks {
        let wide = u128::from_le_bytes(*chunk);
        hash = mix(hash ^ wide as u64, (wide >> 64) as u64);
    }
    let (low, high) = rest.split_at(rest.len().min(8));
    mix(hash ^ word(low), word(high))
}
