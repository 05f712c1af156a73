//! A plane's metadata: names of events and stats, and what the reader does with each stat.

use std::ops::Range;

use hashbrown::HashMap;
use trace::{Detail, FactValue, KernelShape, NoteKind, StrId, TraceBuilder};

use super::{Plane, lossy};
use crate::file::Window;
use crate::wire::{Fields, LongFields, LongValue, Value, varint};

/// What becomes of a stat while events are read; all stats can be asked for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Lift {
    #[default]
    No,
    /// Many events share its value: kept once, as a detail.
    Detail,
    Correlation,
    StepNumber,
    Root,
    FunctionId,
    ProducerType,
    Producer,
    ConsumerType,
    Consumer,
}

impl Lift {
    fn of(stat: &str) -> Lift {
        match stat {
            "tf_op" | "annotation" | "level 0" | "name" | "hlo_op" | "hlo_module"
            | "hlo_category" | "program_id" | "kernel_details" | "memcpy_details" | "is_func"
            | "tf_function_call" | "cuda_graph_id" | "cuda_graph_exec_id" | "_a"
            | "shape_with_layout" => Lift::Detail,
            "correlation_id" => Lift::Correlation,
            "step_num" => Lift::StepNumber,
            "_r" => Lift::Root,
            "id" => Lift::FunctionId,
            "_pt" => Lift::ProducerType,
            "_p" => Lift::Producer,
            "_ct" => Lift::ConsumerType,
            "_c" => Lift::Consumer,
            _ => Lift::No,
        }
    }
}

/// Events whose other stats matter, told by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Special {
    #[default]
    No,
    /// Its `id` is the function it calls.
    CallsFunction,
    /// Its `id` is the function it runs.
    RunsFunction,
    Allocation,
}

#[derive(Debug, Clone, Copy)]
pub struct EventMeta {
    pub name: u32,
    pub special: Special,
    /// Not 0 where the metadata itself carries stats to keep: its id, mixed.
    pub base: u64,
}

/// Metadata id → row; ids are mostly small, so a plain array does.
#[derive(Debug)]
pub enum IdMap {
    Dense(Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

impl IdMap {
    fn new(ids: &[u64]) -> IdMap {
        let high = ids.iter().copied().max().unwrap_or(0);
        if high <= ids.len() as u64 * 4 + 64 {
            let mut rows = vec![u32::MAX; high as usize + 1];
            for (row, &id) in ids.iter().enumerate() {
                rows[id as usize] = row as u32;
            }
            IdMap::Dense(rows)
        } else {
            IdMap::Sparse(ids.iter().enumerate().map(|(row, &id)| (id, row as u32)).collect())
        }
    }

    #[inline]
    pub fn get(&self, id: u64) -> Option<usize> {
        let row = match self {
            IdMap::Dense(rows) => usize::try_from(id).ok().and_then(|it| rows.get(it)),
            IdMap::Sparse(rows) => rows.get(&id),
        };
        row.copied().filter(|&it| it != u32::MAX).map(|it| it as usize)
    }
}

#[derive(Debug)]
pub struct PlaneMeta {
    pub event_ids: IdMap,
    pub events: Vec<EventMeta>,
    /// Stats that stand for all events of a name.
    event_stats: Vec<Vec<Range<usize>>>,
    stat_ids: IdMap,
    /// By stat id, for those that are small.
    small_lifts: Vec<Lift>,
    lifts: Vec<Lift>,
    /// By stat id, for those of one byte: the hot loop asks this of every stat.
    pub short_lifts: [Lift; 128],
    stat_names: Vec<String>,
    pub facts: Vec<(String, FactValue)>,
    /// Compiled programs: name and bytes.
    pub programs: Vec<(String, Range<usize>)>,
    /// Stands in where an event's metadata is missing.
    pub unnamed: u32,
}

/// One stat as it stands in the file.
#[derive(Debug, Clone, Copy)]
pub struct Stat<'a> {
    pub id: u64,
    pub value: StatValue<'a>,
}

#[derive(Debug, Clone, Copy)]
pub enum StatValue<'a> {
    None,
    Double(f64),
    Int(u64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// The value is the name of another stat.
    Ref(u64),
}

impl<'a> Stat<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Stat<'a>> {
        let mut stat = Stat { id: 0, value: StatValue::None };
        let mut fields = Fields::new(bytes);
        while let Some(field) = fields.next().ok()? {
            match (field.number, field.value) {
                (1, Value::Varint(id)) => stat.id = id,
                (2, Value::Fixed64(bits)) => stat.value = StatValue::Double(f64::from_bits(bits)),
                (3 | 4, Value::Varint(it)) => stat.value = StatValue::Int(it),
                (5, Value::Bytes(it)) => stat.value = StatValue::Text(it),
                (6, Value::Bytes(it)) => stat.value = StatValue::Bytes(it),
                (7, Value::Varint(it)) => stat.value = StatValue::Ref(it),
                _ => (),
            }
        }
        Some(stat)
    }
}

