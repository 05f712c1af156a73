//! Python holds the step while nothing of the framework runs.

use analyses::Tables;

use crate::facts::{NO_STEPS, facts, percent};
use crate::{Evidence, Finding, Gain, Rule, Verdict, WORTH_SAYING};

rule! {
    /// Python code of the training loop holds the step.
    ///
    /// ## Evidence
    /// The time of a step in which the driving thread was outside any call of the framework and
    /// nothing computed: metrics, logging, callbacks, conversions to NumPy.
    ///
    /// ## Fix
    /// Do it every N steps, or in a thread, or inside the compiled step.
    ///
    /// ## When it is wrong
    /// Without Python events in the profile it cannot be told which line holds the time, nor
    /// whether Python worked or slept. Work of other libraries (NumPy, a database) counts as
    /// Python.
    pub struct PythonOverhead = "python-overhead";
}

impl Rule for PythonOverhead {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let share = facts.share("python");
        if share < WORTH_SAYING {
            return Verdict::Clear;
        }
        let cost = facts.of("python");
        Finding::new(
            format!("Python outside the framework holds {cost} of a step, {}", percent(share)),
            cost,
            facts.step,
        )
        .gain(Gain::of_change(tables, "without python"))
        .evidence(
            Evidence::text(format!(
                "in {} steps the driving thread called nothing and nothing computed",
                facts.n_steps
            ))
            .rows("step_time", Vec::new()),
        )
        .fix("do logging, metrics and callbacks every N steps, or in a thread")
        .found()
    }
}

#[cfg(test)]
mod tests {
    use super::PythonOverhead;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    #[test]
    fn gaps_between_calls_are_python() {
        let found = finding(
            &PythonOverhead,
            "
            host/python: train#1 0..100, EagerExecute 0..40, train#2 100..200, \
            EagerExecute 100..140, train#3 200..300, EagerExecute 200..240
            host/tf_Compute: MatMul:MatMul 5..40, MatMul:MatMul 105..140, MatMul:MatMul 205..240
            ",
        );
        assert_eq!(found.severity, Severity::High);
        assert_eq!(found.cost.0, 60_000_000);
        let gain = found.gain.unwrap();
        assert!((gain.speedup - 2.5).abs() < 1e-9, "{gain:?}");
    }

    #[test]
    fn a_driving_thread_that_always_calls_is_clear() {
        let picture = "
            host/python: train#1 0..100, EagerExecute 0..99, train#2 100..200, \
            EagerExecute 100..199, train#3 200..300, EagerExecute 200..299
            ";
        assert_eq!(verdict(&PythonOverhead, picture), Verdict::Clear);
    }

    #[test]
    fn without_steps_it_cannot_know() {
        assert_eq!(missing(&PythonOverhead, "gpu0/s: k 0..1"), "no steps could be told apart");
    }
}
