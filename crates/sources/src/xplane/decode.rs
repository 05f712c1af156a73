//! The hot loop: a chunk of a line's events into reserved rows.

use std::ops::Range;

use hashbrown::{HashMap, HashTable};
use trace::{ArgRun, ColumnsMut, FactValue, KeyBatch, NoteKind, NumberKey};

use super::meta::{Lift, PlaneMeta, Special};
use crate::wire::{Fields, short_field, tiny_field, varint, word};

/// A piece of a line that begins and ends between events.
#[derive(Debug)]
pub struct Chunk {
    pub bytes: Range<usize>,
    pub n_events: usize,
    pub first_row: u32,
    /// Of the line, in picoseconds of the trace.
    pub start: i64,
    pub on_host: bool,
    pub plane: usize,
}

/// What a chunk holds beside its columns.
#[derive(Debug, Default)]
pub struct Decoded {
    pub details: Vec<MetDetail>,
    /// The first event with each detail, as in the file: the chunk's bytes are gone by then.
    pub detail_events: Vec<u8>,
    pub correlations: KeyBatch,
    pub functions_called: KeyBatch,
    pub functions_run: KeyBatch,
    pub produced: KeyBatch,
    pub consumed: KeyBatch,
    pub numbers: Vec<(u32, NumberKey, i64)>,
    pub allocations: Vec<Allocation>,
    /// Their names, and where each of them stands.
    pub allocators: Vec<String>,
    allocator_rows: HashMap<String, usize>,
    /// Places of every [`ArgRun::EVERY`]th event, from the start of the chunk.
    pub arg_marks: Vec<u32>,
    /// Kind, how many, place of the first.
    pub damage: Vec<(NoteKind, u64, usize)>,
}

/// A detail that a chunk met.
#[derive(Debug)]
pub struct MetDetail {
    pub hash: u64,
    /// Where the first event that has it lies in [`Decoded::detail_events`].
    pub event_at: u32,
    /// Its number in the trace, once merged.
    pub id: u32,
}

/// What an allocator has given out.
#[derive(Debug)]
pub struct Allocation {
    pub start: i64,
    pub used_bytes: i64,
    /// Row of [`Decoded::allocators`].
    pub allocator: usize,
}

impl Decoded {
    /// `message` begins with its length.
    #[cold]
    fn allocation(&mut self, message: &[u8], start: i64, meta: &PlaneMeta) {
        let arg = |key: &str| meta.own_arg(message, key);
        if let (Some(FactValue::Text(name)), Some(FactValue::Int(used_bytes))) =
            (arg("allocator_name"), arg("bytes_allocated"))
        {
            let allocator = *self.allocator_rows.entry_ref(name.as_str()).or_insert_with(|| {
                self.allocators.push(name.clone());
                self.allocators.len() - 1
            });
            self.allocations.push(Allocation { start, used_bytes, allocator });
        }
    }

