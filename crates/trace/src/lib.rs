//! The canonical trace: everything known about one profiled run, on one timeline.
//!
//! Columns where there are millions of things, plain rows where there are thousands. A trace is
//! made by a [`TraceBuilder`] and never changed afterwards.
//!
//! ```text
//! host ─ process ─ thread  ──events──  name kind start dur parent detail args
//!      └ device  ─ stream  ──events──      (sorted by track, start, longest first)
//!                             └──edges── host call → kernel, producer → consumer
//! ```
//!
//! Known here: no file format, no table, no output.

mod build;
mod clock;
mod cores;
pub mod dialect;
mod identity;
mod lineage;
mod op;
mod process;
mod scalar;
pub mod testing;
mod time;

pub use build::{ColumnsMut, KeyBatch, Keys, TraceBuilder};
pub use clock::ClockShift;
pub use cores::at_once;
pub use identity::Identity;
pub use lineage::Lineage;
pub use op::{AnyOpName, EAGER_CALL, OpFamily, OpKind, OpKinds, OpName};
pub use process::{
    Frame, Place, Process, Site, SourceLine, StackSample, Stacks, StepCount, Window,
};
pub use scalar::{LeftOut, Scalar, Series};
pub use time::{Dur, Time};

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Everything known about one profiled run.
#[derive(Debug, Default)]
pub struct Trace {
    /// Unix time of [`Time`] zero, if a source knew it.
    pub origin_unix_ns: Option<i64>,
    /// How long the profiler was on, if a source knew it.
    pub window: Option<Dur>,
    pub strings: Strings,
    /// Parents before children.
    pub tracks: Vec<Track>,
    pub lineage: Lineage,
    pub events: Events,
    /// What events have in common; row 0 says nothing.
    pub details: Vec<Detail>,
    pub edges: Edges,
    /// Numbers that few events carry, sorted by event.
    pub numbers: Vec<Number>,
    /// Values over time, sorted by track and time.
    pub counters: Vec<Counter>,
    /// What was counted while work ran, by work: figures without a time of their own.
    pub metrics: Vec<Metric>,
    /// What a source said about a track: clock rates, versions, vendors. Sorted by track.
    pub facts: Vec<Fact>,
    /// Embedded files, as compiled programs, left in the source's bytes.
    pub blobs: Vec<Blob>,
    pub args: Args,
    /// What processes said about themselves.
    pub processes: Vec<Process>,
    /// The curves that a training job logged.
    pub series: Vec<Series>,
    /// Their points, by series and as they were written.
    pub scalars: Vec<Scalar>,
    /// What was logged beside scalars, by run and kind.
    pub left_out: Vec<LeftOut>,
    /// Devices whose events were moved onto the host's clock.
    pub clock_shifts: Vec<ClockShift>,
    /// What the sources had to skip or guess.
    pub notes: Vec<Note>,
}

/// A figure that a device's counters gave for one run of a kernel, or for a range of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The device.
    pub track: TrackId,
    /// What ran.
    pub of: StrId,
    /// Which of the measured runs on that device, counted from 0.
    pub nth: u32,
    /// The counter, as its makers call it.
    pub name: StrId,
    pub value: f64,
}

/// A row number with a type.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            pub fn row(self) -> usize {
                self.0 as usize
            }
        }
    )* };
}

ids! {
    /// An event: its row in [`Events`].
    EventId,
    /// A track: its row in [`Trace::tracks`].
    TrackId,
    /// A text in [`Strings`].
    StrId,
    /// A row in [`Trace::details`].
    DetailId,
    /// A row in [`Trace::series`].
    SeriesId
}

/// One text table for the whole trace.
#[derive(Default)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    pub fn get(&self, id: StrId) -> &str {
        let row = id.row();
        let Some(&end) = self.ends.get(row) else { return "" };
        let start = row.checked_sub(1).and_then(|it| self.ends.get(it)).copied().unwrap_or(0);
        self.text.get(start..end).unwrap_or("")
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (StrId, &str)> {
        (0..self.ends.len() as u32).map(|it| (StrId(it), self.get(StrId(it))))
    }

    /// Another text, even where it is there already: the builder looks first.
    pub fn add(&mut self, text: &str) -> StrId {
        self.text.push_str(text);
        self.ends.push(self.text.len());
        StrId((self.ends.len() - 1) as u32)
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Strings({})", self.len())
    }
}

