//! Decodes a piece of the list of events: what it says, with names and tracks of its own, which are
//! joined to those of the file afterwards.

use hashbrown::HashMap;
use trace::{NumberKey, OpKind, TrackKind};

use super::element::Element;
use super::json::{Cursor, Stop, fields, float, packed, text, unescaped, unquoted, whole};
use super::kinds::{Class, DeviceWork, STEP, copy_memory, kind_of};

/// A text of this piece, by its number.
pub type TextId = u32;

/// Where events are, as the file says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrackKey {
    pub pid: String,
    pub tid: String,
    /// The side that categories tell of; `None`: what the process is called tells.
    pub side: Option<TrackKind>,
    /// Tracks that a profiler draws: one for each category.
    pub drawn: String,
}

/// What events have in common, in this piece's texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    pub kernel: Option<trace::KernelShape>,
    pub copy_bytes: Option<u64>,
    pub copy_memory: Option<TextId>,
    pub op: Option<TextId>,
    pub hlo_op: Option<TextId>,
    pub hlo_module: Option<TextId>,
    pub in_graph: bool,
}

/// `process_name` and the like.
#[derive(Debug)]
pub struct Label {
    pub pid: String,
    pub tid: String,
    pub key: String,
    pub value: String,
}

/// One end of an arrow.
#[derive(Debug, Clone, Copy)]
pub struct FlowPoint {
    pub key: u64,
    pub begins: bool,
    pub track: u32,
    pub start: i64,
}

/// A begin or an end of an event that was written in two halves.
#[derive(Debug, Clone, Copy)]
pub struct Half {
    /// Row in this piece of the begin; `None`: an end.
    pub begin: Option<u32>,
    pub track: u32,
    pub time: i64,
    /// Of asynchronous ones: which.
    pub id: Option<u64>,
}

/// A level that was said at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Level {
    pub name: TextId,
    pub time: i64,
    pub value: f64,
    /// What an allocator has given out; else whatever the counter counts.
    pub is_memory: bool,
}

/// What a range that was counted says of one counter.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    pub row: u32,
    pub track: u32,
    pub name: TextId,
    pub value: f64,
}

/// Of which op and which call a row is. There are as many as launches: an `Option` would double it.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    pub row: u32,
    correlation: u64,
    external: u64,
}

/// No id of a call or an op.
const NO_ID: u64 = u64::MAX;

impl Link {
    pub fn correlation(&self) -> Option<u64> {
        (self.correlation != NO_ID).then_some(self.correlation)
    }

    pub fn external(&self) -> Option<u64> {
        (self.external != NO_ID).then_some(self.external)
    }
}

#[derive(Debug, Default)]
pub struct Decoded {
    /// Byte of the file that `at` counts from.
    pub first_byte: usize,
    /// Where the element behind the last one begins, or the end of the list.
    pub next: usize,
    /// The list ends here.
    pub is_last: bool,
    pub texts: Vec<String>,
    pub tracks: Vec<TrackKey>,
    pub shapes: Vec<Shape>,
    /// Rows, in the file's order.
    pub name: Vec<TextId>,
    pub start: Vec<i64>,
    pub dur: Vec<i64>,
    pub kind: Vec<u8>,
    /// Counted from 1.
    pub shape: Vec<u32>,
    /// Tracks of rows that follow one another.
    pub runs: Vec<(u32, u32)>,
    /// Of every [`trace::ArgRun::EVERY`]th row.
    pub marks: Vec<u32>,
    pub calls: Vec<Link>,
    pub device_work: Vec<Link>,
    /// Ops by their External id.
    pub ops: Vec<(u64, TextId)>,
    pub numbers: Vec<(u32, NumberKey, i64)>,
    pub flows: Vec<FlowPoint>,
    pub halves: Vec<Half>,
    pub levels: Vec<Level>,
    pub counts: Vec<Count>,
    pub labels: Vec<Label>,
    /// What the profiler said of its own window: from, to.
    pub window: Option<(i64, i64)>,
    pub n_bad_times: u64,
    pub first_bad_time: Option<String>,
    pub n_bad_texts: u64,
    pub n_malformed: u64,
    pub first_malformed: Option<String>,
    /// The file ends inside an event.
    pub cut: bool,
    /// What stands at `next` is no beginning of an event: one has to be looked for.
    pub lost: bool,
}

