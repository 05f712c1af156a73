//! Makes a [`Trace`] of what sources say.
//!
//! A source reserves rows per track and fills columns in parallel, or pushes single events; it
//! says correlation keys and leaves the rest to [`TraceBuilder::finish`], which sorts, nests,
//! classifies and joins. No source does that by hand.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use rayon::prelude::*;

use crate::clock;
use crate::lineage::Lineage;
use crate::scalar::Logs;
use crate::{
    ArgRun, ArgSource, Args, Blob, Counter, Detail, DetailId, Dur, EdgeKind, Edges, EventId,
    Events, Fact, FactValue, Metric, NO_ROW, Note, NoteKind, Number, NumberKey, OpKind, OpKinds,
    Process, Scalar, SeriesId, StrId, Strings, Time, Trace, Track, TrackId, TrackKind,
};

/// A row that a source reserved and could not fill.
const DEAD: u32 = u32::MAX;

/// What an event takes while it is sorted and joined, and later in tables.
const ROOM_PER_EVENT: usize = 100;

/// Collects what sources say about one run.
#[derive(Default)]
pub struct TraceBuilder {
    origin_unix_ns: Option<i64>,
    window: Option<Dur>,
    strings: Strings,
    text_lookup: HashTable<StrId>,
    hasher: DefaultHashBuilder,
    tracks: Vec<Track>,
    track_lookup: HashMap<(Option<TrackId>, TrackKind, StrId), TrackId>,
    segments: Vec<(TrackId, Range<u32>)>,
    // Plain integers until `finish`: only those come from the system as zeroed pages, for free.
    name: Vec<u32>,
    start: Vec<i64>,
    dur: Vec<i64>,
    detail: Vec<u32>,
    /// 0 where the source left it to the name, else an [`OpKind`] counted from 1.
    kind: Vec<u8>,
    /// Tracks whose source wants to know of events that overlap and do not nest.
    nesting_checked: Vec<TrackId>,
    args: Vec<ArgRun>,
    details: Vec<Detail>,
    departs: Vec<Keys>,
    arrives: Vec<Keys>,
    numbers: Vec<Number>,
    counters: Vec<Counter>,
    metrics: Vec<Metric>,
    facts: Vec<Fact>,
    fact_lookup: HashTable<usize>,
    blobs: Vec<Blob>,
    sources: Vec<Box<dyn ArgSource>>,
    processes: Vec<Process>,
    logs: Logs,
    notes: Vec<Note>,
}

/// Correlation keys of one kind from one source; keys of different scopes never meet.
#[derive(Debug)]
pub struct Keys {
    pub kind: EdgeKind,
    pub scope: u32,
    pub batch: KeyBatch,
}

/// Keys and the rows that carry them.
///
/// Profilers count their keys up and give one to every kernel, so on a device almost all follow
/// the last one closely, in the row behind it: two bytes each.
#[derive(Debug, Default)]
pub struct KeyBatch {
    runs: Vec<KeyRun>,
    /// In each run, from one key to the next.
    steps: Vec<u16>,
    last_key: u64,
}

/// Rows that follow one another, and the key of the first.
#[derive(Debug)]
struct KeyRun {
    first_key: u64,
    rows: Range<u32>,
}

impl KeyBatch {
    /// Expects up to so many keys. What is not used of that costs nothing.
    pub fn with_room(n: usize) -> KeyBatch {
        KeyBatch { steps: Vec::with_capacity(n), ..KeyBatch::default() }
    }

    #[inline]
    pub fn push(&mut self, key: u64, row: u32) {
        let step = u16::try_from(key.wrapping_sub(self.last_key));
        self.last_key = key;
        match (self.runs.last_mut(), step) {
            (Some(run), Ok(step)) if run.rows.end == row => {
                run.rows.end += 1;
                self.steps.push(step);
            }
            _ => self.runs.push(KeyRun { first_key: key, rows: row..row + 1 }),
        }
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn len(&self) -> usize {
        self.runs.len() + self.steps.len()
    }

    fn for_each(&self, mut each: impl FnMut(u64, u32)) {
        let mut steps = self.steps.iter();
        for KeyRun { first_key, rows } in &self.runs {
            let mut key = *first_key;
            each(key, rows.start);
            for (row, &step) in (rows.start + 1..rows.end).zip(&mut steps) {
                key = key.wrapping_add(u64::from(step));
                each(key, row);
            }
        }
    }
}

/// Reserved rows, to be filled in any order and on any thread.
#[derive(Debug)]
pub struct ColumnsMut<'a> {
    /// [`StrId`]s.
    pub name: &'a mut [u32],
    /// Picoseconds, as [`Time`].
    pub start: &'a mut [i64],
    /// Picoseconds, as [`Dur`].
    pub dur: &'a mut [i64],
    /// [`DetailId`]s.
    pub detail: &'a mut [u32],
    /// 0 leaves the kind to the name; else [`OpKind::said`].
    pub kind: &'a mut [u8],
}

impl<'a> ColumnsMut<'a> {
    /// The first `n` rows, and the others.
    pub fn split(self, n: usize) -> (ColumnsMut<'a>, ColumnsMut<'a>) {
        let n = n.min(self.name.len());
        let (name, name_rest) = self.name.split_at_mut(n);
        let (start, start_rest) = self.start.split_at_mut(n);
        let (dur, dur_rest) = self.dur.split_at_mut(n);
        let (detail, detail_rest) = self.detail.split_at_mut(n);
        let (kind, kind_rest) = self.kind.split_at_mut(n);
        (
            ColumnsMut { name, start, dur, detail, kind },
            ColumnsMut {
                name: name_rest,
                start: start_rest,
                dur: dur_rest,
                detail: detail_rest,
                kind: kind_rest,
            },
        )
    }

