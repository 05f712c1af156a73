//! Joins what the pieces of a file say, and hands it over to the trace.

use hashbrown::HashMap;
use rayon::prelude::*;
use serde_json::Value;
use trace::{
    ArgRun, Args, Detail, Dur, EdgeKind, EventId, FactValue, Identity, KeyBatch, Keys, Metric,
    NoteKind, Time, TraceBuilder, TrackId, TrackKind,
};

use super::chunk::{BAD_TIME, Decoded, FlowPoint, Link, Shape, TrackKey};
use crate::Input;

/// A file as a whole.
pub struct Joined {
    pieces: Vec<Decoded>,
    beside: HashMap<String, Value>,
    base_us: i64,
    tracks: Vec<TrackKey>,
    /// By process, and by process and thread.
    labels: HashMap<(String, Option<String>, String), String>,
    flows: Vec<FlowPoint>,
    n_unended: u64,
    n_unbegun: u64,
}

/// Whole microseconds since 1970 are more than this, and less than the year 2100's: profilers that
/// count from their own start stay below.
const UNIX_US: std::ops::Range<i64> = 1_000_000_000_000_000..4_102_444_800_000_000;

/// A begin of an event that waits for its end.
#[derive(Debug, Clone, Copy)]
struct Open {
    piece: usize,
    row: u32,
    start: i64,
}

impl Joined {
    pub fn of(mut pieces: Vec<Decoded>, beside: HashMap<String, Value>, base_us: i64) -> Joined {
        let mut tracks: Vec<TrackKey> = Vec::new();
        let mut known: HashMap<TrackKey, u32> = HashMap::new();
        let mut labels = HashMap::new();
        let mut flows = Vec::new();
        for piece in &mut pieces {
            let of_file: Vec<u32> = std::mem::take(&mut piece.tracks)
                .into_iter()
                .map(|key| {
                    *known.entry(key).or_insert_with_key(|key| {
                        tracks.push(key.clone());
                        (tracks.len() - 1) as u32
                    })
                })
                .collect();
            for run in &mut piece.runs {
                run.0 = of_file[run.0 as usize];
            }
            for count in &mut piece.counts {
                count.track = of_file[count.track as usize];
            }
            for half in &mut piece.halves {
                half.track = of_file[half.track as usize];
            }
            for mut point in std::mem::take(&mut piece.flows) {
                point.track = of_file[point.track as usize];
                flows.push(point);
            }
            for it in std::mem::take(&mut piece.labels) {
                let tid = (it.key.starts_with("thread")).then_some(it.tid);
                labels.insert((it.pid, tid, it.key), it.value);
            }
        }
        let mut joined =
            Joined { pieces, beside, base_us, tracks, labels, flows, n_unended: 0, n_unbegun: 0 };
        joined.close_halves();
        joined
    }

    /// Gives events that were written in two halves their length: on a thread the last one to begin
    /// ends first.
    fn close_halves(&mut self) {
        let mut on_tracks: HashMap<u32, Vec<Open>> = HashMap::new();
        let mut by_id: HashMap<u64, Vec<Open>> = HashMap::new();
        let mut last = i64::MIN;
        let mut ends: Vec<(Open, i64)> = Vec::new();
        for (at, piece) in self.pieces.iter_mut().enumerate() {
            for half in std::mem::take(&mut piece.halves) {
                last = last.max(half.time);
                let open = match half.id {
                    Some(id) => by_id.entry(id).or_default(),
                    None => on_tracks.entry(half.track).or_default(),
                };
                match half.begin {
                    Some(row) => open.push(Open { piece: at, row, start: half.time }),
                    None => match open.pop() {
                        Some(it) => ends.push((it, half.time)),
                        None => self.n_unbegun += 1,
                    },
                }
            }
        }
        let unended = on_tracks.into_values().chain(by_id.into_values()).flatten();
        for it in unended {
            self.n_unended += 1;
            // It was still going on when the last of its kind was written.
            ends.push((it, last));
        }
        for (it, end) in ends {
            if let Some(dur) = self.pieces[it.piece].dur.get_mut(it.row as usize) {
                *dur = end.saturating_sub(it.start).max(0);
            }
        }
    }

