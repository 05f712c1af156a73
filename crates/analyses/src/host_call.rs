//! What the driving thread calls of the framework, and the Python between the calls.
//!
//! ```text
//! driving thread   |train_step|  Python   |Mul| |Add| |train_step|
//!                  '- call ---'-- after --'
//! ```

use std::collections::BTreeMap;

use trace::dialect::{self, OpCost};
use trace::{EventId, OpKind, StrId, Trace, TrackId, TrackKind};

use crate::mean_step::Mean;
use crate::span::{Span, covered};
use crate::step::Counted;
use crate::step_time::HostTimes;
use crate::{Analysis, Tables};

table! {
    /// Calls of the driving thread into the framework, within the steps that count.
    pub struct HostCall = "host_call" {
        /// What is called: a function by the user's name, or an op.
        call: String,
        /// `function`, `op` for a single op called from Python, or `other`.
        kind: &'static str,
        /// How often, in all.
        count: i64,
        /// How often in a step.
        per_step: f64,
        /// Time inside the calls, for a mean step.
        total_ps: i64,
        /// Of that, in the op itself rather than in reaching it: for single ops.
        work_ps: Option<i64>,
        /// Of the rest, what counts as compute all the same, as nothing tells an op from its work.
        in_compute_ps: Option<i64>,
        /// Time from its end to the next call of any kind, for a mean step.
        after_ps: i64,
        /// Of that, when Python held the thread: not while it waited for others, as the engine of
        /// a backward pass.
        python_after_ps: i64,
        /// The longest time from its end to the next call.
        longest_after_ps: i64,
        /// The call that follows the longest one.
        before: Option<String>,
        /// An event of it, and the longest wait's.
        event: i64,
    }
}

impl Analysis for HostCall {
    fn run(tables: &Tables) -> Vec<HostCall> {
        let trace = tables.trace();
        let Some(counted) = Counted::of(tables) else { return Vec::new() };
        let Some(thread) = counted.thread(trace) else { return Vec::new() };
        let n = counted.n;
        let names = vec![None; trace.strings.len()];
        let times = tables.model::<HostTimes>();
        let host = trace.ancestor(thread, TrackKind::Host).and_then(|it| times.of(it));
        let saving = host.map_or(&[][..], |it| &it.saving);
        let python = host.map_or(&[][..], |it| &it.python);
        let computes_here = !trace.tracks_of(TrackKind::Device).any(|it| {
            trace
                .tracks_below(it, TrackKind::Stream)
                .any(|it| !trace.tracks[it.row()].events.is_empty())
        });
        let ids = BTreeMap::new();
        let mut calls =
            Calls { trace, computes_here, ids, rows: Vec::new(), names, saving, python };
        calls.walk(thread, counted.window);
        let mut rows: Vec<HostCall> = calls
            .rows
            .iter()
            .map(|it| HostCall {
                call: it.label.clone(),
                kind: it.kind,
                count: it.count,
                per_step: it.count as f64 / n as f64,
                total_ps: it.total / n,
                work_ps: (it.kind == "op").then_some(it.work / n),
                in_compute_ps: (it.kind == "op").then_some(it.beside / n),
                after_ps: it.after / n,
                python_after_ps: it.python_after / n,
                longest_after_ps: it.longest,
                before: it.before.map(|at| calls.rows[at].label.clone()),
                event: i64::from(it.event.0),
            })
            .collect();
        rows.sort_by(|a, b| {
            (b.total_ps + b.after_ps)
                .cmp(&(a.total_ps + a.after_ps))
                .then_with(|| a.call.cmp(&b.call))
        });
        rows
    }
}

/// Single ops called from Python, of a mean step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EagerOps {
    pub per_step: i64,
    /// Inside the calls.
    pub calls_ps: i64,
    /// Of that, in the ops themselves.
    pub work_ps: i64,
    /// Of the calls, what is not the ops' work and yet part of their events, which compute.
    pub in_compute_ps: i64,
    /// Python between them, as far as it is as short as a few lines.
    pub between_ps: i64,
}

