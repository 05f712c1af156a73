//! What nearly every rule asks first: how long a step is and where it goes.

use analyses::mean_step::Mean;
use analyses::op_time::OpTime;
use analyses::python_time::PythonTime;
use analyses::replay::rows_in;
use analyses::step::{Counted, Step};
use analyses::step_time::StepTime;
use analyses::what_if::Altered;
use analyses::{Model, Tables};
use hashbrown::HashSet;
use trace::dialect;
use trace::{Dur, OpKind, StrId, TrackKind};

use crate::Gain;

/// The mean step, over all that count.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub n_steps: usize,
    /// Steps of the host that has most: hosts in step with one another show the same one.
    pub of_one_host: usize,
    pub step: Dur,
    pub median: Dur,
    mean: Mean,
    /// Whether an accelerator computes.
    pub on_device: bool,
}

/// `None` where no steps could be identified.
pub fn facts(tables: &Tables) -> Option<Facts> {
    tables.model::<Asked>().0.clone()
}

/// Added up once for all rules.
struct Asked(Option<Facts>);

impl Model for Asked {
    fn build(tables: &Tables) -> Asked {
        Asked(add_up(tables))
    }
}

fn add_up(tables: &Tables) -> Option<Facts> {
    let mean = Mean::of(tables)?;
    Some(Facts {
        n_steps: mean.n_steps,
        of_one_host: most_of_a_host(tables),
        step: Dur(mean.dur_ps),
        median: Dur(mean.median_ps),
        mean,
        on_device: mean.on_device,
    })
}

fn most_of_a_host(tables: &Tables) -> usize {
    let steps = tables.get::<Step>();
    let hosts = steps.chunk_by(|a, b| a.host == b.host);
    hosts.map(|own| own.iter().filter(|it| it.counts()).count()).max().unwrap_or(0)
}

/// Why a rule that looks at steps cannot look.
pub const NO_STEPS: &str = "no steps could be identified";

/// How many steps of a host count.
pub fn counted_steps(tables: &Tables, host: &str) -> usize {
    tables.get::<Step>().iter().filter(|it| it.counts() && it.host == host).count()
}

/// Whether the profile shows anything of what the host did.
pub fn has_host_events(tables: &Tables) -> bool {
    let tracks = &tables.trace().tracks;
    tracks.iter().any(|it| it.kind == TrackKind::Thread && !it.events.is_empty())
}

/// A rule that has this much of a category has nearly all of it.
/// Source: choice, the tenth that predictions may be wrong by.
const NEARLY_ALL: f64 = 0.9;

/// What it gives to no longer trace or compile, where `cost` is a rule's part of that.
pub fn without_compile(tables: &Tables, facts: &Facts, cost: Dur) -> Option<Gain> {
    let all = facts.of("compile");
    // Where a rule holds nearly all of the category, the replay says what is left without it.
    if cost.0 as f64 >= NEARLY_ALL * all.0 as f64 {
        Gain::of_change(tables, &Altered::Without("compile"))
    } else {
        Some(Gain::of_times(facts.step.0, facts.step.0 - cost.0))
    }
}

/// What recording one call of Python takes.
/// Source: measured by `bench/costs/run`, 0.2 µs in a loop that does nothing else, up to 0.6 µs on
/// a busy machine; in JAX programs, profiled and not, it was 0.24 to 1.3 µs.
const RECORDED_CALL_PS: i64 = 650_000;

/// At most this part of what was found is taken to be recording.
/// Source: choice, a guess: some of it was there without a profiler.
const RECORDED_AT_MOST: (i64, i64) = (7, 10);

/// What recording the driving thread's Python calls took of a step, as far as it can be part of
/// what a rule found.
pub fn recorded_python(tables: &Tables, found: Dur) -> Dur {
    let calls: i64 = tables.get::<PythonTime>().iter().map(|it| it.calls).sum();
    let n = Counted::of(tables).map_or(1, |it| it.n);
    Dur((calls.saturating_mul(RECORDED_CALL_PS) / n.max(1))
        .min(found.0 / RECORDED_AT_MOST.1 * RECORDED_AT_MOST.0)
        .max(0))
}

/// What recording an op takes where each has an event with its arguments, and does not show in the
/// op's own time.
/// Source: measured by `bench/costs/run`, PyTorch's profiler: 1.2 µs an op, 1.5 with its shapes, 2
/// with memory.
const RECORDED_OP_PS: i64 = 1_400_000;