impl PlaneMeta {
    pub fn read(window: &mut Window<'_, '_>, plane: &Plane, out: &mut TraceBuilder) -> PlaneMeta {
        let mut stat_ids = Vec::with_capacity(plane.stat_metadata.len());
        let mut stat_names = Vec::with_capacity(plane.stat_metadata.len());
        for entry in &plane.stat_metadata {
            let MapEntry { key, value } = MapEntry::read(window, entry);
            let mut name = 0..0;
            each_long_field(window, value, |number, value| {
                if let (2, LongValue::Bytes(text)) = (number, value) {
                    name = text;
                }
            });
            stat_ids.push(key);
            stat_names.push(lossy(window.get(name)));
        }
        let lifts: Vec<Lift> = stat_names.iter().map(|it| Lift::of(it)).collect();
        let stat_ids = IdMap::new(&stat_ids);
        let small_lifts = match &stat_ids {
            IdMap::Dense(rows) => {
                rows.iter().map(|&it| lifts.get(it as usize).copied().unwrap_or_default()).collect()
            }
            IdMap::Sparse(_) => Vec::new(),
        };

        let mut meta = PlaneMeta {
            event_ids: IdMap::Dense(Vec::new()),
            events: Vec::with_capacity(plane.event_metadata.len()),
            event_stats: Vec::with_capacity(plane.event_metadata.len()),
            stat_ids,
            small_lifts,
            lifts,
            short_lifts: [Lift::No; 128],
            stat_names,
            facts: Vec::new(),
            programs: Vec::new(),
            unnamed: out.text("(unnamed)").0,
        };
        meta.short_lifts = std::array::from_fn(|id| meta.lift(id as u64));
        let mut event_ids = Vec::with_capacity(plane.event_metadata.len());
        for entry in &plane.event_metadata {
            let MapEntry { key, value } = MapEntry::read(window, entry);
            event_ids.push(key);
            meta.read_event(window, value, out);
        }
        meta.event_ids = IdMap::new(&event_ids);
        meta.read_facts(window, plane, out);
        meta
    }

    /// A stat of a few bytes can refer to a long text: what all of a plane's come to is bounded
    /// by the plane's own size.
    fn read_facts(&mut self, window: &mut Window<'_, '_>, plane: &Plane, out: &mut TraceBuilder) {
        let mut room = plane.bytes.len().saturating_mul(4);
        for range in &plane.stats {
            let Some(stat) = Stat::read(window.get(range.clone())) else { continue };
            let value = match stat.value {
                StatValue::Ref(it) => self.stat_name(it).len(),
                _ => range.len(),
            };
            match room.checked_sub(self.stat_name(stat.id).len() + value) {
                Some(left) => room = left,
                None => {
                    out.note(NoteKind::Malformed, || {
                        format!("stat at byte {}: too long for plane {:?}", range.start, plane.name)
                    });
                    continue;
                }
            }
            let fact = self.resolve(stat);
            self.facts.push(fact);
        }
    }

