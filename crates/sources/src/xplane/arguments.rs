//! Decodes the arguments of an event when somebody asks, from the file as it was opened.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Mutex;

use trace::{ArgSource, FactValue};

use super::Plane;
use super::meta::PlaneMeta;
use crate::file::{KeptPiece, Window};
use crate::wire::{LongFields, LongValue, varint};
use crate::{Bytes, Change, Pieces};

/// The file and what is needed to decode an event's arguments.
pub struct Planes {
    bytes: Bytes,
    name: String,
    planes: Vec<(Plane, PlaneMeta)>,
    /// Who asks for the arguments of one event mostly asks for those of the next one too.
    kept: Mutex<KeptPiece>,
}

/// The sixteen events up to which one is searched, and some behind it.
const WINDOW: usize = 16 << 10;

impl Planes {
    pub fn new(bytes: Bytes, name: String, planes: Vec<(Plane, PlaneMeta)>) -> Planes {
        Planes { bytes, name, planes, kept: Mutex::default() }
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

impl ArgSource for Planes {
    fn args(&self, at: u64, nth: usize) -> Result<Vec<(String, FactValue)>, String> {
        let Ok(at) = usize::try_from(at) else { return Ok(Vec::new()) };
        let plane = self.planes.get(self.planes.partition_point(|it| it.0.bytes.end <= at));
        let Some((plane, meta)) = plane else { return Ok(Vec::new()) };
        self.still(|pieces| {
            // Where another thread has it, this one reads for itself.
            let mut kept = self.kept.try_lock().ok();
            let piece = kept.as_mut().map(|it| std::mem::take(&mut **it)).unwrap_or_default();
            let mut window = pieces.window_with(WINDOW, piece);
            let event = nth_event(&mut window, at..plane.bytes.end, nth);
            let args = event.map(|it| meta.args(&mut window, it)).unwrap_or_default();
            if let Some(kept) = &mut kept {
                **kept = window.keep();
            }
            args
        })
    }

    fn bytes(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, String> {
        let place = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
        let range = place(range.start)..place(range.end);
        let outside = || format!("{} has no bytes {range:?}", self.name);
        if let Some(all) = self.bytes.in_memory() {
            return all.get(range.clone()).map(Cow::Borrowed).ok_or_else(outside);
        }
        let mut buffer = Vec::new();
        let n = self.still(|pieces| pieces.read(range.clone(), &mut buffer).len())?;
        if n < range.len() {
            return Err(outside());
        }
        buffer.truncate(n);
        Ok(Cow::Owned(buffer))
    }
}

/// The message of the event `nth` behind the one whose length stands at the start of `range`.
fn nth_event(window: &mut Window<'_, '_>, range: Range<usize>, nth: usize) -> Option<Range<usize>> {
    let (len, len_len) = varint(window.get(range.start..range.end.min(range.start + 10)), 0)?;
    let start = range.start + len_len;
    let mut event = start..start.checked_add(usize::try_from(len).ok()?)?;
    // Other fields of the line may stand between its events.
    let mut fields = LongFields::new(event.end..range.end);
    for _ in 0..nth {
        event = loop {
            if let (4, LongValue::Bytes(event)) = fields.next(window).ok()?? {
                break event;
            }
        };
    }
    Some(event)
}
