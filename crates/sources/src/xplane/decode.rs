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
        if let Some(key) = event.get(Lift::Correlation) {
            self.correlations.push(key, id);
        }
        // Keys of different types must not meet; six bits hold them all.
        let key = |key: u64, kind: u64| key.wrapping_add(kind << 58);
        if let Some(producer) = event.get(Lift::Producer) {
            let kind = event.get(Lift::ProducerType).unwrap_or(0);
            if kind != THREAD_POOL {
                self.produced.push(key(producer, kind), id);
            }
        }
        if let Some(consumer) = event.get(Lift::Consumer) {
            let kind = event.get(Lift::ConsumerType).unwrap_or(0);
            if kind != THREAD_POOL {
                self.consumed.push(key(consumer, kind), id);
            }
        }
        if let Some(step) = event.get(Lift::StepNumber) {
            self.numbers.push((id, NumberKey::Step, step as i64));
        }
        if let Some(level) = event.get(Lift::Root) {
            self.numbers.push((id, NumberKey::Root, level as i64));
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

/// One event's values as they are met. Reused for all events of a chunk: `lifted` keeps the last
/// event's values until they are met again, so that they need no clearing.
#[derive(Default)]
struct Event {
    metadata: u64,
    offset: i64,
    dur: i64,
    /// Of the stats that make up its detail.
    hash: u64,
    /// Which of `lifted` this event has, a bit for each.
    has: u16,
    /// By [`Lift`].
    lifted: [u64; 16],
}

impl Event {
    #[inline(always)]
    fn clear(&mut self) {
        (self.metadata, self.offset, self.dur, self.hash, self.has) = (0, 0, 0, 0, 0);
    }

    #[inline(always)]
    fn get(&self, lift: Lift) -> Option<u64> {
        (self.has & (1 << lift as u16) != 0).then(|| self.lifted[lift as usize])
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
        if read_event(bytes, body, end, meta, &mut event).is_none() {
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
            Special::CallsFunction | Special::RunsFunction => {
                let calls = special == Special::CallsFunction;
                let to = if calls { &mut out.functions_called } else { &mut out.functions_run };
                if let Some(function) = event.get(Lift::FunctionId) {
                    to.push(function, id);
                }
            }
        }
    }
    rows.give_up(row);
    out
}

/// Reads the event from `at` to `end`. What lies behind is only looked at, never taken: a load of
/// eight bytes may reach over the end, a value may not.
///
/// Writers put fields in the order of their numbers, so they are tried in that order: a branch
/// that is always taken costs nothing, a jump by tag is mostly mispredicted.
#[inline(always)]
fn read_event(
    bytes: &[u8],
    mut at: usize,
    end: usize,
    meta: &PlaneMeta,
    event: &mut Event,
) -> Option<()> {
    while at < end {
        let begun = at;
        if bytes.get(at) == Some(&0x08) {
            let (value, len) = varint(bytes, at + 1)?;
            event.metadata = value;
            at += 1 + len;
        }
        if at < end && bytes.get(at) == Some(&0x10) {
            let (value, len) = varint(bytes, at + 1)?;
            event.offset = value as i64;
            at += 1 + len;
        }
        if at < end && bytes.get(at) == Some(&0x18) {
            let (value, len) = varint(bytes, at + 1)?;
            event.dur = value as i64;
            at += 1 + len;
        }
        while at < end && bytes.get(at) == Some(&0x22) {
            let (size, len) = varint(bytes, at + 1)?;
            at += 1 + len;
            let stat_end = at.checked_add(usize::try_from(size).ok()?)?;
            if stat_end > end {
                return None;
            }
            read_stat(bytes, at, stat_end, meta, event)?;
            at = stat_end;
        }
        if at == begun {
            at += skip_field(bytes, at, end)?;
        }
    }
    (at == end).then_some(())
}

#[inline(always)]
fn read_stat(
    bytes: &[u8],
    mut at: usize,
    end: usize,
    meta: &PlaneMeta,
    event: &mut Event,
) -> Option<()> {
    // The id comes first in every file seen; most stats are then known to be of no interest.
    let mut lift = Lift::No;
    let mut id = 0;
    if at < end && bytes.get(at) == Some(&0x08) {
        let len;
        (id, len) = varint(bytes, at + 1)?;
        at += 1 + len;
        lift = meta.lift(id);
        if lift == Lift::No {
            return (at <= end).then_some(());
        }
    }
    let mut value = 0;
    let mut text: &[u8] = &[];
    while at < end {
        let tag = *bytes.get(at)?;
        if matches!(tag, 0x18 | 0x20 | 0x38) {
            let len;
            (value, len) = varint(bytes, at + 1)?;
            at += 1 + len;
            // A reference is not the number it refers by.
            value ^= u64::from(tag == 0x38) << 63;
        } else if tag == 0x2A {
            let (size, len) = varint(bytes, at + 1)?;
            at += 1 + len;
            let text_end = at.checked_add(usize::try_from(size).ok()?)?;
            text = bytes.get(at..text_end)?;
            at = text_end;
        } else if tag == 0x08 {
            let len;
            (id, len) = varint(bytes, at + 1)?;
            at += 1 + len;
            lift = meta.lift(id);
        } else {
            at += skip_field(bytes, at, end)?;
        }
    }
    if at != end {
        return None;
    }
    if lift == Lift::Detail {
        let value = if text.is_empty() { value } else { hash_text(text) };
        // Added up, so that the order of stats does not matter.
        event.hash = event.hash.wrapping_add(mix(value, id.wrapping_add(0x9E37)) | 1);
    } else {
        event.lifted[lift as usize] = value;
        event.has |= 1 << lift as u16;
    }
    Some(())
}

/// The length of a field that is not read.
#[cold]
fn skip_field(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    let mut fields = Fields::new(bytes.get(at..end)?);
    fields.next().ok()??;
    Some(fields.position())
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
    let fold = |hash: u64, it: [u8; 16]| {
        let wide = u128::from_le_bytes(it);
        mix(hash ^ wide as u64, (wide >> 64) as u64)
    };
    let mut hash = text.len() as u64;
    for chunk in text.as_chunks::<16>().0 {
        hash = fold(hash, *chunk);
    }
    // The last sixteen bytes, though some were met before: no copy of a part is needed.
    match text.last_chunk::<16>() {
        Some(last) => fold(hash, *last),
        None => {
            let mut last = [0; 16];
            last[..text.len()].copy_from_slice(text);
            fold(hash, last)
        }
    }
}
