//! Writes a profile as Perfetto reads it, for measuring both on the same events.
//!
//! ```text
//! usage: to_perfetto PROFILE OUT.pftrace     TrackEvents, Perfetto's own protobuf
//!        to_perfetto PROFILE OUT.json        Chrome's JSON, complete events
//! ```
//!
//! Tracks, names, starts and durations, in the order of time; arguments and launch edges are left
//! out, which spares Perfetto work. Its times are whole nanoseconds: ours are rounded down, so
//! what nests still nests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sources::Input;
use trace::{EventId, Trace, TraceBuilder, TrackId, TrackKind};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.as_slice() {
        [profile, out] => convert(Path::new(profile), Path::new(out)),
        _ => Err("usage: to_perfetto PROFILE OUT.pftrace|OUT.json".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to tell of an error that cannot be printed.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn convert(profile: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut builder = TraceBuilder::new();
    sources::read(&Input { bytes: Arc::new(fs::read(profile)?), path: profile }, &mut builder)?;
    let trace = builder.finish();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(out)?);
    match out.extension().and_then(|it| it.to_str()) {
        Some("json") => json(&trace, &mut file)?,
        _ => protobuf(&trace, &mut file)?,
    }
    file.flush()?;
    Ok(())
}

/// The next event of a track that has not been written; ordered by start, then track.
type Next = Reverse<(i64, TrackId, EventId)>;

/// Every event in the order of its start, whatever its track.
fn by_start(trace: &Trace) -> impl Iterator<Item = (TrackId, EventId)> + '_ {
    let start = |event: EventId| trace.events.start[event.row()].0;
    let next = move |track: TrackId, row: u32| -> Option<Next> {
        let event = EventId(row);
        let inside = trace.tracks[track.row()].events.contains(&row);
        inside.then(|| Reverse((start(event), track, event)))
    };
    let mut heap: BinaryHeap<Next> =
        trace.track_ids().filter_map(|it| next(it, trace.tracks[it.row()].events.start)).collect();
    std::iter::from_fn(move || {
        let Reverse((_, track, event)) = heap.pop()?;
        heap.extend(next(track, event.0 + 1));
        Some((track, event))
    })
}

/// What Perfetto calls the process of a track: the device, or else the process, or the host.
fn process(trace: &Trace, track: TrackId) -> TrackId {
    [TrackKind::Device, TrackKind::Process, TrackKind::Host]
        .into_iter()
        .find_map(|kind| trace.ancestor(track, kind))
        .unwrap_or(track)
}

fn with_events(trace: &Trace) -> impl Iterator<Item = TrackId> + '_ {
    trace.track_ids().filter(|it| !trace.tracks[it.row()].events.is_empty())
}

fn processes(trace: &Trace) -> Vec<TrackId> {
    let mut all: Vec<_> = with_events(trace).map(|it| process(trace, it)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Perfetto takes 0 for "none".
fn pid(track: TrackId) -> u64 {
    u64::from(track.0) + 1
}

fn json(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    // Names come back millions of times.
    let names: Vec<String> = trace.strings.iter().map(|(_, it)| quoted(it)).collect();
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    for it in processes(trace) {
        let (pid, name) = (pid(it), quoted(trace.track_name(it)));
        writeln!(
            out,
            r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":{name}}}}},"#
        )?;
    }
    for it in with_events(trace) {
        let (tid, name) = (pid(it), quoted(trace.track_name(it)));
        let pid = pid(process(trace, it));
        writeln!(
            out,
            r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},"args":{{"name":{name}}}}},"#
        )?;
    }
    let mut separator = "";
    for (track, event) in by_start(trace) {
        let start = ns(trace.events.start[event.row()].0);
        let end = ns(trace.events.end(event).0);
        let dur = end - start;
        let name = &names[trace.events.name[event.row()].row()];
        let (pid, tid) = (pid(process(trace, track)), pid(track));
        write!(
            out,
            "{separator}{{\"ph\":\"X\",\"name\":{name},\"pid\":{pid},\"tid\":{tid},\
             \"ts\":{}.{:03},\"dur\":{}.{:03}}}",
            start / 1000,
            start % 1000,
            dur / 1000,
            dur % 1000
        )?;
        separator = ",\n";
    }
    out.write_all(b"\n]}\n")
}

