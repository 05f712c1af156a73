//! Adds up the time of each op, on the host and on the devices.
//!
//! ```text
//! tf_Compute  |------------ a/While:While ------------|   its total: all of it
//!               |-- a/MatMul:MatMul --|  |- a/Add:Add -|  its self: what these leave over
//! python      |-- EagerLocalExecute: Tanh … |- Run -| -|  eager Tanh: the time of Run
//! gpu         |= kernel of a/MatMul =|                    device_ps of a/MatMul
//! ```
//!
//! On a thread only ops nest in ops: whatever else lies between does not count. Not here: events
//! that carry an op's name without running it, as an allocator's records and driver calls do.

mod rows;

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::dialect;
use trace::{
    Detail, DetailId, EAGER_CALL, EdgeKind, EventId, OpFamily, OpKind, OpName, StrId, Trace,
    TrackId, TrackKind,
};

use self::rows::Rows;
use crate::run_info::frameworks;
use crate::stream_sum::{StreamSum, StreamSums};
use crate::{Analysis, Tables};

table! {
    /// The time of each op, on the host and on the devices.
    ///
    /// Host ops are the events that TensorFlow, tf.data and JAX name `scope/op:Type`, as in the
    /// framework's own profiler. Two kinds come on top, which that one leaves out: ops of programs
    /// compiled for the CPU, and ops called one by one from Python, whose kernel runs without an
    /// event of its own (`eager` is true for them, and their time is that of the kernel's run).
    /// Device ops are named by the framework's op where the profile has it, else by the compiled
    /// program's op, else by the kernel.
    pub struct OpTime = "op_time" {
        /// Where it ran: host or device.
        side: &'static str,
        /// The op with its scopes, without its type.
        name: String,
        /// What the op does, as MatMul; null for kernels of which no op is known.
        op_type: Option<String>,
        /// The scopes around it, as a/b; empty at the top.
        scope: String,
        /// Whose op it is: tensorflow, tf.data, jax, torch, xla (known only from the compiled
        /// program) or kernel (no op is known).
        family: &'static str,
        /// The compiled program it belongs to, where only that tells ops of one name apart.
        module: Option<String>,
        /// How often it ran; on a device, how many kernels it ran. 0 for a host op that is known by
        /// the kernels it launched alone.
        count: i64,
        /// Time from start to end, added over threads or streams.
        total_ps: i64,
        /// The same without the ops that ran inside.
        self_ps: i64,
        /// The shortest run.
        min_ps: i64,
        /// The longest run.
        max_ps: i64,
        /// The mean run.
        mean_ps: i64,
        /// Whether Python called it as a single op (true) or it ran inside a function or graph
        /// (false); null where that is not known, or both happened.
        eager: Option<bool>,
        /// Of a host op: time of the device work it started; null without a device.
        device_ps: Option<i64>,
        /// Its part of all ops' self time on its side, 0 to 1.
        self_share: f64,
    }
}

impl Analysis for OpTime {
    fn run(tables: &Tables) -> Vec<OpTime> {
        let trace = tables.trace();
        let names = Names::of(trace);
        let threads: Vec<TrackId> = trace.tracks_of(TrackKind::Thread).collect();
        let streams = tables.model::<StreamSums>();
        let streams: Vec<(TrackId, &[StreamSum])> = streams.iter().collect();
        let on_host: Vec<Sums> = threads
            .par_iter()
            .map(|&it| Sums::of(|each| on_thread(trace, &names, it, each)))
            .collect();
        let has_ops =
            names.said_ops || names.roles.iter().any(|it| matches!(it, Role::Op | Role::EagerOp));
        let on_device: Vec<(Sums, Sums)> = streams
            .par_iter()
            .map(|&(track, sums)| {
                let started = match has_ops {
                    true => started_from(trace, &names, track, sums),
                    false => Sums::default(),
                };
                (on_stream(trace, &names, track, sums), started)
            })
            .collect();
        let has_device = on_device.iter().any(|it| !it.0.of.is_empty());

        let mut rows = Rows::new(trace);
        for (what, sum) in on_host.iter().flat_map(Sums::sorted) {
            rows.of("host", what).sum.add(&sum);
        }
        for (what, sum) in on_device.iter().flat_map(|it| it.0.sorted()) {
            rows.of("device", what).sum.add(&sum);
        }
        rows.give_host_its_device_time();
        for (what, sum) in on_device.iter().flat_map(|it| it.1.sorted()) {
            let row = rows.of("host", what);
            row.device_ps = row.device_ps.saturating_add(sum.total);
        }
        rows.settle(has_device)
    }
}