/// What recording the driving thread's ops took of a step, as far as it can be part of what a rule
/// found.
pub fn recorded_ops(tables: &Tables, found: Dur) -> Dur {
    let (Some(counted), trace) = (Counted::of(tables), tables.trace()) else { return Dur(0) };
    let Some(thread) = counted.thread(trace) else { return Dur(0) };
    let is_op = |it: &str| dialect::any(|one| one.beside_work(it).is_some() || one.goes_on(it));
    let names: HashSet<StrId> =
        trace.strings.iter().filter(|it| is_op(it.1)).map(|it| it.0).collect();
    if names.is_empty() {
        return Dur(0);
    }
    let rows = rows_in(trace, thread, counted.window);
    let n = rows.filter(|&it| names.contains(&trace.events.name[it])).count() as i64;
    let all = n.saturating_mul(RECORDED_OP_PS) / counted.n.max(1);
    Dur(all.min(found.0 / RECORDED_AT_MOST.1 * RECORDED_AT_MOST.0).max(0))
}

impl Facts {
    /// Time of the mean step in a category.
    pub fn of(&self, category: &str) -> Dur {
        Dur(self.mean.category(category))
    }

    pub fn share(&self, category: &str) -> f64 {
        self.share_of(self.of(category))
    }

    /// `9.4 ms per step (68%)`.
    pub fn per_step(&self, time: Dur) -> String {
        format!("{time} per step ({})", percent(self.share_of(time)))
    }

    /// Rows of `step_time` that statistics rest on: evidence for what is said of the mean step.
    pub fn rows(tables: &Tables) -> Vec<usize> {
        let rows = tables.get::<StepTime>();
        (0..rows.len()).filter(|&it| rows[it].counts).take(MOST_ROWS).collect()
    }

    pub fn share_of(&self, time: Dur) -> f64 {
        time.0 as f64 / self.step.0.max(1) as f64
    }
}

/// As many as a person looks at.
/// Source: choice, one screen.
pub const MOST_ROWS: usize = 20;
/// As many of many are named in sentences.
/// Source: choice, as many as a person keeps in mind.
pub const MOST_NAMED: usize = 3;

/// An op that computes, on the side that does the computing.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// Its row in `op_time`.
    pub row: usize,
    pub name: String,
    pub op_type: String,
    pub count: i64,
    pub own: Dur,
    /// Of all computing ops' time on its side.
    pub share: f64,
}

impl Op {
    /// Computing ops, longest first.
    pub fn all(tables: &Tables) -> Vec<Op> {
        let rows = tables.get::<OpTime>();
        let side = if rows.iter().any(|it| it.side == "device") { "device" } else { "host" };
        let mut ops: Vec<Op> = rows
            .iter()
            .enumerate()
            .filter(|(_, it)| it.side == side && it.family != "tf.data")
            .filter(|(_, it)| {
                let kind = OpKind::of_type(it.op_type.as_deref().unwrap_or(""));
                side == "device" || matches!(kind, OpKind::Op | OpKind::Program)
            })
            .map(|(row, it)| Op {
                row,
                name: it.name.clone(),
                op_type: it.op_type.clone().unwrap_or_default(),
                count: it.count,
                own: Dur(it.self_ps),
                share: 0.0,
            })
            .collect();
        let all: f64 = ops.iter().map(|it| it.own.0 as f64).sum();
        for op in &mut ops {
            op.share = op.own.0 as f64 / all.max(1.0);
        }
        ops.sort_by(|a, b| b.own.cmp(&a.own).then_with(|| a.name.cmp(&b.name)));
        ops
    }

    /// How long it runs each time.
    pub fn each(&self) -> Dur {
        Dur(self.own.0 / self.count.max(1))
    }

    /// `scope/name (Type)`, without what the framework puts in front.
    pub fn label(&self) -> String {
        let name = self.name.trim_start_matches("StatefulPartitionedCall/");
        let name = &without_types(name);
        if self.op_type.is_empty() || name.ends_with(&self.op_type) {
            name.to_owned()
        } else {
            format!("{name} ({})", self.op_type)
        }
    }
}

/// A kernel of C++ without its return type, the types it was made for, and its arguments:
/// `void at::native::add<float, 4>(int, float*)` is `at::native::add<…>`.
fn without_types(name: &str) -> String {
    let Some(function) = name.strip_prefix("void ") else { return name.to_owned() };
    match function.find(['<', '(']) {
        Some(at) if function[at..].starts_with('<') => format!("{}<…>", &function[..at]),
        Some(at) => function[..at].to_owned(),
        None => function.to_owned(),
    }
}

/// From here on a number rounds to two digits or more, and needs no decimals.
/// Source: physical, 9.95 is written as 10.
pub(crate) const TWO_DIGITS: f64 = 9.95;

/// A share, as a person says it: `68%`, `2.9%`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < TWO_DIGITS { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// A number of things, with its noun: `1 step`, `2,431 ops`.
pub fn counted(n: usize, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", thousands(n))
}

/// Thousands apart by a comma.
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_types;

    #[test]
    fn a_kernel_s_name_is_short_enough_to_read() {
        let check = |name, expected| assert_eq!(without_types(name), expected);
        check("void at::native::add<float, 4>(int, float*)", "at::native::add<…>");
        check("void gemm(int)", "gemm");
        check("dense/MatMul", "dense/MatMul");
    }
}
