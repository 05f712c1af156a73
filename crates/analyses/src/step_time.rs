//! Says where each step went: every instant of it in exactly one category.
//!
//! ```text
//! device   |copy|==== kernels ====|            compute, collective, transfers come first
//! host     |-- next(data) --|-- launch --|     what the host did decides only where the device
//!          '-input'               'runtime'    did nothing
//! ```
//!
//! A run without an accelerator computes on the host: its ops take the place of kernels. Ops of
//! the input pipeline do not; they run ahead of the step that uses them.

mod when;

use std::borrow::Cow;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use rayon::prelude::*;
use trace::dialect;
use trace::{EdgeKind, EventId, OpKind, StrId, Trace, TrackId, TrackKind, at_once};

use crate::span::{Span, add, covered, intersect, subtract, union, within};
use crate::step::{HostSteps, Step, is_pipeline_thread, median, top_calls_among};
use crate::{Analysis, Model, Tables};

pub use when::when;

table! {
    /// Where the time of each training step went, on each device.
    ///
    /// The ten categories are disjoint and add to `dur_ps`. What runs on the device is counted
    /// first; where nothing does, what the host's driving thread did decides.
    pub struct StepTime = "step_time" {
        /// The host whose step this is.
        host: String,
        /// The step, as in the table `step`.
        step: i64,
        /// The device, or `cpu` where the run has no accelerator.
        device: String,
        /// Wall time of the step, to the start of the next.
        dur_ps: i64,
        /// Waiting for the next batch.
        input_ps: i64,
        /// Copies to the device with no compute or communication under them.
        transfer_in_ps: i64,
        /// Tracing, retracing, compiling, autotuning.
        compile_ps: i64,
        /// The user's code held the host, and nothing of the framework ran.
        python_ps: i64,
        /// Framework work on the host, launching and waiting included, while nothing computed.
        runtime_ps: i64,
        /// On the accelerator; in a run without one, ops running.
        compute_ps: i64,
        /// Communication with no compute under it.
        collective_ps: i64,
        /// Copies from the device with nothing of the above under them.
        transfer_out_ps: i64,
        /// Checkpoints and summaries, with the host work that only steps with a save have.
        output_ps: i64,
        /// Nobody worked, and it cannot be said why.
        idle_ps: i64,
        /// Whether statistics rest on this step: complete, and not warm-up.
        counts: bool,
    }
}

/// A category's name and column.
pub type Category = (&'static str, fn(&StepTime) -> i64);

/// The categories in the order of the contract.
pub const CATEGORIES: [Category; 10] = [
    ("input", |it| it.input_ps),
    ("transfer_in", |it| it.transfer_in_ps),
    ("compile", |it| it.compile_ps),
    ("python", |it| it.python_ps),
    ("runtime", |it| it.runtime_ps),
    ("compute", |it| it.compute_ps),
    ("collective", |it| it.collective_ps),
    ("transfer_out", |it| it.transfer_out_ps),
    ("output", |it| it.output_ps),
    ("idle", |it| it.idle_ps),
];

/// The category that an event's kind is coloured by, as far as it has one.
///
/// A step's time is told apart by more than kinds (what ran under what): this is no measure of it.
pub fn category(kind: OpKind) -> Option<&'static str> {
    match kind {
        OpKind::Kernel
        | OpKind::Op
        | OpKind::CallOp
        | OpKind::Program
        | OpKind::CopyOnDevice
        | OpKind::Memset => Some("compute"),
        OpKind::Collective | OpKind::CopyPeer => Some("collective"),
        OpKind::CopyIn => Some("transfer_in"),
        OpKind::CopyOut => Some("transfer_out"),
        OpKind::InputStage | OpKind::InputWait => Some("input"),
        OpKind::Python | OpKind::PythonOp | OpKind::User => Some("python"),
        OpKind::Compile => Some("compile"),
        OpKind::Save => Some("output"),
        OpKind::Runtime
        | OpKind::Launch
        | OpKind::Sync
        | OpKind::Listener
        | OpKind::Memory
        | OpKind::OpEnd => Some("runtime"),
        OpKind::Step | OpKind::Summary => None,
    }
}

/// Steps of a host that are worth waking a thread for.
/// Source: choice, a step takes some microseconds, and waking a thread 34 (`bench/costs/run`).
const STEPS_AT_ONCE: usize = 64;

impl Analysis for StepTime {
    fn run(tables: &Tables) -> Vec<StepTime> {
        let trace = tables.trace();
        let steps = tables.model::<HostSteps>();
        let times = tables.model::<HostTimes>();
        let host_work = tables.model::<HostWork>();
        let mut rows = Vec::new();
        for host in trace.tracks_of(TrackKind::Host) {
            let steps = steps.of(trace.track_name(host));
            let Some(doing) = times.of(host) else { continue };
            let mut devices = busy_devices(trace, host);
            // A device does something in nearly every step. Only a broken file has many more
            // pairs of both than events, and a table of all pairs would outgrow it.
            devices.truncate((trace.events.len() / steps.len()).max(FEWEST_DEVICES));
            let first = rows.len();
            let of_devices: Vec<(&str, Vec<Parts>)> = if devices.is_empty() {
                let busy = host_work.on(trace, host).map(|it| subtract(&it, &doing.saving));
                let parts = |it: &Step| {
                    parts(it.span(), busy.each_ref().map(|set| within(set, it.span())), doing)
                };
                vec![("cpu", steps.par_iter().with_min_len(STEPS_AT_ONCE).map(parts).collect())]
            } else {
                let parts = |it: TrackId| {
                    let mut walk = DeviceWalk::new(trace, it);
                    let parts = |step: &Step| {
                        let busy = walk.within(step.span());
                        parts(step.span(), busy.each_ref().map(Vec::as_slice), doing)
                    };
                    steps.iter().map(parts).collect()
                };
                let all = devices.par_iter().map(|&it| (trace.track_name(it), parts(it)));
                with_work(all.collect())
            };
            for (at, step) in steps.iter().enumerate() {
                for (device, parts) in &of_devices {
                    rows.push(StepTime::of(step, device, parts[at]));
                }
            }
            for (device, _) in &of_devices {
                give_saving_its_host_work(&mut rows[first..], device);
            }
        }
        rows
    }
}