/// Where events lie: a node of host → process → thread or host → device → stream.
#[derive(Debug, Clone)]
pub struct Track {
    pub parent: Option<TrackId>,
    pub kind: TrackKind,
    pub name: StrId,
    /// Its events: one run of rows.
    pub events: Range<u32>,
    /// When the last of them to end was over.
    pub over: Option<Time>,
    /// The kinds they are of, and perhaps some more: who looks for a rare one need not look at
    /// every event.
    pub kinds: OpKinds,
}

impl Track {
    pub fn rows(&self) -> Range<usize> {
        self.events.start as usize..self.events.end as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackKind {
    Host,
    Process,
    Thread,
    Device,
    Stream,
    /// Steps as the device's own profiler marked them.
    Steps,
    /// Drawn by a profiler over other tracks' time (modules, scopes, framework ops).
    Summary,
    Counter,
}

impl TrackKind {
    pub fn name(self) -> &'static str {
        match self {
            TrackKind::Host => "host",
            TrackKind::Process => "process",
            TrackKind::Thread => "thread",
            TrackKind::Device => "device",
            TrackKind::Stream => "stream",
            TrackKind::Steps => "steps",
            TrackKind::Summary => "summary",
            TrackKind::Counter => "counter",
        }
    }
}

/// Intervals on tracks, sorted by (track, start, longest first).
///
/// So a track's events are one run of rows, and a parent precedes its children. Which track an
/// event is on follows from its row: no column is spent on it.
#[derive(Debug, Default)]
pub struct Events {
    pub name: Vec<StrId>,
    pub kind: Vec<OpKind>,
    pub start: Vec<Time>,
    pub dur: Vec<Dur>,
    pub detail: Vec<DetailId>,
    /// Row of the innermost event around this one, counted from 1, or 0: an `Option` would double
    /// it, and tracks on which nothing nests keep pages that were never written to.
    parent: Vec<u32>,
}

/// In a column of rows: none.
const NO_ROW: u32 = u32::MAX;

impl Events {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The innermost event on the same track that spans this one.
    pub fn parent(&self, event: EventId) -> Option<EventId> {
        self.parent.get(event.row())?.checked_sub(1).map(EventId)
    }

    pub fn end(&self, event: EventId) -> Time {
        self.start[event.row()] + self.dur[event.row()]
    }

    /// The event's own ancestors, innermost first.
    pub fn ancestors(&self, event: EventId) -> impl Iterator<Item = EventId> {
        std::iter::successors(self.parent(event), |&it| self.parent(it))
    }

    /// Bytes held, for judging the reader.
    pub fn heap_bytes(&self) -> usize {
        self.name.capacity() * 4
            + self.kind.capacity()
            + self.start.capacity() * 8
            + self.dur.capacity() * 8
            + self.detail.capacity() * 4
            + self.parent.capacity() * 4
    }
}

/// What many events have in common, stored once: the op behind a kernel, its launch shape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detail {
    /// The framework's op: `scope/name:Type`.
    pub op: Option<StrId>,
    /// The op of the compiled program, innermost last where nested.
    pub hlo_op: Option<StrId>,
    pub hlo_module: Option<StrId>,
    /// The compiled program's own category for the op.
    pub hlo_category: Option<StrId>,
    pub program_id: Option<i64>,
    pub kernel: Option<KernelShape>,
    pub copy_bytes: Option<u64>,
    /// From and to which memory a copy goes: `pageable to device`.
    pub copy_memory: Option<StrId>,
    /// A call from Python into the framework: whether it calls a whole function or one op.
    pub calls_function: Option<bool>,
    /// A call of a traced function: whether this call had to trace.
    pub traced: Option<bool>,
    /// Part of a recorded graph of launches.
    pub in_graph: bool,
    /// Overlaps its neighbours by intent, so nesting does not hold.
    pub overlaps: bool,
}

/// How a kernel was launched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelShape {
    pub grid: [u64; 3],
    pub block: [u64; 3],
    /// Absent where the vendor's profiler does not say.
    pub registers: Option<u64>,
    pub static_shared_bytes: Option<u64>,
    pub dynamic_shared_bytes: Option<u64>,
    /// The profiler's own figure, in millionths of full occupancy.
    pub occupancy_ppm: Option<u32>,
}