    pub fn hand_over(mut self, input: &Input<'_>, source: u16, out: &mut TraceBuilder) {
        self.tell_damage(out);
        let shift = self.set_clock(out);
        let host = self.host(input, out);
        let tracks = self.make_tracks(host, out);
        let texts: Vec<Vec<u32>> = self
            .pieces
            .iter_mut()
            .map(|piece| {
                let texts = std::mem::take(&mut piece.texts);
                texts.iter().map(|it| out.text(it).0).collect()
            })
            .collect();
        let details = self.details(&texts, out);

        let runs = self.pieces.iter().flat_map(|it| &it.runs);
        let rows = out.reserve_all(runs.map(|it| (tracks[it.0 as usize], it.1 as usize)));
        let n_rows = (rows.end - rows.start) as usize;

        let mut first_rows = Vec::with_capacity(self.pieces.len());
        let mut first_row = rows.start;
        for piece in &mut self.pieces {
            // The last ones get fewer rows than they asked for where a trace is full.
            let n = piece.start.len().min((rows.end - first_row) as usize);
            first_rows.push((first_row, n));
            first_row += n as u32;
        }
        self.hand_over_links(&first_rows, source, out);
        self.hand_over_flows(&tracks, &first_rows, out);
        for (piece, &(first_row, n)) in self.pieces.iter_mut().zip(&first_rows) {
            out.args(ArgRun {
                rows: first_row..first_row + n as u32,
                from: Args::place(source, piece.first_byte as u64),
                marks: std::mem::take(&mut piece.marks),
            });
            for &(row, key, value) in &piece.numbers {
                if (row as usize) < n {
                    out.number(EventId(first_row + row), key, value);
                }
            }
        }
        for (piece, texts) in self.pieces.iter().zip(&texts) {
            for level in &piece.levels {
                let name = texts.get(level.name as usize).map(|&it| trace::StrId(it));
                let name = name.map(|it| out.strings().get(it).to_owned()).unwrap_or_default();
                let track = match level.is_memory {
                    true => out.track(None, TrackKind::Counter, &format!("{name} bytes_allocated")),
                    false => out.track(Some(host), TrackKind::Counter, &name),
                };
                out.counter(track, Time(level.time.saturating_add(shift)), level.value);
            }
        }

        self.hand_over_counts(&tracks, &texts, out);
        let mut rest = out.columns(rows);
        let mut work = Vec::with_capacity(self.pieces.len());
        let pieces = std::mem::take(&mut self.pieces);
        for (nth, (piece, (_, n))) in pieces.into_iter().zip(&first_rows).enumerate() {
            let (own, others) = rest.split(*n);
            rest = others;
            work.push((piece, own, &texts[nth], &details[nth]));
        }
        work.into_par_iter().for_each(|(piece, mut to, texts, details)| {
            for row in 0..to.name.len() {
                to.name[row] = texts[piece.name[row] as usize];
                to.start[row] = piece.start[row].saturating_add(shift);
                to.dur[row] = piece.dur[row];
                to.kind[row] = piece.kind[row];
                if let Some(&detail) = details.get(row).filter(|it| **it != 0) {
                    to.detail[row] = detail;
                }
            }
            for row in 0..to.name.len() {
                if piece.start[row] == BAD_TIME {
                    to.give_up(row..row + 1);
                }
            }
        });
        debug_assert_eq!(first_rows.iter().map(|it| it.1).sum::<usize>(), n_rows);
    }

    /// Ranges follow one another on a device: the profiler counts nothing else meanwhile.
    fn hand_over_counts(&self, tracks: &[TrackId], texts: &[Vec<u32>], out: &mut TraceBuilder) {
        let mut n_ranges: HashMap<TrackId, u32> = HashMap::new();
        let mut last = None;
        for (nth, (piece, texts)) in self.pieces.iter().zip(texts).enumerate() {
            for it in &piece.counts {
                let device = tracks[it.track as usize];
                let next = n_ranges.entry(device).or_default();
                if last.replace((nth, it.row)) != Some((nth, it.row)) {
                    *next += 1;
                }
                out.metric(Metric {
                    track: device,
                    of: trace::StrId(texts[piece.name[it.row as usize] as usize]),
                    nth: *next - 1,
                    name: trace::StrId(texts[it.name as usize]),
                    value: it.value,
                });
            }
        }
    }