/// Without devices that did nothing in any of the steps while others did: they work at other times,
/// and say nothing of these.
fn with_work(devices: Vec<(&str, Vec<Parts>)>) -> Vec<(&str, Vec<Parts>)> {
    let works = |it: &(&str, Vec<Parts>)| {
        it.1.iter().any(|parts| DEVICE_PARTS.iter().any(|&part| parts[part] > 0))
    };
    if !devices.iter().any(works) {
        return devices;
    }
    devices.into_iter().filter(works).collect()
}

/// The devices of a host that did anything.
pub fn busy_devices(trace: &Trace, host: TrackId) -> Vec<TrackId> {
    let mut devices: Vec<TrackId> = trace
        .tracks_below(host, TrackKind::Stream)
        .filter(|it| !trace.tracks[it.row()].events.is_empty())
        .filter_map(|it| trace.ancestor(it, TrackKind::Device))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    // A device that only got a few copies is not one the run computes on.
    let mut compute: Vec<Option<TrackId>> = Vec::new();
    for stream in trace.tracks_below(host, TrackKind::Stream) {
        let mut kernels = [OpKind::Kernel, OpKind::Collective].into_iter();
        if kernels.any(|it| trace.rows_of(stream, it).next().is_some()) {
            compute.push(trace.tracks[stream.row()].parent);
        }
    }
    compute.sort_unstable();
    let computes = |device: &TrackId| compute.binary_search(&Some(*device)).is_ok();
    if devices.iter().any(computes) {
        devices.retain(computes);
    }
    devices
}

/// A device's streams.
pub fn streams_of(trace: &Trace, device: TrackId) -> impl Iterator<Item = TrackId> {
    let below = trace.tracks_below(device, TrackKind::Stream);
    below.filter(move |&it| trace.tracks[it.row()].parent == Some(device))
}

/// What a device, or the host in its place, can be busy with; in the order in which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Compute,
    Collective,
    CopyIn,
    CopyOut,
    Infeed,
}

impl Work {
    fn on_device(kind: OpKind) -> Option<Work> {
        match kind {
            OpKind::Kernel | OpKind::Memset | OpKind::CopyOnDevice => Some(Work::Compute),
            OpKind::Collective | OpKind::CopyPeer => Some(Work::Collective),
            OpKind::CopyIn => Some(Work::CopyIn),
            OpKind::CopyOut => Some(Work::CopyOut),
            OpKind::InputWait => Some(Work::Infeed),
            _ => None,
        }
    }
}

/// When it was busy with each kind of [`Work`].
type Busy = [Vec<Span>; 5];

/// A device's time, step by step: sets for the whole run would be as large as its columns.
struct DeviceWalk<'a> {
    trace: &'a Trace,
    /// Of each stream the rows still to come.
    streams: Vec<Range<usize>>,
    /// Until when the work met so far lasts, by [`Work`].
    until: [i64; 5],
    busy: Busy,
}

impl DeviceWalk<'_> {
    fn new(trace: &Trace, device: TrackId) -> DeviceWalk<'_> {
        let streams = streams_of(trace, device).map(|it| trace.tracks[it.row()].rows()).collect();
        DeviceWalk { trace, streams, until: [i64::MIN; 5], busy: Busy::default() }
    }

    /// When the device was busy inside `window`; each must begin where the one before it ended,
    /// or later.
    fn within(&mut self, window: Span) -> &Busy {
        let events = &self.trace.events;
        for (set, &until) in self.busy.iter_mut().zip(&self.until) {
            set.clear();
            // Of all that began before, nothing but its end matters here.
            if until > window.0 {
                set.push((window.0, until));
            }
        }
        let mut in_order = true;
        for rows in &mut self.streams {
            while let Some(start) = events.start.get(rows.start).filter(|it| it.0 < window.1)
                && let Some(row) = rows.next()
            {
                let Some(work) = Work::on_device(events.kind[row]) else { continue };
                let span = (start.0, (*start + events.dur[row]).0);
                let until = &mut self.until[work as usize];
                *until = span.1.max(*until);
                in_order &= add(&mut self.busy[work as usize], span);
            }
        }
        // Streams beside one another overlap.
        if !in_order {
            for set in &mut self.busy {
                *set = union(std::mem::take(set));
            }
        }
        &self.busy
    }
}

/// When ops ran on a host without accelerator, except those that make input.
pub fn host_compute(tables: &Tables, host: TrackId) -> Vec<Span> {
    let [compute, ..] = tables.model::<HostWork>().on(tables.trace(), host);
    compute
}