    fn read_event(
        &mut self,
        window: &mut Window<'_, '_>,
        value: Range<usize>,
        out: &mut TraceBuilder,
    ) {
        let (mut id, mut name, mut display) = (0, 0..0, 0..0);
        let mut stats = Vec::new();
        each_long_field(window, value, |number, value| match (number, value) {
            (1, LongValue::Varint(it)) => id = it,
            (2, LongValue::Bytes(it)) => name = it,
            (4, LongValue::Bytes(it)) => display = it,
            (5, LongValue::Bytes(it)) => stats.push(it),
            _ => (),
        });
        // A compiled op has its whole text as name, and its name for display; elsewhere the text
        // for display is the shorter, poorer one.
        let start = window.get(cut(&name));
        let whole_text = start.first() == Some(&b'%') || start.windows(3).any(|it| it == b" = ");
        let shown =
            if (whole_text || name.is_empty()) && !display.is_empty() { display } else { name };
        let text = window.get(cut(&shown));
        if text.len() < shown.len() || std::str::from_utf8(text).is_err() {
            out.note(NoteKind::BadText, || format!("event name {:?}", super::short(text)));
        }
        let shown = lossy(text);
        let (mut keeps, mut program) = (false, None);
        for range in &stats {
            // Compiled programs are long, and left where they are.
            let (mut id, mut held) = (0, None);
            each_long_field(window, range.clone(), |number, value| match (number, value) {
                (1, LongValue::Varint(it)) => id = it,
                (6, LongValue::Bytes(it)) => held = Some(it),
                (2..=7, _) => held = None,
                _ => (),
            });
            keeps |= self.lift(id) == Lift::Detail;
            if held.is_some() && self.stat_name(id).eq_ignore_ascii_case("hlo proto") {
                program = held;
            }
        }
        self.programs.extend(program.map(|it| (shown.clone(), it)));
        let special = match shown.as_str() {
            "MemoryAllocation" | "MemoryDeallocation" => Special::Allocation,
            "ExecutorState::Process" => Special::RunsFunction,
            "FunctionRun" => Special::CallsFunction,
            it if it.starts_with("InstantiatedCapturedFunction::") => Special::CallsFunction,
            _ => Special::No,
        };
        let base = if keeps { super::decode::mix(id, 0x6d65_7461) | 1 } else { 0 };
        self.events.push(EventMeta { name: out.text(&shown).0, special, base });
        self.event_stats.push(stats);
    }

    #[inline]
    pub fn lift(&self, stat: u64) -> Lift {
        match usize::try_from(stat).ok().and_then(|it| self.small_lifts.get(it)) {
            Some(&lift) => lift,
            None if self.small_lifts.is_empty() => {
                self.stat_ids.get(stat).map_or(Lift::No, |it| self.lifts[it])
            }
            None => Lift::No,
        }
    }

    fn stat_name(&self, stat: u64) -> &str {
        self.stat_ids.get(stat).map_or("", |it| self.stat_names[it].as_str())
    }

    pub fn fact(&self, key: &str) -> Option<&FactValue> {
        self.facts.iter().find(|it| it.0 == key).map(|it| &it.1)
    }

    /// A stat with its name, references followed.
    fn resolve(&self, stat: Stat<'_>) -> (String, FactValue) {
        let value = match stat.value {
            StatValue::None => FactValue::Text(String::new()),
            StatValue::Double(it) => FactValue::Float(it),
            StatValue::Int(it) => FactValue::Int(it as i64),
            StatValue::Text(it) => FactValue::Text(lossy(it)),
            StatValue::Bytes(it) => FactValue::Text(format!("{} bytes", it.len())),
            StatValue::Ref(it) => FactValue::Text(self.stat_name(it).to_owned()),
        };
        let name = match self.stat_name(stat.id) {
            "" => format!("stat {}", stat.id),
            name => name.to_owned(),
        };
        (name, value)
    }

    /// All arguments of the event with this message: its name's, then its own.
    pub fn args(
        &self,
        window: &mut Window<'_, '_>,
        event: Range<usize>,
    ) -> Vec<(String, FactValue)> {
        let (row, own) = self.stats(window.get(event));
        let own: Vec<(String, FactValue)> = own.into_iter().map(|it| self.resolve(it)).collect();
        let of_name = row.map(|it| self.stats_of_name(window, it)).unwrap_or_default();
        of_name.into_iter().map(|it| self.resolve(it)).chain(own).collect()
    }