/// Around a compiled step there are always some: a mean, a comparison, a conversion.
/// Source: choice, a guess.
const A_FEW: i64 = 20;

impl EagerOps {
    /// Whether they are more than stand around any compiled step.
    pub fn are_many(&self) -> bool {
        self.per_step >= A_FEW
    }
}

impl HostCall {
    /// The Python after it that prepares the next call: beyond some lines it does something else.
    pub fn between_ps(&self) -> i64 {
        self.after_ps.min((self.per_step * SOME_LINES_PS as f64) as i64)
    }
}

/// What calling single ops costs a step.
pub fn eager_ops(tables: &Tables) -> EagerOps {
    let mut all = EagerOps::default();
    let calls = tables.get::<HostCall>();
    let functions = calls.iter().filter(|it| it.kind == "function");
    // Where functions are called by the dozen, they are ops that were compiled one by one.
    let small = functions.map(|it| it.per_step).sum::<f64>() >= A_FEW as f64;
    let mean = Mean::of(tables);
    let mean = |category| mean.map_or(0, |it| it.category(category));
    let (mut per_step, mut compiled_ps) = (0.0, 0);
    for call in calls.iter().filter(|it| it.kind == "op" || small && it.kind == "function") {
        per_step += call.per_step;
        all.calls_ps += call.total_ps;
        match call.work_ps {
            Some(work) => all.work_ps += work,
            None => compiled_ps += call.total_ps,
        }
        all.in_compute_ps += call.in_compute_ps.unwrap_or(0);
        all.between_ps += call.between_ps();
    }
    all.per_step = per_step as i64;
    all.work_ps += compiled_ps.min(mean("compute"));
    all.between_ps = all.between_ps.min(mean("python"));
    all
}

/// Below a microsecond nothing is called that a user would know of.
/// Source: measured by `bench/costs/run`, the cheapest call, that of a `jax.jit` function, takes 6
/// µs.
const WORTH_A_ROW_PS: i64 = 1_000_000;

/// A line of Python takes under a microsecond; recording an op for its gradient, or tracing it,
/// some hundreds.
/// Source: measured by `bench/costs/run`, a line 0.03 µs, an eager op with its gradient 0.15 ms
/// (0.14 to 0.25), tracing one 0.6 ms.
pub const SOME_LINES_PS: i64 = 300_000_000;

/// What the wait for a batch is called.
const NEXT_BATCH: &str = "next batch";

/// What an op's event takes beside the op's work, under a profiler: finding its kernel, checking,
/// recording.
/// Source: measured by `bench/costs/run`, PyTorch's ops on 16 numbers: 3.3 to 5.7 µs.
const DISPATCHED_PS: i64 = 5_000_000;
/// The same of an op that stays a call of its own whoever compiles the rest.
/// Source: measured by `bench/costs/run`, PyTorch's product of small matrices: 8.9 µs under a
/// profiler, 7.4 without.
const STAYS_CALL_PS: i64 = 1_500_000;

struct Calls<'a> {
    trace: &'a Trace,
    /// Without an accelerator ops run where they are called.
    computes_here: bool,
    ids: BTreeMap<(&'static str, String), usize>,
    rows: Vec<Sum>,
    /// By name; looked at once, since a thread repeats a few names a million times.
    names: Vec<Option<Name>>,
    /// When the thread saved: ops called meanwhile belong to that.
    saving: &'a [Span],
    /// When Python held it.
    python: &'a [Span],
}

/// What an event's name says of the call that it is, or that it is part of.
#[derive(Debug, Clone, Copy)]
struct Name {
    /// What is called.
    says: Option<usize>,
    /// What a call is counted under of which nothing says more; made when one is met.
    otherwise: Option<usize>,
    /// The run of a single op's kernel.
    runs_kernel: bool,
    /// Giving a tensor back is no call worth a row.
    gives_back: bool,
    /// The event is the op's run and what leads to it: so much of it is no work.
    beside_work: Option<i64>,
}