/// Process, thread, side, and what draws it, as they stand in the file.
type TrackBytes<'a> = (&'a [u8], &'a [u8], Option<TrackKind>, &'a [u8]);

/// What is looked at once per piece: names by category, tracks, shapes.
struct Lookup<'a> {
    names: HashMap<(&'a [u8], &'a [u8]), Named>,
    texts: HashMap<String, TextId>,
    tracks: HashMap<TrackBytes<'a>, u32>,
    shapes: HashMap<Shape, u32>,
    /// Tracks by numbers that stand for short ids: the bytes of an id seen before lie far back in
    /// the piece, and to compare with them waits for memory.
    short_tracks: HashMap<(u128, u128, Option<TrackKind>), u32>,
}

/// A name and what it says.
#[derive(Debug, Clone, Copy)]
struct Named {
    text: TextId,
    class: Class,
    kind: u8,
    step: Option<i64>,
    copy_memory: Option<TextId>,
}

/// About how many events begin in the first `n_bytes`, by those that begin in the first of them:
/// columns that grow step by step leave holes behind that nothing else fills.
fn events_in(bytes: &[u8], n_bytes: usize) -> usize {
    let n_bytes = n_bytes.min(bytes.len());
    let seen = &bytes[..n_bytes.min(LOOKED_AT)];
    let n = memchr::memmem::find_iter(seen, b"\"ph\"").count();
    (n * n_bytes.div_ceil(seen.len().max(1))).min(n_bytes / LEAST_EVENT)
}

/// Enough to tell how long events are.
const LOOKED_AT: usize = 256 << 10;
/// No event is shorter: `{"ph":"X"}` and a comma.
const LEAST_EVENT: usize = 11;

/// A name is shown as a whole, but not one that fills megabytes.
const LONGEST_NAME: usize = 64 << 10;
/// Labels stand in every row of a table.
const LONGEST_LABEL: usize = 256;

impl Decoded {
    /// Decodes events that begin before `until`; places are counted from `first_byte` of the file.
    ///
    /// `bytes` begins with the first of them. It may end early: then [`Decoded::next`] says from
    /// where on to read more, unless `is_end` of the file.
    pub fn read(
        bytes: &[u8],
        first_byte: usize,
        until: usize,
        base_us: i64,
        is_end: bool,
    ) -> Decoded {
        let mut out = Decoded { first_byte, next: first_byte, ..Decoded::default() };
        let n = events_in(bytes, until.saturating_sub(first_byte));
        out.start.reserve_exact(n);
        out.dur.reserve_exact(n);
        out.name.reserve_exact(n);
        out.shape.reserve_exact(n);
        out.kind.reserve_exact(n);
        let mut lookup = Lookup {
            names: HashMap::new(),
            texts: HashMap::new(),
            tracks: HashMap::new(),
            shapes: HashMap::new(),
            short_tracks: HashMap::new(),
        };
        let mut cursor = Cursor::new(bytes, 0);
        loop {
            let stop = match cursor.peek() {
                Ok(b']') => {
                    cursor.at += 1;
                    out.next = first_byte + cursor.at;
                    out.is_last = true;
                    return out;
                }
                // More than one is forgiven.
                Ok(b',') => {
                    cursor.at += 1;
                    continue;
                }
                Ok(_) if first_byte + cursor.at >= until => {
                    out.next = first_byte + cursor.at;
                    return out;
                }
                Ok(b'{') => {
                    let at = cursor.at;
                    match Element::read(&mut cursor) {
                        Ok(element) => {
                            out.element(&mut lookup, &element, at, base_us);
                            continue;
                        }
                        Err(stop) => {
                            cursor.at = at;
                            stop
                        }
                    }
                }
                Ok(_) => match cursor.value() {
                    Ok(_) => {
                        out.malformed(first_byte + cursor.at, "this is no event");
                        continue;
                    }
                    Err(stop) => stop,
                },
                Err(stop) => {
                    cursor.at = bytes.len();
                    stop
                }
            };
            out.next = first_byte + cursor.at;
            match stop {
                Stop::Cut if is_end => {
                    out.cut = true;
                    out.next = first_byte + bytes.len();
                    return out;
                }
                Stop::Cut => return out,
                Stop::Bad(at) => {
                    out.malformed(first_byte + at, "inside an event");
                    // On with the next thing that looks like an event.
                    match border(bytes, at.max(cursor.at + 1)) {
                        Some(next) => cursor.at = next,
                        None => {
                            // Nothing here does: what comes later may.
                            out.next = first_byte + bytes.len();
                            out.cut = is_end;
                            out.lost = true;
                            return out;
                        }
                    }
                }
            }
        }
    }

