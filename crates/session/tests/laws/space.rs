//! An XSpace as messages, so that whole profiles can be read, changed and written again.
//!
//! The reader has no such types on purpose: it never holds an event as an object. `later_*` are
//! fields that no schema has, as a later version's would look to us.

use std::collections::BTreeMap;

pub use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Space {
    #[prost(message, repeated, tag = "1")]
    pub planes: Vec<Plane>,
    #[prost(string, repeated, tag = "2")]
    pub errors: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub warnings: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub hostnames: Vec<String>,
    #[prost(bytes = "vec", optional, tag = "1002")]
    pub later_bytes: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Plane {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    #[prost(btree_map = "int64, message", tag = "4")]
    pub event_metadata: BTreeMap<i64, EventMetadata>,
    #[prost(btree_map = "int64, message", tag = "5")]
    pub stat_metadata: BTreeMap<i64, StatMetadata>,
    #[prost(message, repeated, tag = "6")]
    pub stats: Vec<Stat>,
    #[prost(uint64, optional, tag = "1001")]
    pub later_number: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Line {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub timestamp_ns: i64,
    #[prost(message, repeated, tag = "4")]
    pub events: Vec<Event>,
    #[prost(int64, tag = "9")]
    pub duration_ps: i64,
    #[prost(int64, tag = "10")]
    pub display_id: i64,
    #[prost(string, tag = "11")]
    pub display_name: String,
    #[prost(bytes = "vec", optional, tag = "1002")]
    pub later_bytes: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(int64, tag = "1")]
    pub metadata_id: i64,
    #[prost(oneof = "Data", tags = "2, 5")]
    pub data: Option<Data>,
    #[prost(int64, tag = "3")]
    pub duration_ps: i64,
    #[prost(message, repeated, tag = "4")]
    pub stats: Vec<Stat>,
    #[prost(uint64, optional, tag = "1001")]
    pub later_number: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum Data {
    #[prost(int64, tag = "2")]
    OffsetPs(i64),
    #[prost(int64, tag = "5")]
    Occurrences(i64),
}

impl Event {
    pub fn offset_ps(&self) -> i64 {
        match self.data {
            Some(Data::OffsetPs(it)) => it,
            _ => 0,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct Stat {
    #[prost(int64, tag = "1")]
    pub metadata_id: i64,
    #[prost(oneof = "StatValue", tags = "2, 3, 4, 5, 6, 7")]
    pub value: Option<StatValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum StatValue {
    #[prost(double, tag = "2")]
    Double(f64),
    #[prost(uint64, tag = "3")]
    Uint(u64),
    #[prost(int64, tag = "4")]
    Int(i64),
    // Not always valid text: some profilers cut it inside a character.
    #[prost(bytes, tag = "5")]
    Text(Vec<u8>),
    #[prost(bytes, tag = "6")]
    Bytes(Vec<u8>),
    /// The id of a stat's metadata, whose name is the value.
    #[prost(uint64, tag = "7")]
    Ref(u64),
}

#[derive(Clone, PartialEq, Message)]
pub struct EventMetadata {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub metadata: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub display_name: Vec<u8>,
    #[prost(message, repeated, tag = "5")]
    pub stats: Vec<Stat>,
    #[prost(int64, repeated, tag = "6")]
    pub child_id: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StatMetadata {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub description: Vec<u8>,
}

impl Plane {
    pub fn is_host(&self) -> bool {
        self.name.starts_with("/host:") && self.name != "/host:metadata"
    }

    /// Every stat of the plane, wherever it stands.
    pub fn all_stats(&mut self) -> impl Iterator<Item = &mut Stat> {
        let of_events = self.lines.iter_mut().flat_map(|it| &mut it.events);
        let of_names = self.event_metadata.values_mut().flat_map(|it| &mut it.stats);
        self.stats.iter_mut().chain(of_events.flat_map(|it| &mut it.stats)).chain(of_names)
    }

    /// A stat's metadata of this name.
    pub fn stat_id(&self, name: &[u8]) -> Option<i64> {
        self.stat_metadata.iter().find(|it| it.1.name == name).map(|it| *it.0)
    }
}
