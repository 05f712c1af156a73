//! The step is called op by op from Python.

use analyses::Tables;
use analyses::code_site::compile_site;
use analyses::host_call::{HostCall, eager_ops};
use trace::Dur;

use crate::edits::{in_framework, is_jax};
use crate::facts::{NO_STEPS, facts, percent, recorded_python, thousands};
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Verdict, WORTH_SAYING};

rule! {
    /// Python dispatches the step's ops one at a time, and dispatching takes longer than the ops.
    ///
    /// ## Evidence
    /// Single ops called from Python in a step: how many, the time to dispatch them, and the Python
    /// between them, against the time of the ops themselves.
    ///
    /// ## Fix
    /// Put the whole step in one `tf.function` (Keras: `run_eagerly=False`) or one `jax.jit`.
    ///
    /// ## When it is wrong
    /// A few large ops lose nothing by being called one by one. What Python itself computes
    /// between the ops, such as a print or a dictionary, stays.
    pub struct EagerOps = "eager-ops";
}

/// What an op costs inside a graph beside its own work, at worst, likely, at best. Measured on
/// TensorFlow 2.21's executor.
const IN_GRAPH_PS: [i64; 3] = [2_000_000, 700_000, 300_000];
/// What a kernel called on its own takes beside its work, under a profiler; and of tiny ones, the
/// part that is left when they are fused, folded away or run side by side.
const ON_ITS_OWN_PS: [i64; 3] = [2_000_000, 10_000_000, 15_000_000];
const FUSED: [f64; 3] = [0.6, 0.1, 0.03];
/// Calling one function from Python.
const CALL_PS: i64 = 300_000_000;
/// Where this much of the host's time goes to the calls, the rest of it goes with them.
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
        let cost = Dur((eager.calls_ps - eager.work_ps + eager.between_ps).max(0));
        if !eager.are_many() || facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        let step = facts.step.0;
        let taken = eager.calls_ps + eager.between_ps;
        let host = (facts.of("python") + facts.of("runtime")).0;
        let rest = match facts.share_of(Dur(taken)) > NEARLY_ALL {
            true => step - host.max(taken - eager.work_ps) - eager.work_ps,
            false => step - taken,
        };
        let new = [0, 1, 2].map(|it| {
            let per_op = eager.work_ps / eager.per_step.max(1);
            let least = (per_op as f64 * FUSED[it]) as i64;
            let work = (per_op - ON_ITS_OWN_PS[it]).max(least) * eager.per_step;
            let call = CALL_PS.min(taken / 4);
            (rest.max(0) + work + eager.per_step * IN_GRAPH_PS[it] + call).min(step)
        });
        // What is left is predicted as it will be, without a profiler; so is what was there.
        let old = step - recorded_python(tables, cost).0;
        let gain = Gain {
            low: Gain::of_times(old, new[0]).low,
            speedup: Gain::of_times(old, new[1]).speedup,
            high: Gain::of_times(step, new[2]).high,
        };
        let title = format!(
            "Python dispatches {} ops per step one at a time; that overhead is {cost} ({} of the step)",
            thousands(usize::try_from(eager.per_step).unwrap_or(0)),
            percent(facts.share_of(cost)),
        );
        let mut ops: Vec<&HostCall> = calls.iter().filter(|it| it.kind != "other").collect();
        ops.sort_by_key(|it| std::cmp::Reverse(it.count));
        let names: Vec<String> =
            ops.iter().take(3).map(|it| format!("{} ({:.0})", it.call, it.per_step)).collect();
        let rows = calls.iter().enumerate().filter(|it| it.1.kind != "other").map(|it| it.0);
        let rows: Vec<usize> = rows.take(20).collect();
        let times = format!(
            "The ops themselves take {}; dispatching them and the Python in between take {}",
            Dur(eager.work_ps),
            Dur((taken - eager.work_ps).max(0)),
        );
        let decorator = in_framework(tables, "@tf.function", "@jax.jit");
        let finding = Finding::new(title, cost, facts.step)
            .evidence(Evidence::text(times).rows("host_call", rows.clone()))
            .evidence(
                Evidence::text(format!("Most often, per step: {}", names.join(", ")))
                    .rows("host_call", rows),
            )
            .fix(
                Fix::new(Change::CompileStep, "Turn the whole step into one compiled function")
                    .edit(format!("{decorator}\ndef train_step(...):"))
                    .gives(Some(gain)),
            );
        match is_jax(tables) {
            true => finding,
            false => finding.fix(
                Fix::new(
                    Change::CompileStep,
                    "In Keras, compile the model without run_eagerly=True",
                )
                .gives(Some(gain))
                .at(compile_site(tables).filter(|it| it.arg("run_eagerly") == Some("True"))),
            ),
        }
        .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is the overhead of dispatching ops one at a time")
    }
}

#[cfg(test)]
mod tests {
    use super::EagerOps;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

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