/// Who caused whom, sorted by the event caused.
#[derive(Debug, Default)]
pub struct Edges {
    pub from: Vec<EventId>,
    pub to: Vec<EventId>,
    pub kind: Vec<EdgeKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EdgeKind {
    /// Host call → what it started on a device.
    Launch,
    /// Call of a function → its executor's work on another thread.
    Function,
    /// Any other producer → consumer.
    Flow,
}

impl Edges {
    pub fn len(&self) -> usize {
        self.to.len()
    }

    pub fn is_empty(&self) -> bool {
        self.to.is_empty()
    }

    /// What caused this event, by edges of one kind.
    pub fn cause(&self, event: EventId, kind: EdgeKind) -> Option<EventId> {
        let first = self.to.partition_point(|&it| it < event);
        (first..self.to.len())
            .take_while(|&it| self.to[it] == event)
            .find(|&it| self.kind[it] == kind)
            .map(|it| self.from[it])
    }
}

/// A number that only few events carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    pub event: EventId,
    pub key: NumberKey,
    pub value: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NumberKey {
    /// The step's number, as the training loop counts.
    Step,
    /// Said to be the root of a step.
    Root,
}

/// A value at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counter {
    pub track: TrackId,
    pub time: Time,
    pub value: f64,
}

/// Something a source said about a track.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub track: TrackId,
    pub key: String,
    pub value: FactValue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FactValue {
    Int(i64),
    Float(f64),
    Text(String),
}

impl fmt::Display for FactValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FactValue::Int(it) => write!(out, "{it}"),
            FactValue::Float(it) => write!(out, "{it}"),
            FactValue::Text(it) => out.write_str(it),
        }
    }
}

/// A file inside the source, as the proto of a compiled program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub kind: &'static str,
    pub name: String,
    /// Which of the trace's sources, and where in it.
    pub source: u16,
    pub bytes: Range<u64>,
}

impl Blob {
    /// The kind of a compiled program: XLA's `HloProto`.
    pub const PROGRAM: &str = "hlo_proto";
}

/// A compiled program, left in the source's bytes until somebody asks.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    blob: &'a Blob,
    args: &'a Args,
}

impl<'a> Program<'a> {
    pub fn name(&self) -> &'a str {
        &self.blob.name
    }

    /// `None` where the file does not hold it any more.
    pub fn bytes(&self) -> Option<Cow<'a, [u8]>> {
        self.args.bytes(self.blob)
    }

    /// At most so many of its first bytes.
    pub fn head(&self, most: u64) -> Option<Cow<'a, [u8]>> {
        let Range { start, end } = self.blob.bytes;
        self.args.bytes_within(self.blob, start..end.min(start.saturating_add(most)))
    }
}

/// Event → where its arguments lie in the source's bytes; decoded when somebody asks.
#[derive(Default)]
pub struct Args {
    /// In the order of rows.
    runs: Vec<ArgRun>,
    /// Rows that were sorted, and the ones they were read into: runs tell of those.
    read_as: Vec<build::MovedRun>,
    sources: Vec<Box<dyn ArgSource>>,
    lost: Lost,
}

/// Arguments that were asked for and are not in their file any more.
#[derive(Debug, Default)]
struct Lost {
    count: AtomicU64,
    first: OnceLock<String>,
}

