//! Protobuf's wire format, read straight from bytes.
//!
//! Hand-written because it is the hot loop: an object tree of a gigabyte of small messages costs
//! twenty times the memory and time of walking it.

use std::ops::Range;

use crate::file::Window;

/// A walk over the fields of one message.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// One field: its number and value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field<'a> {
    pub number: u32,
    pub value: Value<'a>,
    /// Where the field's tag begins, counted from the start of the message.
    pub at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// The message does not follow the format from this byte on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    pub at: usize,
    /// The message ends inside a field, rather than holding nonsense.
    pub cut: bool,
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    /// The next field, `None` at the end.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Field<'a>>, Damage> {
        let at = self.at;
        if at >= self.bytes.len() {
            return Ok(None);
        }
        let tag = self.varint().ok_or(self.damage(at))?;
        let number = (tag >> 3) as u32;
        if number == 0 || tag >> 3 > 0x1FFF_FFFF {
            return Err(Damage { at, cut: false });
        }
        let value = match tag & 7 {
            0 => self.varint().map(Value::Varint),
            1 => self.array::<8>().map(|it| Value::Fixed64(u64::from_le_bytes(it))),
            2 => {
                let len = self.varint().ok_or(self.damage(at))?;
                usize::try_from(len).ok().and_then(|it| self.take(it)).map(Value::Bytes)
            }
            5 => self.array::<4>().map(|it| Value::Fixed32(u32::from_le_bytes(it))),
            _ => return Err(Damage { at, cut: false }),
        };
        match value {
            Some(value) => Ok(Some(Field { number, value, at })),
            None => Err(Damage { at, cut: true }),
        }
    }

    /// Skips a run of length-delimited fields of one single-byte tag, at least until `until`;
    /// how many there were, or `None` where the next field is another or damaged.
    pub fn skip_run(&mut self, tag: u8, until: usize) -> Option<usize> {
        let mut n = 0;
        while self.at < until {
            let Some((len, head)) = tiny_field(self.bytes, self.at, tag) else { break };
            let end = (self.at + head).checked_add(len as usize);
            let Some(end) = end.filter(|&it| it <= self.bytes.len()) else { break };
            self.at = end;
            n += 1;
        }
        (n > 0).then_some(n)
    }

    /// How far the walk has come.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Of a length-delimited field that the end of the message cuts off: its number and what is
    /// there of it.
    pub fn cut_bytes(&self, damage: Damage) -> Option<(u32, &'a [u8])> {
        let (tag, tag_len) = varint(self.bytes, damage.at)?;
        if !damage.cut || tag & 7 != 2 {
            return None;
        }
        let (_, len_len) = varint(self.bytes, damage.at + tag_len)?;
        Some(((tag >> 3) as u32, self.bytes.get(damage.at + tag_len + len_len..)?))
    }

    /// Where a length-delimited field that the end of the message cuts off would end.
    pub fn cut_end(&self, damage: Damage) -> Option<usize> {
        let (_, tag_len) = varint(self.bytes, damage.at)?;
        let (len, len_len) = varint(self.bytes, damage.at + tag_len)?;
        (damage.at + tag_len + len_len).checked_add(usize::try_from(len).ok()?)
    }

    fn damage(&self, at: usize) -> Damage {
        Damage { at, cut: self.bytes.len() - at < 10 }
    }

    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let (value, len) = varint(self.bytes, self.at)?;
        self.at += len;
        Some(value)
    }

    #[inline]
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

/// A walk over the fields of one message that need not be in memory: values that have a length are
/// told by where they lie.
#[derive(Debug, Clone)]
pub struct LongFields {
    message: Range<usize>,
    at: usize,
}

/// One field of a long message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LongValue {
    Varint(u64),
    Bytes(Range<usize>),
    /// Eight or four bytes, which nobody asks for here.
    Fixed,
}

/// A tag and a length, or a number, take at most this many bytes.
const LONGEST_HEAD: usize = 20;