/// What tells the ops of threads from other events, found once for all hosts.
#[derive(Debug)]
struct HostWork {
    /// Executor events that run functions of the input pipeline.
    input_functions: HashSet<u32>,
    /// Names of what runs a single op called from Python.
    kernel_runs: HashSet<StrId>,
}

impl Model for HostWork {
    fn build(tables: &Tables) -> HostWork {
        let trace = tables.trace();
        HostWork { input_functions: input_functions(trace), kernel_runs: kernel_run_names(trace) }
    }
}

impl HostWork {
    /// Ops that run on a host without accelerator, except those that make input.
    fn on(&self, trace: &Trace, host: TrackId) -> Busy {
        let tracks: Vec<TrackId> = trace
            .tracks_below(host, TrackKind::Thread)
            .filter(|&it| !is_pipeline_thread(trace.track_name(it)))
            .collect();
        let parts: Vec<Busy> = at_once(trace, &tracks).map(|&it| ops_on(trace, it, self)).collect();
        let mut all = Busy::default();
        for part in parts {
            for (all, mut part) in all.iter_mut().zip(part) {
                all.append(&mut part);
            }
        }
        all.map(union)
    }
}

/// Executor events that run functions of the input pipeline on shared threads.
fn input_functions(trace: &Trace) -> HashSet<u32> {
    if !trace.tracks.iter().any(|it| it.kinds.contains(OpKind::InputStage)) {
        return HashSet::new();
    }
    let mut within = Within::new(trace, |it| trace.events.kind[it.row()] == OpKind::InputStage);
    (0..trace.edges.len())
        .filter(|&it| trace.edges.kind[it] == EdgeKind::Function)
        .filter(|&it| within.holds(trace.edges.from[it]))
        .map(|it| trace.edges.to[it].0)
        .collect()
}

/// Which events, or others around them, pass a test; each is looked at once, however deep they
/// nest.
struct Within<'a, F> {
    trace: &'a Trace,
    test: F,
    known: HashMap<EventId, bool>,
}

impl<'a, F: Fn(EventId) -> bool> Within<'a, F> {
    fn new(trace: &'a Trace, test: F) -> Within<'a, F> {
        Within { trace, test, known: HashMap::new() }
    }

    fn holds(&mut self, event: EventId) -> bool {
        let mut path = Vec::new();
        let mut at = Some(event);
        let answer = loop {
            let Some(it) = at else { break false };
            if let Some(&known) = self.known.get(&it) {
                break known;
            }
            path.push(it);
            if (self.test)(it) {
                break true;
            }
            at = self.trace.events.parent(it);
        };
        self.known.extend(path.into_iter().map(|it| (it, answer)));
        answer
    }
}

fn ops_on(trace: &Trace, track: TrackId, work: &HostWork) -> Busy {
    let mut out = Busy::default();
    // Until when everything belongs to something else, and to a call of a single op.
    let (mut other_until, mut op_until) = (i64::MIN, i64::MIN);
    let HostWork { input_functions, kernel_runs } = work;
    let compiling = calls_that_compile(trace, track);
    for row in trace.tracks[track.row()].rows() {
        let start = trace.events.start[row].0;
        if start < other_until {
            continue;
        }
        let end = trace.events.end(EventId(row as u32)).0;
        let kind = trace.events.kind[row];
        let work = match kind {
            // It computes only once it runs what it compiled.
            OpKind::Op if compiling.contains(&(row as u32)) => continue,
            OpKind::Op | OpKind::Program => Work::Compute,
            OpKind::Collective => Work::Collective,
            // Fetching, saving, compiling and calling back into Python compute nothing, whatever
            // runs inside.
            OpKind::InputStage
            | OpKind::InputWait
            | OpKind::Save
            | OpKind::PythonOp
            | OpKind::Compile => {
                other_until = end;
                continue;
            }
            OpKind::Runtime => {
                if !input_functions.is_empty() && input_functions.contains(&(row as u32)) {
                    other_until = end;
                    continue;
                }
                let detail = &trace.details[trace.events.detail[row].row()];
                if detail.calls_function == Some(false) {
                    op_until = end;
                    continue;
                }
                // A single op called from Python has no event of its own: its kernel's run is it.
                if start < op_until && kernel_runs.contains(&trace.events.name[row]) {
                    Work::Compute
                } else {
                    continue;
                }
            }
            _ => continue,
        };
        add(&mut out[work as usize], (start, end));
    }
    out
}

fn kernel_run_names(trace: &Trace) -> HashSet<StrId> {
    let names = trace.strings.iter();
    names.filter(|it| dialect::any(|one| one.runs_op(it.1))).map(|it| it.0).collect()
}

/// What the driving thread was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Input,
    Compile,
    Output,
    Runtime,
    Python,
    Unknown,
}

/// What the driving thread of each host with steps did, for all tables that ask; in the order of
/// hosts.
#[derive(Debug, Default)]
pub struct HostTimes(Vec<(TrackId, HostTime)>);

impl Model for HostTimes {
    fn build(tables: &Tables) -> HostTimes {
        let trace = tables.trace();
        let steps = tables.model::<HostSteps>();
        let work = tables.model::<HostWork>();
        let mut times = Vec::new();
        for host in trace.tracks_of(TrackKind::Host) {
            let own = steps.of(trace.track_name(host));
            if let Some(step) = own.first() {
                let mut time = HostTime::of(trace, host, TrackId(step.track as u32), &work);
                time.take_saving(trace, own);
                times.push((host, time));
            }
        }
        HostTimes(times)
    }
}

