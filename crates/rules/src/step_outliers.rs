//! Some training steps take much longer than the others.

use analyses::Tables;
use analyses::input_stage::pipeline::Pipeline;
use analyses::step_spread::StepSpread;

use crate::dialect::Edit;
use crate::facts::NO_STEPS;
use crate::slow_steps::{SlowSteps, TOO_FEW, is_forward_only, ordinal};
use crate::{Change, Finding, Fix, Rule, Verdict, WORTH_SAYING, facts};

rule! {
    /// Some steps take much longer than the others.
    ///
    /// ## Evidence
    /// Which steps take more than half as long again as a typical one and lie far outside the
    /// spread of the others, whether they come regularly, and what they had more of: the category
    /// of time and the op or event that takes it.
    ///
    /// ## Fix
    /// That depends on what they had more of, which the finding names: save less often or in the
    /// background, do evaluation and logging elsewhere, bucket batches by size.
    ///
    /// ## When it is wrong
    /// On a busy machine steps are slow without a cause of their own: where slow steps share
    /// neither a cause nor a rhythm, the finding is low. What happens less often than the capture
    /// is long is not seen at all.
    pub struct StepOutliers = "step-outliers";
}

impl Rule for StepOutliers {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        if tables.get::<StepSpread>().is_empty() {
            return Verdict::unknown(TOO_FEW);
        }
        let Some(slow) = SlowSteps::find(tables) else {
            return Verdict::Clear;
        };
        if facts.share_of(slow.cost) < WORTH_SAYING || is_forward_only(tables) {
            return Verdict::Clear;
        }
        let finding = Finding::new(
            format!(
                "{} {} {:.1}× as long as the others{}",
                slow.which("step"),
                slow.verb(),
                slow.ratio,
                slow.spent()
            ),
            slow.cost,
            facts.step,
        );
        let finding = slow.describe(tables, finding).symptom_of(slow.causes());
        let fix = match slow.category {
            _ if let Some(function) = &slow.extra_call => Fix::new(
                Change::EveryNSteps,
                format!("Call {function} less often, or on less data"),
            ),
            "output" => Fix::new(Change::EveryNSteps, "Save less often").edit(Edit::SaveSeldom),
            "compile" => Fix::new(
                Change::PadShapes,
                "Keep shapes and Python arguments the same in every step",
            ),
            "input" if tables.model::<Pipeline>().fetches_ahead() => Fix::new(
                Change::CheaperInput,
                "If a buffer fills at the start of every epoch, call repeat() before shuffle(), or use a \
                 smaller shuffle buffer; else make the slow elements cheaper",
            ),
            "input" => Fix::new(Change::Prefetch, "Prefetch, so that a slow element is hidden")
                .edit(Edit::Prefetch),
            _ if let Some(period) = slow.period => Fix::new(
                Change::EveryNSteps,
                format!(
                    "Do what every {} step adds (evaluation, sampling, logging) less often",
                    ordinal(period)
                ),
            ),
            "python" => Fix::new(
                Change::EveryNSteps,
                "Do logging, evaluation and callbacks less often, or in a thread",
            ),
            "compute" => Fix::new(
                Change::PadShapes,
                "Bucket batches by size, so that each has about the same work",
            ),
            _ => Fix::new(
                Change::Capture,
                "Compare a slow step with an ordinary one in the timeline",
            ),
        };
        finding.fix(fix.gives(slow.gain())).found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("comes from a few slow steps")
    }
}

#[cfg(test)]
mod tests {
    use super::StepOutliers;
    use crate::latency_tail::LatencyTail;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    /// Training steps of 40 µs; the long ones end with `what`.
    fn steps(n: usize, is_long: fn(usize) -> bool, what: &str) -> String {
        let (mut python, mut compute) = (String::new(), String::new());
        let mut at = 0;
        for step in 0..n {
            let (start, ops) = (at, at + 40);
            at = if is_long(step) { at + 340 } else { ops };
            python += &format!("train#{step} {start}..{at}, EagerExecute {start}..{ops}, ");
            compute += &format!("w/AssignSubVariableOp:AssignSubVariableOp {start}..{ops}, ");
            if is_long(step) && !what.is_empty() {
                python += &format!("EagerExecute {ops}..{at}, {what} {ops}..{at}, ");
            }
        }
        format!("host/python: {python}\nhost/tf_Compute: {compute}\n")
    }

    #[test]
    fn saving_every_third_step_is_found() {
        let picture = steps(12, |it| it % 3 == 0, "SaveV2:SaveV2");
        let found = finding(&StepOutliers, &picture);
        assert_eq!(
            found.title,
            "Every 3rd step takes 8.5× as long as the others; the extra time is spent in SaveV2"
        );
        assert_eq!(found.severity, Severity::High);
        assert_eq!(found.cost.0, 95_000_000);
        assert_eq!(found.symptom_of, ["checkpoint-stall"]);
        assert_eq!(verdict(&LatencyTail, &picture), Verdict::Clear, "one of the two");
    }

    #[test]
    fn a_pause_of_python_hangs_below_its_cause() {
        let found = finding(&StepOutliers, &steps(20, |it| it % 5 == 4, ""));
        assert!(
            found.title.ends_with("the extra time is Python outside the framework"),
            "{}",
            found.title
        );
        assert_eq!(found.symptom_of, ["python-overhead"]);
    }

    #[test]
    fn calls_that_other_steps_do_not_make_are_named() {
        let mut picture = "host/python: x 0..1".to_owned();
        let mut compute = "\nhost/tf_Compute: x 0..1".to_owned();
        let mut at = 1;
        for step in 1..=81 {
            let calls =
                if step % 20 == 0 { &["train", "evaluate", "evaluate"][..] } else { &["train"] };
            for function in calls {
                let (dur, op) =
                    if *function == "train" { (40, "AssignSubVariableOp") } else { (90, "MatMul") };
                picture += &format!(", {function}{{traced=false}} {at}..{}", at + dur);
                compute += &format!(", {op}:{op} {at}..{}", at + dur);
                at += dur;
            }
        }
        let found = finding(&StepOutliers, &(picture + &compute));
        assert!(
            found.title.starts_with(
                "Every 20th step takes 5.5× as long as the others because it calls evaluate"
            ),
            "{}",
            found.title
        );
        assert_eq!(found.fix[0].text, "Call evaluate less often, or on less data");
    }

    #[test]
    fn one_slow_step_is_low() {
        let found = finding(&StepOutliers, &steps(20, |it| it == 7, "x/MatMul:MatMul"));
        assert_eq!(found.severity, Severity::Low, "{}", found.title);
    }

    #[test]
    fn steps_that_are_alike_are_clear() {
        assert_eq!(verdict(&StepOutliers, &steps(12, |_| false, "")), Verdict::Clear);
    }

    #[test]
    fn with_few_steps_it_cannot_know() {
        assert_eq!(missing(&StepOutliers, "gpu0/s: k 0..1"), "no steps could be identified");
        let picture = steps(4, |_| false, "");
        assert_eq!(missing(&StepOutliers, &picture), "fewer than five steady steps");
    }
}
