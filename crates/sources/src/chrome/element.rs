//! One event of a Chrome trace, as it stands in the file.

use super::json::{Cursor, Micros, Stop, packed};

const PH: u128 = packed(b"ph");
const NAME: u128 = packed(b"name");
const CAT: u128 = packed(b"cat");
const PID: u128 = packed(b"pid");
const TID: u128 = packed(b"tid");
const TS: u128 = packed(b"ts");
const DUR: u128 = packed(b"dur");
const ID: u128 = packed(b"id");
const ARGS: u128 = packed(b"args");

/// What an event says; texts with their escapes, where they have any.
#[derive(Debug, Clone, Copy, Default)]
pub struct Element<'a> {
    pub phase: u8,
    pub name: &'a [u8],
    pub cat: &'a [u8],
    /// Number or text, as it stands.
    pub pid: &'a [u8],
    pub tid: &'a [u8],
    pub ts: Option<Micros>,
    pub dur: Option<Micros>,
    pub id: &'a [u8],
    pub args: &'a [u8],
}

impl<'a> Element<'a> {
    /// Reads the object at the cursor. Of keys that come twice the last one counts.
    #[inline]
    pub fn read(cursor: &mut Cursor<'a>) -> Result<Element<'a>, Stop> {
        cursor.expect(b'{')?;
        let mut it = Element::default();
        let mut first = true;
        while let Some(key) = cursor.key(first)? {
            first = false;
            match packed(key) {
                PH => it.phase = *inner(cursor.value()?).first().unwrap_or(&0),
                NAME => it.name = inner(cursor.value()?),
                CAT => it.cat = inner(cursor.value()?),
                PID => it.pid = cursor.value()?,
                TID => it.tid = cursor.value()?,
                TS => it.ts = Micros::parse(cursor.value()?),
                DUR => it.dur = Micros::parse(cursor.value()?),
                ID => it.id = cursor.value()?,
                ARGS => it.args = cursor.value()?,
                _ => _ = cursor.value()?,
            }
        }
        Ok(it)
    }

    /// Whether it becomes an event of the trace. Told from itself alone: whoever looks for an
    /// event's arguments later counts the same ones.
    #[inline]
    pub fn is_event(&self) -> bool {
        match self.phase {
            b'X' => self.ts.is_some() && self.dur.is_none_or(|it| it.whole >= 0),
            b'B' | b'i' | b'I' | b'R' | b'n' | b'b' | b'S' => self.ts.is_some(),
            _ => false,
        }
    }

    /// TensorFlow ends its list by an empty object.
    pub fn is_empty(&self) -> bool {
        self.phase == 0 && self.name.is_empty() && self.args.is_empty() && self.ts.is_none()
    }
}

/// Without its quotes, if it has any.
fn inner(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inner @ .., b'"'] => inner,
        _ => value,
    }
}