    /// Gives up rows: they were reserved for events that could not be read.
    pub fn give_up(&mut self, rows: Range<usize>) {
        if let Some(rows) = self.name.get_mut(rows) {
            rows.fill(DEAD);
        }
    }
}

/// Files further apart are not of one run.
const LONGEST_RUN_PS: i64 = 1 << 61;

impl TraceBuilder {
    pub fn new() -> TraceBuilder {
        TraceBuilder { details: vec![Detail::default()], ..TraceBuilder::default() }
    }

    /// The id of a text, the same for the same text.
    pub fn text(&mut self, text: &str) -> StrId {
        let Self { strings, text_lookup, hasher, .. } = self;
        let entry = text_lookup.entry(
            hasher.hash_one(text),
            |&it| strings.get(it) == text,
            |&it| hasher.hash_one(strings.get(it)),
        );
        match entry {
            Entry::Occupied(it) => *it.get(),
            Entry::Vacant(it) => {
                let id = StrId(strings.len() as u32);
                it.insert(id);
                strings.add(text)
            }
        }
    }

    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// The track of this name below `parent`, made where it is new.
    pub fn track(&mut self, parent: Option<TrackId>, kind: TrackKind, name: &str) -> TrackId {
        let name = self.text(name);
        *self.track_lookup.entry((parent, kind, name)).or_insert_with(|| {
            self.tracks.push(empty_track(parent, kind, name));
            TrackId((self.tracks.len() - 1) as u32)
        })
    }

    /// Whether [`TraceBuilder::track`] has made this one already.
    pub fn has_track(&mut self, parent: Option<TrackId>, kind: TrackKind, name: &str) -> bool {
        let name = self.text(name);
        self.track_lookup.contains_key(&(parent, kind, name))
    }

    /// The hosts known so far.
    pub fn hosts(&self) -> impl Iterator<Item = (TrackId, &str)> {
        let tracks = self.tracks.iter().enumerate();
        let hosts = tracks.filter(|it| it.1.kind == TrackKind::Host);
        hosts.map(|(row, it)| (TrackId(row as u32), self.strings.get(it.name)))
    }

    /// Another track even where one of this name exists: two threads may share a name.
    pub fn new_track(&mut self, parent: Option<TrackId>, kind: TrackKind, name: &str) -> TrackId {
        let name = self.text(name);
        self.tracks.push(empty_track(parent, kind, name));
        TrackId((self.tracks.len() - 1) as u32)
    }

    /// Adds one event.
    pub fn event(&mut self, track: TrackId, name: &str, start: Time, dur: Dur) -> EventId {
        let name = self.text(name);
        let row = self.reserve(track, 1).start;
        if let Some(last) = self.name.last_mut() {
            *last = name.0;
        }
        if let Some(last) = self.start.last_mut() {
            *last = start.0;
        }
        if let Some(last) = self.dur.last_mut() {
            *last = dur.0;
        }
        EventId(row)
    }

    pub fn describe(&mut self, event: EventId, detail: Detail) {
        let id = self.detail(detail);
        if let Some(it) = self.detail.get_mut(event.row()) {
            *it = id.0;
        }
    }

    /// Says what an event is, where its source knows more than a name tells.
    pub fn set_kind(&mut self, event: EventId, kind: OpKind) {
        if let Some(it) = self.kind.get_mut(event.row()) {
            *it = kind.said();
        }
    }

    pub fn detail(&mut self, detail: Detail) -> DetailId {
        self.details.push(detail);
        DetailId((self.details.len() - 1) as u32)
    }

    /// Whether there is memory for so many events more: it is asked for and given back, because a
    /// process that gets none later ends there and then. A limit is seen, and not what others take.
    pub fn has_room(&self, n_events: usize) -> bool {
        let n_events = n_events.saturating_add(self.name.len());
        let mut room = Vec::<u8>::new();
        let is_there = room.try_reserve_exact(n_events.saturating_mul(ROOM_PER_EVENT)).is_ok();
        // What nobody looks at need not be asked for, as compilers see it.
        std::hint::black_box(&room);
        is_there
    }

    /// Makes room for `n` events on a track; they are filled through [`Self::columns`].
    ///
    /// Fewer rows than asked for come back where a trace cannot hold more.
    pub fn reserve(&mut self, track: TrackId, n: usize) -> Range<u32> {
        self.reserve_all(std::iter::once((track, n)))
    }