/// Of picoseconds, rounded down; nothing lies before the trace's start.
fn ns(ps: i64) -> u64 {
    (ps / 1000).max(0).cast_unsigned()
}

// Field numbers of perfetto/protos/perfetto/trace.
const TRACE_PACKET: u64 = 1;
const TIMESTAMP: u64 = 8;
const SEQUENCE: u64 = 10;
const TRACK_EVENT: u64 = 11;
const INTERNED: u64 = 12;
const SEQUENCE_FLAGS: u64 = 13;
const TRACK_DESCRIPTOR: u64 = 60;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const BEGIN: u64 = 1;
const END: u64 = 2;

fn protobuf(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let mut names = Message::default();
    for (id, text) in trace.strings.iter() {
        let mut name = Message::default();
        name.uint(1, u64::from(id.0) + 1);
        name.data(2, text.as_bytes());
        names.data(2, &name.0);
    }
    let mut first = Message::default();
    first.uint(SEQUENCE, 1);
    first.uint(SEQUENCE_FLAGS, STATE_CLEARED);
    first.data(INTERNED, &names.0);
    packet(out, &first)?;

    for it in processes(trace) {
        let mut process = Message::default();
        process.uint(1, pid(it));
        process.data(6, trace.track_name(it).as_bytes());
        // Descriptors of processes and threads are tracks as well: their ids must differ.
        descriptor(out, pid(it) + trace.tracks.len() as u64, 3, &process)?;
    }
    for it in with_events(trace) {
        let mut thread = Message::default();
        thread.uint(1, pid(process(trace, it)));
        thread.uint(2, pid(it));
        thread.data(5, trace.track_name(it).as_bytes());
        descriptor(out, pid(it), 4, &thread)?;
    }

    // Events that have begun and not ended; of one track the innermost ends first.
    let mut open: BinaryHeap<Reverse<(u64, Reverse<EventId>, TrackId)>> = BinaryHeap::new();
    for (track, event) in by_start(trace) {
        let start = ns(trace.events.start[event.row()].0);
        while let Some(&Reverse((end, _, ending))) = open.peek()
            && end <= start
        {
            open.pop();
            track_event(out, end, ending, None)?;
        }
        let name = trace.events.name[event.row()];
        track_event(out, start, track, Some(u64::from(name.0) + 1))?;
        open.push(Reverse((ns(trace.events.end(event).0), Reverse(event), track)));
    }
    while let Some(Reverse((end, _, ending))) = open.pop() {
        track_event(out, end, ending, None)?;
    }
    Ok(())
}

fn descriptor(out: &mut impl Write, uuid: u64, field: u64, of: &Message) -> io::Result<()> {
    let mut track = Message::default();
    track.uint(1, uuid);
    track.data(field, &of.0);
    let mut message = Message::default();
    message.uint(SEQUENCE, 1);
    message.data(TRACK_DESCRIPTOR, &track.0);
    packet(out, &message)
}

/// A beginning where there is a name, an end where there is none.
fn track_event(out: &mut impl Write, ns: u64, track: TrackId, name: Option<u64>) -> io::Result<()> {
    let mut event = Message::default();
    event.uint(9, if name.is_some() { BEGIN } else { END });
    event.uint(11, pid(track));
    if let Some(name) = name {
        event.uint(10, name);
    }
    let mut message = Message::default();
    message.uint(TIMESTAMP, ns);
    message.uint(SEQUENCE, 1);
    message.uint(SEQUENCE_FLAGS, NEEDS_STATE);
    message.data(TRACK_EVENT, &event.0);
    packet(out, &message)
}

fn packet(out: &mut impl Write, message: &Message) -> io::Result<()> {
    let mut head = Message::default();
    head.data_header(TRACE_PACKET, message.0.len());
    out.write_all(&head.0)?;
    out.write_all(&message.0)
}

/// Just enough of the wire format.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn uint(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn data(&mut self, field: u64, value: &[u8]) {
        self.data_header(field, value.len());
        self.0.extend_from_slice(value);
    }

    fn data_header(&mut self, field: u64, len: usize) {
        self.varint(field << 3 | 2);
        self.varint(len as u64);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
