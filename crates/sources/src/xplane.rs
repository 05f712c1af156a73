//! Reads the XSpace files (`*.xplane.pb`) that TensorFlow's, JAX's and XLA's profilers write.
//!
//! | theirs                            | ours                                        |
//! |-----------------------------------|---------------------------------------------|
//! | XSpace                            | one host of the trace                       |
//! | plane `/host:…`                   | process track                               |
//! | plane `/device:…`                 | device track                                |
//! | XLine                             | thread or stream track                      |
//! | lines drawn by the profiler       | steps and summary tracks                    |
//! | XEvent                            | event                                       |
//! | stats that many events share      | detail                                      |
//! | `correlation_id`                  | launch edge, host → device                  |
//! | `id` of captured functions        | function edge                               |
//! | `_pt _p`, `_ct _c`                | flow edge (not the thread pools')           |
//! | `step_num`, `_r`                  | number                                      |
//! | `bytes_allocated` of an allocator | counter                                     |
//! | `Hlo Proto`                       | blob                                        |
//! | all other stats                   | arguments, decoded when asked for           |
//!
//! The file is walked three times, all but the first in parallel:
//!
//! ```text
//! planes, metadata ─▶ line boundaries, cut into chunks ─▶ events into columns
//! ```
//!
//! Not read: `child_id`, aggregated events (`num_occurrences`), descriptions of stats.

mod decode;
mod meta;

use std::ops::Range;

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{
    ArgRun, ArgSource, Args, Blob, Dur, EdgeKind, FactValue, Keys, NoteKind, Time, TraceBuilder,
    TrackId, TrackKind,
};

use self::decode::{Chunk, Decoded};
use self::meta::{Parts, PlaneMeta};
use crate::tfevents::is_framed;
use crate::wire::{Field, Fields, Value, varint};
use crate::{Bytes, Input, Source, SourceError};

#[derive(Debug)]
pub struct XPlane;

impl Source for XPlane {
    fn name(&self) -> &'static str {
        "xplane"
    }

    /// No magic number exists: the first field that XSpace has must look like a plane or a text.
    fn sniff(&self, head: &[u8]) -> bool {
        // A record's length may look like an empty field; that its sum follows is no accident.
        if is_framed(head) {
            return false;
        }
        let mut fields = Fields::new(head);
        loop {
            let (number, body) = match fields.next() {
                Ok(Some(Field { number, value: Value::Bytes(body), .. })) => (number, body),
                // Fields of later versions may come first.
                Ok(Some(Field { number: 5.., .. })) => continue,
                Ok(_) => return false,
                // The head ends inside the first plane.
                Err(damage) => match fields.cut_bytes(damage) {
                    Some(cut) => cut,
                    None => return false,
                },
            };
            return match number {
                1 => body.first().is_none_or(|tag| *tag >= 8 && matches!(tag & 7, 0 | 1 | 2 | 5)),
                // Only texts stand here; the end of the head may cut one inside a character.
                2..=4 => match std::str::from_utf8(body) {
                    Ok(text) => !text.contains('\0'),
                    Err(error) => error.error_len().is_none(),
                },
                _ => continue,
            };
        }
    }

    fn read(&self, input: &Input<'_>, out: &mut TraceBuilder) -> Result<(), SourceError> {
        let bytes = (*input.bytes).as_ref();
        let source = out.next_source();
        let space = Space::walk(bytes, out);
        if space.planes.is_empty() {
            return Err(SourceError::Broken {
                reader: "xplane",
                what: "no plane of a profile could be read\n  hint: is the file complete, and a \
                       profile? its name should end in .xplane.pb"
                    .to_owned(),
            });
        }
        let host = own_name(space.host, input, out);
        let host = out.track(None, TrackKind::Host, &host);
        let metas: Vec<PlaneMeta> =
            space.planes.iter().map(|it| PlaneMeta::read(bytes, it, out)).collect();
        let mut lines = index_lines(bytes, &space.planes, out);
        let clock = Clock::new(&space.planes, &metas, &lines, out);
        make_tracks(&space.planes, &metas, host, source, &mut lines, out);
        decode_lines(&input.bytes, &lines, &space.planes, &metas, clock, source, out);

        let planes = space.planes.into_iter().zip(metas).collect();
        out.source(Box::new(Planes { bytes: input.bytes.clone(), planes }));
        Ok(())
    }
}