    /// Makes room on many tracks at once, in their order.
    pub fn reserve_all(
        &mut self,
        runs: impl Iterator<Item = (TrackId, usize)> + Clone,
    ) -> Range<u32> {
        let from = self.name.len();
        let asked = runs.clone().fold(0_usize, |sum, it| sum.saturating_add(it.1));
        let room = (NO_ROW as usize).saturating_sub(from);
        if asked > room {
            self.note_many(NoteKind::TooManyEvents, (asked - room) as u64, || {
                format!("a trace holds at most {NO_ROW} events")
            });
        }
        let to = from + asked.min(room);
        if from == 0 {
            self.name = vec![0; to];
            self.start = vec![0; to];
            self.dur = vec![0; to];
            self.detail = vec![0; to];
            self.kind = vec![0; to];
        } else {
            self.name.resize(to, 0);
            self.start.resize(to, 0);
            self.dur.resize(to, 0);
            self.detail.resize(to, 0);
            self.kind.resize(to, 0);
        }
        let mut at = from as u32;
        for (track, n) in runs {
            let rows = at..at + n.min(to - at as usize) as u32;
            at = rows.end;
            match self.segments.last_mut() {
                Some((last, range)) if *last == track && range.end == rows.start => {
                    range.end = rows.end;
                }
                _ => self.segments.push((track, rows)),
            }
        }
        from as u32..to as u32
    }

