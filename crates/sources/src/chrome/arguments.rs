//! Decodes the arguments of an event when somebody asks, from the file as it was opened.

use std::borrow::Cow;
use std::ops::Range;

use trace::{ArgSource, FactValue};

use super::chunk::Block;
use super::element::Element;
use super::json::{Cursor, Stop, fields, float, text, whole};
use super::kinds::Class;
use crate::{Bytes, Change, Pieces};

/// The file.
pub struct Arguments {
    bytes: Bytes,
    name: String,
}

/// The sixteen events up to which one is searched, and what stands between them.
const WINDOW: usize = 64 << 10;
/// As far is searched.
const FARTHEST: usize = 128 << 20;

impl Arguments {
    pub fn new(bytes: Bytes, name: String) -> Arguments {
        Arguments { bytes, name }
    }

    /// What `read` makes of the file, if that is still the file it was.
    fn still<T>(&self, read: impl FnOnce(&Pieces<'_>) -> T) -> Result<T, String> {
        let pieces = Pieces::new(&*self.bytes);
        let out = read(&pieces);
        match pieces.first_fault() {
            Some(fault) => Err(format!("{}: {fault}", self.name)),
            None if self.bytes.change() != Change::None => {
                Err(format!("{} was modified after it was opened", self.name))
            }
            None => Ok(out),
        }
    }
}

impl ArgSource for Arguments {
    fn args(&self, at: u64, nth: usize) -> Result<Vec<(String, FactValue)>, String> {
        let Ok(at) = usize::try_from(at) else { return Ok(Vec::new()) };
        self.still(|pieces| {
            let mut buffer = Vec::new();
            let mut n_bytes = WINDOW;
            loop {
                let bytes = pieces.read(at..at.saturating_add(n_bytes), &mut buffer);
                let is_all = bytes.len() < n_bytes || n_bytes >= FARTHEST;
                match nth_event(bytes, nth) {
                    Ok(args) => return args,
                    Err(()) if is_all => return Vec::new(),
                    Err(()) => n_bytes *= 4,
                }
            }
        })
    }

    fn bytes(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, String> {
        // No blob lies in such a file.
        Err(format!("{} has no bytes {range:?}", self.name))
    }
}

/// The arguments of the event `nth` behind the first; an error where the bytes end before it.
fn nth_event(bytes: &[u8], nth: usize) -> Result<Vec<(String, FactValue)>, ()> {
    let mut cursor = Cursor::new(bytes, 0);
    let mut left = nth;
    loop {
        let start = cursor.peek().map(|_| cursor.at);
        match cursor.peek() {
            Ok(b',') => cursor.at += 1,
            Ok(b'{') => match Element::read(&mut cursor) {
                Ok(it) if it.is_event() && left == 0 => return Ok(arguments(&it)),
                Ok(it) => left -= usize::from(it.is_event()),
                Err(Stop::Cut) => return Err(()),
                Err(Stop::Bad(at)) => match super::border(bytes, at.max(start.unwrap_or(at) + 1)) {
                    Some(next) => cursor.at = next,
                    None => return Err(()),
                },
            },
            Ok(_) => _ = cursor.value().map_err(|_| ())?,
            Err(_) => return Err(()),
        }
    }
}

fn arguments(it: &Element<'_>) -> Vec<(String, FactValue)> {
    let mut out = Vec::new();
    if Class::of(it.cat, it.name) == Class::Memory
        && let Some(block) = Block::read(it.args)
    {
        // In the words of all allocators.
        let mut say = |key: &str, value| out.push((key.to_owned(), value));
        say("allocator_name", FactValue::Text(block.allocator()));
        say("allocation_bytes", FactValue::Int(block.bytes.saturating_abs()));
        if let Some(address) = block.address {
            say("addr", FactValue::Int(address));
        }
        if let Some(level) = block.level {
            say("bytes_allocated", FactValue::Int(level));
        }
    }
    fields(it.args, |key, value| {
        let key = super::json::unescaped(key).into_owned();
        let value = match value {
            [b'"', ..] => FactValue::Text(text(value).into_owned()),
            _ => match (whole(value), float(value)) {
                (Some(it), _) => FactValue::Int(it),
                (None, Some(it)) => FactValue::Float(it),
                _ => FactValue::Text(String::from_utf8_lossy(value).into_owned()),
            },
        };
        out.push((key, value));
    });
    out
}
