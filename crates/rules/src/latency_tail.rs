//! Some requests of a service take many times as long as the others.

use analyses::Tables;
use analyses::step_spread::StepSpread;
use trace::Dur;

use crate::dialect::Edit;
use crate::facts::NO_STEPS;
use crate::slow_steps::{SlowSteps, TOO_FEW, is_forward_only};
use crate::{Change, Finding, Fix, Rule, Severity, Verdict, facts};

rule! {
    /// A few requests take many times as long as most.
    ///
    /// ## Evidence
    /// In a loop that only computes forward: the percentiles of its steps, which steps are slow,
    /// whether they come regularly, and what they had more of than the others.
    ///
    /// ## Fix
    /// Where an op had more to do, the requests were larger: cap or bucket their size, or split
    /// large ones. Where they traced or compiled, warm up every shape before serving. Where they
    /// waited, move what they waited for off the path.
    ///
    /// ## When it is wrong
    /// Fewer than a hundred steps say little about the 99th percentile. On a busy machine single
    /// requests are slow without a cause of their own: such a finding is low. A training loop
    /// whose gradients do not show in the profile is taken for a service.
    pub struct LatencyTail = "latency-tail";
}

/// From here on a tail is felt: the usual budget for the 99th percentile is twice the median.
/// Source: choice, a guess.
const TAIL: f64 = 2.0;
/// From here on it is a problem of its own, however rare the slow ones are.
/// Source: choice, a guess.
const LONG_TAIL: f64 = 5.0;

impl Rule for LatencyTail {
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
        let tail = slow.spread.p99_ps as f64 / slow.spread.p50_ps.max(1) as f64;
        if tail < TAIL || !is_forward_only(tables) {
            return Verdict::Clear;
        }
        let mut finding = Finding::new(
            format!(
                "{} {} {:.1}× the usual time (median {}, p99 {}){}",
                slow.which("request"),
                slow.verb(),
                slow.ratio,
                Dur(slow.spread.p50_ps),
                Dur(slow.spread.p99_ps),
                slow.spent()
            ),
            slow.cost,
            facts.step,
        );
        if tail >= LONG_TAIL {
            let severity = finding.severity.max(Severity::Medium);
            finding = finding.severity(severity);
        }
        let finding = slow.describe(tables, finding).symptom_of(slow.causes());
        let gain = slow.gain();
        let fix = |change, text: &str| Fix::new(change, text).gives(gain);
        match slow.category {
            "compute" => finding
                .fix(
                    fix(Change::PadShapes, "Cap or bucket the size of requests")
                        .edit(Edit::SplitRequests),
                )
                .fix(
                    Fix::new(Change::BalanceWork, "Or serve large requests from a separate queue")
                        .untold("it moves the wait, and does not shorten it"),
                ),
            "compile" => finding.fix(fix(
                Change::PadShapes,
                "Call every shape once before serving, or pad requests to a few",
            )),
            "input" => finding
                .fix(fix(Change::Prefetch, "Prefetch, so that no request waits for its data")),
            _ => finding.fix(fix(
                Change::InBackground,
                "Move what the slow ones wait for off the path of the request",
            )),
        }
        .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("comes from a few slow requests")
    }
}

#[cfg(test)]
mod tests {
    use super::LatencyTail;
    use crate::step_outliers::StepOutliers;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    /// Requests one after the other, each of three matrix products of such length.
    pub(crate) fn requests(durs: &[[i64; 3]], last_op: &str) -> String {
        let (mut python, mut compute) = (String::new(), String::new());
        let mut at = 0;
        for (step, durs) in durs.iter().enumerate() {
            let start = at;
            for (op, dur) in durs.iter().enumerate() {
                compute += &format!("m{op}/MatMul:MatMul {at}..{}, ", at + dur);
                at += dur;
            }
            compute += &format!("{last_op} {at}..{}, ", at + 1);
            at += 1;
            python += &format!("serve#{step} {start}..{at}, EagerExecute {start}..{at}, ");
        }
        format!("host/python: {python}\nhost/tf_Compute: {compute}\n")
    }

    #[test]
    fn requests_with_more_to_do_are_found() {
        let mut all = [[10, 10, 10]; 60];
        (all[7], all[27], all[47]) = ([120, 120, 120], [120, 120, 120], [120, 120, 120]);
        let picture = requests(&all, "s/Softmax:Softmax");
        let found = finding(&LatencyTail, &picture);
        assert_eq!(
            found.title,
            "Every 20th request takes 11.6× the usual time (median 31 µs, p99 361 µs); the extra time \
             is spent in MatMul"
        );
        assert_eq!(found.severity, Severity::High);
        assert_eq!(verdict(&StepOutliers, &picture), Verdict::Clear, "one of the two");
    }

    #[test]
    fn a_busy_machine_is_low() {
        let mut all = [[10, 10, 10]; 60];
        (all[7], all[12], all[47]) = ([90, 10, 10], [10, 10, 120], [10, 70, 10]);
        let found = finding(&LatencyTail, &requests(&all, "s/Softmax:Softmax"));
        assert_eq!(found.severity, Severity::Low, "{}", found.title);
    }

    #[test]
    fn requests_that_are_alike_are_clear() {
        let picture = requests(&[[10, 10, 10]; 20], "s/Softmax:Softmax");
        assert_eq!(verdict(&LatencyTail, &picture), Verdict::Clear);
    }

    #[test]
    fn with_few_steps_it_cannot_know() {
        assert_eq!(missing(&LatencyTail, "gpu0/s: k 0..1"), "no steps could be identified");
        let picture = requests(&[[10, 10, 10]; 3], "s/Softmax:Softmax");
        assert_eq!(missing(&LatencyTail, &picture), "fewer than five steady steps");
    }
}
