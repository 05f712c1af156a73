//! Makes XSpace bytes of planes, lines and events held in memory.
//!
//! ```text
//! Space ─ Plane ─ Line ─ Event ─ stats        names and stat keys are interned
//!           └──── metadata maps               per plane, ids from 1
//! ```
//!
//! Times are picoseconds since the start of the profile; a line's own
//! `timestamp_ns` is subtracted as the event is written. [`Oddities`] turn the
//! same content into legal but unusual bytes.

use std::collections::BTreeMap;

use crate::wire::Message;

/// The value of a stat, in the encoding the collector would choose.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    U64(u64),
    I64(i64),
    F64(f64),
    /// The text itself.
    Str(String),
    /// The id of a stat metadata whose name is the text.
    Ref(String),
}

pub(crate) fn text(value: impl Into<String>) -> Value {
    Value::Ref(value.into())
}

pub(crate) fn inline_text(value: impl Into<String>) -> Value {
    Value::Str(value.into())
}

pub(crate) type Stats<'a> = &'a [(&'a str, Value)];

/// What to do differently from the collectors, all of it legal protobuf.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Oddities {
    /// Fields 15 to 18, one of each wire type, in every message but map entries.
    pub(crate) unknown_fields: bool,
    /// The metadata maps of a plane come after its lines.
    pub(crate) maps_last: bool,
    /// Every other event has its int64 stats as uint64 and the reverse, and text inline.
    pub(crate) mixed_values: bool,
    /// Ids of events and of stat keys are negative.
    pub(crate) negative_ids: bool,
    /// Each line is written as two lines of the same id, the second backwards.
    pub(crate) split_lines: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Space {
    pub(crate) planes: Vec<Plane>,
    pub(crate) hostnames: Vec<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) warnings: Vec<String>,
    /// Added to every line's timestamp: 0 in files saved by TensorFlow.
    pub(crate) epoch_ns: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Plane {
    id: i64,
    name: String,
    lines: Vec<Line>,
    event_kinds: Vec<EventKind>,
    event_ids: BTreeMap<String, i64>,
    stat_names: Vec<StatName>,
    stat_ids: BTreeMap<String, i64>,
    stats: Vec<Stat>,
}

/// Which line of a plane; a number with a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineId(usize);

#[derive(Debug)]
struct Line {
    id: i64,
    name: String,
    timestamp_ns: i64,
    events: Vec<Event>,
}

#[derive(Debug)]
struct Event {
    kind: i64,
    start_ps: u64,
    dur_ps: u64,
    stats: Vec<Stat>,
}

#[derive(Debug, Default)]
struct EventKind {
    name: String,
    display_name: String,
    stats: Vec<Stat>,
}

#[derive(Debug)]
struct StatName {
    name: String,
    /// Only ever referred to as a value, never as a key.
    is_text: bool,
}

#[derive(Clone, Debug)]
struct Stat {
    key: i64,
    value: StatValue,
}

#[derive(Clone, Debug)]
enum StatValue {
    U64(u64),
    I64(i64),
    F64(f64),
    Str(String),
    Ref(i64, String),
}

impl Plane {
    pub(crate) fn new(id: i64, name: impl Into<String>) -> Plane {
        Plane { id, name: name.into(), ..Plane::default() }
    }

    pub(crate) fn line(&mut self, id: i64, name: impl Into<String>, timestamp_ns: i64) -> LineId {
        self.lines.push(Line { id, name: name.into(), timestamp_ns, events: Vec::new() });
        LineId(self.lines.len() - 1)
    }

    pub(crate) fn stat(&mut self, key: &str, value: Value) {
        let stat = self.intern_stat(key, value);
        self.stats.push(stat);
    }

    pub(crate) fn event(
        &mut self,
        line: LineId,
        name: &str,
        start_ps: u64,
        dur_ps: u64,
        stats: Stats<'_>,
    ) {
        let kind = self.event_kind(name);
        let stats = self.intern_stats(stats);
        self.lines[line.0].events.push(Event { kind, start_ps, dur_ps, stats });
    }

    /// Gives all events of a name constants and a display name, as TPU collectors do.
    pub(crate) fn describe_event(&mut self, name: &str, display_name: &str, stats: Stats<'_>) {
        let id = self.event_kind(name);
        let stats = self.intern_stats(stats);
        let kind = &mut self.event_kinds[(id - 1) as usize];
        kind.display_name = display_name.to_owned();
        kind.stats = stats;
    }

    fn event_kind(&mut self, name: &str) -> i64 {
        if let Some(&id) = self.event_ids.get(name) {
            return id;
        }
        self.event_kinds.push(EventKind { name: name.to_owned(), ..EventKind::default() });
        let id = self.event_kinds.len() as i64;
        self.event_ids.insert(name.to_owned(), id);
        id
    }

    fn intern_stats(&mut self, stats: Stats<'_>) -> Vec<Stat> {
        stats.iter().map(|(key, value)| self.intern_stat(key, value.clone())).collect()
    }

    fn intern_stat(&mut self, key: &str, value: Value) -> Stat {
        let key = self.stat_name(key, false);
        let value = match value {
            Value::U64(it) => StatValue::U64(it),
            Value::I64(it) => StatValue::I64(it),
            Value::F64(it) => StatValue::F64(it),
            Value::Str(it) => StatValue::Str(it),
            Value::Ref(it) => StatValue::Ref(self.stat_name(&it, true), it),
        };
        Stat { key, value }
    }

    fn stat_name(&mut self, name: &str, is_text: bool) -> i64 {
        if let Some(&id) = self.stat_ids.get(name) {
            return id;
        }
        self.stat_names.push(StatName { name: name.to_owned(), is_text });
        let id = self.stat_names.len() as i64;
        self.stat_ids.insert(name.to_owned(), id);
        id
    }
}

impl Space {
    pub(crate) fn encode(&self, odd: Oddities) -> Vec<u8> {
        let encoder = Encoder { odd, epoch_ns: self.epoch_ns };
        let mut out = encoder.message();
        for plane in &self.planes {
            out.data(1, &encoder.plane(plane));
        }
        for error in &self.errors {
            out.data(2, error.as_bytes());
        }
        for warning in &self.warnings {
            out.data(3, warning.as_bytes());
        }
        for hostname in &self.hostnames {
            out.data(4, hostname.as_bytes());
        }
        out.bytes
    }
}

struct Encoder {
    odd: Oddities,
    epoch_ns: i64,
}

impl Encoder {
    /// A new message, begun with fields no schema knows if so asked.
    fn message(&self) -> Message {
        let mut out = Message::default();
        if self.odd.unknown_fields {
            out.uint(15, 300);
            out.fixed64(16, 0x0102_0304_0506_0708);
            out.fixed32(17, 0x0a0b_0c0d);
            // Looks like a nested message, so that a reader that guesses is caught.
            out.data(18, b"\x0a\x03odd");
        }
        out
    }

    fn plane(&self, plane: &Plane) -> Vec<u8> {
        let mut out = self.message();
        out.int(1, plane.id);
        out.data(2, plane.name.as_bytes());
        if self.odd.maps_last {
            self.lines(plane, &mut out);
            self.maps(plane, &mut out);
        } else {
            self.maps(plane, &mut out);
            self.lines(plane, &mut out);
        }
        for stat in &plane.stats {
            out.data(6, &self.stat(plane, stat, false));
        }
        out.bytes
    }

    fn maps(&self, plane: &Plane, out: &mut Message) {
        for (id, kind) in (1..).zip(&plane.event_kinds) {
            let id = self.event_id(id);
            let mut value = self.message();
            value.int(1, id);
            value.data(2, kind.name.as_bytes());
            if !kind.display_name.is_empty() {
                value.data(4, kind.display_name.as_bytes());
            }
            for stat in &kind.stats {
                value.data(5, &self.stat(plane, stat, false));
            }
            out.data(4, &Self::map_entry(id, &value));
        }
        for (id, stat_name) in (1..).zip(&plane.stat_names) {
            let id = self.stat_id(plane, id);
            let mut value = self.message();
            value.int(1, id);
            value.data(2, stat_name.name.as_bytes());
            out.data(5, &Self::map_entry(id, &value));
        }
    }

    // No unknown fields in the entry itself: upb, which TensorFlow's Python uses, then drops the whole entry.
    fn map_entry(key: i64, value: &Message) -> Vec<u8> {
        let mut entry = Message::default();
        entry.int(1, key);
        entry.data(2, &value.bytes);
        entry.bytes
    }

    fn lines(&self, plane: &Plane, out: &mut Message) {
        for line in &plane.lines {
            if self.odd.split_lines && line.events.len() > 1 {
                let (first, second) = line.events.split_at(line.events.len() / 2);
                out.data(3, &self.line(plane, line, &mut first.iter()));
                out.data(3, &self.line(plane, line, &mut second.iter().rev()));
            } else {
                out.data(3, &self.line(plane, line, &mut line.events.iter()));
            }
        }
    }

    fn line(
        &self,
        plane: &Plane,
        line: &Line,
        events: &mut dyn Iterator<Item = &Event>,
    ) -> Vec<u8> {
        let mut out = self.message();
        out.int(1, line.id);
        out.data(2, line.name.as_bytes());
        out.int(3, self.epoch_ns + line.timestamp_ns);
        for (ordinal, event) in events.enumerate() {
            let other_kind = self.odd.mixed_values && ordinal % 2 == 1;
            let mut message = self.message();
            message.int(1, self.event_id(event.kind));
            message.int(2, event.start_ps.cast_signed() - line.timestamp_ns * 1000);
            message.int(3, event.dur_ps.cast_signed());
            for stat in &event.stats {
                message.data(4, &self.stat(plane, stat, other_kind));
            }
            out.data(4, &message.bytes);
        }
        out.bytes
    }

    fn stat(&self, plane: &Plane, stat: &Stat, other_kind: bool) -> Vec<u8> {
        let mut out = self.message();
        out.int(1, self.stat_id(plane, stat.key));
        match &stat.value {
            StatValue::F64(it) => out.double(2, *it),
            StatValue::U64(it) => out.uint(if other_kind { 4 } else { 3 }, *it),
            StatValue::I64(it) => out.int(if other_kind { 3 } else { 4 }, *it),
            StatValue::Ref(_, it) if other_kind => out.data(5, it.as_bytes()),
            StatValue::Str(it) => out.data(5, it.as_bytes()),
            StatValue::Ref(id, _) => out.int(7, self.stat_id(plane, *id)),
        }
        out.bytes
    }

    fn event_id(&self, id: i64) -> i64 {
        if self.odd.negative_ids { -id } else { id }
    }

    /// Text keeps its positive id: `ref_value` is unsigned.
    fn stat_id(&self, plane: &Plane, id: i64) -> i64 {
        let is_text = plane.stat_names[(id - 1) as usize].is_text;
        if self.odd.negative_ids && !is_text { -id } else { id }
    }
}