impl HostTimes {
    /// `None` for a host without steps.
    pub fn of(&self, host: TrackId) -> Option<&HostTime> {
        let at = self.0.binary_search_by_key(&host, |it| it.0).ok()?;
        Some(&self.0[at].1)
    }
}

/// The driving thread's time, cut by what it did: disjoint sets.
#[derive(Debug, Default)]
pub struct HostTime {
    /// `None` where nobody drives, as for a device alone.
    pub driver: Option<TrackId>,
    pub input: Vec<Span>,
    pub compile: Vec<Span>,
    pub output: Vec<Span>,
    pub runtime: Vec<Span>,
    pub python: Vec<Span>,
    /// Blocks that save, with all that the driving thread does between two saves: what a summary
    /// is computed from belongs to the summary.
    pub saving: Vec<Span>,
}

impl HostTime {
    fn of(trace: &Trace, host: TrackId, steps_on: TrackId, work: &HostWork) -> HostTime {
        let driver = match trace.tracks[steps_on.row()].kind {
            TrackKind::Thread => Some(steps_on),
            // Steps were found on a device: the busiest thread that runs Python drives it.
            _ => trace
                .tracks_below(host, TrackKind::Thread)
                .filter(|&it| is_python(trace, it))
                .max_by_key(|it| trace.tracks[it.row()].events.len()),
        };
        let Some(driver) = driver else {
            return HostTime::default();
        };
        let mut time = HostTime { driver: Some(driver), ..driven(trace, driver) };
        // While the driving thread waits inside a call, others show what it waits for.
        let others = Others::of(trace, host, driver, &work.input_functions);
        // Python holds the step only while nothing of the framework runs. Where calls of this
        // thread make the steps, a gap between them says so; else the other threads must.
        // The threads on which the runtime of compiled programs works for it always say so, but
        // for time in which a function of Python is known to have been running.
        let framework = match driver == steps_on {
            true => {
                let inside = inside_calls(trace, host, driver, &time.python);
                let pools = union([&others.pools[..], &inside].concat());
                subtract(&pools, &python_frames(trace, driver))
            }
            false => others.framework,
        };
        let mut running = intersect(&time.python, &framework);
        if !running.is_empty() {
            time.python = subtract(&time.python, &framework);
            time.runtime.append(&mut running);
            time.runtime = union(time.runtime);
        }
        for (cause, to) in [
            (&others.input, &mut time.input),
            (&others.compile, &mut time.compile),
            (&others.output, &mut time.output),
            (&others.python, &mut time.python),
        ] {
            if cause.is_empty() {
                continue;
            }
            let mut found = intersect(&time.runtime, cause);
            time.runtime = subtract(&time.runtime, cause);
            to.append(&mut found);
            *to = union(std::mem::take(to));
        }
        time
    }

    /// Gives what happens between two saves of a step to the saves.
    fn take_saving(&mut self, trace: &Trace, steps: &[Step]) {
        let Some(driver) = self.driver else { return };
        // Waiting for input or for a compiler in between has a name already.
        let blocks = saving_blocks(trace, driver, steps);
        self.saving = subtract(&subtract(&blocks, &self.input), &self.compile);
        if !self.saving.is_empty() {
            self.python = subtract(&self.python, &self.saving);
            self.runtime = subtract(&self.runtime, &self.saving);
            self.output = union([&self.output[..], &self.saving].concat());
        }
    }
}

/// Saves of a thread with nothing but single ops and Python between them, as one block each, with
/// the reading of values before the first. A call of a whole function, the next batch or the next
/// step ends a block.
fn saving_blocks(trace: &Trace, track: TrackId, steps: &[Step]) -> Vec<Span> {
    let span = |row: usize| (trace.events.start[row].0, trace.events.end(EventId(row as u32)).0);
    let saves = union(trace.rows_of(track, OpKind::Save).map(span).collect());
    if saves.is_empty() {
        return Vec::new();
    }
    let (calls, _) = top_calls_among(trace, trace.tracks[track.row()].rows());
    let ends = calls.iter().map(|it| trace.events.end(it.0).0);
    let mut ends: Vec<i64> = ends.chain(steps.iter().map(|it| it.start_ps)).collect();
    ends.sort_unstable();
    let calls = calls.iter().map(|it| trace.events.start[it.0.row()].0);
    let mut starts: Vec<i64> = calls.chain(steps.iter().map(|it| it.start_ps)).collect();
    starts.sort_unstable();
    let reads = reads_of_values(trace, track);
    let mut blocks = Vec::new();
    for (at, save) in saves.iter().enumerate() {
        let next = starts.partition_point(|&it| it < save.1);
        if let Some(other) = saves.get(at + 1)
            && starts.get(next).is_none_or(|&it| it >= other.0)
        {
            blocks.push((save.0, other.1));
        }
        let before = ends.partition_point(|&it| it <= save.0);
        let from = before.checked_sub(1).map_or(i64::MIN, |it| ends[it]);
        if let Some(read) = first_read(&reads, from, save.0) {
            blocks.push((read, save.1));
        }
    }
    union(blocks)
}

/// A single op that a thread called.
#[derive(Debug, Clone, Copy)]
struct SingleOp {
    start: i64,
    /// It only reads or hands on a value, or makes one of a Python value.
    is_read: bool,
}