    /// Gives back what was reserved for more: all pieces of a file are kept until it is read.
    pub fn fitted(mut self) -> Decoded {
        self.start.shrink_to_fit();
        self.dur.shrink_to_fit();
        self.name.shrink_to_fit();
        self.shape.shrink_to_fit();
        self.kind.shrink_to_fit();
        self.runs.shrink_to_fit();
        self.marks.shrink_to_fit();
        self.calls.shrink_to_fit();
        self.device_work.shrink_to_fit();
        self.ops.shrink_to_fit();
        self.flows.shrink_to_fit();
        self
    }

    fn malformed(&mut self, at: usize, what: &str) {
        self.n_malformed += 1;
        self.first_malformed.get_or_insert_with(|| format!("at byte {at}: {what}"));
    }

    fn bad_time(&mut self, element: &Element<'_>) {
        self.n_bad_times += 1;
        self.first_bad_time.get_or_insert_with(|| {
            let name: String = unescaped(element.name).chars().take(LONGEST_LABEL).collect();
            format!("{name:?} has no time that can be read")
        });
    }

    fn text(&mut self, lookup: &mut Lookup<'_>, text: &str) -> TextId {
        if let Some(&id) = lookup.texts.get(text) {
            return id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        lookup.texts.insert(text.to_owned(), id);
        id
    }

    fn named<'a>(&mut self, lookup: &mut Lookup<'a>, it: &Element<'a>) -> Named {
        if let Some(known) = lookup.names.get(&(it.cat, it.name)) {
            return *known;
        }
        let shown = it.name.get(..LONGEST_NAME).unwrap_or(it.name);
        self.n_bad_texts += u64::from(std::str::from_utf8(shown).is_err());
        let name = unescaped(shown);
        let class = Class::of(it.cat, it.name);
        let kind = kind_of(class, &name);
        let step = name.strip_prefix(STEP).and_then(|it| it.parse().ok());
        let step = step.filter(|_| kind == Some(OpKind::Step));
        // All steps have one name, and each its number.
        let plain = if step.is_some() { STEP.trim_end_matches('#') } else { &*name };
        let copy_memory = match class {
            Class::DeviceWork(DeviceWork::Copy) => copy_memory(&name),
            _ => None,
        };
        let copy_memory = copy_memory.map(|it| self.text(lookup, &it));
        let text = self.text(lookup, plain);
        let named = Named { text, class, kind: kind.map_or(0, OpKind::said), step, copy_memory };
        lookup.names.insert((it.cat, it.name), named);
        named
    }