    /// The columns of reserved rows.
    pub fn columns(&mut self, rows: Range<u32>) -> ColumnsMut<'_> {
        let rows = rows.start as usize..rows.end as usize;
        ColumnsMut {
            name: &mut self.name[rows.clone()],
            start: &mut self.start[rows.clone()],
            dur: &mut self.dur[rows.clone()],
            detail: &mut self.detail[rows.clone()],
            kind: &mut self.kind[rows],
        }
    }

    /// This event causes whatever arrives with the same key.
    pub fn departs(&mut self, kind: EdgeKind, key: u64, event: EventId) {
        push_key(&mut self.departs, kind, key, event);
    }

    pub fn arrives(&mut self, kind: EdgeKind, key: u64, event: EventId) {
        push_key(&mut self.arrives, kind, key, event);
    }

    pub fn all_depart(&mut self, keys: Keys) {
        if !keys.batch.is_empty() {
            self.departs.push(keys);
        }
    }

    pub fn all_arrive(&mut self, keys: Keys) {
        if !keys.batch.is_empty() {
            self.arrives.push(keys);
        }
    }

    pub fn number(&mut self, event: EventId, key: NumberKey, value: i64) {
        self.numbers.push(Number { event, key, value });
    }

    pub fn counter(&mut self, track: TrackId, time: Time, value: f64) {
        self.counters.push(Counter { track, time, value });
    }

    /// What a device counted of one run.
    pub fn metric(&mut self, metric: Metric) {
        self.metrics.push(metric);
    }

    pub fn fact(&mut self, track: TrackId, key: &str, value: FactValue) {
        let Self { facts, fact_lookup, hasher, .. } = self;
        let entry = fact_lookup.entry(
            hasher.hash_one((track, key)),
            |&it| facts[it].track == track && facts[it].key == key,
            |&it| hasher.hash_one((facts[it].track, facts[it].key.as_str())),
        );
        if let Entry::Vacant(entry) = entry {
            entry.insert(facts.len());
            facts.push(Fact { track, key: key.to_owned(), value });
        }
    }

    /// What a process said about itself. Its places must name their parents before themselves.
    ///
    /// Two sources may tell of one process: of its steps from inside, of its stacks from outside.
    /// Where both sampled, the one that saw more is kept.
    pub fn process(&mut self, process: Process) {
        let Some(known) = self.processes.iter_mut().find(|it| it.pid == process.pid) else {
            self.processes.push(process);
            return;
        };
        if process.stacks.samples.len() > known.stacks.samples.len() {
            known.stacks = process.stacks;
        }
        if known.steps.is_empty() {
            known.steps = process.steps;
            known.step_name = process.step_name;
            known.windows = process.windows;
        }
        if known.sites.is_empty() {
            known.sites = process.sites;
        }
        known.frameworks.extend(process.frameworks);
        known.driving_thread = known.driving_thread.or(process.driving_thread);
        known.examples = known.examples.or(process.examples);
    }

    /// The curve of this tag in a run of a training log, made where it is new.
    pub fn series(&mut self, run: &Arc<str>, tag: &str) -> SeriesId {
        self.logs.series(run, tag)
    }

    /// Whether [`TraceBuilder::series`] has made this one already.
    pub fn has_series(&self, run: &Arc<str>, tag: &str) -> bool {
        self.logs.has_series(run, tag)
    }

    /// A point of a curve. They keep the order in which they are said.
    pub fn scalar(&mut self, scalar: Scalar) {
        self.logs.scalars.push(scalar);
    }

    pub fn n_scalars(&self) -> usize {
        self.logs.scalars.len()
    }

    /// So many things of this kind stand in a run's log and were not read.
    pub fn leave_out(&mut self, run: &Arc<str>, kind: &str, count: u64) {
        self.logs.leave_out(run, kind, count);
    }

    /// Names the runs of all training logs, after the last was read: a source knows where a file
    /// lies, but not which folder above it a person named.
    pub fn name_runs(&mut self, name: impl Fn(&str) -> String) {
        self.logs.name_runs(name);
    }

    pub fn blob(&mut self, blob: Blob) {
        self.blobs.push(blob);
    }

    /// Says where the arguments of reserved rows lie.
    pub fn args(&mut self, run: ArgRun) {
        self.args.push(run);
    }

    /// Takes the bytes that arguments stay in; answers their number for [`Args::place`].
    pub fn source(&mut self, source: Box<dyn ArgSource>) -> u16 {
        self.sources.push(source);
        (self.sources.len() - 1) as u16
    }

    /// How many sources were taken so far: the number the next one gets. `None` where a trace
    /// holds no more.
    pub fn next_source(&self) -> Option<u16> {
        u16::try_from(self.sources.len()).ok().filter(|&it| it < u16::MAX)
    }

    /// Where a moment of the wall clock lies in the trace. The first that is asked for is its
    /// zero, unless what was read before does not say when it was: then nothing tells how the two
    /// lie.
    pub fn time_at(&mut self, unix_ns: i64) -> Option<Time> {
        if self.origin_unix_ns.is_none() && self.sources.is_empty() {
            self.origin_unix_ns = Some(unix_ns);
        }
        unix_ns.checked_sub(self.origin_unix_ns?)?.checked_mul(1000).map(Time)
    }

    /// Whether moments of the wall clock have a place.
    pub fn has_clock(&self) -> bool {
        self.origin_unix_ns.is_some()
    }

    /// Where a profile's own zero lies in the trace, which may begin with it. One that does not say
    /// when it was, or was further away than any run is long, begins with the trace.
    pub fn place(&mut self, zero_unix_ns: Option<i64>) -> Dur {
        let Some(unix_ns) = zero_unix_ns else { return Dur(0) };
        let origin = *self.origin_unix_ns.get_or_insert(unix_ns);
        let later = unix_ns.saturating_sub(origin).checked_mul(1000);
        Dur(later.filter(|it| (-LONGEST_RUN_PS..=LONGEST_RUN_PS).contains(it)).unwrap_or(0))
    }

    /// The profiler was on at least until `end`.
    pub fn extend_window(&mut self, end: Dur) {
        self.window = self.window.max(Some(end));
    }

    /// Events of this track are counted that overlap another and do not lie inside it.
    pub fn check_nesting(&mut self, track: TrackId) {
        self.nesting_checked.push(track);
    }

    /// Records something skipped or guessed. `first` is described only once.
    pub fn note(&mut self, kind: NoteKind, first: impl FnOnce() -> String) {
        self.note_many(kind, 1, first);
    }

    pub fn note_many(&mut self, kind: NoteKind, count: u64, first: impl FnOnce() -> String) {
        match self.notes.iter_mut().find(|it| it.kind == kind) {
            Some(note) => note.count += count,
            None if count == 0 => (),
            None => self.notes.push(Note { kind, count, first: first() }),
        }
    }

    /// Sorts, nests, classifies and joins.
    pub fn finish(mut self) -> Trace {
        let (moved, read_as) = self.settle_rows();
        let (parent, over) = self.nest();
        for (track, over) in self.tracks.iter_mut().zip(over) {
            track.over = over.map(Time);
        }
        self.note_overlaps();
        let edges = join(&self.departs, &self.arrives, &moved);
        self.departs = Vec::new();
        self.arrives = Vec::new();
        let mut numbers = self.numbers;
        for number in &mut numbers {
            number.event = moved.now(number.event.0).map_or(EventId(NO_ROW), EventId);
        }
        numbers.retain(|it| it.event.0 != NO_ROW);
        numbers.sort_unstable();
        let mut counters = self.counters;
        counters.sort_by_key(|it| (it.track, it.time));
        let mut scalars = self.logs.scalars;
        scalars.sort_by_key(|it| it.series);
        self.notes.sort_by_key(|it| it.kind);
        self.facts.sort_by_key(|it| it.track);
        self.args.sort_by_key(|it| it.rows.start);
        let mut trace = Trace {
            origin_unix_ns: self.origin_unix_ns,
            window: self.window,
            strings: self.strings,
            lineage: Lineage::of(&self.tracks),
            tracks: self.tracks,
            events: Events {
                kind: Vec::new(),
                // Same size and alignment: these collect in place.
                name: self.name.into_iter().map(StrId).collect(),
                start: self.start.into_iter().map(Time).collect(),
                dur: self.dur.into_iter().map(Dur).collect(),
                detail: self.detail.into_iter().map(DetailId).collect(),
                parent,
            },
            details: self.details,
            edges,
            numbers,
            counters,
            metrics: self.metrics,
            facts: self.facts,
            blobs: self.blobs,
            args: Args { runs: self.args, read_as, sources: self.sources, ..Args::default() },
            processes: self.processes,
            series: self.logs.series,
            scalars,
            left_out: self.logs.left_out,
            clock_shifts: Vec::new(),
            notes: self.notes,
        };
        let (kind, kinds) = classify(&trace, self.kind);
        trace.events.kind = kind;
        for (track, kinds) in kinds {
            trace.tracks[track].kinds.insert_all(kinds);
        }
        mark_steps(&mut trace);
        mark_blits(&mut trace);
        mark_copies(&mut trace);
        clock::align(&mut trace);
        trace
    }

    /// Brings rows into the order of tracks and time, and drops those given up. Answers where rows
    /// went, and which ones came.
    fn settle_rows(&mut self) -> (Moved, Vec<MovedRun>) {
        let in_order = self.segments.windows(2).all(|it| it[0].0 < it[1].0);
        // The largest number there is: the largest of many is found faster than the first.
        let dead = self.name.par_chunks(1 << 16).any(|it| it.iter().max() == Some(&DEAD));
        if in_order && !dead {
            for (track, rows) in &self.segments {
                self.tracks[track.row()].events = rows.clone();
            }
            let (start, dur) = (&self.start, &self.dur);
            let came: Vec<MovedRun> = self
                .segments
                .par_iter()
                .filter(|(_, rows)| !is_sorted(start, dur, rows.start as usize..rows.end as usize))
                .map(|(_, rows)| (rows.clone(), sorted_rows(start, dur, rows.clone().collect())))
                .collect();
            let went =
                |(rows, order): &MovedRun| (rows.clone(), inverse(rows.start, rows.len(), order));
            let moved = came.iter().map(went).collect();
            for (rows, order) in &came {
                self.gather(rows.clone(), order);
            }
            self.set_empty_ranges();
            return (Moved(moved), came);
        }

        let mut by_track: Vec<Vec<u32>> = vec![Vec::new(); self.tracks.len()];
        for (track, rows) in &self.segments {
            let alive = rows.clone().filter(|&it| self.name[it as usize] != DEAD);
            by_track[track.row()].extend(alive);
        }
        let (start, dur) = (&self.start, &self.dur);
        let by_track: Vec<Vec<u32>> =
            by_track.into_par_iter().map(|it| sorted_rows(start, dur, it)).collect();
        let mut at = 0;
        for (track, rows) in self.tracks.iter_mut().zip(&by_track) {
            track.events = at..at + rows.len() as u32;
            at += rows.len() as u32;
        }
        let order = by_track.concat();
        let n = self.name.len() as u32;
        self.gather(0..n, &order);
        let moved = Moved(vec![(0..n, inverse(0, n as usize, &order))]);
        (moved, vec![(0..order.len() as u32, order)])
    }

    /// An empty track begins where the one before it ends, so that rows and tracks stay in step.
    fn set_empty_ranges(&mut self) {
        let mut at = 0;
        for track in &mut self.tracks {
            if track.events.is_empty() {
                track.events = at..at;
            }
            at = track.events.end;
        }
    }

    fn gather(&mut self, rows: Range<u32>, order: &[u32]) {
        let rows = rows.start as usize..rows.end as usize;
        gather(&mut self.name, rows.clone(), order);
        gather(&mut self.start, rows.clone(), order);
        gather(&mut self.dur, rows.clone(), order);
        gather(&mut self.detail, rows.clone(), order);
        gather(&mut self.kind, rows, order);
    }

    /// For each event the row of the innermost one around it on its track, counted from 1; for
    /// each track, when all its events were over.
    fn nest(&self) -> (Vec<u32>, Vec<Option<i64>>) {
        let mut parent = vec![0; self.start.len()];
        let mut runs = Vec::new();
        let mut rest = parent.as_mut_slice();
        for track in &self.tracks {
            let (run, others) = rest.split_at_mut(track.events.len());
            rest = others;
            runs.push((track.rows(), run));
        }
        let overlaps: Vec<bool> = self.details.iter().map(|it| it.overlaps).collect();
        let any_overlaps = overlaps.contains(&true);
        let over = runs.into_par_iter().map(|(rows, parent)| {
            let mut over = None;
            // The later an event began, the earlier it ends: what ends before a later one can
            // hold nothing that this later one does not hold, and is dropped.
            let mut open: Vec<(i64, u32)> = Vec::new();
            for (row, parent) in rows.zip(parent) {
                let start = self.start[row];
                let end = start.saturating_add(self.dur[row]);
                over = over.max(Some(end));
                let overlaps = any_overlaps && overlaps[self.detail[row] as usize];
                let holds = !overlaps && end > start;
                let around = if holds {
                    while open.last().is_some_and(|it| it.0 < end) {
                        open.pop();
                    }
                    open.len()
                } else {
                    open.partition_point(|it| it.0 >= end)
                };
                // Kernels have none: memory that was never written to need not be there.
                if let Some(around) = around.checked_sub(1) {
                    *parent = open[around].1 + 1;
                }
                if holds {
                    open.push((end, row as u32));
                }
            }
            over
        });
        let over = over.collect();
        (parent, over)
    }

    /// Counts events that begin inside another one of their track and outlast it.
    fn note_overlaps(&mut self) {
        let counted = self.nesting_checked.par_iter().map(|&track| {
            let (mut open, mut count, mut first): (Vec<i64>, u64, Option<usize>) =
                (Vec::new(), 0, None);
            for row in self.tracks[track.row()].rows() {
                let start = self.start[row];
                let end = start.saturating_add(self.dur[row]);
                while open.last().is_some_and(|&it| it <= start) {
                    open.pop();
                }
                if open.last().is_some_and(|&it| it < end) {
                    count += 1;
                    first.get_or_insert(row);
                    while open.last().is_some_and(|&it| it < end) {
                        open.pop();
                    }
                }
                if end > start {
                    open.push(end);
                }
            }
            (track, count, first)
        });
        let counted: Vec<(TrackId, u64, Option<usize>)> = counted.collect();
        for (track, count, first) in counted {
            let Some(first) = first else { continue };
            let name = self.strings.get(StrId(self.name[first])).to_owned();
            let track = self.strings.get(self.tracks[track.row()].name).to_owned();
            self.note_many(NoteKind::BadlyNested, count, || {
                format!("{name} on {track} outlasts the event that it begins in")
            });
        }
    }
}