    /// What few events carry, or what joins them to others.
    #[inline(always)]
    fn keep(&mut self, id: u32, event: &Event) {
        if let Some(key) = event.get(Lift::Correlation) {
            self.correlations.push(key, id);
            if event.has == 1 << Lift::Correlation as u16 {
                return;
            }
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

    /// Takes a stat's value: its text, or its number where that is empty.
    #[inline(always)]
    fn take(&mut self, lift: Lift, stat: u64, number: u64, text: &[u8]) {
        if lift == Lift::Detail {
            let value = if text.is_empty() { number } else { hash_text(text) };
            // Added up, so that the order of stats does not matter.
            self.hash = self.hash.wrapping_add(mix(value, stat.wrapping_add(0x9E37)) | 1);
        } else {
            self.lifted[lift as usize] = number;
            self.has |= 1 << lift as u16;
        }
    }

    #[inline(always)]
    fn get(&self, lift: Lift) -> Option<u64> {
        (self.has & (1 << lift as u16) != 0).then(|| self.lifted[lift as usize])
    }
}

/// `bytes` are the chunk's own, or what is left of them.
pub fn decode(bytes: &[u8], chunk: &Chunk, meta: &PlaneMeta, mut rows: ColumnsMut<'_>) -> Decoded {
    let correlations = KeyBatch::with_room(chunk.n_events);
    let arg_marks = Vec::with_capacity(chunk.n_events.div_ceil(ArgRun::EVERY));
    let mut out = Decoded { correlations, arg_marks, ..Decoded::default() };
    let mut seen = Seen::default();
    let mut tails = vec![Tail::default(); TAILS];
    let mut event = Event::default();
    // Every event has one, also those that cannot be read.
    let mut next_row = 0;
    let in_file = |place: usize| chunk.bytes.start + place;
    let mut at = 0;
    while at < bytes.len() && next_row < rows.name.len() {
        let (tag_len, len, len_len) = match tiny_field(bytes, at, super::EVENT_TAG) {
            Some((len, both)) => (1, u64::from(len), both - 1),
            None => {
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
                let Some((len, len_len)) = varint(bytes, at + tag_len) else { break };
                (tag_len, len, len_len)
            }
        };
        let place = at + tag_len;
        let body = place + len_len;
        let Some(end) = body.checked_add(len as usize).filter(|&it| it <= bytes.len()) else {
            break;
        };
        at = end;
        let row = next_row;
        next_row += 1;
        if row % ArgRun::EVERY == 0 {
            out.arg_marks.push(place as u32);
        }
        event.clear();
        if !read_usual_event(bytes, body, end, meta, &mut tails, &mut event) {
            event.clear();
            if read_event(bytes, body, end, meta, &mut event).is_none() {
                out.note(NoteKind::Malformed, in_file(place));
                rows.give_up(row..next_row);
                continue;
            }
        }

        let start = chunk.start.checked_add(event.offset);
        let Some(start) = start.filter(|&it| is_sane(it) && event.dur < LONGEST_PS) else {
            out.note(NoteKind::BadTimestamp, in_file(place));
            rows.give_up(row..next_row);
            continue;
        };
        let mut dur = event.dur;
        if dur < 0 {
            out.note(NoteKind::BadTimestamp, in_file(place));
            dur = 0;
        }
        let (name, special, base) = match meta.event_ids.get(event.metadata) {
            Some(it) => {
                let it = meta.events[it];
                (it.name, it.special, it.base)
            }
            None => {
                out.note(NoteKind::UnknownName, in_file(place));
                (meta.unnamed, Special::No, 0)
            }
        };
        let hash = if base == 0 { event.hash } else { mix(event.hash, base) };

        rows.name[row] = name;
        rows.start[row] = start;
        rows.dur[row] = dur;
        if hash != 0 {
            rows.detail[row] = seen.number(hash, &bytes[place..end], &mut out);
        }
        let id = chunk.first_row + row as u32;
        if event.has != 0 {
            out.keep(id, &event);
        }
        match special {
            Special::No => (),
            Special::Allocation => out.allocation(&bytes[place..end], start, meta),
            Special::CallsFunction | Special::RunsFunction => {
                let calls = special == Special::CallsFunction;
                let to = if calls { &mut out.functions_called } else { &mut out.functions_run };
                if let Some(function) = event.get(Lift::FunctionId) {
                    to.push(function, id);
                }
            }
        }
    }
    rows.give_up(next_row..rows.name.len());
    out
}

/// Reads an event that is laid out as all writers do it: fields in the order of their numbers,
/// each of them once, and nothing else. `false` where it is not, or is damaged: then
/// [`read_event`] must read it, from the start.
///
/// What lies behind `end` may be looked at, and even taken for a part of the event; the end is
/// then not met, and it is not a usual one.
#[inline(always)]
fn read_usual_event(
    bytes: &[u8],
    mut at: usize,
    end: usize,
    meta: &PlaneMeta,
    tails: &mut [Tail],
    event: &mut Event,
) -> bool {
    if let Some((value, len)) = tiny_field(bytes, at, 0x08) {
        event.metadata = u64::from(value);
        at += len;
    }
    if let Some((value, len)) = short_field(bytes, at, 0x10) {
        event.offset = value as i64;
        at += len;
    }
    if let Some((value, len)) = short_field(bytes, at, 0x18) {
        event.dur = value as i64;
        at += len;
    }
    let nth_tail = event.metadata as usize % tails.len();
    let tail = &mut tails[nth_tail];
    let (mut tail_at, mut hash_before) = (at, event.hash);
    while at < end {
        if end - at == tail.bytes.len() && bytes.get(at..end) == bytes.get(tail.bytes.clone()) {
            event.hash = event.hash.wrapping_add(tail.hash);
            return true;
        }
        let Some((stat_end, is_own)) = read_usual_stat(bytes, at, meta, event) else {
            return false;
        };
        at = stat_end;
        if is_own {
            (tail_at, hash_before) = (at, event.hash);
        }
    }
    let hash = event.hash.wrapping_sub(hash_before);
    if at == end && hash != 0 {
        *tail = Tail { bytes: tail_at..end, hash };
    }
    at == end
}

/// The last stats of an event, none of which are its own: what another event with the same bytes
/// there need not read again. Names mostly come with the same few texts.
#[derive(Debug, Clone, Default)]
struct Tail {
    bytes: Range<usize>,
    /// What they add to an event's.
    hash: u64,
}

/// By an event's metadata; where several share a place, the last one is remembered.
const TAILS: usize = 256;

/// Reads the stat whose tag is at `at`, if it is a usual one; answers where it ends, and whether
/// it may be the event's own rather than what many share.
///
/// ```text
/// word   22 size 08 id | tag value…      tag value for numbers
///                      | 2A  len text…   which fill what is left of `size`
/// ```
#[inline(always)]
fn read_usual_stat(
    bytes: &[u8],
    at: usize,
    meta: &PlaneMeta,
    event: &mut Event,
) -> Option<(usize, bool)> {
    let word = word(bytes, at)?;
    // Both tags, and that neither size nor id goes on.
    if word & 0x80FF_80FF != 0x0008_0022 {
        return Some((read_long_stat(bytes, at, meta, event)?, true));
    }
    let [_, size, _, id, tag, len, ..] = word.to_le_bytes();
    let lift = meta.short_lifts[usize::from(id & 0x7F)];
    let end = at + 2 + usize::from(size);
    if lift == Lift::No && size >= 2 {
        return Some((end, false));
    }
    if tag == 0x2A && u16::from(len) + 4 == u16::from(size) {
        event.take(lift, u64::from(id), 0, bytes.get(at + 6..end)?);
    } else if matches!(tag, 0x18 | 0x20 | 0x38) {
        let (value, len) = short_field(bytes, at + 4, tag)?;
        if at + 4 + len != end {
            return None;
        }
        event.take(lift, u64::from(id), number(tag, value), &[]);
    } else {
        return Some((read_long_stat(bytes, at, meta, event)?, true));
    }
    Some((end, lift != Lift::Detail))
}

/// Reads any other stat whose tag is at `at`; answers where it ends.
fn read_long_stat(bytes: &[u8], at: usize, meta: &PlaneMeta, event: &mut Event) -> Option<usize> {
    let (size, len) = short_field(bytes, at, 0x22)?;
    let end = (at + len).checked_add(usize::try_from(size).ok()?)?;
    read_stat(bytes, at + len, end, meta, event)?;
    Some(end)
}

/// A stat's number: a reference is not the number it refers by.
#[inline(always)]
fn number(tag: u8, value: u64) -> u64 {
    value ^ (u64::from(tag == 0x38) << 63)
}

/// Reads any event from `at` to `end`. What lies behind is only looked at, never taken: a load of
/// eight bytes may reach over the end, a value may not.
#[cold]
fn read_event(
    bytes: &[u8],
    mut at: usize,
    end: usize,
    meta: &PlaneMeta,
    event: &mut Event,
) -> Option<()> {
    while at < end {
        match bytes.get(at)? {
            tag @ (0x08 | 0x10 | 0x18) => {
                let (value, len) = varint(bytes, at + 1)?;
                match tag {
                    0x08 => event.metadata = value,
                    0x10 => event.offset = value as i64,
                    _ => event.dur = value as i64,
                }
                at += 1 + len;
            }
            0x22 => {
                let (size, len) = varint(bytes, at + 1)?;
                at += 1 + len;
                let stat_end = at.checked_add(usize::try_from(size).ok()?)?;
                if stat_end > end {
                    return None;
                }
                read_stat(bytes, at, stat_end, meta, event)?;
                at = stat_end;
            }
            _ => at += skip_field(bytes, at, end)?,
        }
    }
    (at == end).then_some(())
}

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
            value = number(tag, value);
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
    event.take(lift, id, value, text);
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
    fn number(&mut self, hash: u64, event: &[u8], out: &mut Decoded) -> u32 {
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
                let event_at = out.detail_events.len() as u32;
                out.detail_events.extend_from_slice(event);
                out.details.push(MetDetail { hash, event_at, id: 0 });
                let number = out.details.len() as u32;
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

/// Sixteen bytes at a time, each with their place: the sums do not wait for one another.
fn hash_text(text: &[u8]) -> u64 {
    const STEP: u64 = 0xA076_1D64_78BD_642F;
    let part = |place: u64, it: [u8; 16]| {
        let wide = u128::from_le_bytes(it);
        mix(wide as u64 ^ place, (wide >> 64) as u64 ^ place)
    };
    let mut hash = text.len() as u64;
    let mut place = 0_u64;
    for chunk in text.as_chunks::<16>().0 {
        hash = hash.wrapping_add(part(place, *chunk));
        place = place.wrapping_add(STEP);
    }
    // The last sixteen bytes, though some were met before: no copy of a part is needed.
    let last = match text.last_chunk::<16>() {
        Some(last) => *last,
        None => {
            let mut last = [0; 16];
            last[..text.len()].copy_from_slice(text);
            last
        }
    };
    hash.wrapping_add(part(place, last))
}

#[cfg(test)]
mod tests {
    use trace::TraceBuilder;

    use super::super::Space;
    use super::{Event, PlaneMeta, TAILS, Tail, read_event, read_usual_event};
    use crate::Pieces;

    fn field(number: u8, body: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, body.len() as u8], body].concat()
    }

    /// A plane whose stats 3, 4 and 9 are a correlation, nothing of interest and an op.
    fn meta() -> PlaneMeta {
        let mut plane = field(2, b"/device:GPU:0");
        for (id, name) in [(3, "correlation_id"), (4, "device_id"), (9, "tf_op")] {
            let named = [vec![0x08, id], field(2, name.as_bytes())].concat();
            plane.extend(field(5, &[vec![0x08, id], field(2, &named)].concat()));
        }
        let file = field(1, &plane);
        let mut out = TraceBuilder::new();
        let pieces = Pieces::new(&file);
        let mut window = pieces.window(64);
        let space = Space::walk(&mut window, &mut out);
        PlaneMeta::read(&mut window, &space.planes[0], &mut out)
    }

    /// What was read of an event: numbers, detail, and a correlation.
    fn read(event: &Event) -> (u64, i64, i64, u64, Option<u64>) {
        let correlation = event.get(super::Lift::Correlation);
        (event.metadata, event.offset, event.dur, event.hash, correlation)
    }

    #[test]
    fn the_usual_way_reads_nothing_else_than_the_slow_one() {
        let meta = meta();
        let head = [0x08, 0x01, 0x10, 0x80, 0xD2, 0xF4, 0x18, 0x18, 0xA0, 0x78];
        let correlation = [0x22, 0x05, 0x08, 0x03, 0x18, 0xE1, 0x02];
        let device = [0x22, 0x04, 0x08, 0x04, 0x20, 0x00];
        let op = field(4, &[vec![0x08, 0x09], field(5, b"model/dense/MatMul:MatMul")].concat());
        let usual = [&head[..], &correlation, &device, &op].concat();
        let mut n_usual = 0;
        for at in 0..usual.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = usual.clone();
                bytes[at] = byte;
                let mut tails = vec![Tail::default(); TAILS];
                // Behind the event comes another.
                bytes.extend_from_slice(&usual);
                for end in [usual.len(), usual.len() - 1, head.len(), at] {
                    // Twice: the second time it ends as an event met before.
                    for _ in 0..2 {
                        let (mut fast, mut slow) = (Event::default(), Event::default());
                        if read_usual_event(&bytes, 0, end, &meta, &mut tails, &mut fast) {
                            let sound = read_event(&bytes, 0, end, &meta, &mut slow);
                            assert_eq!(sound, Some(()), "{byte:#x} at {at}, up to {end}");
                            assert_eq!(read(&fast), read(&slow), "{byte:#x} at {at}, up to {end}");
                            n_usual += 1;
                        }
                    }
                }
            }
        }
        assert!(n_usual > usual.len() * 128, "most texts and numbers are usual: {n_usual}");
    }
}
