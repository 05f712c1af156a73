//! The step is called op by op from Python.

use analyses::Tables;
use analyses::code_site::compile_site;
use analyses::host_call::{HostCall, eager_ops};
use trace::Dur;
use trace::dialect;

use crate::dialect::{Edit, Words, eager_costs};
use crate::facts::{
    MOST_NAMED, NO_STEPS, facts, percent, recorded_ops, recorded_python, thousands,
};
use crate::launches::launches;
use crate::lines::{function_of_step, rows_at};
use crate::slow_steps::SlowSteps;
use crate::small_batch::set_up;
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Verdict, WORTH_SAYING};

rule! {
    /// Python dispatches the step's ops one at a time, and dispatching takes longer than the ops.
    ///
    /// ## Evidence
    /// Single ops called from Python in a step: how many, the time to dispatch them, and the Python
    /// between them, against the time of the ops themselves.
    ///
    /// ## Fix
    /// Put the whole step in one `tf.function` (Keras: `run_eagerly=False`) or one `jax.jit`. A
    /// Python loop over the examples of a batch becomes one call (`jax.vmap`). Ops that only watch
    /// the training need not run in every step.
    ///
    /// ## When it is wrong
    /// A few large ops lose nothing by being called one by one. What Python itself computes
    /// between the ops, such as a print or a dictionary, stays.
    pub struct EagerOps = "eager-ops";
}

/// What is left of the work of tiny ops when they are fused, folded away or run side by side, at
/// worst, likely, at best.
/// Source: choice, a guess: a third at worst.
const FUSED: [f64; 3] = [0.3, 0.1, 0.03];
/// Of the time in which a device waits for the host, the part that stays when the model is compiled,
/// at worst, likely, at best: kernels are still launched one by one, if fewer.
/// Source: choice, a guess: half of them are fused away; at best launches are recorded as a graph.
const LAUNCHES_STAY: [f64; 3] = [0.7, 0.4, 0.1];
/// And at most one part in so many of what the eager calls took.
/// Source: choice, a guess: a quarter.
const CALL_AT_MOST: i64 = 4;
/// Where this much of the host's time goes to the calls, the rest of it goes with them.
/// Source: choice, fitted to eager scripts and their compiled twins.
const NEARLY_ALL: f64 = 0.6;