fn empty_track(parent: Option<TrackId>, kind: TrackKind, name: StrId) -> Track {
    Track { parent, kind, name, events: 0..0, over: None, kinds: OpKinds::default() }
}

fn push_key(all: &mut Vec<Keys>, kind: EdgeKind, key: u64, event: EventId) {
    let place = match all.iter().position(|it| it.kind == kind && it.scope == 0) {
        Some(place) => place,
        None => {
            all.push(Keys { kind, scope: 0, batch: KeyBatch::default() });
            all.len() - 1
        }
    };
    all[place].batch.push(key, event.0);
}

/// Rows that changed places among themselves, and for each another row.
pub(crate) type MovedRun = (Range<u32>, Vec<u32>);

/// Where rows went; those not mentioned stayed.
#[derive(Debug)]
struct Moved(Vec<MovedRun>);

impl Moved {
    fn now(&self, row: u32) -> Option<u32> {
        let at = self.0.partition_point(|it| it.0.end <= row);
        match self.0.get(at) {
            Some((rows, now)) if rows.contains(&row) => {
                Some(now[(row - rows.start) as usize]).filter(|&it| it != NO_ROW)
            }
            _ => Some(row),
        }
    }
}

fn is_sorted(start: &[i64], dur: &[i64], rows: Range<usize>) -> bool {
    let (start, dur) = (&start[rows.clone()], &dur[rows]);
    start.windows(2).zip(dur.windows(2)).all(|(t, d)| t[0] < t[1] || t[0] == t[1] && d[0] >= d[1])
}