    /// An event's metadata and the stats it carries itself.
    fn stats<'a>(&self, event: &'a [u8]) -> (Option<usize>, Vec<Stat<'a>>) {
        let (mut id, mut own) = (0, Vec::new());
        each_field(event, |number, value| match (number, value) {
            (1, Value::Varint(it)) => id = it,
            (4, Value::Bytes(stat)) => own.extend(Stat::read(stat)),
            _ => (),
        });
        (self.event_ids.get(id), own)
    }

    fn stats_of_name<'a>(&self, window: &'a mut Window<'_, '_>, row: usize) -> Vec<Stat<'a>> {
        let stats = &self.event_stats[row];
        let (Some(first), Some(last)) = (stats.first(), stats.last()) else { return Vec::new() };
        // They follow one another, in the order of the file.
        let start = first.start;
        let bytes = window.get(start..last.end);
        let stat = |it: &Range<usize>| bytes.get(it.start - start..it.end - start);
        stats.iter().filter_map(|it| Stat::read(stat(it)?)).collect()
    }

    /// One stat of an event, if it is not too long for a name. `message` begins with its length.
    pub fn own_arg(&self, message: &[u8], key: &str) -> Option<FactValue> {
        let (_, own) = self.stats(message_at(message, 0)?);
        let stat = own.into_iter().find(|it| self.stat_name(it.id) == key)?;
        (self.text_len(stat) <= super::LONGEST_NAME).then(|| self.resolve(stat).1)
    }

    fn text_len(&self, stat: Stat<'_>) -> usize {
        match stat.value {
            StatValue::Ref(it) => self.stat_name(it).len(),
            StatValue::Text(it) => it.len(),
            _ => 0,
        }
    }

    /// What is kept of an event's stats once for all events like it.
    ///
    /// What its name says is the same for all events of that name and read once, into `of_names`.
    pub fn detail(
        &self,
        (events, at): (&[u8], usize),
        window: &mut Window<'_, '_>,
        of_names: &mut HashMap<usize, Parts>,
        out: &mut TraceBuilder,
    ) -> Detail {
        let (row, own) = self.stats(message_at(events, at).unwrap_or_default());
        let mut parts = match row {
            Some(row) => *of_names.entry(row).or_insert_with(|| {
                let mut parts = Parts::default();
                self.add_to_detail(&mut parts, &self.stats_of_name(window, row), out);
                parts
            }),
            None => Parts::default(),
        };
        self.add_to_detail(&mut parts, &own, out);
        let Parts { mut detail, name, annotation } = parts;
        detail.op = detail.op.or(annotation);
        // JAX puts the framework's op beside a module whose `tf_op` only says "XlaModule:".
        if let Some(name) = name
            && detail.hlo_op.is_some()
            && detail.op.is_none_or(|it: StrId| out.strings().get(it) == "XlaModule:")
        {
            detail.op = Some(name);
        }
        detail
    }

    fn add_to_detail(&self, parts: &mut Parts, stats: &[Stat<'_>], out: &mut TraceBuilder) {
        let Parts { detail, name, annotation } = parts;
        for &stat in stats {
            if self.lift(stat.id) != Lift::Detail {
                continue;
            }
            if self.stat_name(stat.id) == SHAPE {
                continue;
            }
            if self.text_len(stat) > LONGEST_TEXT {
                out.note(NoteKind::BadText, || {
                    format!("a stat {:?} of {} bytes", self.stat_name(stat.id), self.text_len(stat))
                });
                continue;
            }
            let (key, value) = self.resolve(stat);
            let text = |out: &mut TraceBuilder| match &value {
                FactValue::Text(it) if it.is_empty() => None,
                it => Some(out.text(&it.to_string())),
            };
            let number = match &value {
                FactValue::Int(it) => Some(*it),
                FactValue::Text(it) => it.parse().ok(),
                FactValue::Float(_) => None,
            };
            match key.as_str() {
                "tf_op" => detail.op = text(out),
                "annotation" | "level 0" => {
                    // `scope/op:Type#shape=(…)#`, outer annotations first.
                    let whole = value.to_string();
                    let op = whole.split("::").next().and_then(|it| it.split('#').next());
                    *annotation = op.filter(|it| !it.is_empty()).map(|it| out.text(it));
                }
                "name" => *name = text(out),
                "hlo_op" => detail.hlo_op = text(out),
                "hlo_module" => detail.hlo_module = text(out),
                "hlo_category" => detail.hlo_category = text(out),
                "program_id" => detail.program_id = number,
                "kernel_details" => detail.kernel = Some(kernel_shape(&value.to_string())),
                "memcpy_details" => {
                    let text = value.to_string();
                    detail.copy_bytes = copy_bytes(&text);
                    detail.copy_memory = copy_memory(&text).map(|it| out.text(&it));
                }
                "is_func" => detail.calls_function = number.map(|it| it != 0),
                "tf_function_call" => {
                    detail.traced = Some(value.to_string().starts_with("traced"));
                }
                "cuda_graph_id" | "cuda_graph_exec_id" => detail.in_graph = number != Some(0),
                "_a" => detail.overlaps = number != Some(0),
                _ => (),
            }
        }
        // Shapes of other ops can be long, and say nothing that is asked.
        let category = detail.hlo_category.map(|it| out.strings().get(it));
        if let Some(category @ ("copy-start" | "copy-done")) = category
            && let Some(&shape) = stats.iter().find(|it| self.stat_name(it.id) == SHAPE)
        {
            let memory = memory_of_copy(category, &self.resolve(shape).1.to_string());
            detail.copy_memory = memory.map(|it| out.text(it));
        }
    }
}