/// What a host event is, told from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Other,
    Op,
    /// An executor's work on a function or graph.
    Executor,
    /// A call from Python; its detail says of what.
    Call,
    /// A call of a single op.
    EagerOp,
    /// The run of such an op's kernel.
    Run,
}

impl Role {
    fn of(name: &str) -> Role {
        match name {
            "ExecutorState::Process" => Role::Executor,
            "EagerExecute" => Role::Call,
            "KernelAndDeviceFunc::Run" | "KernelAndDeviceOp::Run" | "KernelAndDevice::Run" => {
                Role::Run
            }
            _ => match name.strip_prefix(EAGER_CALL) {
                // Functions are called `__inference_…`, `__forward_…`, `__backward_…`.
                Some(op) if op.starts_with("__") => Role::Other,
                Some(_) => Role::EagerOp,
                None if OpName::parse(name).is_some() => Role::Op,
                None => Role::Other,
            },
        }
    }
}

/// What is looked at once: per distinct name, per detail.
struct Names {
    roles: Vec<Role>,
    /// The detail names an op of a compiled program.
    compiled: Vec<bool>,
    /// The detail names the framework's op.
    has_op: Vec<bool>,
    /// On a device: ops of a TPU lie inside its loops; kernels of a GPU only overlap.
    nests: Vec<bool>,
    /// The source said which events are ops: their names alone do not.
    said_ops: bool,
}

impl Names {
    fn of(trace: &Trace) -> Names {
        let texts: Vec<&str> = trace.strings.iter().map(|it| it.1).collect();
        let frameworks = frameworks(trace);
        Names {
            roles: texts.par_iter().map(|it| Role::of(it)).collect(),
            compiled: trace.details.iter().map(|it| it.hlo_op.is_some()).collect(),
            has_op: trace.details.iter().map(|it| op_of(trace, it).is_some()).collect(),
            nests: trace.details.iter().map(|it| it.hlo_category.is_some()).collect(),
            said_ops: dialect::any(|it| it.says_ops() && frameworks.contains(&it.name())),
        }
    }

    fn on_device(&self, name: StrId, detail: DetailId) -> What {
        match self.has_op[detail.row()] || self.compiled[detail.row()] {
            true => What::Detailed(detail.0),
            false => What::Kernel(name, detail.0),
        }
    }
}

/// The framework's op behind a detail.
fn op_of<'a>(trace: &'a Trace, detail: &Detail) -> Option<&'a str> {
    detail.op.map(|it| trace.text(it)).filter(|op| !dialect::any(|it| it.is_no_op(op)))
}

/// What an event is counted under, before names are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum What {
    /// The event's name is the op.
    Named(StrId),
    /// The name of the call is the op, the event its kernel's run.
    Eager(StrId),
    /// Its detail (by row) names the op.
    Detailed(u32),
    /// Nothing names an op of the framework; its detail may know the compiled program's.
    Kernel(StrId, u32),
}

/// How ops came to run: bits, since a name may run both ways.
/// Source: choice, a bit of its own.
const EAGERLY: u8 = 1;
/// The op ran inside a function.
/// Source: choice, a bit of its own.
const IN_FUNCTION: u8 = 2;
/// Nothing says how the op came to run.
/// Source: choice, a bit of its own.
const NOT_KNOWN: u8 = 4;