    fn tell_damage(&mut self, out: &mut TraceBuilder) {
        let sum = |of: fn(&Decoded) -> u64| self.pieces.iter().map(of).sum::<u64>();
        let first = |of: fn(&Decoded) -> Option<&String>| {
            self.pieces.iter().find_map(of).cloned().unwrap_or_default()
        };
        let malformed = (sum(|it| it.n_malformed), first(|it| it.first_malformed.as_ref()));
        let bad_times = (sum(|it| it.n_bad_times), first(|it| it.first_bad_time.as_ref()));
        out.note_many(NoteKind::Malformed, malformed.0, || malformed.1);
        out.note_many(NoteKind::BadTimestamp, bad_times.0, || bad_times.1);
        out.note_many(NoteKind::BadText, sum(|it| it.n_bad_texts), || {
            "a name of an event".to_owned()
        });
        out.note_many(NoteKind::Malformed, self.n_unbegun, || {
            "an event ends that never began".to_owned()
        });
        out.note_many(NoteKind::Truncated, self.n_unended, || {
            "an event begins and never ends".to_owned()
        });
    }

    /// Sets the trace's zero, or finds this file's place in a trace that has one. Answers what has
    /// to be added to this file's times.
    fn set_clock(&self, out: &mut TraceBuilder) -> i64 {
        let starts = self.pieces.iter().flat_map(|it| &it.start).filter(|it| **it != BAD_TIME);
        let first = starts.min().copied().unwrap_or(0);
        let windows = self.pieces.iter().filter_map(|it| it.window);
        let window = windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let base_ns = self.beside.get("baseTimeNanoseconds").and_then(Value::as_i64);
        let unix_ns = match base_ns {
            Some(base_ns) => self.base_us.checked_mul(1000).and_then(|it| it.checked_add(base_ns)),
            None if UNIX_US.contains(&self.base_us) => self.base_us.checked_mul(1000),
            None => None,
        };
        // The zero is a whole nanosecond, so that other files find their place exactly.
        let zero_ps = first.div_euclid(1000) * 1000;
        let zero_ns = unix_ns.and_then(|it| it.checked_add(zero_ps / 1000));
        let shift = out.place(zero_ns).0 - zero_ps;
        if let Some((_, end)) = window {
            out.extend_window(Dur(end.saturating_add(shift).max(0)));
        }
        shift
    }

    fn label(&self, pid: &str, tid: Option<&str>, key: &str) -> Option<&str> {
        let key = (pid.to_owned(), tid.map(str::to_owned), key.to_owned());
        self.labels.get(&key).map(String::as_str).filter(|it| !it.trim().is_empty())
    }

    /// A machine has many ranks, and each its file: they are told apart by rank, else by the file's
    /// name.
    fn host(&self, input: &Input<'_>, out: &mut TraceBuilder) -> TrackId {
        let info = self.beside.get("distributedInfo");
        let number = |key: &str| info.and_then(|it| it.get(key)).and_then(Value::as_i64);
        let file = input.path.file_name().map(|it| it.to_string_lossy().into_owned());
        let file = file.unwrap_or_default();
        let stem = file.split(".pt.trace.json").next().unwrap_or(&file);
        let stem = stem.split(".json").next().unwrap_or(stem).trim_end_matches(".trace");
        let said = self.beside.get("host_name").and_then(Value::as_str);
        let (machine, process) = machine_and_process(stem).unzip();
        let host = out.new_host(&Identity {
            machine: said.or(machine).map(str::to_owned),
            process,
            rank: number("rank"),
            world_size: number("world_size"),
            file: stem.to_owned(),
        });
        if let Some(backend) = info.and_then(|it| it.get("backend")).and_then(Value::as_str) {
            out.fact(host, "backend", FactValue::Text(backend.to_owned()));
        }
        if let Some(version) = self.beside.get("schemaVersion").and_then(Value::as_i64) {
            out.fact(host, PYTORCH_SCHEMA, FactValue::Int(version));
        }
        host
    }