/// Rows by start, longest first; equal ones stay as the file had them.
fn sorted_rows(start: &[i64], dur: &[i64], mut rows: Vec<u32>) -> Vec<u32> {
    rows.sort_by_key(|&it| (start[it as usize], std::cmp::Reverse(dur[it as usize])));
    rows
}

fn inverse(first: u32, n: usize, order: &[u32]) -> Vec<u32> {
    let mut now = vec![NO_ROW; n];
    for (to, &from) in order.iter().enumerate() {
        now[(from - first) as usize] = first + to as u32;
    }
    now
}

/// Brings a column's rows into `order`; what is left over at the end is cut off.
fn gather<T: Copy + Send + Sync>(column: &mut Vec<T>, rows: Range<usize>, order: &[u32]) {
    let picked: Vec<T> = order.par_iter().map(|&it| column[it as usize]).collect();
    let whole = rows.end == column.len();
    column[rows.start..rows.start + picked.len()].copy_from_slice(&picked);
    if whole {
        column.truncate(rows.start + picked.len());
    }
}

/// Joins departures and arrivals that share kind, scope and key.
fn join<'a>(departs: &'a [Keys], arrives: &'a [Keys], moved: &Moved) -> Edges {
    let mut edges = Edges::default();
    let mut groups: Vec<(EdgeKind, u32)> = arrives.iter().map(|it| (it.kind, it.scope)).collect();
    groups.sort_unstable();
    groups.dedup();
    // Every file has scopes of its own: searching all keys for each would grow with their square.
    let [departs, arrives] = [departs, arrives].map(|all| {
        let mut all: Vec<&'a Keys> = all.iter().collect();
        all.sort_by_key(|it| (it.kind, it.scope));
        all
    });
    for (kind, scope) in groups {
        let of = |all: &[&'a Keys]| -> Vec<&'a KeyBatch> {
            let first = all.partition_point(|it| (it.kind, it.scope) < (kind, scope));
            let these = all[first..].iter().take_while(|it| (it.kind, it.scope) == (kind, scope));
            these.map(|it| &it.batch).collect()
        };
        let (from, to) = (of(&departs), of(&arrives));
        let lookup = Lookup::new(&from);
        let most = to.iter().map(|it| it.len()).sum();
        edges.from.reserve(most);
        edges.to.reserve(most);
        for batch in to {
            batch.for_each(|key, row| {
                let from = lookup.get(key).and_then(|it| moved.now(it));
                if let (Some(from), Some(to)) = (from, moved.now(row)) {
                    edges.from.push(EventId(from));
                    edges.to.push(EventId(to));
                }
            });
        }
        edges.kind.resize(edges.to.len(), kind);
    }
    // Arrivals come in the order of rows, but for several kinds or rows that moved.
    if !edges.to.is_sorted() {
        let mut order: Vec<u32> = (0..edges.to.len() as u32).collect();
        order.sort_by_key(|&it| (edges.to[it as usize], edges.kind[it as usize]));
        let n = edges.to.len();
        gather(&mut edges.from, 0..n, &order);
        gather(&mut edges.to, 0..n, &order);
        gather(&mut edges.kind, 0..n, &order);
    }
    edges.from.shrink_to_fit();
    edges.to.shrink_to_fit();
    edges
}