/// The file's outer shape.
struct Space {
    planes: Vec<Plane>,
    host: Option<String>,
}

/// Where a plane's parts lie in the file.
#[derive(Debug, Default)]
struct Plane {
    name: String,
    bytes: Range<usize>,
    lines: Vec<Range<usize>>,
    event_metadata: Vec<Range<usize>>,
    stat_metadata: Vec<Range<usize>>,
    stats: Vec<Range<usize>>,
}

/// A host has a few planes for each of its devices. A damaged file can hold one every four
/// bytes, of which each costs hundreds.
const MOST_PLANES: usize = 10_000;

/// What a plane stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaneKind {
    Host,
    Gpu,
    Tpu,
    /// Compiled programs and versions.
    Metadata,
    /// When the profiler was on.
    Environment,
    /// Shown, never counted.
    Other,
}

/// Walks a message, taking what is left where the last field is cut off. Damage is noted.
fn walk<'a>(
    bytes: &'a [u8],
    message: Range<usize>,
    what: &str,
    out: &mut TraceBuilder,
    mut each: impl FnMut(&mut TraceBuilder, u32, Value<'a>, Range<usize>),
) {
    let mut fields = Fields::new(&bytes[message.clone()]);
    loop {
        match fields.next() {
            Ok(Some(field)) => {
                let end = message.start + fields.position();
                let len = field.value.bytes().map_or(0, <[u8]>::len);
                each(out, field.number, field.value, end - len..end);
            }
            Ok(None) => return,
            Err(damage) => {
                let at = message.start + damage.at;
                if damage.cut && message == (0..bytes.len()) {
                    out.note(NoteKind::CutOff, || format!("the file ends at byte {}", message.end));
                } else {
                    let kind = if damage.cut { NoteKind::Truncated } else { NoteKind::Malformed };
                    out.note(kind, || format!("at byte {at}, inside {what}"));
                }
                if let Some((number, rest)) = fields.cut_bytes(damage) {
                    let range = message.end - rest.len()..message.end;
                    each(out, number, Value::Bytes(rest), range);
                }
                return;
            }
        }
    }
}

impl Space {
    fn walk(bytes: &[u8], out: &mut TraceBuilder) -> Space {
        let mut space = Space { planes: Vec::new(), host: None };
        walk(bytes, 0..bytes.len(), "the file", out, |out, number, value, range| {
            let Some(body) = value.bytes() else { return };
            match number {
                1 if space.planes.len() >= MOST_PLANES => {
                    out.note(NoteKind::Malformed, || {
                        format!("at byte {}: more than {MOST_PLANES} planes", range.start)
                    });
                }
                1 => space.planes.push(Plane::walk(bytes, range, out)),
                2 => out.note(NoteKind::ProfilerError, || lossy(body)),
                3 => out.note(NoteKind::ProfilerWarning, || lossy(body)),
                4 if !body.is_empty() => {
                    space.host.get_or_insert_with(|| short(body));
                }
                _ => (),
            }
        });
        // Damage may leave planes in which nothing is said.
        space.planes.retain(|it| !it.name.is_empty() || !it.lines.is_empty());
        space
    }
}

impl Plane {
    fn walk(bytes: &[u8], range: Range<usize>, out: &mut TraceBuilder) -> Plane {
        let mut plane = Plane { bytes: range.clone(), ..Plane::default() };
        walk(bytes, range, "a plane", out, |_, number, value, range| match (number, value) {
            (2, Value::Bytes(name)) => plane.name = short(name),
            (3, Value::Bytes([_, ..])) => plane.lines.push(range),
            (4, Value::Bytes(_)) => plane.event_metadata.push(range),
            (5, Value::Bytes(_)) => plane.stat_metadata.push(range),
            (6, Value::Bytes(_)) => plane.stats.push(range),
            _ => (),
        });
        plane
    }