    /// Tracks, parents before children; one for each of the file's.
    fn make_tracks(&self, host: TrackId, out: &mut TraceBuilder) -> Vec<TrackId> {
        let mut made: HashMap<(String, String, TrackKind, String), TrackId> = HashMap::new();
        let mut of_process: HashMap<(String, bool), TrackId> = HashMap::new();
        let mut all = Vec::with_capacity(self.tracks.len());
        let mut devices: Vec<(TrackId, String)> = Vec::new();
        for key in &self.tracks {
            let process_name = self.label(&key.pid, None, "process_name").unwrap_or("");
            let thread_name = self.label(&key.pid, Some(&key.tid), "thread_name");
            let kind = self.kind_of_track(key, process_name, thread_name);
            let on_device = match kind {
                TrackKind::Stream | TrackKind::Steps => true,
                TrackKind::Summary => match key.side {
                    Some(_) => !matches!(key.drawn.as_str(), "Trace" | "overhead" | "Overhead"),
                    None => is_device(process_name),
                },
                _ => false,
            };
            // TensorFlow 1 has a process for each stream of a device.
            let device = on_device.then(|| device_of_stream(process_name)).flatten();
            let owner = device.map_or_else(|| key.pid.clone(), |it| it.0.to_owned());
            let parent = *of_process.entry((owner, on_device)).or_insert_with(|| {
                let name = match device {
                    Some(it) => it.0.to_owned(),
                    None => self.process_name(key, process_name, on_device),
                };
                let kind = if on_device { TrackKind::Device } else { TrackKind::Process };
                let track = out.track(Some(host), kind, &name);
                if on_device {
                    devices.push((track, key.pid.clone()));
                }
                track
            });
            let name = match (thread_name, kind) {
                _ if device.is_some() => {
                    format!("{} {}", device.map_or("", |it| it.1), key.tid)
                }
                (Some(it), _) => it.trim().to_owned(),
                (None, TrackKind::Stream) => format!("stream {}", key.tid),
                (None, _) if key.tid.is_empty() => process_name.to_owned(),
                (None, _) => format!("thread {}", key.tid),
            };
            let name = match key.drawn.as_str() {
                "" => name,
                drawn => format!("{drawn} of {name}"),
            };
            let identity = (key.pid.clone(), key.tid.clone(), kind, key.drawn.clone());
            let track = *made.entry(identity).or_insert_with(|| {
                let track = out.new_track(Some(parent), kind, &name);
                if kind == TrackKind::Thread {
                    out.check_nesting(track);
                }
                track
            });
            all.push(track);
        }
        self.tell_devices(&devices, out);
        all
    }

    fn kind_of_track(
        &self,
        key: &TrackKey,
        process_name: &str,
        thread_name: Option<&str>,
    ) -> TrackKind {
        match key.side {
            Some(kind) => kind,
            // Marks of PyTorch's profiler on no process of the system.
            None if matches!(key.pid.as_str(), "Spans" | "Traces" | "") => TrackKind::Summary,
            None if is_device(process_name) => {
                let line = thread_name.unwrap_or("");
                if process_name.contains("stream:all") {
                    // The same work once more.
                    TrackKind::Summary
                } else if process_name.contains("TPU") {
                    crate::xplane::kind_of_tpu_line(line)
                } else {
                    crate::xplane::kind_of_gpu_line(line)
                }
            }
            None => TrackKind::Thread,
        }
    }

    fn process_name(&self, key: &TrackKey, process_name: &str, on_device: bool) -> String {
        if !on_device {
            return match (process_name, key.pid.as_str()) {
                ("", "") => "process".to_owned(),
                ("", pid) => format!("process {pid}"),
                (name, _) if name.starts_with('/') => name.to_owned(),
                (name, pid) => format!("{name} ({pid})"),
            };
        }
        if is_device(process_name) {
            return process_name.to_owned();
        }
        match self.label(&key.pid, None, "process_labels") {
            Some(it) if it != "CPU" => it.to_owned(),
            _ => format!("GPU {}", key.pid),
        }
    }

