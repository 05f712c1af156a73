//! The order of edits worth making, with the step time after each, and the floor below them all.
//!
//! ```text
//! step        |######## input ########|## python ##|== compute ==|
//! after 1     |## python ##|== compute ==|
//! after 2     |== compute ==|                       floor: what no advised edit takes away
//! ```

use analyses::Tables;
use trace::Dur;

use crate::facts::facts;
use crate::gain::{PROFILED, StepAfter};
use crate::{Cause, Severity};

/// One edit of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanStep {
    /// Which of the causes, and which of its fixes.
    pub cause: usize,
    pub fix: usize,
    /// With this edit and all before it.
    pub after: StepAfter,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    pub steps: Vec<PlanStep>,
    /// What no advised edit can pass; absent without a promise.
    pub floor: Option<Dur>,
}

/// On a host without accelerator computing gets faster when nothing else wants its cores and
/// caches: at best it takes this part of what was profiled.
/// Source: measured by `bench/diagnosis/run`, the shortest step after a fix over what was left.
const HOST_AT_BEST: f64 = 0.4;

impl Plan {
    /// One edit for each cause that matters, in the order of what they save.
    pub fn of(tables: &Tables, causes: &[Cause]) -> Plan {
        let Some(facts) = facts(tables) else { return Plan::default() };
        let compute = (facts.of("compute") + facts.of("collective")).0 as f64;
        let at_best = if facts.on_device { 1.0 - PROFILED } else { HOST_AT_BEST };
        let bound = Dur((compute * at_best) as i64);
        let step = facts.step;
        let mut before = StepAfter { low: step, likely: step, high: step };
        let mut steps: Vec<PlanStep> = Vec::new();
        for (cause, it) in causes.iter().enumerate() {
            let matters = steps.is_empty() || it.finding.severity > Severity::Low;
            let Some(best) = it.finding.best_fix().filter(|_| matters) else { continue };
            let Some(gain) = best.gain else { continue };
            let alone = gain.step_after(step);
            // Different causes hold different parts of the step; what they share cannot be saved
            // twice, so edits together never get below what computes.
            let then = |before: Dur, alone: Dur| {
                let left = before.0 - (step.0 - alone.0);
                Dur(left.max(bound.0.min(alone.0)).min(before.0))
            };
            let after = in_order(StepAfter {
                low: then(before.low, alone.low),
                likely: then(before.likely, alone.likely),
                high: then(before.high, alone.high),
            });
            if after.likely >= before.likely {
                continue;
            }
            let fix = it.finding.fix.iter().position(|it| std::ptr::eq(it, best)).unwrap_or(0);
            steps.push(PlanStep { cause, fix, after });
            before = after;
        }
        let lows = steps.iter().map(|it| it.after.low);
        let symptoms = causes.iter().flat_map(|it| it.symptoms.iter().map(|it| &it.1));
        let findings = causes.iter().map(|it| &it.finding).chain(symptoms);
        let edits = findings.flat_map(|it| &it.fix);
        let alone = edits.filter_map(|it| it.gain).map(|it| it.step_after(step).low);
        let floor = lows.chain(alone).min();
        Plan { steps, floor }
    }
}

fn in_order(it: StepAfter) -> StepAfter {
    StepAfter { low: it.low.min(it.likely), likely: it.likely, high: it.high.max(it.likely) }
}