    fn track<'a>(
        &mut self,
        lookup: &mut Lookup<'a>,
        it: &Element<'a>,
        side: Option<TrackKind>,
    ) -> u32 {
        let drawn = if side == Some(TrackKind::Summary) { it.cat } else { b"" };
        let key = (it.pid, it.tid, side, drawn);
        let is_short = drawn.is_empty() && !it.pid.is_empty() && !it.tid.is_empty();
        let short = is_short.then(|| (packed(it.pid), packed(it.tid), side));
        let short = short.filter(|it| it.0 != 0 && it.1 != 0);
        if let Some(&track) = short.and_then(|it| lookup.short_tracks.get(&it)) {
            return track;
        }
        let track = *lookup.tracks.entry(key).or_insert_with(|| {
            let label = |it: &[u8]| text(it).chars().take(LONGEST_LABEL).collect();
            self.tracks.push(TrackKey {
                pid: label(it.pid),
                tid: label(it.tid),
                side,
                drawn: label(drawn),
            });
            (self.tracks.len() - 1) as u32
        });
        if let Some(it) = short {
            lookup.short_tracks.insert(it, track);
        }
        track
    }

    #[inline]
    fn element<'a>(&mut self, lookup: &mut Lookup<'a>, it: &Element<'a>, at: usize, base_us: i64) {
        if !it.is_event() {
            self.aside(lookup, it, base_us);
            return;
        }
        let named = self.named(lookup, it);
        let start = it.ts.and_then(|it| it.ps_since(base_us));
        let dur = it.dur.map_or(Some(0), |it| it.ps_since(0));
        let (start, dur) = match (start, dur) {
            (Some(start), Some(dur)) if is_near(start) && is_near(dur) => (start, dur),
            // It keeps its row, which arguments are counted by, and is given up.
            _ => {
                self.bad_time(it);
                (BAD_TIME, 0)
            }
        };
        let track = self.track(lookup, it, named.class.track());
        let row = self.start.len() as u32;
        if (row as usize).is_multiple_of(trace::ArgRun::EVERY) {
            self.marks.push(at as u32);
        }
        match self.runs.last_mut() {
            Some(last) if last.0 == track => last.1 += 1,
            _ => self.runs.push((track, 1)),
        }
        self.start.push(start);
        self.dur.push(if it.phase == b'X' { dur } else { 0 });
        self.kind.push(named.kind);
        self.name.push(named.text);
        self.shape.push(0);
        if start == BAD_TIME {
            return;
        }
        if it.phase == b'B' || it.phase == b'b' {
            let id = (it.phase == b'b').then(|| async_id(it));
            self.halves.push(Half { begin: Some(row), track, time: start, id });
        }
        if let Some(step) = named.step {
            self.numbers.push((row, NumberKey::Step, step));
        }
        self.arguments(lookup, it, &named, row, start);
        if it.cat == b"cuda_profiler_range" {
            fields(it.args, |key, value| {
                if let Some(value) = float(value) {
                    let name = self.text(lookup, &text(key));
                    self.counts.push(Count { row, track, name, value });
                }
            });
        }
        if named.class == Class::HostSummary && it.cat == b"Trace" {
            let (from, to) = self.window.unwrap_or((start, start));
            self.window = Some((from.min(start), to.max(start.saturating_add(dur))));
        }
    }

    /// What the event's arguments say that tables ask for.
    fn arguments<'a>(
        &mut self,
        lookup: &mut Lookup<'a>,
        it: &Element<'a>,
        named: &Named,
        row: u32,
        start: i64,
    ) {
        match named.class {
            Class::DeviceWork(work) => {
                let (mut shape, link) = device_args(it.args, row);
                shape.copy_memory = named.copy_memory;
                if work != DeviceWork::Kernel {
                    shape.kernel = None;
                }
                self.device_work.push(link);
                self.shaped(lookup, row, shape);
            }
            Class::DriverCall => {
                self.calls.push(call_of(it.args, row));
            }
            // The id comes first: the shapes behind it need not be looked at.
            // What it only wraps says more: the kernel's own name, that it communicates.
            Class::Op if it.name == b"record_param_comms" => (),
            Class::Op => {
                if let Some(external) = first_external(it.args) {
                    self.ops.push((external, named.text));
                }
            }
            Class::Memory => self.allocation(lookup, it, row, start),
            Class::TensorFlow1 => {
                let (mut name, mut op) = (None, None);
                fields(it.args, |key, value| match key {
                    b"name" => name = Some(text(value)),
                    b"op" => op = Some(text(value)),
                    _ => (),
                });
                if let (Some(name), Some(op)) = (name, op) {
                    // As TensorFlow's later profilers call it.
                    let full = self.text(lookup, &format!("{name}:{op}"));
                    self.shaped(lookup, row, Shape { op: Some(full), ..Shape::default() });
                }
            }
            Class::Unknown if !it.args.is_empty() => {
                let mut shape = Shape::default();
                let mut step = None;
                fields(it.args, |key, value| match key {
                    b"step_num" => step = whole(value),
                    b"tf_op" => shape.op = Some(self.text(lookup, &text(value))),
                    b"hlo_op" => shape.hlo_op = Some(self.text(lookup, &text(value))),
                    b"hlo_module" => shape.hlo_module = Some(self.text(lookup, &text(value))),
                    _ => (),
                });
                if let Some(step) = step {
                    self.numbers.push((row, NumberKey::Step, step));
                }
                self.shaped(lookup, row, shape);
            }
            _ => (),
        }
    }

    fn shaped(&mut self, lookup: &mut Lookup<'_>, row: u32, shape: Shape) {
        if shape == Shape::default() {
            return;
        }
        let next = self.shapes.len() as u32;
        let id = *lookup.shapes.entry_ref(&shape).or_insert(next);
        if id == next {
            self.shapes.push(shape);
        }
        if let Some(it) = self.shape.get_mut(row as usize) {
            *it = id + 1;
        }
    }

    fn allocation(&mut self, lookup: &mut Lookup<'_>, it: &Element<'_>, row: u32, start: i64) {
        let Some(block) = Block::read(it.args) else { return };
        let (name, allocator) = (block.event_name(), block.allocator());
        let name = self.text(lookup, name);
        if let Some(it) = self.name.get_mut(row as usize) {
            *it = name;
        }
        if let Some(level) = block.level {
            let name = self.text(lookup, &allocator);
            let value = level as f64;
            self.levels.push(Level { name, time: start, value, is_memory: true });
        }
    }

    /// What is no event of its own.
    fn aside<'a>(&mut self, lookup: &mut Lookup<'a>, it: &Element<'a>, base_us: i64) {
        let time = || it.ts.and_then(|it| it.ps_since(base_us)).filter(|&it| is_near(it));
        match it.phase {
            b'M' => {
                let mut value = None;
                fields(it.args, |key, found| {
                    if matches!(key, b"name" | b"labels") {
                        value = Some(text(found).chars().take(LONGEST_LABEL).collect());
                    }
                });
                let key = unescaped(it.name).chars().take(LONGEST_LABEL).collect();
                if let Some(value) = value {
                    let [pid, tid] = [it.pid, it.tid]
                        .map(|it| text(it).chars().take(LONGEST_LABEL).collect::<String>());
                    self.labels.push(Label { pid, tid, key, value });
                }
            }
            b's' | b't' | b'f' => {
                let Some(start) = time() else { return self.bad_time(it) };
                let side = match it.cat {
                    // What launches is joined by correlations, which all versions write.
                    b"ac2g" | b"async_cpu_to_gpu" | b"async" | b"async_gpu" => return,
                    b"fwdbwd" => Some(TrackKind::Thread),
                    _ => Class::of(it.cat, it.name).track(),
                };
                let track = self.track(lookup, it, side);
                let key = hash(&[it.cat, it.id]);
                self.flows.push(FlowPoint { key, begins: it.phase == b's', track, start });
            }
            b'E' => {
                let Some(time) = time() else { return self.bad_time(it) };
                let named = self.named(lookup, it);
                let track = self.track(lookup, it, named.class.track());
                self.halves.push(Half { begin: None, track, time, id: None });
            }
            b'e' => {
                let Some(time) = time() else { return self.bad_time(it) };
                let named = self.named(lookup, it);
                let track = self.track(lookup, it, named.class.track());
                self.halves.push(Half { begin: None, track, time, id: Some(async_id(it)) });
            }
            b'C' => {
                let Some(time) = time() else { return self.bad_time(it) };
                fields(it.args, |key, value| {
                    let Some(value) = float(value) else { return };
                    let name = format!("{} {}", unescaped(it.name), unescaped(key));
                    let name: String = name.chars().take(LONGEST_LABEL).collect();
                    let name = self.text(lookup, &name);
                    self.levels.push(Level { name, time, value, is_memory: false });
                });
            }
            b'X' | b'B' | b'b' | b'i' | b'I' | b'R' | b'n' | b'S' => self.bad_time(it),
            _ if it.is_empty() => (),
            // Objects, samples, marks of other tools: nothing that tables ask for.
            b'N' | b'O' | b'D' | b'P' | b'c' | b'T' | b'p' | b'F' | b'v' | b'V' | b'=' | b'('
            | b')' => (),
            _ => self.malformed(self.first_byte, "an event of no known phase"),
        }
    }
}