/// Between which memories a compiled program copies, by what it makes. A start makes the copy, what
/// is copied, and a context; a wait makes the copy alone, which says where it came from only if it
/// is in the host's memory: `S(5)`.
fn memory_of_copy(category: &str, shape: &str) -> Option<&'static str> {
    const ON_HOST: &str = "S(5)";
    if category == "copy-done" {
        return shape.contains(ON_HOST).then_some("device to host");
    }
    let mut parts = shape.trim_start_matches('(').split("}, ");
    let (to, from) = (parts.next()?, parts.next()?);
    Some(match (from.contains(ON_HOST), to.contains(ON_HOST)) {
        (true, false) => "host to device",
        (false, true) => "device to host",
        _ => "within the device",
    })
}

/// A detail as it is put together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts {
    detail: Detail,
    name: Option<StrId>,
    annotation: Option<StrId>,
}

/// What an op makes, and in which memory.
const SHAPE: &str = "shape_with_layout";

/// Longer than the name of any kernel and the joined op names of any fusion. Many events may
/// refer to one text, and many rows of tables repeat it.
const LONGEST_TEXT: usize = 1 << 14;

/// Three generations: `regs:38 shm:0 grid:160,1,1 block:1024,1,1` (2020), `regs static_shared
/// dynamic_shared grid block occ_pct` (NVIDIA), `grid block private_mem group_mem occ_pct` (AMD).
fn kernel_shape(text: &str) -> KernelShape {
    let mut shape = KernelShape::default();
    for token in text.split_whitespace() {
        let Some((key, value)) = token.split_once(':') else { continue };
        let number = value.parse::<u64>().ok();
        let triple = || {
            let mut out = [0; 3];
            for (to, part) in out.iter_mut().zip(value.split(',')) {
                *to = part.parse().unwrap_or(0);
            }
            out
        };
        match key {
            "regs" => shape.registers = number,
            "static_shared" | "shm" | "group_mem" => shape.static_shared_bytes = number,
            "dynamic_shared" => shape.dynamic_shared_bytes = number,
            "grid" => shape.grid = triple(),
            "block" => shape.block = triple(),
            "occ_pct" => {
                let percent = value.parse::<f64>().ok().filter(|it| (0.0..=100.0).contains(it));
                // AMD's profiler writes 0 for "not known"; no kernel runs at 0 %.
                shape.occupancy_ppm =
                    percent.filter(|&it| it > 0.0).map(|it| (it * 10_000.0).round() as u32);
            }
            _ => (),
        }
    }
    shape
}

/// `size:112 dest:4 async:0`, with or without `kind…:` before it.
fn copy_bytes(text: &str) -> Option<u64> {
    text.split_whitespace().find_map(|it| it.strip_prefix("size:")).and_then(|it| it.parse().ok())
}