impl Lost {
    fn take<T>(&self, read: Result<T, String>) -> Option<T> {
        match read {
            Ok(it) => Some(it),
            Err(why) => {
                self.first.get_or_init(|| why);
                self.count.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

/// Where the arguments of events lie that follow one another, in the trace and in their source.
///
/// Only every [`ArgRun::EVERY`]th has a mark: from there the source counts on.
#[derive(Debug)]
pub struct ArgRun {
    pub rows: Range<u32>,
    /// An [`Args::place`].
    pub from: u64,
    /// Bytes from there.
    pub marks: Vec<u32>,
}

impl ArgRun {
    pub const EVERY: usize = 16;
}

/// Decodes arguments, which stay in the source's bytes.
pub trait ArgSource: Send + Sync {
    /// The arguments of the event `nth` behind the one that begins at `at`, in the file's order.
    /// An error says why they are gone.
    fn args(&self, at: u64, nth: usize) -> Result<Vec<(String, FactValue)>, String>;
    /// A part of the source's bytes.
    fn bytes(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, String>;
}

impl Args {
    /// A place: which source and which byte. 48 bits of offset hold 256 TiB.
    pub fn place(source: u16, offset: u64) -> u64 {
        (u64::from(source) << 48) | (offset & 0xFFFF_FFFF_FFFF)
    }

    pub fn of(&self, event: EventId) -> Vec<(String, FactValue)> {
        self.find(event).unwrap_or_default()
    }

    fn find(&self, event: EventId) -> Option<Vec<(String, FactValue)>> {
        let sorted = self.read_as.get(self.read_as.partition_point(|it| it.0.end <= event.0));
        let row = match sorted {
            Some((rows, read_as)) if rows.contains(&event.0) => {
                *read_as.get((event.0 - rows.start) as usize)?
            }
            _ => event.0,
        };
        let run = self.runs.get(self.runs.partition_point(|it| it.rows.end <= row))?;
        let nth = row.checked_sub(run.rows.start)? as usize;
        let place = run.from + u64::from(*run.marks.get(nth / ArgRun::EVERY)?);
        let source = self.sources.get((place >> 48) as usize)?;
        self.lost.take(source.args(place & 0xFFFF_FFFF_FFFF, nth % ArgRun::EVERY))
    }

    pub fn bytes(&self, blob: &Blob) -> Option<Cow<'_, [u8]>> {
        self.bytes_within(blob, blob.bytes.clone())
    }

    fn bytes_within(&self, blob: &Blob, range: Range<u64>) -> Option<Cow<'_, [u8]>> {
        self.lost.take(self.sources.get(usize::from(blob.source))?.bytes(range))
    }

    /// What was asked for and is not in its file any more: how often, and the first case.
    pub fn lost(&self) -> Option<(u64, &str)> {
        let first = self.lost.first.get()?;
        Some((self.lost.count.load(Ordering::Relaxed).max(1), first))
    }

    pub fn heap_bytes(&self) -> usize {
        let marks: usize = self.runs.iter().map(|it| it.marks.capacity()).sum();
        let read_as: usize = self.read_as.iter().map(|it| it.1.capacity()).sum();
        (marks + read_as) * 4
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Args({} runs, {} sources)", self.runs.len(), self.sources.len())
    }
}

/// Something skipped or guessed: counted, described once, shown with every result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    pub count: u64,
    pub first: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// The profiler itself reported an error.
    ProfilerError,
    ProfilerWarning,
    /// A profile ends early: what came after is lost.
    CutOff,
    /// A part of a file ends early, as the last line of a log does that was being written.
    Truncated,
    /// Bytes that do not follow the format.
    Malformed,
    /// An event without a usable time.
    BadTimestamp,
    /// An event names metadata that is not there.
    UnknownName,
    /// More events than a trace can hold.
    TooManyEvents,
    /// A text that is not UTF-8.
    BadText,
    /// A file of the run could not be read at all.
    UnreadableFile,
    /// More files than are read at once.
    TooManyFiles,
    /// A part of a file that could not be read, or is not there any more.
    LostBytes,
    /// A file was written to while it was read.
    FileChanged,
    /// Arguments of events, asked for when they were not in their file any more.
    LostArguments,
    /// A device's clock is not the host's: its events were moved.
    ClockShifted,
    /// Events that begin inside another one of their thread and outlast it. They are kept.
    BadlyNested,
}

impl NoteKind {
    pub fn name(self) -> &'static str {
        match self {
            NoteKind::ProfilerError => "profiler-error",
            NoteKind::ProfilerWarning => "profiler-warning",
            NoteKind::CutOff => "cut-off",
            NoteKind::Truncated => "truncated",
            NoteKind::Malformed => "malformed",
            NoteKind::BadTimestamp => "bad-timestamp",
            NoteKind::UnknownName => "unknown-name",
            NoteKind::TooManyEvents => "too-many-events",
            NoteKind::BadText => "bad-text",
            NoteKind::UnreadableFile => "unreadable-file",
            NoteKind::TooManyFiles => "too-many-files",
            NoteKind::LostBytes => "lost-bytes",
            NoteKind::FileChanged => "file-changed",
            NoteKind::LostArguments => "lost-arguments",
            NoteKind::ClockShifted => "clock-shifted",
            NoteKind::BadlyNested => "badly-nested",
        }
    }
}

impl Trace {
    pub fn text(&self, id: StrId) -> &str {
        self.strings.get(id)
    }

    pub fn name(&self, event: EventId) -> &str {
        self.strings.get(self.events.name[event.row()])
    }

