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

mod arguments;
mod decode;
mod meta;

use std::ops::Range;

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{
    ArgRun, Args, Blob, Dur, EdgeKind, FactValue, Identity, Keys, NoteKind, Time, TraceBuilder,
    TrackId, TrackKind,
};

use self::arguments::Planes;
use self::decode::{Chunk, Decoded, MetDetail};
use self::meta::{Parts, PlaneMeta};
use crate::file::Window;
use crate::tfevents::is_framed;
use crate::wire::{Field, Fields, LongFields, LongValue, Value};
use crate::{Change, Claim, Input, Listed, Pieces, Source, SourceError};

#[derive(Debug)]
pub struct XPlane;

impl Source for XPlane {
    fn name(&self) -> &'static str {
        "xplane"
    }

    /// No magic number exists: the first field that XSpace has must look like a plane or a text.
    fn claim(&self, file: Listed<'_>) -> Claim {
        if file.unzipped().ends_with("xplane.pb") { Claim::Profile } else { Claim::No }
    }

    fn profiles(&self) -> &'static str {
        "*.xplane.pb, mostly below plugins/profile/<run>, where Keras puts it below train/"
    }

    fn sniff(&self, head: &[u8]) -> bool {
        // A record's length may look like an empty field; that its sum follows is no accident. A
        // line break looks like the first field of a plane: where JSON follows, it is one.
        if is_framed(head) || is_json(head) {
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
        let source = out.next_source().ok_or_else(|| broken("more files than a trace can hold"))?;
        let pieces = Pieces::new(&*input.bytes);
        let read = read_space(&pieces, input, source, out);
        // Also of a file that is not used: this may be why.
        pieces.note(input.path.display(), Change::None, out);
        out.source(Box::new(Planes::new(input.bytes.clone(), file_name(input), read?)));
        Ok(())
    }
}

/// Whether a text of JSON begins here: a bracket behind nothing but blanks, and behind that another
/// one, a text, or the end. No plane begins so: it would be as many bytes long as a blank counts,
/// and of a field that no plane has.
fn is_json(head: &[u8]) -> bool {
    let mut plain = head.iter().copied().filter(|it| !it.is_ascii_whitespace());
    match plain.next() {
        Some(b'{') => matches!(plain.next(), Some(b'"' | b'}')),
        Some(b'[') => matches!(plain.next(), Some(b'{' | b'[' | b']' | b'"' | b'-' | b'0'..=b'9')),
        _ => false,
    }
}

fn broken(what: &str) -> SourceError {
    SourceError::Broken { reader: "xplane", what: what.to_owned() }
}

/// Planes and metadata are looked at in pieces of this size: most are small, with long lines
/// between them that are passed over.
const WINDOW: usize = 32 << 10;