impl LongFields {
    pub fn new(message: Range<usize>) -> LongFields {
        LongFields { at: message.start, message }
    }

    /// The next field's number and value, `None` at the end. Of a field that the end of the message
    /// cuts off, [`Self::cut_bytes`] knows what is there. Places count from the start of the file.
    pub fn next(&mut self, file: &mut Window<'_, '_>) -> Result<Option<(u32, LongValue)>, Damage> {
        let at = self.at;
        if at >= self.message.end {
            return Ok(None);
        }
        let wanted = at..self.message.end.min(at.saturating_add(LONGEST_HEAD));
        let head = file.get(wanted.clone());
        let cut = Damage { at, cut: true };
        // A varint that does not end within as many bytes as any does is nonsense.
        let unfinished = Damage { at, cut: head.len() < wanted.len() || wanted.len() < 10 };
        let (tag, tag_len) = varint(head, 0).ok_or(unfinished)?;
        let number = (tag >> 3) as u32;
        if number == 0 || tag >> 3 > 0x1FFF_FFFF {
            return Err(Damage { at, cut: false });
        }
        let (value, len) = match tag & 7 {
            0 => {
                let (value, len) = varint(head, tag_len).ok_or(cut)?;
                (LongValue::Varint(value), len)
            }
            1 => (LongValue::Fixed, 8),
            2 => {
                let (len, len_len) = varint(head, tag_len).ok_or(unfinished)?;
                let start = at + tag_len + len_len;
                let end = usize::try_from(len).ok().and_then(|it| start.checked_add(it));
                let end = end.filter(|&it| it <= self.message.end).ok_or(cut)?;
                (LongValue::Bytes(start..end), end - at - tag_len)
            }
            5 => (LongValue::Fixed, 4),
            _ => return Err(Damage { at, cut: false }),
        };
        self.at = at + tag_len + len;
        if self.at > self.message.end {
            return Err(cut);
        }
        Ok(Some((number, value)))
    }

    /// As [`Fields::cut_bytes`].
    pub fn cut_bytes(
        &self,
        file: &mut Window<'_, '_>,
        damage: Damage,
    ) -> Option<(u32, Range<usize>)> {
        let end = self.message.end.min(damage.at.saturating_add(LONGEST_HEAD));
        let head = file.get(damage.at..end);
        let (tag, tag_len) = varint(head, 0)?;
        if !damage.cut || tag & 7 != 2 {
            return None;
        }
        let (_, len_len) = varint(head, tag_len)?;
        Some(((tag >> 3) as u32, damage.at + tag_len + len_len..self.message.end))
    }
}

/// A varint at `at`: its value and length.
///
/// Eight bytes are loaded at once and the seven-bit groups closed up without a loop; ten-byte
/// ones (negative numbers) and the last bytes of a file take the slow way.
#[inline(always)]
pub fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let Some(word) = word(bytes, at) else { return long_varint(bytes, at) };
    let stops = !word & CONTINUES;
    if stops == 0 {
        return long_varint(bytes, at);
    }
    Some((close_up(word & below(stops)), last_byte(stops)))
}

/// The field at `at`, if it has this single-byte tag and a varint of at most seven bytes: the
/// varint, and how long both are.
///
/// One load and no branch on the varint's length. `None` may also mean that the file ends within
/// eight bytes: whoever asks must know the slow way too.
#[inline(always)]
pub fn short_field(bytes: &[u8], at: usize, tag: u8) -> Option<(u64, usize)> {
    let word = word(bytes, at)?;
    let stops = !word & (CONTINUES << 8);
    if word as u8 != tag || stops == 0 {
        return None;
    }
    Some((close_up((word & below(stops)) >> 8), last_byte(stops)))
}