    /// What the file says of the devices that worked.
    fn tell_devices(&self, devices: &[(TrackId, String)], out: &mut TraceBuilder) {
        let Some(all) = self.beside.get("deviceProperties").and_then(Value::as_array) else {
            return;
        };
        let by_amd =
            self.beside.keys().any(|it| it.starts_with("hip_") || it.starts_with("roctracer"));
        let same = |key: &str| all.iter().all(|it| it.get(key) == all[0].get(key));
        for (track, pid) in devices {
            let own = all.iter().find(|it| {
                it.get("id").and_then(Value::as_i64).is_some_and(|it| it.to_string() == *pid)
            });
            // AMD's devices count otherwise than their processes; mostly all are the same.
            let Some(it) = own.or_else(|| all.first().filter(|_| same("name"))) else { continue };
            let name = it.get("name").and_then(Value::as_str).unwrap_or("");
            if !name.is_empty() {
                out.fact(*track, "gpu_device_name", FactValue::Text(name.to_owned()));
            }
            let is_amd = by_amd || name.contains("AMD");
            let vendor = if is_amd { "AMD" } else { "Nvidia" };
            out.fact(*track, "device_vendor", FactValue::Text(vendor.to_owned()));
            for (theirs, ours) in [
                ("computeMajor", "compute_cap_major"),
                ("computeMinor", "compute_cap_minor"),
                ("numSms", "core_count"),
                ("totalGlobalMem", "memory_size"),
            ] {
                if let Some(value) = it.get(theirs).and_then(Value::as_i64) {
                    out.fact(*track, ours, FactValue::Int(value));
                }
            }
        }
    }

    /// What rows have in common, each once; by piece, for rows that have any.
    fn details(&mut self, texts: &[Vec<u32>], out: &mut TraceBuilder) -> Vec<Vec<u32>> {
        let mut ops: HashMap<u64, u32> = HashMap::new();
        for (piece, texts) in self.pieces.iter_mut().zip(texts) {
            // Of several ops of one id, the last to begin is the innermost.
            for (id, text) in std::mem::take(&mut piece.ops) {
                ops.insert(id, texts[text as usize]);
            }
        }
        // AMD's kernels do not say their op; the call that launched them does.
        let needs = |it: &Link| it.external().is_none() && it.correlation().is_some();
        let mut of_calls: HashMap<u64, u64> = HashMap::new();
        if self.pieces.iter().flat_map(|it| &it.device_work).any(needs) {
            for it in self.pieces.iter().flat_map(|it| &it.calls) {
                if let (Some(correlation), Some(external)) = (it.correlation(), it.external()) {
                    of_calls.insert(correlation, external);
                }
            }
        }
        let mut known: HashMap<(Shape, Option<u32>), u32> = HashMap::new();
        let mut all = Vec::with_capacity(self.pieces.len());
        for (piece, texts) in self.pieces.iter_mut().zip(texts) {
            let shapes: Vec<Shape> = std::mem::take(&mut piece.shapes)
                .into_iter()
                .map(|mut it| {
                    // From here on in the trace's texts.
                    for text in
                        [&mut it.copy_memory, &mut it.op, &mut it.hlo_op, &mut it.hlo_module]
                    {
                        *text = text.map(|it| texts[it as usize]);
                    }
                    it
                })
                .collect();
            let mut column = std::mem::take(&mut piece.shape);
            let mut make = |shape: Shape, op: Option<u32>, out: &mut TraceBuilder| -> u32 {
                if shape == Shape::default() && op.is_none() {
                    return 0;
                }
                *known.entry((shape, op)).or_insert_with_key(|(shape, op)| {
                    let text = |it: Option<u32>| it.map(trace::StrId);
                    out.detail(Detail {
                        op: text(shape.op.or(*op)),
                        hlo_op: text(shape.hlo_op),
                        hlo_module: text(shape.hlo_module),
                        kernel: shape.kernel,
                        copy_bytes: shape.copy_bytes,
                        copy_memory: text(shape.copy_memory),
                        in_graph: shape.in_graph,
                        ..Detail::default()
                    })
                    .0
                })
            };
            let links = std::mem::take(&mut piece.device_work);
            let mut linked = links.iter().peekable();
            for (row, shape) in column.iter_mut().enumerate() {
                let link = linked.next_if(|it| it.row as usize == row);
                if *shape == 0 && link.is_none() {
                    continue;
                }
                let op = link.and_then(|it| {
                    let called = || of_calls.get(&it.correlation()?).copied();
                    ops.get(&it.external().or_else(called)?).copied()
                });
                let own = shape.checked_sub(1).map(|it| shapes[it as usize].clone());
                *shape = make(own.unwrap_or_default(), op, out);
            }
            piece.device_work = links;
            all.push(column);
        }
        all
    }