struct Sum {
    label: String,
    kind: &'static str,
    count: i64,
    total: i64,
    work: i64,
    /// Part of the ops' events, but not their work.
    beside: i64,
    after: i64,
    python_after: i64,
    longest: i64,
    before: Option<usize>,
    event: EventId,
}

/// A call that is not over.
struct Call {
    row: usize,
    end: i64,
    label: Option<usize>,
    work: i64,
    beside: i64,
    /// Ops in one another that are not over, innermost last.
    open: Vec<OpenOp>,
}

/// An op whose event holds its own run.
#[derive(Debug, Clone, Copy)]
struct OpenOp {
    end: i64,
    /// Without the ops inside, as far as they were met.
    own: i64,
    beside_work: i64,
}

impl Call {
    /// An event inside the call, or the call itself.
    fn meets(&mut self, name: Name, start: i64, end: i64) {
        if name.runs_kernel {
            self.work += end - start;
        }
        let Some(beside_work) = name.beside_work else { return };
        self.settle(start);
        if let Some(around) = self.open.last_mut() {
            around.own -= (end - start).min(around.own);
        }
        self.open.push(OpenOp { end, own: end - start, beside_work });
    }

    /// Ops that end by then are over.
    fn settle(&mut self, by: i64) {
        while let Some(op) = self.open.pop_if(|it| it.end <= by) {
            let beside = op.own.min(op.beside_work);
            self.beside += beside;
            self.work += op.own - beside;
        }
    }
}