fn reads_of_values(trace: &Trace, track: TrackId) -> Vec<SingleOp> {
    let mut ops = Vec::new();
    for row in trace.tracks[track.row()].rows() {
        let name = trace.name(EventId(row as u32));
        let Some(op) = name.strip_prefix("EagerLocalExecute: ") else { continue };
        ops.push(SingleOp {
            start: trace.events.start[row].0,
            is_read: dialect::any(|it| it.reads_value(op)),
        });
    }
    ops
}

/// Where the reads begin that lead up to a save without any other op between.
fn first_read(ops: &[SingleOp], from: i64, save: i64) -> Option<i64> {
    let first = ops.partition_point(|it| it.start < from);
    let until = ops.partition_point(|it| it.start < save);
    let reads = ops.get(first..until)?.iter().rev().take_while(|it| it.is_read);
    reads.last().map(|it| it.start)
}

/// When functions of Python ran on a thread, as far as they were recorded.
fn python_frames(trace: &Trace, track: TrackId) -> Vec<Span> {
    let mut frames = Vec::new();
    for row in trace.rows_of(track, OpKind::Python) {
        add(&mut frames, (trace.events.start[row].0, trace.events.end(EventId(row as u32)).0));
    }
    union(frames)
}

/// A thread on which PyTorch's engine runs the backward pass: who called it waits meanwhile, and
/// nothing of its own thread says so. Without an accelerator the caller's own thread runs it, among
/// other ops.
pub fn runs_backward(trace: &Trace, track: TrackId) -> bool {
    if !trace.tracks[track.row()].kinds.contains(OpKind::CallOp) {
        return false;
    }
    let outer = trace.tracks[track.row()].rows().take(MOST_LOOKED_AT).filter(|&row| {
        matches!(trace.events.kind[row], OpKind::Op | OpKind::CallOp)
            && trace.events.parent(EventId(row as u32)).is_none()
    });
    let (mut n_all, mut n_backward) = (0, 0);
    for row in outer {
        n_all += 1;
        let name = trace.name(EventId(row as u32));
        n_backward += usize::from(name.starts_with("autograd::engine::"));
    }
    n_backward > 0 && n_all - n_backward <= n_all / OF_ENGINE
}

/// Pauses between the events of engines that work for a call of the driving thread, while that does
/// nothing else: the call goes on.
fn inside_calls(trace: &Trace, host: TrackId, driver: TrackId, idle: &[Span]) -> Vec<Span> {
    let mut pauses = Vec::new();
    for track in trace.tracks_below(host, TrackKind::Thread) {
        if track == driver || !runs_backward(trace, track) {
            continue;
        }
        let mut over = None;
        for row in trace.tracks[track.row()].rows() {
            let (start, end) = (trace.events.start[row].0, trace.events.end(EventId(row as u32)).0);
            if let Some(over) = over.filter(|&it| it < start) {
                let at = idle.partition_point(|it| it.1 < start);
                if idle.get(at).is_some_and(|it| it.0 <= over) {
                    pauses.push((over, start));
                }
            }
            over = Some(over.unwrap_or(end).max(end));
        }
    }
    union(pauses)
}

/// At most one in so many of the ops on the engine's own thread is not its own.
/// Source: choice, a guess: a thread that also trains has about as many others.
const OF_ENGINE: usize = 10;
/// As many events of a thread are asked for signs of Python.
/// Source: choice, a bound on the work.
const MOST_LOOKED_AT: usize = 5000;
/// So many devices are always looked at.
/// Source: choice, the most of common machines.
const FEWEST_DEVICES: usize = 16;

/// Whether a thread runs Python code: only then is a gap between calls the user's.
fn is_python(trace: &Trace, track: TrackId) -> bool {
    // PyTorch calls all threads of a process by the name of its program.
    if runs_backward(trace, track) && !trace.tracks[track.row()].kinds.contains(OpKind::Step) {
        return false;
    }
    // Its frames were recorded, or the training loop marks its steps on it.
    let mut steps = trace.rows_of(track, OpKind::Step).take(MOST_LOOKED_AT);
    trace.track_name(track).contains("python")
        || trace.tracks[track.row()].kinds.contains(OpKind::Python)
        || steps.any(|row| trace.name(EventId(row as u32)) == "ProfilerStep")
        || trace.tracks[track.row()].rows().take(MOST_LOOKED_AT).any(|row| {
            let name = trace.name(EventId(row as u32));
            dialect::any(|it| it.is_called_from_python(name))
        })
}