/// No trace is as long as this: 13 days. So that sums of a few times stay in their range.
const FARTHEST_PS: i64 = 1 << 60;

fn is_near(ps: i64) -> bool {
    (-FARTHEST_PS..=FARTHEST_PS).contains(&ps)
}

/// The start of a row whose time cannot be read: such rows are given up.
pub const BAD_TIME: i64 = i64::MIN;

/// A block of memory that PyTorch's allocator gave or took back.
#[derive(Debug, Default)]
pub struct Block {
    pub bytes: i64,
    pub address: Option<i64>,
    pub level: Option<i64>,
    pub reserved: Option<i64>,
    pub device_type: i64,
    pub device_id: i64,
}

impl Block {
    pub fn read(args: &[u8]) -> Option<Block> {
        let (mut block, mut bytes) = (Block::default(), None);
        fields(args, |key, value| match key {
            b"Bytes" => bytes = whole(value),
            b"Addr" => block.address = whole(value),
            b"Total Allocated" => block.level = whole(value),
            b"Total Reserved" => block.reserved = whole(value),
            b"Device Type" => block.device_type = whole(value).unwrap_or(0),
            b"Device Id" => block.device_id = whole(value).unwrap_or(-1),
            _ => (),
        });
        block.bytes = bytes?;
        // The CPU's allocator does not count what it gave: it says 0.
        block.level = block.level.filter(|&it| it > 0 || block.device_type != 0);
        Some(block)
    }