impl Rule for EagerOps {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let calls = tables.get::<HostCall>();
        if calls.is_empty() {
            return Verdict::unknown("this profile shows no calls of the training thread");
        }
        let eager = eager_ops(tables);
        let host = (facts.of("python") + facts.of("runtime")).0 + eager.in_compute_ps;
        // Tracing and saving inside a call are causes of their own.
        let cost = eager.calls_ps - eager.work_ps + eager.between_ps;
        let costs = eager_costs(tables);
        // Beside a device that is busy, dispatching costs nothing.
        let is_hidden = costs.is_hidden_by_device && facts.on_device;
        let exposed = is_hidden.then(|| launches(tables)).flatten();
        let host = exposed.as_ref().map_or(host, |it| it.dispatching.0.min(host));
        let cost = Dur(cost.min(host).max(0));
        if !eager.are_many() || facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        let step = facts.step.0;
        let taken = (eager.calls_ps + eager.between_ps).min(host + eager.work_ps);
        // Where an op's event holds its work, large ops take most of the calls.
        let overhead = if eager.in_compute_ps > 0 { taken - eager.work_ps } else { taken };
        let rest = match facts.share_of(Dur(overhead)) > NEARLY_ALL && exposed.is_none() {
            true => step - host.max(taken - eager.work_ps) - eager.work_ps,
            false => step - taken,
        };
        let call = costs.call_ps.min(taken / CALL_AT_MOST);
        // `part` is what stays of an op's own work when it is not called on its own.
        let in_one_call = |part: [f64; 3], ops: i64| {
            [0, 1, 2].map(|it| {
                let per_op = eager.work_ps / eager.per_step.max(1);
                let least = (per_op as f64 * FUSED[it].min(part[it])) as i64;
                let own = ((per_op - costs.on_its_own_ps[it]) as f64 * part[it]) as i64;
                let work = own.max(least) * eager.per_step;
                (rest.max(0) + work + ops * costs.in_graph_ps[it] + call).min(step)
            })
        };
        let new = match &exposed {
            Some(_) => LAUNCHES_STAY.map(|part| step - taken + (part * taken as f64) as i64),
            None => in_one_call(costs.large_ops, eager.per_step),
        };
        // What is left is predicted as it will be, without a profiler; so is what was there.
        let old = step - recorded_python(tables, cost).0 - recorded_ops(tables, cost).0;
        let gain = Gain {
            low: Gain::of_range(old, new).low,
            speedup: Gain::of_times(old, new[1]).speedup,
            high: Gain::on_host(step, new).high,
        };
        // Starting a kernel on its own is overhead as well.
        let cost = cost.max(Dur(step - new[1]));
        let title = format!(
            "Python dispatches {} ops per step one at a time; that overhead is {cost} ({} of the step)",
            thousands(usize::try_from(eager.per_step).unwrap_or(0)),
            percent(facts.share_of(cost)),
        );
        let mut ops: Vec<&HostCall> = calls.iter().filter(|it| it.kind != "other").collect();
        ops.sort_by_key(|it| std::cmp::Reverse(it.count));
        let names: Vec<String> = ops
            .iter()
            .take(MOST_NAMED)
            .map(|it| format!("{} ({:.0})", it.call, it.per_step))
            .collect();
        let rows = calls.iter().enumerate().filter(|it| it.1.kind != "other").map(|it| it.0);
        // All that are counted: the sentence can be checked against them.
        let rows: Vec<usize> = rows.collect();
        let reaching = Dur((taken - eager.work_ps).max(0));
        let times = match Dur(eager.work_ps) {
            // They only hand work to a device.
            Dur(0) => format!("Dispatching and the Python in between take {reaching}"),
            work => format!(
                "Dispatching and the Python in between take {reaching}, starting and running the \
                 ops {work}"
            ),
        };
        let caller = function_of_step(tables);
        let mut finding = Finding::new(title, cost, facts.step);
        if let Some(it) = &caller {
            let function = it.name.as_ref().map(|it| format!(" of {it}")).unwrap_or_default();
            let text = format!("They are called from {}{function}", it.place());
            finding =
                finding.evidence(Evidence::text(text).rows("python_line", rows_at(tables, it)));
        }
        let turning = Loop::of(&calls).filter(|_| Words::of(tables).has(Edit::Vectorize));
        let in_turns = turning.as_ref().map(|it| {
            let new = match costs.one_op_ps {
                Some(op) => it.at_once(step, taken, op),
                None => in_one_call(TOGETHER, eager.per_step / it.turns),
            };
            let text = format!(
                "If the loop's {} passes are the examples of a batch, compute them in one call",
                it.turns
            );
            let fix = Fix::new(Change::Vectorize, text).edit(Edit::Vectorize.with(it.turns));
            match it.perhaps_layers {
                true => fix.untold("they may as well be the layers of the model"),
                false => fix.gives(Some(Gain::of_range(old, new))),
            }
        });
        // What may not be a loop at all comes last.
        let (in_turns, perhaps) = match turning.as_ref().is_some_and(|it| it.perhaps_layers) {
            true => (None, in_turns),
            false => (in_turns, None),
        };
        let finding = in_turns.into_iter().fold(finding, Finding::fix);
        let finding = finding
            .evidence(Evidence::text(times).rows("host_call", rows.clone()))
            .evidence(
                Evidence::text(format!("Most often, per step: {}", names.join(", ")))
                    .rows("host_call", rows),
            )
            .fix(
                Fix::new(Change::CompileStep, "Turn the whole step into one compiled function")
                    .edit(Edit::CompileStep)
                    .gives(Some(gain))
                    .at(caller.filter(|_| costs.compiles_function)),
            )
            .symptom_of(if set_up(tables, &facts).is_some() { &["small-batch"] } else { &[] });
        let finding = perhaps
            .into_iter()
            .fold(finding, Finding::fix)
            .symptom_of(if are_in_slow_steps(tables, cost) { &["step-outliers"] } else { &[] });
        if turning.is_some() && costs.one_op_ps.is_none() {
            return finding.found();
        }
        // A compiled step is there, and this is beside it.
        if let Some(compiled) = calls.iter().find(|it| it.kind == "function") {
            let left = step - taken;
            let seldom = Gain::on_host(old, [step - cost.0, left, left]);
            let text = format!(
                "If these ops only monitor the training, run them every 50 steps, not after each {}",
                compiled.call
            );
            let fix = Fix::new(Change::EveryNSteps, text).gives(Some(seldom));
            return finding.fix(fix).found();
        }
        finding
            .fix(
                Fix::new(Change::CompileStep, "Leave the model compiled")
                    .edit(Edit::CompileModel)
                    .gives(Some(gain))
                    .at(compile_site(tables).filter(|it| it.arg("run_eagerly") == Some("True"))),
            )
            .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is the overhead of dispatching ops one at a time")
    }
}