/// What a thread did at each moment: the innermost event that says so.
fn driven(trace: &Trace, track: TrackId) -> HostTime {
    let mut sets: [Vec<Span>; 6] = Default::default();
    let mut emit = |doing: Doing, from: i64, to: i64| {
        if from < to {
            add(&mut sets[doing as usize], (from, to));
        }
    };
    let compiling = calls_that_compile(trace, track);
    let base = if is_python(trace, track) { Doing::Python } else { Doing::Unknown };
    let rows = trace.tracks[track.row()].rows();
    let mut open: Vec<(i64, Doing)> = Vec::new();
    let mut at = i64::MIN / 4;
    let inside_call = names_that_go_on(trace);
    // The last event was part of a call that Python made once, and may not be over.
    let mut goes_on = false;
    for row in rows {
        let kind = trace.events.kind[row];
        if matches!(kind, OpKind::Listener | OpKind::Memory | OpKind::OpEnd) {
            continue;
        }
        let start = trace.events.start[row].0;
        while let Some(&(end, doing)) = open.last().filter(|it| it.0 <= start) {
            emit(doing, at, end);
            at = at.max(end);
            open.pop();
        }
        let around = open.last().map_or(base, |it| it.1);
        let doing = if compiling.contains(&(row as u32)) {
            Doing::Compile
        } else {
            doing_in(trace, row, kind, around)
        };
        let end = trace.events.end(EventId(row as u32)).0;
        let mut before = around;
        if around == Doing::Python && !inside_call.is_empty() {
            let part = inside_call.contains(&trace.events.name[row]);
            if goes_on && part {
                before = Doing::Runtime;
            }
            goes_on = part;
        }
        if doing != around || open.is_empty() {
            emit(before, at, start);
            at = at.max(start);
            open.push((end, doing));
        } else if let Some(last) = open.last_mut().filter(|it| it.0 < end) {
            // It goes on doing what it did.
            last.0 = end;
        }
    }
    while let Some((end, doing)) = open.pop() {
        emit(doing, at, end);
        at = at.max(end);
    }
    // Beyond the last event the thread is where it was before the first: outside any call.
    emit(base, at, i64::MAX / 4);
    let [input, compile, output, runtime, python, _unknown] = sets;
    HostTime { input, compile, output, runtime, python, ..HostTime::default() }
}

/// Names of events between which a call from Python goes on.
fn names_that_go_on(trace: &Trace) -> HashSet<StrId> {
    let names = trace.strings.iter();
    names.filter(|it| dialect::any(|one| one.goes_on(it.1))).map(|it| it.0).collect()
}

fn doing_in(trace: &Trace, row: usize, kind: OpKind, around: Doing) -> Doing {
    match (kind, around) {
        (OpKind::InputWait | OpKind::InputStage, _) => Doing::Input,
        (OpKind::Save, _) => Doing::Output,
        (OpKind::PythonOp, Doing::Input) => Doing::Input,
        (OpKind::PythonOp, _) => Doing::Python,
        // What belongs to fetching or saving goes on doing so, whatever runs inside.
        (_, Doing::Input | Doing::Output) => around,
        (OpKind::Compile, _) => Doing::Compile,
        (_, Doing::Compile) => {
            let runs = kind == OpKind::Program || runs_inside(trace.name(EventId(row as u32)));
            if runs { Doing::Runtime } else { Doing::Compile }
        }
        (OpKind::User | OpKind::Step | OpKind::Python, _) => around,
        _ => Doing::Runtime,
    }
}

/// Calls of a compiled function that had to compile it: all they do before they run it.
pub fn calls_that_compile(trace: &Trace, track: TrackId) -> HashSet<u32> {
    let mut found = HashSet::new();
    // Above an event that was met before, all were met.
    let mut met = HashSet::new();
    for row in trace.rows_of(track, OpKind::Compile) {
        for it in trace.events.ancestors(EventId(row as u32)).take_while(|&it| met.insert(it)) {
            if calls_function(trace, it) {
                found.insert(it.0);
            }
        }
    }
    found
}

/// Whether an event calls a whole function, which may first have to be compiled. An op that only
/// tunes itself is none.
fn calls_function(trace: &Trace, event: EventId) -> bool {
    let (name, kind) = (trace.name(event), trace.events.kind[event.row()]);
    kind == OpKind::CallOp || dialect::any(|it| it.calls_function(name, kind))
}

/// Whether a call inside a tracing or compiling runs its outcome.
pub fn runs_inside(name: &str) -> bool {
    dialect::any(|it| it.runs_outcome(name))
}

/// What the other threads did that a waiting call can be waiting for.
#[derive(Default)]
struct Others {
    input: Vec<Span>,
    compile: Vec<Span>,
    output: Vec<Span>,
    python: Vec<Span>,
    /// Dispatching, executing, launching: anything but waiting.
    framework: Vec<Span>,
    /// The same on threads that belong to the runtime of compiled programs.
    pools: Vec<Span>,
}

impl Others {
    fn of(trace: &Trace, host: TrackId, driver: TrackId, input_work: &HashSet<u32>) -> Others {
        let threads = trace.tracks_below(host, TrackKind::Thread);
        let tracks: Vec<TrackId> = threads.filter(|&it| it != driver).collect();
        let parts: Vec<Others> =
            at_once(trace, &tracks).map(|&it| Others::on(trace, it, input_work)).collect();
        let mut all = Others::default();
        for mut part in parts {
            all.input.append(&mut part.input);
            all.compile.append(&mut part.compile);
            all.output.append(&mut part.output);
            all.python.append(&mut part.python);
            all.framework.append(&mut part.framework);
            all.pools.append(&mut part.pools);
        }
        Others {
            input: union(all.input),
            compile: union(all.compile),
            output: union(all.output),
            python: union(all.python),
            framework: union(all.framework),
            pools: union(all.pools),
        }
    }