fn read_space(
    pieces: &Pieces<'_>,
    input: &Input<'_>,
    source: u16,
    out: &mut TraceBuilder,
) -> Result<Vec<(Plane, PlaneMeta)>, SourceError> {
    let mut window = pieces.window(WINDOW);
    let space = Space::walk(&mut window, out);
    if space.planes.is_empty() {
        pieces.refuse_fault()?;
        return Err(broken(
            "no plane of a profile could be read\n  hint: is the file complete, and a profile? its \
             name should end in .xplane.pb",
        ));
    }
    let mut lines = index_lines(pieces, &space.planes, out);
    let n_events = lines.iter().flat_map(|it| &it.chunks).map(|it| it.1).sum();
    if !out.has_room(n_events) {
        return Err(SourceError::NoMemory { n_events });
    }
    let who = Identity { machine: space.host, file: host_of_file(input), ..Identity::default() };
    let host = out.new_host(&who);
    let metas: Vec<PlaneMeta> =
        space.planes.iter().map(|it| PlaneMeta::read(&mut window, it, out)).collect();
    let clock = Clock::new(&space.planes, &metas, &lines, out);
    make_tracks(&space.planes, &metas, host, source, &mut lines, out);
    decode_lines(pieces, &lines, &space.planes, &metas, clock, source, out);
    Ok(space.planes.into_iter().zip(metas).collect())
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
fn walk(
    window: &mut Window<'_, '_>,
    message: Range<usize>,
    what: &str,
    out: &mut TraceBuilder,
    mut each: impl FnMut(&mut Window<'_, '_>, &mut TraceBuilder, u32, LongValue),
) {
    let mut fields = LongFields::new(message.clone());
    loop {
        match fields.next(window) {
            Ok(Some((number, value))) => each(window, out, number, value),
            Ok(None) => return,
            Err(damage) => {
                if damage.cut && message == (0..window.size()) {
                    out.note(NoteKind::CutOff, || format!("the file ends at byte {}", message.end));
                } else {
                    let kind = if damage.cut { NoteKind::Truncated } else { NoteKind::Malformed };
                    out.note(kind, || format!("at byte {}, inside {what}", damage.at));
                }
                if let Some((number, rest)) = fields.cut_bytes(window, damage) {
                    each(window, out, number, LongValue::Bytes(rest));
                }
                return;
            }
        }
    }
}

impl Space {
    fn walk(window: &mut Window<'_, '_>, out: &mut TraceBuilder) -> Space {
        let mut space = Space { planes: Vec::new(), host: None };
        let all = 0..window.size();
        walk(window, all, "the file", out, |window, out, number, value| {
            let LongValue::Bytes(range) = value else { return };
            match number {
                1 if space.planes.len() >= MOST_PLANES => {
                    out.note(NoteKind::Malformed, || {
                        format!("at byte {}: more than {MOST_PLANES} planes", range.start)
                    });
                }
                1 => space.planes.push(Plane::walk(window, range, out)),
                2 => out.note(NoteKind::ProfilerError, || text_at(window, range)),
                3 => out.note(NoteKind::ProfilerWarning, || text_at(window, range)),
                4 if !range.is_empty() && space.host.is_none() => {
                    space.host = Some(short_at(window, range));
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
    fn walk(window: &mut Window<'_, '_>, range: Range<usize>, out: &mut TraceBuilder) -> Plane {
        let mut plane = Plane { bytes: range.clone(), ..Plane::default() };
        walk(window, range, "a plane", out, |window, _, number, value| {
            let LongValue::Bytes(range) = value else { return };
            match number {
                2 => plane.name = short_at(window, range),
                3 if !range.is_empty() => plane.lines.push(range),
                4 => plane.event_metadata.push(range),
                5 => plane.stat_metadata.push(range),
                6 => plane.stats.push(range),
                _ => (),
            }
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

fn short_at(window: &mut Window<'_, '_>, range: Range<usize>) -> String {
    // One byte more, so that what is cut off is seen to be.
    short(window.get(range.start..range.end.min(range.start + LONGEST_NAME + 1)))
}

/// What a profiler says about itself; longer than any sentence of it.
fn text_at(window: &mut Window<'_, '_>, range: Range<usize>) -> String {
    lossy(window.get(range.start..range.end.min(range.start + (64 << 10))))
}

fn file_name(input: &Input<'_>) -> String {
    input.path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}

/// `vm.xplane.pb` was written on host `vm`.
fn host_of_file(input: &Input<'_>) -> String {
    let file = file_name(input);
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

/// Less than this is read sooner than another thread is awake: many hosts' files are small.
const WORTH_WAKING: usize = 256 << 10;

/// On all cores, in shares that are worth waking a thread for.
fn at_once<T: Send>(items: Vec<T>, n_bytes: usize) -> impl IndexedParallelIterator<Item = T> {
    let share = (items.len() * WORTH_WAKING).checked_div(n_bytes).unwrap_or(usize::MAX);
    items.into_par_iter().with_min_len(share.max(1))
}

fn index_lines(pieces: &Pieces<'_>, planes: &[Plane], out: &mut TraceBuilder) -> Vec<Line> {
    let ranges: Vec<(usize, Range<usize>)> = planes
        .iter()
        .enumerate()
        .flat_map(|(plane, it)| it.lines.iter().map(move |range| (plane, range.clone())))
        .collect();
    let n_bytes = ranges.iter().map(|it| it.1.len()).sum();
    let lines: Vec<Line> = at_once(ranges, n_bytes)
        .map_init(Vec::new, |buffer, (plane, range)| Line::index(pieces, plane, range, buffer))
        .collect();
    for line in &lines {
        if let Some((at, kind)) = line.damage {
            out.note(kind, || format!("at byte {at}, inside line {:?}", line.name));
        }
    }
    lines
}

impl Line {
    fn index(pieces: &Pieces<'_>, plane: usize, range: Range<usize>, buffer: &mut Vec<u8>) -> Line {
        let mut line = Line {
            plane,
            id: 0,
            name: String::new(),
            timestamp_ns: 0,
            chunks: Vec::new(),
            track: TrackId(0),
            damage: None,
        };
        let mut display_name = String::new();
        // A field that does not fit into its piece comes again at the start of the next one.
        let mut piece_start = range.start;
        let (mut chunk_start, mut chunk_events) = (range.start, 0);
        let end = 'pieces: loop {
            let piece_end = range.end.min(piece_start.saturating_add(CHUNK_BYTES));
            let piece = pieces.read(piece_start..piece_end, buffer);
            // Less than was asked for is all there is.
            let is_last = piece_end == range.end || piece.len() < piece_end - piece_start;
            let mut fields = Fields::new(piece);
            loop {
                let at = piece_start + fields.position();
                if at - chunk_start >= CHUNK_BYTES && chunk_events > 0 {
                    line.chunks.push((chunk_start..at, chunk_events));
                    (chunk_start, chunk_events) = (at, 0);
                }
                let until = (chunk_start + CHUNK_BYTES).saturating_sub(piece_start);
                if let Some(n) = fields.skip_run(EVENT_TAG, until) {
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
                            display_name = std::str::from_utf8(name).map_or("", |it| it).to_owned();
                        }
                        _ => (),
                    },
                    Ok(None) if is_last => break 'pieces at,
                    Ok(None) => {
                        piece_start = at;
                        continue 'pieces;
                    }
                    Err(damage) if damage.cut && !is_last => {
                        let field_end = fields.cut_end(damage).map(|it| piece_start + it);
                        let begins = piece_start + damage.at;
                        match field_end.filter(|&it| it <= range.end) {
                            // Longer than a piece: nothing but an event is.
                            Some(field_end) if damage.at == 0 => {
                                let is_event = piece.first() == Some(&EVENT_TAG);
                                chunk_events += usize::from(is_event);
                                piece_start = field_end;
                                continue 'pieces;
                            }
                            None if damage.at == 0 => {
                                line.damage = Some((begins, NoteKind::Truncated));
                                break 'pieces begins;
                            }
                            _ => {
                                piece_start = begins;
                                continue 'pieces;
                            }
                        }
                    }
                    Err(damage) => {
                        let begins = piece_start + damage.at;
                        let kind =
                            if damage.cut { NoteKind::Truncated } else { NoteKind::Malformed };
                        line.damage = Some((begins, kind));
                        break 'pieces begins;
                    }
                }
            }
        };
        line.chunks.push((chunk_start..end, chunk_events));
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
        let shift_ps = out.place(started).0;
        let window = started
            .zip(said("profile_stop_time"))
            .and_then(|(started, stopped)| stopped.saturating_sub(started).checked_mul(1000));
        if let Some(window) = window.filter(|&it| it > 0) {
            out.extend_window(Dur(window.saturating_add(shift_ps)));
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

/// The same of a line of a GPU's and a TPU's plane, as other formats copy them.
pub fn kind_of_gpu_line(name: &str) -> TrackKind {
    kind_of_line(PlaneKind::Gpu, name)
}

pub fn kind_of_tpu_line(name: &str) -> TrackKind {
    kind_of_line(PlaneKind::Tpu, name)
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
    pieces: &Pieces<'_>,
    lines: &[Line],
    planes: &[Plane],
    metas: &[PlaneMeta],
    clock: Clock,
    source: u16,
    out: &mut TraceBuilder,
) {
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
    let rows = out.reserve_all(runs.iter().copied());
    let mut first_row = rows.start;
    for chunk in &mut chunks {
        // The last chunks get fewer rows than they asked for where a trace is full.
        chunk.n_events = chunk.n_events.min((rows.end - first_row) as usize);
        chunk.first_row = first_row;
        first_row += chunk.n_events as u32;
    }

    let mut columns = Vec::with_capacity(chunks.len());
    let mut rest = out.columns(rows.clone());
    for chunk in &chunks {
        let (own, others) = rest.split(chunk.n_events);
        rest = others;
        columns.push((chunk, own));
    }
    let n_bytes = chunks.iter().map(|it| it.bytes.len()).sum();
    let mut decoded: Vec<Decoded> = at_once(columns, n_bytes)
        .map_init(Vec::new, |buffer, (chunk, columns)| {
            let bytes = pieces.read(chunk.bytes.clone(), buffer);
            let decoded = decode::decode(bytes, chunk, &metas[chunk.plane], columns);
            pieces.file().done_with(chunk.bytes.len());
            decoded
        })
        .collect();

    merge_details(pieces, &chunks, &mut decoded, metas, rows, out);
    for (chunk, decoded) in chunks.iter().zip(&mut decoded) {
        hand_over(chunk, decoded, source, out);
    }
    for (kind, count, first) in decoded.iter().flat_map(|it| &it.damage) {
        out.note_many(*kind, *count, || format!("event at byte {first}"));
    }
}

/// What a name says of its events is a few hundred bytes.
const NAMES_WINDOW: usize = 4 << 10;

/// Each chunk numbered the details it met; the trace has one numbering.
fn merge_details(
    pieces: &Pieces<'_>,
    chunks: &[Chunk],
    decoded: &mut [Decoded],
    metas: &[PlaneMeta],
    rows: Range<u32>,
    out: &mut TraceBuilder,
) {
    let mut known: HashMap<(usize, u64), u32> = HashMap::new();
    let mut of_names: Vec<HashMap<usize, Parts>> = vec![HashMap::new(); metas.len()];
    // Names come in any order: a large piece for each would mostly be thrown away.
    let mut window = pieces.window(NAMES_WINDOW);
    for (chunk, decoded) in chunks.iter().zip(decoded.iter_mut()) {
        let Decoded { details, detail_events, .. } = decoded;
        for MetDetail { hash, event_at, id } in details.iter_mut() {
            *id = *known.entry((chunk.plane, *hash)).or_insert_with(|| {
                let of_names = &mut of_names[chunk.plane];
                let event = (detail_events.as_slice(), *event_at as usize);
                let detail = metas[chunk.plane].detail(event, &mut window, of_names, out);
                out.detail(detail).0
            });
        }
        *detail_events = Vec::new();
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
    let n_bytes = chunks.iter().map(|it| it.bytes.len()).sum();
    at_once(pieces, n_bytes).for_each(|(piece, details)| {
        for id in piece.detail {
            if let Some(local) = id.checked_sub(1) {
                *id = details[local as usize].id;
            }
        }
    });
}

fn hand_over(chunk: &Chunk, decoded: &mut Decoded, source: u16, out: &mut TraceBuilder) {
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
    let tracks: Vec<TrackId> = decoded
        .allocators
        .iter()
        .map(|it| out.track(None, TrackKind::Counter, &format!("{it} bytes_allocated")))
        .collect();
    for it in &decoded.allocations {
        out.counter(tracks[it.allocator], Time(it.start), it.used_bytes as f64);
    }
}