/// The same for varints of at most four bytes, as sizes and ids are: half the work.
#[inline(always)]
pub fn tiny_field(bytes: &[u8], at: usize, tag: u8) -> Option<(u32, usize)> {
    let word = word(bytes, at)?;
    let value = (word >> 8) as u32;
    let stops = !value & CONTINUES as u32;
    if word as u8 != tag || stops == 0 {
        return None;
    }
    let value = value & (stops ^ (stops - 1));
    let value = (value & 0x007F_007F) | ((value & 0x7F00_7F00) >> 1);
    let value = (value & 0x0000_3FFF) | ((value & 0x3FFF_0000) >> 2);
    Some((value, 1 + last_byte(u64::from(stops))))
}

/// The eight bytes from `at` on, the first of them lowest.
#[inline(always)]
pub fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|it| u64::from_le_bytes(*it))
}

/// In each byte the bit that says whether another one follows.
const CONTINUES: u64 = 0x8080_8080_8080_8080;

/// All bits up to the lowest one set.
#[inline(always)]
fn below(stops: u64) -> u64 {
    stops ^ (stops - 1)
}

/// How many bytes there are up to the lowest bit set.
#[inline(always)]
fn last_byte(stops: u64) -> usize {
    (stops.trailing_zeros() as usize + 1) / 8
}

/// Closes up groups of seven bits, one in each byte.
#[inline(always)]
fn close_up(word: u64) -> u64 {
    let word = (word & 0x007F_007F_007F_007F) | ((word & 0x7F00_7F00_7F00_7F00) >> 1);
    let word = (word & 0x0000_3FFF_0000_3FFF) | ((word & 0x3FFF_0000_3FFF_0000) >> 2);
    (word & 0x0000_0000_0FFF_FFFF) | ((word & 0x0FFF_FFFF_0000_0000) >> 4)
}

#[cold]
fn long_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for len in 0..10 {
        let byte = *bytes.get(at + len)?;
        value |= u64::from(byte & 0x7F) << (7 * len);
        if byte < 0x80 {
            return Some((value, len + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Damage, Field, Fields, Value, short_field, tiny_field, varint};

    fn encode(mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }

    #[test]
    fn varints_of_every_length_with_and_without_room_behind() {
        for bits in 0..64 {
            for value in [1_u64 << bits, (1_u64 << bits) - 1, u64::MAX >> bits] {
                let bytes = encode(value);
                let len = bytes.len();
                assert_eq!(varint(&bytes, 0), Some((value, len)), "{value:#x} at the end");
                let padded = [bytes.as_slice(), &[0xFF; 12]].concat();
                assert_eq!(varint(&padded, 0), Some((value, len)), "{value:#x} in the middle");
                let field = [&[0x22], padded.as_slice()].concat();
                let short = (len <= 7).then_some((value, len + 1));
                assert_eq!(short_field(&field, 0, 0x22), short, "{value:#x} in a field");
                assert_eq!(short_field(&field, 0, 0x1A), None);
                let tiny = (len <= 4).then_some((value as u32, len + 1));
                assert_eq!(tiny_field(&field, 0, 0x22), tiny, "{value:#x} in a field");
                assert_eq!(tiny_field(&field, 0, 0x1A), None);
            }
        }
        assert_eq!(varint(&[0x80; 9], 0), None);
        assert_eq!(varint(&[0x80; 20], 0), None);
    }

    #[test]
    fn fields_of_every_kind_and_damage() {
        let bytes =
            [0x08, 0x05, 0x12, 0x02, b'h', b'i', 0x1D, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let mut fields = Fields::new(&bytes);
        let mut seen = Vec::new();
        while let Ok(Some(Field { number, value, .. })) = fields.next() {
            seen.push((number, value));
        }
        assert_eq!(
            seen,
            [
                (1, Value::Varint(5)),
                (2, Value::Bytes(b"hi")),
                (3, Value::Fixed32(1)),
                (4, Value::Fixed64(2))
            ]
        );
        let past_the_end = [0x12, 0x7F, b'x'];
        assert_eq!(Fields::new(&past_the_end).next(), Err(Damage { at: 0, cut: true }));
        let group = [0x0B, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Fields::new(&group).next(), Err(Damage { at: 0, cut: false }));
    }
}