#[derive(Debug, Clone, Copy)]
struct Sum {
    count: i64,
    total: i64,
    own: i64,
    min: i64,
    max: i64,
    ran: u8,
}

impl Sum {
    /// The sum of no events.
    /// Source: physical, nothing was added yet.
    const NONE: Sum = Sum { count: 0, total: 0, own: 0, min: i64::MAX, max: 0, ran: 0 };

    fn add(&mut self, other: &Sum) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.ran |= other.ran;
    }
}

/// One track's sums.
#[derive(Debug, Default)]
struct Sums {
    of: HashMap<What, Sum>,
}

/// An op ran.
#[derive(Debug, Clone, Copy)]
struct OpRun {
    what: What,
    start: i64,
    dur: i64,
    /// Without the ops inside.
    own: i64,
    ran: u8,
}

impl Sums {
    /// Of all runs that it is told of.
    fn of(walk: impl FnOnce(&mut dyn FnMut(OpRun))) -> Sums {
        let mut sums = Sums::default();
        walk(&mut |it| sums.add(it.what, it.dur, it.own, it.ran));
        sums
    }

    fn add(&mut self, what: What, dur: i64, own: i64, ran: u8) {
        let one = Sum { count: 1, total: dur, own, min: dur, max: dur, ran };
        self.of.entry(what).or_insert(Sum::NONE).add(&one);
    }

    fn sorted(&self) -> Vec<(What, Sum)> {
        let mut all: Vec<(What, Sum)> = self.of.iter().map(|it| (*it.0, *it.1)).collect();
        all.sort_unstable_by_key(|it| it.0);
        all
    }
}

/// An op that later events may lie inside of.
#[derive(Debug)]
struct Open {
    start: i64,
    end: i64,
    what: What,
    dur: i64,
    inside: i64,
    ran: u8,
    /// The run of a kernel that turned out to have an event of its own.
    replaced: bool,
}

/// Ops of one track, innermost last, each ending no later than those before it.
struct Nest<'a> {
    open: Vec<Open>,
    each: &'a mut dyn FnMut(OpRun),
}