    fn hand_over_links(
        &mut self,
        first_rows: &[(u32, usize)],
        source: u16,
        out: &mut TraceBuilder,
    ) {
        let (mut departs, mut arrives) = (KeyBatch::default(), KeyBatch::default());
        for (piece, &(first_row, n)) in self.pieces.iter_mut().zip(first_rows) {
            for (links, batch) in
                [(&mut piece.calls, &mut departs), (&mut piece.device_work, &mut arrives)]
            {
                for it in std::mem::take(links) {
                    if let (Some(key), true) = (it.correlation(), (it.row as usize) < n) {
                        batch.push(key, first_row + it.row);
                    }
                }
            }
        }
        let scope = u32::from(source);
        let kind = EdgeKind::Launch;
        out.all_depart(Keys { kind, scope, batch: departs });
        out.all_arrive(Keys { kind, scope, batch: arrives });
    }

    /// Joins arrows to the events that begin where they do, else to the innermost around them.
    fn hand_over_flows(
        &mut self,
        tracks: &[TrackId],
        first_rows: &[(u32, usize)],
        out: &mut TraceBuilder,
    ) {
        if self.flows.is_empty() {
            return;
        }
        // Tracks of the file may be one of the trace.
        let mut rows: HashMap<TrackId, Vec<(i64, std::cmp::Reverse<i64>, u32)>> = HashMap::new();
        for it in &self.flows {
            rows.entry(tracks[it.track as usize]).or_default();
        }
        for (piece, &(first_row, n)) in self.pieces.iter().zip(first_rows) {
            let mut row = 0;
            for &(track, len) in &piece.runs {
                let run = row..(row + len as usize).min(n);
                row += len as usize;
                let Some(on_track) = rows.get_mut(&tracks[track as usize]) else { continue };
                on_track.extend(run.filter(|&it| piece.start[it] != BAD_TIME).map(|it| {
                    (piece.start[it], std::cmp::Reverse(piece.dur[it]), first_row + it as u32)
                }));
            }
        }
        for on_track in rows.values_mut() {
            on_track.sort_unstable();
        }
        for it in std::mem::take(&mut self.flows) {
            let Some(on_track) = rows.get(&tracks[it.track as usize]) else { continue };
            let after = on_track.partition_point(|row| row.0 <= it.start);
            // As deep as Python nests; arrows begin where their event does, or shortly behind.
            let around = on_track[..after].iter().rev().take(DEEPEST);
            let mut around = around.filter(|row| row.0.saturating_add(row.1.0) >= it.start);
            let Some(row) = around.next() else { continue };
            let event = EventId(row.2);
            match it.begins {
                true => out.departs(EdgeKind::Flow, it.key, event),
                false => out.arrives(EdgeKind::Flow, it.key, event),
            }
        }
    }
}

/// So many events before an arrow are asked whether they are around it.
const DEEPEST: usize = 1000;
/// What PyTorch's `tensorboard_trace_handler` names files: machine, process, and time.
fn machine_and_process(stem: &str) -> Option<(&str, i64)> {
    let (worker, time) = stem.rsplit_once('.')?;
    let (machine, process) = worker.rsplit_once('_')?;
    time.parse::<u64>().ok()?;
    Some((machine, process.parse().ok()?)).filter(|it| !it.0.is_empty())
}

/// The fact that says that PyTorch's profiler wrote the file.
const PYTORCH_SCHEMA: &str = "pytorch_profiler_schema";

/// `/device:GPU:0/stream:15 Compute` is a stream of `/device:GPU:0`.
fn device_of_stream(process_name: &str) -> Option<(&str, &str)> {
    let at = process_name.find("/stream").or_else(|| process_name.find("/memcpy"))?;
    let (device, stream) = process_name.split_at_checked(at)?;
    let stream = stream.trim_start_matches('/').trim_end_matches(" Compute");
    is_device(device).then_some((device, stream))
}

/// Processes of TensorFlow's and JAX's traces that stand for a device.
fn is_device(process_name: &str) -> bool {
    let name = process_name;
    (name.starts_with("/device:GPU")
        || name.starts_with("/device:TPU")
        || name.starts_with("/gpu:"))
        && !name.ends_with("CUSTOM")
}