/// Whether the ops are those of a few slow steps, as an evaluation every tenth step calls them.
fn are_in_slow_steps(tables: &Tables, cost: Dur) -> bool {
    let slow = SlowSteps::find(tables).filter(|it| !it.is_noise && it.period.is_some());
    slow.is_some_and(|it| it.cost.0 as f64 >= MOSTLY * cost.0 as f64)
}

/// Calls that a loop of a step makes, each once in a turn or several times.
struct Loop {
    /// As often as most of the calls come.
    turns: i64,
    calls_per_step: f64,
    /// In the calls, and in Python between them.
    takes_ps: i64,
    work_ps: i64,
    /// Its calls have weights: each turn may be another layer.
    perhaps_layers: bool,
}

impl Loop {
    fn of(calls: &[HostCall]) -> Option<Loop> {
        let is_call = |it: &&HostCall| it.kind != "other";
        let all: f64 = calls.iter().filter(is_call).map(|it| it.per_step).sum();
        let made_by = |turns: i64| {
            let is_in_loop = move |it: &&HostCall| {
                let in_a_turn = it.per_step / turns as f64;
                let whole = in_a_turn.round();
                (1.0..=MOST_IN_A_TURN).contains(&whole) && (in_a_turn - whole).abs() <= NEARLY
            };
            calls.iter().filter(is_call).filter(is_in_loop)
        };
        let times = |turns: i64| made_by(turns).map(|it| it.per_step).sum::<f64>();
        let candidates = calls.iter().filter(is_call).map(|it| it.per_step.round() as i64);
        let candidates = candidates.filter(|&it| it >= MANY_TURNS);
        // Of two that explain the same calls, the loop with more turns: the other is a part of it.
        let turns = candidates.max_by(|&a, &b| times(a).total_cmp(&times(b)).then(a.cmp(&b)))?;
        (times(turns) >= MOSTLY * all).then(|| Loop {
            turns,
            calls_per_step: times(turns),
            takes_ps: made_by(turns).map(|it| it.total_ps + it.between_ps()).sum(),
            work_ps: made_by(turns).filter_map(|it| it.work_ps).sum(),
            perhaps_layers: made_by(turns).any(|it| dialect::any(|one| one.is_layer(&it.call))),
        })
    }

    /// The step with all turns at once, each op called on its own as before.
    fn at_once(&self, step: i64, taken: i64, op_ps: [i64; 3]) -> [i64; 3] {
        let calls = self.calls_per_step / self.turns as f64;
        let takes = self.takes_ps.min(taken);
        [0, 1, 2].map(|it| {
            let work = self.work_ps as f64 * TOGETHER[it] + calls * op_ps[it] as f64;
            (step - takes + work as i64).clamp(0, step)
        })
    }
}

/// A call before or after the loop is one more.
/// Source: choice, a twentieth.
const NEARLY: f64 = 0.05;
/// An op comes so often in a turn at most: once for each of a model's weights.
/// Source: choice, the weights of a small model, which is one that is trained example by example.
const MOST_IN_A_TURN: f64 = 16.0;
/// Layers of a model are fewer than this, or called by different names.
/// Source: choice, a small batch.
const MANY_TURNS: i64 = 16;
/// The loop is what most of the calls are for.
/// Source: physical, nothing else can be more.
const MOSTLY: f64 = 0.5;
/// What is left of the ops' own time when all turns are computed at once, at worst, likely, at
/// best.
/// Source: choice, a guess: short ops are mostly beginning and end.
const TOGETHER: [f64; 3] = [1.0, 0.4, 0.02];