impl<'a> Nest<'a> {
    fn new(each: &'a mut dyn FnMut(OpRun)) -> Nest<'a> {
        Nest { open: Vec::new(), each }
    }

    fn push(&mut self, trace: &Trace, what: What, start: i64, dur: i64, ran: u8) {
        let end = start.saturating_add(dur);
        // What ends before this one holds nothing more: later ops lie in this one, or in neither.
        while self.open.last().is_some_and(|it| it.end <= start || it.end < end) {
            self.pop();
        }
        if let Some(around) = self.open.last_mut() {
            around.inside = around.inside.saturating_add(dur);
            around.replaced |= is_same_op(trace, around.what, what);
        }
        self.open.push(Open { start, end, what, dur, inside: 0, ran, replaced: false });
    }

    fn pop(&mut self) {
        let Some(op) = self.open.pop() else { return };
        let own = (op.dur - op.inside).max(0);
        if !op.replaced {
            let Open { what, start, dur, ran, .. } = op;
            (self.each)(OpRun { what, start, dur, own, ran });
        } else if let Some(around) = self.open.last_mut() {
            around.inside -= own;
        }
    }

    fn finish(mut self) {
        while !self.open.is_empty() {
            self.pop();
        }
    }
}

/// Whether the op inside a kernel's run is what runs there, and not a part of it.
fn is_same_op(trace: &Trace, run: What, inside: What) -> bool {
    let (What::Eager(call), What::Named(name)) = (run, inside) else { return false };
    let op_type = trace.text(call).strip_prefix(EAGER_CALL);
    OpName::parse(trace.text(name)).is_some_and(|it| Some(it.op_type) == op_type)
}

fn on_thread(trace: &Trace, names: &Names, track: TrackId, each: &mut dyn FnMut(OpRun)) {
    let events = &trace.events;
    let any_compiled = names.compiled.contains(&true);
    let mut nest = Nest::new(each);
    let mut executor_until = i64::MIN;
    // Until when a call from Python lasts, and whether it is of a single op.
    let (mut call_until, mut calls_op) = (i64::MIN, None);
    let (mut eager_until, mut eager_op) = (i64::MIN, StrId(0));
    for row in trace.tracks[track.row()].rows() {
        let name = events.name[row];
        let mut role = names.roles[name.row()];
        if role == Role::Other && names.said_ops && events.kind[row] == OpKind::Op {
            role = Role::Op;
        }
        // Most threads have no details at all: that column is best not touched.
        if role == Role::Other && !(any_compiled && names.compiled[events.detail[row].row()]) {
            continue;
        }
        let detail = events.detail[row];
        let (start, dur) = (events.start[row].0, events.dur[row].0);
        let end = start.saturating_add(dur);
        let mut ran = match (start < executor_until, start < call_until, calls_op) {
            (true, _, _) | (_, true, Some(false)) => IN_FUNCTION,
            (_, true, Some(true)) => EAGERLY,
            _ => NOT_KNOWN,
        };
        let what = match role {
            Role::Op => What::Named(name),
            Role::Executor => {
                executor_until = executor_until.max(end);
                continue;
            }
            Role::Call => {
                (call_until, calls_op) =
                    (end, trace.details[detail.row()].calls_function.map(|it| !it));
                continue;
            }
            Role::EagerOp => {
                (eager_until, eager_op) = (end, name);
                continue;
            }
            Role::Run if start < eager_until => {
                ran = EAGERLY;
                What::Eager(eager_op)
            }
            Role::Other if matches!(events.kind[row], OpKind::Op | OpKind::Collective) => {
                What::Detailed(detail.0)
            }
            _ => continue,
        };
        if trace.details[detail.row()].overlaps {
            (nest.each)(OpRun { what, start, dur, own: dur, ran });
        } else {
            nest.push(trace, what, start, dur, ran);
        }
    }
    nest.finish();
}

/// The ops of a stream.
fn on_stream(trace: &Trace, names: &Names, track: TrackId, sums: &[StreamSum]) -> Sums {
    if !sums.iter().any(|it| names.nests[it.detail.row()]) {
        let mut all = Sums::default();
        for it in sums {
            let what = names.on_device(it.name, it.detail);
            all.of.entry(what).or_insert(Sum::NONE).add(&Sum {
                count: it.count,
                total: it.total_ps,
                own: it.total_ps,
                min: it.min_ps,
                max: it.max_ps,
                ran: NOT_KNOWN,
            });
        }
        return all;
    }
    Sums::of(|each| each_on_stream(trace, names, track, each))
}

fn each_on_stream(trace: &Trace, names: &Names, track: TrackId, each: &mut dyn FnMut(OpRun)) {
    let events = &trace.events;
    let mut nest = Nest::new(each);
    for row in trace.tracks[track.row()].rows() {
        let (start, dur) = (events.start[row].0, events.dur[row].0);
        let what = names.on_device(events.name[row], events.detail[row]);
        if names.nests[events.detail[row].row()] {
            nest.push(trace, what, start, dur, NOT_KNOWN);
        } else {
            (nest.each)(OpRun { what, start, dur, own: dur, ran: NOT_KNOWN });
        }
    }
    nest.finish();
}

/// The host ops that started a stream's work of which no op is known.
fn started_from(trace: &Trace, names: &Names, track: TrackId, sums: &[StreamSum]) -> Sums {
    if sums.iter().all(|it| names.has_op[it.detail.row()]) {
        return Sums::default();
    }
    Sums::of(|each| each_started_from(trace, names, track, each))
}

fn each_started_from(trace: &Trace, names: &Names, track: TrackId, each: &mut dyn FnMut(OpRun)) {
    let rows = trace.tracks[track.row()].rows();
    let mut edge = trace.edges.to.partition_point(|it| it.row() < rows.start);
    for row in rows {
        if names.has_op[trace.events.detail[row].row()] {
            continue;
        }
        let to = |edge: usize| trace.edges.to.get(edge).map(|it| it.row());
        while to(edge).is_some_and(|it| it < row) {
            edge += 1;
        }
        let launch = (edge..)
            .take_while(|&it| to(it) == Some(row))
            .find(|&it| trace.edges.kind[it] == EdgeKind::Launch);
        if let Some(what) = launch.and_then(|it| op_around(trace, names, trace.edges.from[it])) {
            let (start, dur) = (trace.events.start[row].0, trace.events.dur[row].0);
            each(OpRun { what, start, dur, own: dur, ran: NOT_KNOWN });
        }
    }
}

/// Tells of ops one run at a time, where sums of the whole trace are not enough.
pub(crate) struct OpRuns<'a> {
    trace: &'a Trace,
    names: Names,
}