    fn kind(&self) -> PlaneKind {
        let name = self.name.as_str();
        if name == "/host:metadata" {
            PlaneKind::Metadata
        } else if name == "Task Environment" {
            PlaneKind::Environment
        } else if name.starts_with("/host:") {
            PlaneKind::Host
        } else if name.starts_with("/device:GPU") {
            PlaneKind::Gpu
        } else if name.starts_with("/device:TPU") {
            PlaneKind::Tpu
        } else {
            PlaneKind::Other
        }
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Hosts, planes and lines have short names, which tables repeat in every row.
const LONGEST_NAME: usize = 256;

fn short(name: &[u8]) -> String {
    match name.get(..LONGEST_NAME) {
        Some(start) => lossy(start) + "…",
        None => lossy(name),
    }
}

/// `vm.xplane.pb` was written on host `vm`.
/// Two processes of one machine have one host's name, and each a file: the second is told apart
/// by the name of its file, or else by a number.
fn own_name(host: Option<String>, input: &Input<'_>, out: &mut TraceBuilder) -> String {
    let file = host_of_file(input);
    let host = host.unwrap_or_else(|| file.clone());
    let by_file = (file != host).then(|| format!("{host} ({file})"));
    let names = [Some(host.clone()), by_file].into_iter().flatten();
    let numbered = (2..).map(|n: u64| format!("{host} ({n})"));
    let free = |it: &String| !out.has_track(None, TrackKind::Host, it);
    names.chain(numbered).find(free).unwrap_or(host)
}

fn host_of_file(input: &Input<'_>) -> String {
    let file = input.path.file_name().map(|it| it.to_string_lossy().into_owned());
    let file = file.unwrap_or_default();
    let stem = file.split(".xplane").next().unwrap_or("");
    if stem.is_empty() { "host".to_owned() } else { stem.to_owned() }
}

/// One line: its head, and its events cut into chunks.
#[derive(Debug)]
struct Line {
    plane: usize,
    id: i64,
    name: String,
    timestamp_ns: i64,
    chunks: Vec<(Range<usize>, usize)>,
    track: TrackId,
    damage: Option<(usize, NoteKind)>,
}

/// Field 4 of a line, length-delimited.
pub const EVENT_TAG: u8 = 0x22;

/// Events are decoded in pieces of about this size, so that one long line keeps all cores busy.
const CHUNK_BYTES: usize = 4 << 20;

fn index_lines(bytes: &[u8], planes: &[Plane], out: &mut TraceBuilder) -> Vec<Line> {
    let ranges: Vec<(usize, Range<usize>)> = planes
        .iter()
        .enumerate()
        .flat_map(|(plane, it)| it.lines.iter().map(move |range| (plane, range.clone())))
        .collect();
    let lines: Vec<Line> =
        ranges.into_par_iter().map(|(plane, range)| Line::index(bytes, plane, range)).collect();
    for line in &lines {
        if let Some((at, kind)) = line.damage {
            out.note(kind, || format!("at byte {at}, inside line {:?}", line.name));
        }
    }
    lines
}

impl Line {
    fn index(bytes: &[u8], plane: usize, range: Range<usize>) -> Line {
        let mut line = Line {
            plane,
            id: 0,
            name: String::new(),
            timestamp_ns: 0,
            chunks: Vec::new(),
            track: TrackId(0),
            damage: None,
        };
        let mut display_name = "";
        let body = &bytes[range.clone()];
        let mut fields = Fields::new(body);
        let (mut chunk_start, mut chunk_events) = (range.start, 0);
        loop {
            let at = range.start + fields.position();
            if at - chunk_start >= CHUNK_BYTES && chunk_events > 0 {
                line.chunks.push((chunk_start..at, chunk_events));
                (chunk_start, chunk_events) = (at, 0);
            }
            if let Some(n) = fields.skip_run(EVENT_TAG, chunk_start + CHUNK_BYTES - range.start) {
                chunk_events += n;
                continue;
            }
            match fields.next() {
                Ok(Some(field)) => match (field.number, field.value) {
                    (4, Value::Bytes(_)) => chunk_events += 1,
                    (1, Value::Varint(id)) => line.id = id as i64,
                    (2, Value::Bytes(name)) => line.name = short(name),
                    (3, Value::Varint(ns)) => line.timestamp_ns = ns as i64,
                    (11, Value::Bytes(name)) => {
                        display_name = std::str::from_utf8(name).unwrap_or("");
                    }
                    _ => (),
                },
                Ok(None) => {
                    line.chunks.push((chunk_start..at, chunk_events));
                    break;
                }
                Err(damage) => {
                    let kind = if damage.cut { NoteKind::Truncated } else { NoteKind::Malformed };
                    line.damage = Some((range.start + damage.at, kind));
                    line.chunks.push((chunk_start..range.start + damage.at, chunk_events));
                    break;
                }
            }
        }
        line.chunks.retain(|it| it.1 > 0);
        if !display_name.is_empty() {
            line.name = short(display_name.as_bytes());
        }
        line
    }
}

/// From a line's own time to the trace's.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Subtracted from every line's timestamp: those of some writers are Unix times, which do
    /// not fit into picoseconds.
    base_ns: i64,
    /// Added: from the trace's zero to the moment this file's profiler started.
    shift_ps: i64,
}

/// A capture is never this long; a line that begins later carries Unix time.
const UNIX_TIME_NS: i64 = 1 << 50;

impl Clock {
    fn new(planes: &[Plane], metas: &[PlaneMeta], lines: &[Line], out: &mut TraceBuilder) -> Clock {
        let environment = planes.iter().zip(metas).find(|it| it.0.kind() == PlaneKind::Environment);
        let said = |key: &str| match environment?.1.fact(key)? {
            FactValue::Int(ns) => Some(*ns),
            _ => None,
        };
        let first = lines.iter().filter(|it| !it.chunks.is_empty()).map(|it| it.timestamp_ns).min();
        let base_ns = first.filter(|&it| it > UNIX_TIME_NS).unwrap_or(0);
        let started = if base_ns != 0 { Some(base_ns) } else { said("profile_start_time") };
        let mut shift_ps = 0;
        if let Some(started) = started {
            match out.origin_unix_ns() {
                None => out.set_origin_unix_ns(started),
                // Hosts' clocks agree to milliseconds at best; what is further apart is not one run.
                Some(origin) => {
                    shift_ps = started.saturating_sub(origin).checked_mul(1000).unwrap_or(0);
                }
            }
            if let Some(stopped) = said("profile_stop_time") {
                let window = stopped.saturating_sub(started).checked_mul(1000);
                if let Some(window) = window.filter(|&it| it > 0) {
                    out.extend_window(Dur(window.saturating_add(shift_ps)));
                }
            }
        }
        Clock { base_ns, shift_ps }
    }