#[cfg(test)]
mod tests {
    use super::EagerOps;
    use crate::Verdict;
    use crate::testing::{finding, in_loop, missing, verdict};

    /// Steps of 40 calls, each 10 µs with `work` of its own, 2 µs apart.
    fn picture(n: i64, work: f64) -> String {
        let mut text = "host/python: ".to_owned();
        for step in 0..4 {
            let at = step * 480;
            text += &format!("train#{step} {at}..{}, ", at + 480);
            for op in 0..n {
                let at = at + 12 * op;
                text += &format!(
                    "EagerExecute{{calls_function=false}} {at}..{0}, EagerLocalExecute: Mul {at}..{0}, \
                     KernelAndDeviceFunc::Run {at}..{1}, ",
                    at + 10,
                    at as f64 + work,
                );
            }
        }
        text + "x 0..1"
    }

    #[test]
    fn a_step_of_small_ops_is_found() {
        let found = finding(&EagerOps, &picture(40, 1.0));
        assert!(
            found.title.starts_with("Python dispatches 40 ops per step one at a time"),
            "{}",
            found.title
        );
        let gain = found.gain.unwrap();
        assert!(gain.low > 1.5 && gain.high > gain.speedup, "{gain:?}");
    }

    #[test]
    fn a_loop_over_examples_is_one_call() {
        let mut picture = "host/python: ".to_owned();
        for step in 0..4 {
            let at = step * 1000;
            picture += &format!("train#{step} {at}..{}, ", at + 1000);
            for turn in 0..32 {
                let at = at + 30 * turn;
                picture += &format!(
                    "PjitFunction(grads) {at}..{}, PjitFunction(add) {}..{}, ",
                    at + 12,
                    at + 14,
                    at + 28
                );
            }
        }
        let found = finding(&EagerOps, &(picture + "x 0..1"));
        assert_eq!(found.fix[0].change.name(), "vectorize");
        assert!(found.fix[0].text.starts_with("If the loop's 32 passes"), "{:?}", found.fix);
    }

    #[test]
    fn an_op_may_come_several_times_in_a_turn() {
        let mut picture = "host/python: ".to_owned();
        for step in 0..4 {
            let at = step * 2000;
            picture += &format!("train#{step} {at}..{}, ", at + 2000);
            for turn in 0..20 {
                let at = at + 90 * turn;
                picture += &format!("PjitFunction(grads) {at}..{}, ", at + 12);
                for weight in 1..5 {
                    let at = at + 15 * weight;
                    picture += &format!("PjitFunction(add) {at}..{}, ", at + 12);
                }
            }
        }
        let found = finding(&EagerOps, &(picture + "x 0..1"));
        assert!(found.fix[0].text.starts_with("If the loop's 20 passes"), "{:?}", found.fix);
    }

    #[test]
    fn the_function_that_calls_them_is_the_one_to_compile() {
        let file = "/home/me/train.py";
        let stack = [(file, "main", 41), (file, "train_step", 12)];
        let found = in_loop(&EagerOps, &picture(40, 1.0), &stack);
        assert_eq!(found.evidence[0].text, "They are called from train.py:1 of train_step");
        assert_eq!(found.fix[0].site.as_ref().unwrap().kind, "function");
        // Where the loop itself calls them, its line is named, and nothing is there to compile.
        let found = in_loop(&EagerOps, &picture(40, 1.0), &stack[..1]);
        assert_eq!(found.evidence[0].text, "They are called from train.py:41");
        assert_eq!(found.fix[0].site.as_ref().unwrap().kind, "line");
    }

    #[test]
    fn a_few_ops_are_clear() {
        assert_eq!(verdict(&EagerOps, &picture(3, 1.0)), Verdict::Clear);
    }

    #[test]
    fn without_a_driving_thread_it_cannot_know() {
        let picture = "gpu0/s: a 0..10, b 10..20, b 20..30, c 30..40, a 50..60, b 60..70, b 70..80, \
             c 80..90, a 100..110, b 110..120, b 120..130, c 130..140";
        assert!(missing(&EagerOps, picture).contains("shows no calls"));
    }
}