    fn on(trace: &Trace, track: TrackId, input_work: &HashSet<u32>) -> Others {
        let mut out = Others::default();
        let makes_input = is_pipeline_thread(trace.track_name(track));
        let compiling = calls_that_compile(trace, track);
        let mut ahead_until = i64::MIN;
        for row in trace.tracks[track.row()].rows() {
            let start = trace.events.start[row].0;
            let kind = trace.events.kind[row];
            if start < ahead_until {
                continue;
            }
            let end = trace.events.end(EventId(row as u32)).0;
            let to = match kind {
                // What a stage of the pipeline fetches is fetched ahead: nobody waits for it.
                OpKind::InputStage => {
                    ahead_until = end;
                    continue;
                }
                OpKind::Runtime if input_work.contains(&(row as u32)) => {
                    ahead_until = end;
                    continue;
                }
                OpKind::InputWait => &mut out.input,
                _ if makes_input => continue,
                OpKind::Compile => &mut out.compile,
                _ if compiling.contains(&(row as u32)) => &mut out.compile,
                OpKind::Save => &mut out.output,
                OpKind::PythonOp => &mut out.python,
                OpKind::Runtime | OpKind::Launch | OpKind::Op | OpKind::CallOp => {
                    &mut out.framework
                }
                _ => continue,
            };
            add(to, (start, end));
        }
        if dialect::any(|it| it.is_pool(trace.track_name(track))) || runs_backward(trace, track) {
            out.pools = out.framework.clone();
        }
        out
    }
}

/// A step's time on a device, in the order of [`CATEGORIES`] but for what is left over: idle.
type Parts = [i64; 9];

/// Of these, what a device did: copies in, compute, communication, copies out.
/// Source: choice, their places in `Parts`.
const DEVICE_PARTS: [usize; 4] = [1, 5, 6, 7];

/// Gives every instant of `window` to one category at most.
fn parts(window: Span, busy: [&[Span]; 5], host: &HostTime) -> Parts {
    instants(window, busy, host).map(|it| covered(window, &it))
}

/// When each category was: sets that are disjoint, and may reach beyond the window.
fn instants<'a>(window: Span, busy: [&'a [Span]; 5], host: &'a HostTime) -> [Cow<'a, [Span]>; 9] {
    let [compute, collective, copy_in, copy_out, infeed] = busy;
    // Compute comes first and is by far the largest set: where nothing else runs on the
    // device, it is all that is taken, and no copy of it is made.
    let mut taken: Cow<'_, [Span]> = Cow::Borrowed(compute);
    let mut take = |set: &[Span]| {
        let own = subtract(set, &taken);
        if !own.is_empty() {
            taken = Cow::Owned(union([&*taken, &own].concat()));
        }
        own
    };
    let [collective, transfer_in, transfer_out, infeed] =
        [collective, copy_in, copy_out, infeed].map(&mut take);
    let [mut input, compile, python, runtime, output] =
        [&host.input, &host.compile, &host.python, &host.runtime, &host.output]
            .map(|it| subtract(within(it, window), &taken));
    input.extend_from_slice(&infeed);
    let input = union(input);
    [
        Cow::Owned(input),
        Cow::Owned(transfer_in),
        Cow::Owned(compile),
        Cow::Owned(python),
        Cow::Owned(runtime),
        Cow::Borrowed(compute),
        Cow::Owned(collective),
        Cow::Owned(transfer_out),
        Cow::Owned(output),
    ]
}

impl StepTime {
    fn of(step: &Step, device: &str, parts: Parts) -> StepTime {
        let [
            input,
            transfer_in,
            compile,
            python,
            runtime,
            compute,
            collective,
            transfer_out,
            output,
        ] = parts;
        StepTime {
            host: step.host.clone(),
            step: step.step,
            device: device.to_owned(),
            dur_ps: step.dur_ps,
            input_ps: input,
            transfer_in_ps: transfer_in,
            compile_ps: compile,
            python_ps: python,
            runtime_ps: runtime,
            compute_ps: compute,
            collective_ps: collective,
            transfer_out_ps: transfer_out,
            output_ps: output,
            idle_ps: step.dur_ps - parts.iter().sum::<i64>(),
            counts: step.counts(),
        }
    }
}