    fn start_of(&self, line: &Line) -> Option<i64> {
        let ns = line.timestamp_ns.checked_sub(self.base_ns)?;
        ns.checked_mul(1000)?.checked_add(self.shift_ps)
    }
}

/// What an accelerator's line stands for. Profilers draw summaries beside the real streams.
fn kind_of_line(plane: PlaneKind, name: &str) -> TrackKind {
    const DRAWN: &[&str] = &[
        "XLA Modules",
        "XLA Ops",
        "XLA TraceMe",
        "Async XLA Ops",
        "Framework Ops",
        "Framework Name Scope",
        "TensorFlow Ops",
        "TensorFlow Name Scope",
        "Source code",
        "Launch Stats",
        "CUPTI overhead",
        "Overlay",
        "Host Offload Ops",
    ];
    match plane {
        PlaneKind::Host => TrackKind::Thread,
        _ if name == "Steps" || name == "Sparse Core Steps" => TrackKind::Steps,
        PlaneKind::Gpu if DRAWN.iter().any(|it| name.starts_with(it)) => TrackKind::Summary,
        PlaneKind::Gpu => TrackKind::Stream,
        PlaneKind::Tpu if name == "XLA Ops" || name == "Sparse Core Ops" => TrackKind::Stream,
        _ => TrackKind::Summary,
    }
}

fn make_tracks(
    planes: &[Plane],
    metas: &[PlaneMeta],
    host: TrackId,
    source: u16,
    lines: &mut [Line],
    out: &mut TraceBuilder,
) {
    let mut of_plane = Vec::with_capacity(planes.len());
    for (plane, meta) in planes.iter().zip(metas) {
        let track = match plane.kind() {
            PlaneKind::Environment => host,
            PlaneKind::Gpu | PlaneKind::Tpu => {
                out.track(Some(host), TrackKind::Device, &plane.name)
            }
            _ => out.track(Some(host), TrackKind::Process, &plane.name),
        };
        for (key, value) in &meta.facts {
            // The options hold the user's paths, and nothing that is asked of them.
            if key != "profile_options" {
                out.fact(track, key, value.clone());
            }
        }
        for (name, range) in &meta.programs {
            out.blob(Blob {
                kind: Blob::PROGRAM,
                name: name.clone(),
                source,
                bytes: range.start as u64..range.end as u64,
            });
        }
        of_plane.push(track);
    }
    // Lines with the same id continue one another.
    let mut of_line: HashMap<(usize, i64), TrackId> = HashMap::new();
    for line in lines.iter_mut() {
        line.track = *of_line.entry((line.plane, line.id)).or_insert_with(|| {
            let plane = &planes[line.plane];
            let kind = kind_of_line(plane.kind(), &line.name);
            out.new_track(Some(of_plane[line.plane]), kind, &line.name)
        });
    }
    lines.sort_by_key(|it| it.track);
}

fn decode_lines(
    file: &Bytes,
    lines: &[Line],
    planes: &[Plane],
    metas: &[PlaneMeta],
    clock: Clock,
    source: u16,
    out: &mut TraceBuilder,
) {
    let bytes = (**file).as_ref();
    let mut chunks = Vec::new();
    let mut runs = Vec::new();
    for line in lines {
        let Some(start) = clock.start_of(line) else {
            let n = line.chunks.iter().map(|it| it.1 as u64).sum();
            out.note_many(NoteKind::BadTimestamp, n, || {
                format!("line {:?} begins at {} ns", line.name, line.timestamp_ns)
            });
            continue;
        };
        for (range, n_events) in &line.chunks {
            runs.push((line.track, *n_events));
            chunks.push(Chunk {
                bytes: range.clone(),
                n_events: *n_events,
                first_row: 0,
                start,
                on_host: planes[line.plane].kind() == PlaneKind::Host,
                plane: line.plane,
            });
        }
    }
    let rows = out.reserve_all(&runs);
    let mut first_row = rows.start;
    for chunk in &mut chunks {
        // The last chunks get fewer rows than they asked for where a trace is full.
        chunk.n_events = chunk.n_events.min((rows.end - first_row) as usize);
        chunk.first_row = first_row;
        first_row += chunk.n_events as u32;
    }

    let mut pieces = Vec::with_capacity(chunks.len());
    let mut rest = out.columns(rows.clone());
    for chunk in &chunks {
        let (piece, others) = rest.split(chunk.n_events);
        rest = others;
        pieces.push((chunk, piece));
    }
    let mut decoded: Vec<Decoded> = pieces
        .into_par_iter()
        .map(|(chunk, piece)| {
            let decoded = decode::decode(bytes, chunk, &metas[chunk.plane], piece);
            file.done_with(chunk.bytes.clone());
            decoded
        })
        .collect();

    merge_details(bytes, &chunks, &mut decoded, metas, rows, out);
    for (chunk, decoded) in chunks.iter().zip(&mut decoded) {
        hand_over(bytes, chunk, decoded, &metas[chunk.plane], source, out);
    }
    for (kind, count, first) in decoded.iter().flat_map(|it| &it.damage) {
        out.note_many(*kind, *count, || format!("event at byte {first}"));
    }
}

/// Each chunk numbered the details it met; the trace has one numbering.
fn merge_details(
    bytes: &[u8],
    chunks: &[Chunk],
    decoded: &mut [Decoded],
    metas: &[PlaneMeta],
    rows: Range<u32>,
    out: &mut TraceBuilder,
) {
    let mut known: HashMap<(usize, u64), u32> = HashMap::new();
    let mut of_names: Vec<HashMap<usize, Parts>> = vec![HashMap::new(); metas.len()];
    for (chunk, decoded) in chunks.iter().zip(decoded.iter_mut()) {
        for (hash, at, id) in &mut decoded.details {
            *id = *known.entry((chunk.plane, *hash)).or_insert_with(|| {
                let of_names = &mut of_names[chunk.plane];
                let detail = metas[chunk.plane].detail(bytes, *at, of_names, out);
                out.detail(detail).0
            });
        }
    }
    let mut rest = out.columns(rows);
    let mut pieces = Vec::with_capacity(chunks.len());
    for (chunk, decoded) in chunks.iter().zip(decoded.iter()) {
        let (piece, others) = rest.split(chunk.n_events);
        rest = others;
        if !decoded.details.is_empty() {
            pieces.push((piece, &decoded.details));
        }
    }
    pieces.into_par_iter().for_each(|(piece, details)| {
        for id in piece.detail {
            if let Some(local) = id.checked_sub(1) {
                *id = details[local as usize].2;
            }
        }
    });
}

fn hand_over(
    bytes: &[u8],
    chunk: &Chunk,
    decoded: &mut Decoded,
    meta: &PlaneMeta,
    source: u16,
    out: &mut TraceBuilder,
) {
    let scope = u32::from(source);
    let keys = |kind, batch: &mut _| Keys { kind, scope, batch: std::mem::take(batch) };
    let correlations = keys(EdgeKind::Launch, &mut decoded.correlations);
    if chunk.on_host {
        out.all_depart(correlations);
    } else {
        out.all_arrive(correlations);
    }
    out.all_depart(keys(EdgeKind::Function, &mut decoded.functions_called));
    out.all_arrive(keys(EdgeKind::Function, &mut decoded.functions_run));
    out.all_depart(keys(EdgeKind::Flow, &mut decoded.produced));
    out.all_arrive(keys(EdgeKind::Flow, &mut decoded.consumed));
    out.args(ArgRun {
        rows: chunk.first_row..chunk.first_row + chunk.n_events as u32,
        from: Args::place(source, chunk.bytes.start as u64),
        marks: std::mem::take(&mut decoded.arg_marks),
    });
    for &(row, key, value) in &decoded.numbers {
        out.number(trace::EventId(row), key, value);
    }
    for &(at, start) in &decoded.allocations {
        let arg = |key: &str| meta.own_arg(bytes, at, key);
        if let (Some(FactValue::Text(name)), Some(FactValue::Int(used))) =
            (arg("allocator_name"), arg("bytes_allocated"))
        {
            let name = format!("{name} bytes_allocated");
            let track = out.track(None, TrackKind::Counter, &name);
            out.counter(track, Time(start), used as f64);
        }
    }
}

/// Where the event behind the one at `at` begins: behind their tags, at their lengths.
fn next_event(bytes: &[u8], at: usize) -> Option<usize> {
    let (len, len_len) = varint(bytes, at)?;
    let mut at = (at + len_len).checked_add(usize::try_from(len).ok()?)?;
    loop {
        let (tag, tag_len) = varint(bytes, at)?;
        if tag == u64::from(EVENT_TAG) {
            return Some(at + tag_len);
        }
        // A field of the line that stands between its events.
        let mut fields = Fields::new(bytes.get(at..)?);
        fields.next().ok()??;
        at += fields.position();
    }
}

/// The file's bytes and what is needed to decode an event's arguments.
struct Planes {
    bytes: Bytes,
    planes: Vec<(Plane, PlaneMeta)>,
}

impl ArgSource for Planes {
    fn args(&self, at: u64, nth: usize) -> Vec<(String, FactValue)> {
        let bytes = self.bytes();
        let mut at = usize::try_from(at).ok();
        for _ in 0..nth {
            at = at.and_then(|it| next_event(bytes, it));
        }
        let Some(at) = at else { return Vec::new() };
        let plane = self.planes.get(self.planes.partition_point(|it| it.0.bytes.end <= at));
        plane.map(|it| it.1.args(bytes, at)).unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }
}