impl<'a> OpRuns<'a> {
    pub fn of(trace: &'a Trace) -> OpRuns<'a> {
        OpRuns { trace, names: Names::of(trace) }
    }

    /// Scope, start and self time of each run on a thread of an op that has scopes.
    pub fn on_thread(&self, track: TrackId, each: &mut dyn FnMut(&'a str, i64, i64)) {
        let mut scopes = Scopes::of(self.trace);
        on_thread(self.trace, &self.names, track, &mut |it| {
            if let Some(scope) = scopes.get(it.what) {
                each(scope, it.start, it.own);
            }
        });
    }

    /// The same of a stream: kernels by their op, else by the op that started them.
    pub fn on_stream(&self, track: TrackId, each: &mut dyn FnMut(&'a str, i64, i64)) {
        let mut scopes = Scopes::of(self.trace);
        each_on_stream(self.trace, &self.names, track, &mut |it| {
            if let Some(scope) = scopes.get(it.what) {
                each(scope, it.start, it.own);
            }
        });
        each_started_from(self.trace, &self.names, track, &mut |it| {
            if let Some(scope) = scopes.get(it.what) {
                each(scope, it.start, it.own);
            }
        });
    }
}

/// The scope of ops, each looked at once; `None` for what has no scopes.
struct Scopes<'a> {
    trace: &'a Trace,
    untold: OpFamily,
    known: HashMap<What, Option<&'a str>>,
}

impl<'a> Scopes<'a> {
    fn of(trace: &'a Trace) -> Scopes<'a> {
        Scopes { trace, untold: rows::untold(trace), known: HashMap::new() }
    }

    fn get(&mut self, what: What) -> Option<&'a str> {
        *self.known.entry(what).or_insert_with(|| rows::scope(self.trace, self.untold, what))
    }
}

/// Python's own limit; what nests deeper is nonsense, and would be climbed for every kernel.
/// Source: document, the default of Python's `sys.getrecursionlimit`.
const DEEPEST: usize = 1000;

/// The innermost op that a host call lies in.
fn op_around(trace: &Trace, names: &Names, call: EventId) -> Option<What> {
    let ancestors = trace.events.ancestors(call).take(DEEPEST);
    std::iter::once(call).chain(ancestors).find_map(|it| {
        let name = trace.events.name[it.row()];
        match names.roles[name.row()] {
            Role::Op => Some(What::Named(name)),
            Role::EagerOp => Some(What::Eager(name)),
            _ if names.said_ops && trace.events.kind[it.row()] == OpKind::Op => {
                Some(What::Named(name))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;
    use trace::{Detail, Dur, Time, Trace, TraceBuilder, TrackKind};

    use super::OpTime;
    use crate::Tables;

    fn rows(trace: Trace) -> Vec<OpTime> {
        Tables::new(Arc::new(trace)).get::<OpTime>().to_vec()
    }

    /// Side, name, family; runs, total and self time in µs; how it ran; device time in µs.
    fn check(picture: &str, expected: &[&str]) {
        let us = |ps: i64| ps / 1_000_000;
        let found: Vec<String> = rows(draw(picture))
            .iter()
            .map(|it| {
                let eager = match it.eager {
                    Some(true) => "eager",
                    Some(false) => "function",
                    None => "?",
                };
                let device = it.device_ps.map_or("-".to_owned(), |it| us(it).to_string());
                let (total, own) = (us(it.total_ps), us(it.self_ps));
                let (side, name, family, count) = (it.side, &it.name, it.family, it.count);
                format!("{side} {name} {family}: {count}x {total} {own} {eager} {device}")
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_kernel_called_like_an_op_is_none() {
        let gpu = "gpu0/stream7: MatMul@1 30..70, gemm@2 80..90";
        let op = "a/MatMul:MatMul";
        check(
            &format!(
                "host/t: {op} 0..10, cuLaunchKernel@1 2..4, {op} 20..30, cuLaunchKernel@2 22..24\n{gpu}"
            ),
            &[
                "host a/MatMul tensorflow: 2x 20 20 ? 50",
                "device MatMul kernel: 1x 40 40 ? -",
                "device gemm kernel: 1x 10 10 ? -",
            ],
        );
    }

    #[test]
    fn an_op_may_be_known_by_its_kernels_alone() {
        check(
            "
            host/python: EagerLocalExecute: Tanh 0..10, cuLaunchKernel@1 2..4
            gpu0/stream7: tanh@1 30..70
            ",
            &["host Tanh tensorflow: 0x 0 0 ? 40", "device tanh kernel: 1x 40 40 ? -"],
        );
    }

    #[test]
    fn only_ops_nest_in_ops() {
        check(
            "
            host/tf_Compute/1: ExecutorState::Process 0..100, a/While:While 0..90, Foo::Bar 10..80
            host/tf_Compute/1: a/b/MatMul:MatMul 20..50, a/Add:AddV2 60..70
            ",
            &[
                "host a/While tensorflow: 1x 90 50 function -",
                "host a/b/MatMul tensorflow: 1x 30 30 function -",
                "host a/Add tensorflow: 1x 10 10 function -",
            ],
        );
    }

    #[test]
    fn threads_add_up_and_overlap_is_no_nesting() {
        check(
            "
            host/a: x:MatMul 0..10, y:Relu 5..20
            host/b: x:MatMul 0..30
            ",
            &["host x tensorflow: 2x 40 40 ? -", "host y tensorflow: 1x 15 15 ? -"],
        );
    }

    #[test]
    fn stages_of_the_input_pipeline_are_ops() {
        check(
            "host/t: Iterator::Root::Map 0..30, Iterator::Root::Map::Range 5..10",
            &[
                "host Iterator::Root::Map tf.data: 1x 30 25 ? -",
                "host Iterator::Root::Map::Range tf.data: 1x 5 5 ? -",
            ],
        );
    }

    #[test]
    fn an_eager_op_is_its_kernels_run() {
        check(
            "
            host/python: EagerLocalExecute: Tanh 1..49, KernelAndDeviceFunc::Run 20..40
            host/python: EagerLocalExecute: __inference_f_1 60..99, KernelAndDeviceFunc::Run 70..90
            ",
            &["host Tanh tensorflow: 1x 20 20 eager -"],
        );
    }

    #[test]
    fn an_eager_op_with_an_event_of_its_own_is_counted_once() {
        check(
            "
            host/python: EagerLocalExecute: Tanh 1..49, KernelAndDeviceOp::Run 20..40
            host/python: Tanh:Tanh 22..32
            ",
            &["host Tanh tensorflow: 1x 10 10 ? -"],
        );
    }

    #[test]
    fn what_runs_inside_an_eager_op_does_not_replace_it() {
        check(
            "
            host/python: EagerLocalExecute: IteratorGetNext 0..50, KernelAndDeviceFunc::Run 10..50
            host/python: Iterator::Root 15..45
            ",
            &[
                "host Iterator::Root tf.data: 1x 30 30 ? -",
                "host IteratorGetNext tensorflow: 1x 40 10 eager -",
            ],
        );
    }

    #[test]
    fn a_launch_gives_its_op_the_kernels_time() {
        check(
            "
            host/main: a/MatMul:MatMul 0..10, cuLaunchKernel@1 2..4, cuLaunchKernel@2 20..22
            gpu0/stream7: gemm@1 30..70, other@2 70..80
            ",
            &[
                "host a/MatMul tensorflow: 1x 10 10 ? 40",
                "device gemm kernel: 1x 40 40 ? -",
                "device other kernel: 1x 10 10 ? -",
            ],
        );
    }

    /// An op on the host, and kernels that say whose they are.
    #[test]
    fn kernels_are_grouped_by_the_op_they_name() {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "h");
        let thread = out.track(Some(host), TrackKind::Thread, "t");
        let gpu = out.track(Some(host), TrackKind::Device, "/device:GPU:0");
        let stream = out.track(Some(gpu), TrackKind::Stream, "s");
        out.event(thread, "a/MatMul:MatMul", Time(0), Dur(5));
        for (name, op, hlo_op) in [
            ("gemm", Some("a/MatMul:MatMul"), None),
            ("splitk", Some("a/MatMul:MatMul"), None),
            ("fusion_3", Some("XlaModule:"), Some("while::dot.3")),
            ("add", Some("jit(f)/add"), Some("add.1")),
        ] {
            // All at once: kernels of a GPU overlap, and none is part of another.
            let kernel = out.event(stream, name, Time(10), Dur(10));
            let op = op.map(|it| out.text(it));
            let hlo_op = hlo_op.map(|it| out.text(it));
            out.describe(kernel, Detail { op, hlo_op, ..Detail::default() });
        }
        let rows = rows(out.finish());
        let found: Vec<String> = rows
            .iter()
            .map(|it| {
                let op_type = it.op_type.as_deref().unwrap_or("-");
                let (side, name, family, count) = (it.side, &it.name, it.family, it.count);
                let (own, device) = (it.self_ps, it.device_ps);
                format!("{side} {name} {op_type} {family}: {count}x {own} {device:?}")
            })
            .collect();
        assert_eq!(
            found,
            [
                "host a/MatMul MatMul tensorflow: 1x 5 Some(20)",
                "device a/MatMul MatMul tensorflow: 2x 20 None",
                "device dot.3 dot xla: 1x 10 None",
                "device jit(f)/add add jax: 1x 10 None",
            ]
        );
        assert_eq!(rows[1].self_share, 0.5);
    }

    #[test]
    fn ops_of_a_tpu_lie_inside_its_loops() {
        let mut out = TraceBuilder::new();
        let tpu = out.track(None, TrackKind::Device, "/device:TPU:0");
        let stream = out.track(Some(tpu), TrackKind::Stream, "XLA Ops");
        for (name, category, start, dur) in
            [("while.1", "while", 0, 100), ("fusion.2", "loop fusion", 10, 60)]
        {
            let event = out.event(stream, name, Time(start), Dur(dur));
            let hlo_category = Some(out.text(category));
            out.describe(event, Detail { hlo_category, ..Detail::default() });
        }
        let rows = rows(out.finish());
        let found: Vec<(&str, Option<&str>, i64, i64)> = rows
            .iter()
            .map(|it| (it.name.as_str(), it.op_type.as_deref(), it.total_ps, it.self_ps))
            .collect();
        assert_eq!(
            found,
            [("fusion.2", Some("loop fusion"), 60, 60), ("while.1", Some("while"), 100, 40)]
        );
    }
}