impl Calls<'_> {
    fn walk(&mut self, track: TrackId, window: (i64, i64)) {
        let trace = self.trace;
        let mut open: Option<Call> = None;
        let mut last: Option<(usize, i64)> = None;
        for row in trace.tracks[track.row()].rows() {
            let kind = trace.events.kind[row];
            let start = trace.events.start[row].0;
            if start < window.0 {
                continue;
            }
            if start >= window.1 {
                break;
            }
            if matches!(
                kind,
                OpKind::Listener
                    | OpKind::Memory
                    | OpKind::OpEnd
                    | OpKind::Step
                    | OpKind::User
                    | OpKind::Python
            ) {
                continue;
            }
            let end = trace.events.end(EventId(row as u32)).0;
            if let Some(call) = open.as_mut().filter(|it| start < it.end) {
                let name = self.name(trace.events.name[row], kind);
                call.label = call.label.or(name.says);
                call.meets(name, start, end);
                continue;
            }
            if let Some(call) = open.take() {
                last = Some(self.close(call, last));
            }
            let name = self.name(trace.events.name[row], kind);
            let label = match kind {
                OpKind::InputWait => Some(self.id("other", NEXT_BATCH)),
                _ => name.says,
            };
            // Nor is seeing that nobody holds a tensor.
            if label.is_none() && end - start < WORTH_A_ROW_PS || name.gives_back {
                continue;
            }
            let mut call = Call { row, end, label, work: 0, beside: 0, open: Vec::new() };
            call.meets(name, start, end);
            open = Some(call);
        }
        if let Some(call) = open.take() {
            self.close(call, last);
        }
    }

    /// The call is over: the Python before it came after the last one.
    fn close(&mut self, mut call: Call, last: Option<(usize, i64)>) -> (usize, i64) {
        let trace = self.trace;
        call.settle(i64::MAX);
        let event = EventId(call.row as u32);
        let at = match call.label {
            Some(it) => it,
            None => self.otherwise(trace.events.name[call.row], trace.events.kind[call.row]),
        };
        let start = trace.events.start[call.row].0;
        let block = self.saving.partition_point(|it| it.1 <= start);
        let at = match self.saving.get(block).is_some_and(|it| it.0 <= start) {
            true => {
                let label = self.rows[at].label.clone();
                self.id("other", &label)
            }
            false => at,
        };
        if let Some((before, end)) = last {
            let gap = (start - end).max(0);
            let sum = &mut self.rows[before];
            sum.after = sum.after.saturating_add(gap);
            sum.python_after =
                sum.python_after.saturating_add(covered((end, end + gap), self.python));
            if gap > sum.longest {
                sum.longest = gap;
                sum.before = Some(at);
            }
        }
        let sum = &mut self.rows[at];
        if sum.count == 0 {
            sum.event = event;
        }
        sum.count += 1;
        sum.total = sum.total.saturating_add(trace.events.dur[call.row].0);
        sum.work = sum.work.saturating_add(call.work);
        sum.beside = sum.beside.saturating_add(call.beside);
        (at, call.end)
    }

    fn name(&mut self, id: StrId, kind: OpKind) -> Name {
        match self.names[id.row()] {
            Some(known) => known,
            None => self.learn(id, kind),
        }
    }

    #[cold]
    fn learn(&mut self, id: StrId, kind: OpKind) -> Name {
        let text = self.trace.text(id);
        let says = dialect::call(text, kind).map(|it| match it {
            dialect::Call::Function(function) => self.id("function", function),
            dialect::Call::Op(op) => self.id("op", op),
            dialect::Call::NextBatch => self.id("other", NEXT_BATCH),
        });
        let cost = dialect::ALL.iter().find_map(|it| it.beside_work(text));
        let name = Name {
            says,
            otherwise: None,
            runs_kernel: dialect::any(|it| it.runs_op(text)),
            gives_back: dialect::any(|it| it.gives_back(text)),
            beside_work: cost.filter(|_| self.computes_here).map(|it| match it {
                OpCost::Dispatched => DISPATCHED_PS,
                OpCost::StaysCall => STAYS_CALL_PS,
            }),
        };
        self.names[id.row()] = Some(name);
        name
    }

    /// What a call of this name is counted under where nothing inside says more.
    fn otherwise(&mut self, id: StrId, kind: OpKind) -> usize {
        let name = self.name(id, kind);
        if let Some(known) = name.otherwise {
            return known;
        }
        let text = self.trace.text(id);
        // Making a tensor of a Python value is reached like an op.
        let is_reached = dialect::any(|it| it.makes_tensor(text));
        let otherwise = self.id(if is_reached { "op" } else { "other" }, text);
        self.names[id.row()] = Some(Name { otherwise: Some(otherwise), ..name });
        otherwise
    }

    fn id(&mut self, kind: &'static str, label: &str) -> usize {
        let next = self.rows.len();
        let at = *self.ids.entry((kind, label.to_owned())).or_insert(next);
        if at == next {
            self.rows.push(Sum {
                label: label.to_owned(),
                kind,
                count: 0,
                total: 0,
                work: 0,
                beside: 0,
                after: 0,
                python_after: 0,
                longest: 0,
                before: None,
                event: EventId(0),
            });
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::{HostCall, eager_ops};
    use crate::Tables;

    #[test]
    fn calls_and_the_python_after_them() {
        let step = |at: i64, n: i64| {
            format!(
                "train#{n} {at}..{0}, TFE_Py_FastPathExecute_C {at}..{1}, \
                 EagerLocalExecute: Mul {at}..{1}, KernelAndDeviceFunc::Run {at}..{2}, \
                 TFE_Py_ExecuteCancelable {3}..{4}, EagerLocalExecute: __inference_f_7 {3}..{4}",
                at + 100,
                at + 10,
                at + 4,
                at + 20,
                at + 50
            )
        };
        let steps: Vec<String> = (0..4).map(|it| step(it * 100, it)).collect();
        let tables = Tables::new(Arc::new(draw(&format!("host/python: {}", steps.join(", ")))));
        let rows = tables.get::<HostCall>();
        let rows: Vec<_> = rows
            .iter()
            .map(|it| {
                (
                    it.call.as_str(),
                    it.kind,
                    it.count,
                    it.total_ps / 1_000_000,
                    it.longest_after_ps / 1_000_000,
                    it.before.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            rows,
            [("f", "function", 4, 30, 50, Some("Mul")), ("Mul", "op", 4, 10, 10, Some("f"))]
        );
        let eager = eager_ops(&tables);
        assert_eq!((eager.per_step, eager.work_ps, eager.between_ps), (1, 4_000_000, 10_000_000));
    }
}