/// Key → row; profilers count their keys up, so a plain array mostly does.
enum Lookup {
    Dense(u64, Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

impl Lookup {
    fn new(batches: &[&KeyBatch]) -> Lookup {
        let (mut low, mut high, mut n) = (u64::MAX, 0, 0_u64);
        for batch in batches {
            batch.for_each(|key, _| (low, high) = (low.min(key), high.max(key)));
            n += batch.len() as u64;
        }
        let span = high.saturating_sub(low).saturating_add(1);
        if n > 0 && span <= n.saturating_mul(4) {
            let mut rows = vec![NO_ROW; span as usize];
            for batch in batches {
                batch.for_each(|key, row| rows[(key - low) as usize] = row);
            }
            Lookup::Dense(low, rows)
        } else {
            let mut rows = HashMap::new();
            for batch in batches {
                batch.for_each(|key, row| _ = rows.insert(key, row));
            }
            Lookup::Sparse(rows)
        }
    }

    fn get(&self, key: u64) -> Option<u32> {
        match self {
            Lookup::Dense(low, rows) => {
                let at = usize::try_from(key.checked_sub(*low)?).ok()?;
                rows.get(at).copied().filter(|&it| it != NO_ROW)
            }
            Lookup::Sparse(rows) => rows.get(&key).copied(),
        }
    }
}

/// What each event does: as its source said, else from its name, looked at once, and what its
/// detail adds. Then for pieces of tracks all that was met there.
fn classify(trace: &Trace, mut said: Vec<u8>) -> (Vec<OpKind>, Vec<(usize, OpKinds)>) {
    let names: Vec<&str> = trace.strings.iter().map(|(_, text)| text).collect();
    let on_host: Vec<OpKind> = names.par_iter().map(|it| OpKind::on_host(it)).collect();
    let on_device: Vec<OpKind> = names.par_iter().map(|it| OpKind::on_device(it)).collect();
    let by_category: Vec<Option<OpKind>> = trace
        .details
        .iter()
        .map(|it| it.hlo_category.and_then(|it| of_hlo_category(trace.text(it))))
        .collect();

    let mut runs = Vec::new();
    let mut rest = said.as_mut_slice();
    for (at, track) in trace.tracks.iter().enumerate() {
        let (mut run, others) = rest.split_at_mut(track.events.len());
        rest = others;
        let mut first = track.rows().start;
        // One track can hold almost all events: cut it, so that all cores work.
        while !run.is_empty() {
            let (piece, more) = run.split_at_mut(run.len().min(1 << 20));
            run = more;
            runs.push((at, first, piece));
            first += 1 << 20;
        }
    }
    let events = &trace.events;
    let met = runs.into_par_iter().map(|(at, first, kinds)| {
        let track = trace.tracks[at].kind;
        let mut met = OpKinds::default();
        for (row, said) in (first..).zip(kinds) {
            if let Some(kind) = OpKind::of_said(*said) {
                met.insert(kind);
                continue;
            }
            let name = events.name[row].row();
            // Where most events have none, that column was never written to: it is only read,
            // page by page, where it decides.
            let detail = || events.detail[row].row();
            let kind = match track {
                TrackKind::Steps => OpKind::Step,
                TrackKind::Summary => OpKind::Summary,
                TrackKind::Stream => by_category[detail()].unwrap_or(on_device[name]),
                _ => match on_host[name] {
                    OpKind::User => with_detail(&trace.details[detail()], on_device[name]),
                    known => known,
                },
            };
            met.insert(kind);
            *said = kind.said();
        }
        (at, met)
    });
    let met = met.collect();
    // Same size and alignment: these collect in place.
    (said.into_iter().map(|it| OpKind::of_said(it).unwrap_or_default()).collect(), met)
}

/// A host event whose name says nothing, but whose detail does.
fn with_detail(detail: &Detail, on_device: OpKind) -> OpKind {
    match detail {
        Detail { traced: Some(true), .. } => OpKind::Compile,
        Detail { traced: Some(false), .. } => OpKind::Runtime,
        Detail { hlo_op: Some(_), .. } if on_device == OpKind::Collective => OpKind::Collective,
        Detail { hlo_op: Some(_), .. } => OpKind::Op,
        _ => OpKind::User,
    }
}

/// A compiled program's category for its op, where that says more than the name.
fn of_hlo_category(category: &str) -> Option<OpKind> {
    let starts = |word: &str| category.starts_with(word);
    if starts("infeed") || starts("host recv") || starts("host receive") {
        Some(OpKind::InputWait)
    } else if starts("outfeed") || starts("host send") {
        Some(OpKind::CopyOut)
    } else if [
        "all-reduce",
        "all-gather",
        "all-to-all",
        "reduce-scatter",
        "collective",
        "send",
        "recv",
    ]
    .into_iter()
    .any(starts)
    {
        Some(OpKind::Collective)
    } else {
        None
    }
}

/// An otherwise unknown event that carries a step's number brackets a step.
fn mark_steps(trace: &mut Trace) {
    for number in &trace.numbers {
        let row = number.event.row();
        if number.key == NumberKey::Step && trace.events.kind[row] == OpKind::User {
            let track = trace.track_of(number.event);
            trace.events.kind[row] = OpKind::Step;
            trace.tracks[track.row()].kinds.insert(OpKind::Step);
        }
    }
}

/// A driver may copy by a small kernel: the call that asked for it says which way.
fn mark_blits(trace: &mut Trace) {
    let blits: Vec<bool> =
        trace.strings.iter().map(|(_, name)| name.contains("copyBuffer")).collect();
    if !blits.contains(&true) {
        return;
    }
    for edge in 0..trace.edges.len() {
        let (from, to) = (trace.edges.from[edge], trace.edges.to[edge]);
        if trace.edges.kind[edge] != EdgeKind::Launch
            || trace.events.kind[to.row()] != OpKind::Kernel
            || !blits[trace.events.name[to.row()].row()]
        {
            continue;
        }
        let call = trace.name(from);
        let kind = if call.contains("HtoD") || call.contains("H2D") {
            OpKind::CopyIn
        } else if call.contains("DtoH") || call.contains("D2H") {
            OpKind::CopyOut
        } else if call.contains("emcpy") {
            OpKind::CopyOnDevice
        } else {
            continue;
        };
        let track = trace.track_of(to);
        trace.events.kind[to.row()] = kind;
        trace.tracks[track.row()].kinds.insert(kind);
    }
}

/// Copies that a compiled program starts and waits for later: the start says which way they go,
/// and the wait carries its number.
fn mark_copies(trace: &mut Trace) {
    let part = |trace: &Trace, event: EventId| {
        let name = trace.name(event).trim_start_matches('%');
        let starts = name.strip_prefix("copy-start").map(|it| (true, it));
        let part = starts.or_else(|| name.strip_prefix("copy-done").map(|it| (false, it)));
        part.map(|(starts, number)| (starts, (trace.detail(event).program_id, number.to_owned())))
    };
    let is_part = |it: &str| {
        let it = it.trim_start_matches('%');
        it.starts_with("copy-start") || it.starts_with("copy-done")
    };
    if !trace.strings.iter().any(|it| is_part(it.1)) {
        return;
    }
    let streams: Vec<TrackId> = trace.tracks_of(TrackKind::Stream).collect();
    for stream in streams {
        let rows = trace.tracks[stream.row()].rows();
        // Many runs of few names.
        let mut met: HashMap<(StrId, DetailId), Option<OpKind>> = HashMap::new();
        let mut directions: HashMap<(Option<i64>, String), OpKind> = HashMap::new();
        for row in rows.clone() {
            let key = (trace.events.name[row], trace.events.detail[row]);
            if met.contains_key(&key) {
                continue;
            }
            let event = EventId(row as u32);
            let part = part(trace, event);
            let own = trace.detail(event).copy_memory.map(|it| of_memory(trace.text(it)));
            if let (Some((true, number)), Some(own)) = (&part, own) {
                directions.insert(number.clone(), own);
            }
            met.insert(key, part.map(|_| own.unwrap_or(OpKind::CopyIn)));
        }
        if met.values().all(Option::is_none) {
            continue;
        }
        let mut kinds = OpKinds::default();
        let mut known: HashMap<(StrId, DetailId), OpKind> = HashMap::new();
        for row in rows {
            let key = (trace.events.name[row], trace.events.detail[row]);
            let Some(&Some(own)) = met.get(&key) else { continue };
            let kind = *known.entry(key).or_insert_with(|| {
                let event = EventId(row as u32);
                let said = trace.detail(event).copy_memory.is_some();
                let started = part(trace, event).and_then(|it| directions.get(&it.1)).copied();
                if said { own } else { started.unwrap_or(own) }
            });
            trace.events.kind[row] = kind;
            kinds.insert(kind);
        }
        trace.tracks[stream.row()].kinds.insert_all(kinds);
    }
}

/// Which way a copy goes, by the memories it is between.
fn of_memory(memory: &str) -> OpKind {
    match memory {
        "host to device" => OpKind::CopyIn,
        "device to host" => OpKind::CopyOut,
        _ => OpKind::CopyOnDevice,
    }
}

impl std::fmt::Debug for TraceBuilder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "TraceBuilder({} tracks, {} events)", self.tracks.len(), self.name.len())
    }
}