    pub fn event_name(&self) -> &'static str {
        if self.bytes >= 0 { "MemoryAllocation" } else { "MemoryDeallocation" }
    }

    /// As PyTorch's `c10::DeviceType` counts devices.
    pub fn allocator(&self) -> String {
        let id = self.device_id.max(0);
        match self.device_type {
            0 => "cpu".to_owned(),
            1 => format!("cuda:{id}"),
            20 => format!("hip:{id}"),
            12 => format!("xpu:{id}"),
            19 => format!("mtia:{id}"),
            other => format!("device type {other}:{id}"),
        }
    }
}

fn async_id(it: &Element<'_>) -> u64 {
    hash(&[it.cat, it.id, it.pid])
}

/// The same for the same bytes in all pieces.
fn hash(parts: &[&[u8]]) -> u64 {
    // FNV-1a: few are asked for.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for &byte in unquoted(part).iter().chain(&[0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// The op's id, where it is the first of the arguments, as PyTorch writes it.
fn first_external(args: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(args, 0);
    cursor.expect(b'{').ok()?;
    match packed(cursor.key(true).ok()??) {
        EXTERNAL_ID | EXTERNAL_ID_TOO => number(cursor.value().ok()?),
        _ => {
            let mut found = None;
            fields(args, |key, value| {
                if matches!(key, b"External id" | b"external id") {
                    found = number(value);
                }
            });
            found
        }
    }
}

fn number(value: &[u8]) -> Option<u64> {
    whole(value).and_then(|it| u64::try_from(it).ok())
}

const CORRELATION: u128 = packed(b"correlation");
const EXTERNAL_ID: u128 = packed(b"External id");
const EXTERNAL_ID_TOO: u128 = packed(b"external id");
const GRID: u128 = packed(b"grid");
const BLOCK: u128 = packed(b"block");
const SHARED_MEMORY: u128 = packed(b"shared memory");
const BYTES: u128 = packed(b"bytes");
const GRAPH_NODE: u128 = packed(b"graph node id");
const LONG_KEY: u128 = packed(b"any that is longer than sixteen");

/// The call that a driver call is, and its op.
fn call_of(args: &[u8], row: u32) -> Link {
    let (mut correlation, mut external) = (NO_ID, NO_ID);
    fields(args, |key, value| match packed(key) {
        CORRELATION => correlation = number(value).unwrap_or(NO_ID),
        EXTERNAL_ID | EXTERNAL_ID_TOO => external = number(value).unwrap_or(NO_ID),
        _ => (),
    });
    // An id of 0 names no op.
    Link { row, correlation, external: if external == 0 { NO_ID } else { external } }
}

/// Arguments of work on a device.
fn device_args(args: &[u8], row: u32) -> (Shape, Link) {
    let mut shape = Shape::default();
    let (mut correlation, mut external) = (None, None);
    let mut kernel = trace::KernelShape::default();
    let (mut grid, mut block) = (None, None);
    fields(args, |key, value| match packed(key) {
        CORRELATION => correlation = number(value),
        EXTERNAL_ID | EXTERNAL_ID_TOO => external = number(value),
        GRID => grid = sides(value),
        BLOCK => block = sides(value),
        // Static and dynamic together, as PyTorch adds them.
        SHARED_MEMORY => kernel.static_shared_bytes = number(value),
        BYTES => shape.copy_bytes = number(value),
        GRAPH_NODE => shape.in_graph = number(value).is_some_and(|it| it > 0),
        LONG_KEY if key == b"registers per thread" => kernel.registers = number(value),
        _ => (),
    });
    if let (Some(grid), Some(block)) = (grid, block) {
        // AMD's tracer says 0 where it does not know.
        if grid.iter().chain(&block).all(|&it| it > 0) {
            kernel.registers = kernel.registers.filter(|&it| it > 0);
            shape.kernel = Some(trace::KernelShape { grid, block, ..kernel });
        }
    }
    // An id of 0 names no op.
    let external = external.filter(|&it| it > 0).unwrap_or(NO_ID);
    (shape, Link { row, correlation: correlation.unwrap_or(NO_ID), external })
}

/// `[128, 1, 1]`
fn sides(value: &[u8]) -> Option<[u64; 3]> {
    let inner = std::str::from_utf8(value).ok()?.strip_prefix('[')?.strip_suffix(']')?;
    let mut sides = inner.split(',').map(|it| it.trim().parse::<u64>().ok());
    Some([sides.next()??, sides.next().unwrap_or(Some(1))?, sides.next().unwrap_or(Some(1))?])
}

/// Where, from a place on, an event probably begins: at a brace behind a comma behind a brace, with
/// one of an event's keys in it. Whoever reads up to there sees whether it does.
pub fn border(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'{', bytes.get(at..)?)?;
        let before = bytes[..at].iter().rev().filter(|it| !it.is_ascii_whitespace());
        let mut before = before.copied();
        let behind_event = before.next() == Some(b',') && before.next() == Some(b'}');
        if behind_event {
            let mut cursor = Cursor::new(bytes, at + 1);
            if let Ok(key) = cursor.string()
                && matches!(key, b"ph" | b"name" | b"cat" | b"pid" | b"tid" | b"ts" | b"args")
            {
                return Some(at);
            }
        }
        at += 1;
    }
}