/// Saving is more than its ops: walking the objects, writing and deleting files in Python.
///
/// Host time that steps with a save have beyond what the others typically have belongs to the
/// save. Without steps to compare with, nothing is moved.
fn give_saving_its_host_work(rows: &mut [StepTime], device: &str) {
    let columns: [fn(&mut StepTime) -> &mut i64; 2] =
        [|it| &mut it.python_ps, |it| &mut it.runtime_ps];
    for column in columns {
        let mut others: Vec<i64> = rows
            .iter_mut()
            .filter(|it| it.device == device && it.output_ps == 0 && it.counts)
            .map(|it| *column(it))
            .collect();
        if others.len() < 2 {
            continue;
        }
        let Some(typical) = median(&mut others) else { continue };
        for row in rows.iter_mut().filter(|it| it.device == device && it.output_ps > 0) {
            let beyond = (*column(row) - typical).max(0);
            *column(row) -= beyond;
            row.output_ps += beyond;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::OpKind;
    use trace::testing::draw;

    use super::{CATEGORIES, StepTime, category};
    use crate::Tables;

    #[test]
    fn kinds_are_coloured_by_categories_that_exist() {
        let without: Vec<OpKind> =
            OpKind::ALL.into_iter().filter(|it| category(*it).is_none()).collect();
        assert_eq!(without, [OpKind::Step, OpKind::Summary]);
        for name in OpKind::ALL.into_iter().filter_map(category) {
            assert!(CATEGORIES.iter().any(|it| it.0 == name), "{name}");
        }
    }

    /// The categories of the first step that are not zero, in µs.
    fn check(picture: &str, expected: &[(&str, i64)]) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let rows = tables.get::<StepTime>();
        let row = rows.first().expect("a step");
        let found: Vec<(&str, i64)> = CATEGORIES
            .iter()
            .map(|(name, of)| (*name, of(row) / 1_000_000))
            .filter(|it| it.1 != 0)
            .collect();
        assert_eq!(found, expected);
        let total: i64 = CATEGORIES.iter().map(|(_, of)| of(row)).sum();
        assert_eq!(total, row.dur_ps, "categories add to the step");
    }

    #[test]
    fn host_decides_where_the_device_does_nothing() {
        check(
            "
            host/python: train#1 0..95, IteratorGetNext 0..30, cuLaunchKernel 32..40, train#2 100..195
            gpu0/stream7: matmul 40..70, ncclAllReduce 60..90, MemcpyH2D 20..25
            ",
            &[
                ("input", 25),
                ("transfer_in", 5),
                ("python", 12),
                ("runtime", 8),
                ("compute", 30),
                ("collective", 20),
            ],
        );
    }

    #[test]
    fn streams_are_united_not_added() {
        check(
            "
            host/python: train#1 0..100, train#2 100..200
            gpu0/stream1: a 0..60
            gpu0/stream2: b 40..80, MemcpyD2H 70..90
            ",
            &[("python", 10), ("compute", 80), ("transfer_out", 10)],
        );
    }

    #[test]
    fn without_accelerator_ops_compute_and_the_pipeline_does_not() {
        check(
            "
            host/python: train#1 0..100, EagerExecute 10..90, train#2 100..200
            host/tf_Compute/1: x/MatMul:MatMul 50..80
            host/tf_data_iterator_get_next/2: IteratorGetNextOp::DoCompute 12..48
            host/tf_data_private/3: y/Decode:Decode 12..48
            ",
            &[("input", 36), ("python", 20), ("runtime", 14), ("compute", 30)],
        );
    }

    #[test]
    fn what_the_runtime_does_on_its_own_threads_is_not_python() {
        check(
            "
            host/python: PjitFunction(f) 0..10, PjitFunction(f) 100..110, PjitFunction(f) 200..210
            host/tf_pjrt_thread_pool/1: BufferSequencingEvent::Execute 20..80
            gpu0/s: k 5..15
            ",
            &[("python", 25), ("runtime", 65), ("compute", 10)],
        );
        check(
            "
            host/python: PjitFunction(f) 0..10, $train.py:7 augment 10..95, \
             PjitFunction(f) 100..110, PjitFunction(f) 200..210
            host/tf_pjrt_thread_pool/1: BufferSequencingEvent::Execute 20..80
            gpu0/s: k 5..15
            ",
            &[("python", 85), ("runtime", 5), ("compute", 10)],
        );
    }

    #[test]
    fn a_device_that_works_at_other_times_does_not_count() {
        let tables = Tables::new(Arc::new(draw(
            "
            host/python: train#1 100..200, train#2 200..300
            gpu0/s: a 0..50
            gpu1/s: b 110..180
            ",
        )));
        let devices: Vec<String> =
            tables.get::<StepTime>().iter().map(|it| it.device.clone()).collect();
        assert_eq!(devices, ["gpu1", "gpu1"]);
    }

    #[test]
    fn waiting_for_copies_is_not_compute() {
        check(
            "
            host/python: train#1 0..100, train#2 100..200
            tpu0/XLA Ops: copy-start.1 0..1, copy-done.1 1..41, fusion 41..60, send-done.3 60..70, all-reduce-done 70..100
            ",
            &[("transfer_in", 41), ("compute", 19), ("collective", 40)],
        );
    }

    #[test]
    fn what_happens_between_two_saves_of_a_step_is_part_of_them() {
        check(
            "host/python: train#1 0..100, PjitFunction(step) 0..20, \
             EagerLocalExecute: WriteHistogramSummary 30..40, EagerLocalExecute: Max 45..55, \
             EagerLocalExecute: WriteHistogramSummary 60..70, train#2 100..200, \
             PjitFunction(step) 100..120",
            &[("python", 40), ("runtime", 20), ("output", 40)],
        );
    }

    #[test]
    fn reading_the_variables_before_a_save_is_part_of_it() {
        let step = |between: &str| {
            format!(
                "host/python: train#1 0..100, PjitFunction(step) 0..20, \
                 EagerLocalExecute: ReadVariableOp 30..35, EagerLocalExecute: {between} 40..45, \
                 EagerLocalExecute: SaveV2 60..70, train#2 100..200, PjitFunction(step) 100..120"
            )
        };
        check(&step("Identity"), &[("python", 40), ("runtime", 20), ("output", 40)]);
        // A mean is no part of a save, nor is what comes before it.
        check(&step("Mean"), &[("python", 60), ("runtime", 30), ("output", 10)]);
    }

    #[test]
    fn what_has_a_name_between_two_saves_keeps_it() {
        check(
            "
            host/python: train#1 0..100, EagerLocalExecute: WriteHistogramSummary 30..40, \
            EagerExecute 40..60, EagerLocalExecute: WriteHistogramSummary 60..70, train#2 100..200
            host/tf_data_iterator_get_next/2: IteratorGetNextOp::DoCompute 45..55
            ",
            &[("input", 10), ("python", 60), ("output", 30)],
        );
    }

    #[test]
    fn a_gap_in_a_thread_that_is_not_python_stays_unexplained() {
        check("host/worker: train#1 0..40, train#2 100..140", &[("idle", 100)]);
    }
}