    pub fn detail(&self, event: EventId) -> &Detail {
        &self.details[self.events.detail[event.row()].row()]
    }

    pub fn track_ids(&self) -> impl Iterator<Item = TrackId> + use<> {
        (0..self.tracks.len() as u32).map(TrackId)
    }

    /// Compiled programs that the profile holds.
    pub fn programs(&self) -> impl Iterator<Item = Program<'_>> {
        let programs = self.blobs.iter().filter(|it| it.kind == Blob::PROGRAM);
        programs.map(|blob| Program { blob, args: &self.args })
    }

    /// What the sources had to skip or guess, and what could not be read since.
    pub fn notes_so_far(&self) -> Vec<Note> {
        let lost = self.args.lost().map(|(count, first)| Note {
            kind: NoteKind::LostArguments,
            count,
            first: first.to_owned(),
        });
        self.notes.iter().cloned().chain(lost).collect()
    }

    pub fn tracks_of(&self, kind: TrackKind) -> impl Iterator<Item = TrackId> + '_ {
        self.track_ids().filter(move |it| self.tracks[it.row()].kind == kind)
    }

    /// Tracks of one kind below a host or a device.
    pub fn tracks_below(
        &self,
        owner: TrackId,
        kind: TrackKind,
    ) -> impl Iterator<Item = TrackId> + '_ {
        let below = self.lineage.below(owner).iter().copied();
        below.filter(move |it| self.tracks[it.row()].kind == kind)
    }

    /// All tracks below a host or a device.
    pub fn all_below(&self, owner: TrackId) -> &[TrackId] {
        self.lineage.below(owner)
    }

    /// Numbers that events of a track carry.
    pub fn numbers_on(&self, track: TrackId) -> &[Number] {
        let rows = &self.tracks[track.row()].events;
        let from = self.numbers.partition_point(|it| it.event.0 < rows.start);
        let n = self.numbers[from..].partition_point(|it| it.event.0 < rows.end);
        &self.numbers[from..from + n]
    }

    /// Edges that lead to events of a track.
    pub fn edges_into(&self, track: TrackId) -> Range<usize> {
        let rows = &self.tracks[track.row()].events;
        let from = self.edges.to.partition_point(|it| it.0 < rows.start);
        let n = self.edges.to[from..].partition_point(|it| it.0 < rows.end);
        from..from + n
    }

    /// A track's events of one kind.
    pub fn rows_of(&self, track: TrackId, kind: OpKind) -> impl Iterator<Item = usize> + '_ {
        let track = &self.tracks[track.row()];
        let rows = if track.kinds.contains(kind) { track.rows() } else { 0..0 };
        rows.filter(move |&it| self.events.kind[it] == kind)
    }

    /// The track an event is on.
    pub fn track_of(&self, event: EventId) -> TrackId {
        // Tracks hold runs of rows in order; empty ones share their neighbour's edge.
        let after = self.tracks.partition_point(|it| it.events.start <= event.0);
        let holds = |it: &usize| self.tracks[*it].events.contains(&event.0);
        TrackId((0..after).rev().find(holds).unwrap_or(0) as u32)
    }

    /// The ancestor of `track` (or itself) of one kind.
    pub fn ancestor(&self, track: TrackId, kind: TrackKind) -> Option<TrackId> {
        std::iter::successors(Some(track), |it| self.tracks[it.row()].parent)
            .find(|it| self.tracks[it.row()].kind == kind)
    }

    pub fn track_name(&self, track: TrackId) -> &str {
        self.strings.get(self.tracks[track.row()].name)
    }

    pub fn fact(&self, track: TrackId, key: &str) -> Option<&FactValue> {
        let from = self.facts.partition_point(|it| it.track < track);
        let mut own = self.facts[from..].iter().take_while(|it| it.track == track);
        own.find(|it| it.key == key).map(|it| &it.value)
    }

    /// Bytes held for events, edges and what belongs to them.
    pub fn heap_bytes(&self) -> usize {
        self.events.heap_bytes()
            + self.args.heap_bytes()
            + self.edges.to.capacity() * 9
            + self.details.capacity() * size_of::<Detail>()
            + self.numbers.capacity() * size_of::<Number>()
            + self.scalars.capacity() * size_of::<Scalar>()
            + self.strings.text.capacity()
            + self.strings.ends.capacity() * 8
    }
}