#[cfg(test)]
mod tests {
    use super::TraceBuilder;
    use crate::{Dur, EventId, NoteKind, OpKind, Time, TrackKind};

    #[test]
    fn what_a_source_says_of_a_kind_stays_and_follows_its_row() {
        let mut out = TraceBuilder::new();
        let thread = out.track(None, TrackKind::Thread, "main");
        let summary = out.track(None, TrackKind::Summary, "drawn");
        // Out of order: rows move.
        let late = out.event(thread, "aten::mm", Time(50), Dur(10));
        out.set_kind(late, OpKind::Op);
        out.event(thread, "IteratorGetNext", Time(0), Dur(10));
        let drawn = out.event(summary, "Stream Sync", Time(0), Dur(10));
        out.set_kind(drawn, OpKind::Sync);
        out.event(summary, "module", Time(20), Dur(10));
        let rows = out.reserve(thread, 2);
        let columns = out.columns(rows);
        let (first, mut second) = columns.split(1);
        first.start[0] = 80;
        first.kind[0] = OpKind::Save.said();
        second.give_up(0..1);
        let trace = out.finish();
        assert_eq!(
            trace.events.kind,
            [OpKind::InputWait, OpKind::Op, OpKind::Save, OpKind::Sync, OpKind::Summary]
        );
        assert_eq!(trace.name(EventId(1)), "aten::mm");
        assert!(trace.tracks[thread.row()].kinds.contains(OpKind::Save));
        assert!(!trace.tracks[thread.row()].kinds.contains(OpKind::User));
    }

    #[test]
    fn events_that_outlast_the_one_they_begin_in_are_counted_where_asked_for() {
        let overlaps = |check: bool| {
            let mut out = TraceBuilder::new();
            let thread = out.track(None, TrackKind::Thread, "main");
            for (start, dur) in [(0, 100), (10, 20), (20, 20), (20, 5), (90, 20), (110, 5)] {
                out.event(thread, "it", Time(start), Dur(dur));
            }
            if check {
                out.check_nesting(thread);
            }
            let notes = out.finish().notes;
            notes.iter().find(|it| it.kind == NoteKind::BadlyNested).map(|it| it.count)
        };
        assert_eq!(overlaps(true), Some(2));
        assert_eq!(overlaps(false), None);
    }
}