/// `kind_src:pageable kind_dst:device size:9`; older profilers do not say.
fn copy_memory(text: &str) -> Option<String> {
    let of = |key: &str| text.split_whitespace().find_map(|it| it.strip_prefix(key));
    Some(format!("{} to {}", of("kind_src:")?, of("kind_dst:")?))
}

fn each_field<'a>(message: &'a [u8], mut each: impl FnMut(u32, Value<'a>)) {
    let mut fields = Fields::new(message);
    while let Ok(Some(field)) = fields.next() {
        each(field.number, field.value);
    }
}

/// The length-delimited message whose length stands at `at`.
fn message_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let (len, len_len) = varint(bytes, at)?;
    let start = at.checked_add(len_len)?;
    bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

fn each_long_field(
    window: &mut Window<'_, '_>,
    message: Range<usize>,
    mut each: impl FnMut(u32, LongValue),
) {
    let mut fields = LongFields::new(message);
    while let Ok(Some((number, value))) = fields.next(window) {
        each(number, value);
    }
}

/// An entry of a map: metadata by its id.
struct MapEntry {
    key: u64,
    value: Range<usize>,
}

impl MapEntry {
    fn read(window: &mut Window<'_, '_>, entry: &Range<usize>) -> MapEntry {
        let mut read = MapEntry { key: 0, value: 0..0 };
        each_long_field(window, entry.clone(), |number, value| match (number, value) {
            (1, LongValue::Varint(it)) => read.key = it,
            (2, LongValue::Bytes(it)) => read.value = it,
            _ => (),
        });
        read
    }
}

/// As much of a text as is kept.
fn cut(text: &Range<usize>) -> Range<usize> {
    text.start..text.end.min(text.start + LONGEST_TEXT)
}

#[cfg(test)]
mod tests {
    use super::{copy_bytes, copy_memory, kernel_shape, memory_of_copy};

    #[test]
    fn copies_of_programs_say_which_way_they_go() {
        let device = "f32[5,1024]{1,0:T(8,128)}";
        let host = "f32[5,1024]{1,0:T(8,128)S(5)}";
        let start = |to: &str, from: &str| format!("({to}, {from}, u32[]{{:S(2)}})");
        let of = |category, shape: &str| memory_of_copy(category, shape);
        assert_eq!(of("copy-start", &start(device, host)), Some("host to device"));
        assert_eq!(of("copy-start", &start(host, device)), Some("device to host"));
        assert_eq!(of("copy-start", &start(device, device)), Some("within the device"));
        assert_eq!(of("copy-done", host), Some("device to host"));
        assert_eq!(of("copy-done", device), None);
    }

    #[test]
    fn all_dialects_of_launch_details() {
        let nvidia = kernel_shape(
            "regs:32 static_shared:128 dynamic_shared:0 grid:16,2,1 block:256,1,1 occ_pct:62.5",
        );
        assert_eq!(nvidia.registers, Some(32));
        assert_eq!(nvidia.static_shared_bytes, Some(128));
        assert_eq!((nvidia.grid, nvidia.block), ([16, 2, 1], [256, 1, 1]));
        assert_eq!(nvidia.occupancy_ppm, Some(625_000));
        let old = kernel_shape("regs:38 shm:49152 grid:160,1,1 block:1024,1,1");
        assert_eq!((old.registers, old.static_shared_bytes), (Some(38), Some(49152)));
        let amd =
            kernel_shape(" grid:8,32,1 block:256,1,1 private_mem:0 group_mem:12800 occ_pct:0");
        assert_eq!((amd.registers, amd.static_shared_bytes), (None, Some(12800)));
        assert_eq!(amd.occupancy_ppm, None, "0 means not known");

        assert_eq!(copy_bytes("size:112 dest:4 async:0"), Some(112));
        assert_eq!(copy_bytes("kind:Unknown size:7 dest:512 async:1"), Some(7));
        assert_eq!(copy_bytes("kind_src:pageable kind_dst:device size:9 dest:0"), Some(9));
        assert_eq!(copy_bytes("dest:0"), None);
        let memory = copy_memory("kind_src:pageable kind_dst:device size:9 dest:0");
        assert_eq!(memory.as_deref(), Some("pageable to device"));
        assert_eq!(copy_memory("kind:Unknown size:7"), None);
    }
}
