//! What a change is predicted to give: old step time over new step time, with a range.
//!
//! What a profile cannot know widens the range; a range that is too wide is no prediction at all.

use analyses::Tables;
use analyses::input_stage::pipeline::Pipeline;
use analyses::what_if::{Altered, LimitedBy, WhatIf};
use trace::Dur;

use crate::facts::facts;

/// Old step time over predicted new step time: a promise, with its range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    pub speedup: f64,
    pub low: f64,
    pub high: f64,
}

/// What a step takes after a change: the same figures as those of its [`Gain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepAfter {
    pub low: Dur,
    pub likely: Dur,
    pub high: Dur,
}

/// A range wider than this says nothing that a person could plan by.
/// Source: choice, the report's contract.
pub const WIDEST: f64 = 6.0;

impl Gain {
    pub fn step_after(&self, step: Dur) -> StepAfter {
        let after = |speedup: f64| Dur(((step.0 as f64 / speedup.max(1.0)).round() as i64).max(1));
        StepAfter { low: after(self.high), likely: after(self.speedup), high: after(self.low) }
    }

    /// Time of a mean step that goes away.
    pub fn saves(&self, step: Dur) -> Dur {
        Dur(step.0 - self.step_after(step).likely.0)
    }

    pub fn is_promise(&self) -> bool {
        self.high <= WIDEST * self.low
    }

    /// No change is advised to make a step longer, and the best case goes no further than a range
    /// that a person can plan by: what may come beyond is a surprise, not a promise.
    #[must_use]
    pub fn in_order(self) -> Gain {
        let low = self.low.max(1.0);
        let speedup = self.speedup.max(low);
        Gain { low, speedup, high: self.high.min(WIDEST * low).max(speedup) }
    }
}

/// How much shorter the rest of the step may be without a profiler, which slows what it records.
/// Source: measured by `bench/capture/overhead`: a window costs 9 to 23% of the step.
pub const PROFILED: f64 = 0.10;

/// What the part of a step that stays may gain, beyond what the change takes away.
struct Rest {
    /// What is left of it at best, when neither a profiler nor the problem disturbs it.
    at_best: f64,
    /// No more than this goes, but for what recording took.
    most_ps: i64,
    /// Of what the change takes away, the part that stays at worst.
    behind: f64,
}

/// Caches of some tens of megabytes are filled again, and sleeping threads woken, within
/// milliseconds, however long the step.
/// Source: physical, 40 MB of cache at 5 GB/s.
const DISTURBANCE_PS: i64 = 8_000_000_000;
/// What is done less often leaves some of it behind.
/// Source: physical, a call every twentieth step instead of every step.
const SELDOM: f64 = 0.05;
/// Moving work elsewhere leaves more.
/// Source: choice, a tenth.
const MOVED: f64 = 0.10;
/// What a program no longer does at all leaves next to nothing.
/// Source: choice, one call in fifty still does it.
const REMOVED: f64 = 0.02;

/// The host's part of a step that also saved, ran Python or a large op: it comes back to cold
/// caches and sleeping threads, and every recorded event takes its time.
/// Source: measured by `bench/diagnosis/run`: at least 0.4 of what was left of the profiled step.
const UNDISTURBED: Rest = Rest { at_best: 0.4, most_ps: DISTURBANCE_PS, behind: SELDOM };
/// The same where the problem is compiling: the first run of a new program is its slowest, in all
/// of its parts.
/// Source: measured by `bench/diagnosis/run`: at least 0.25 of what was left of the profiled step.
const NOT_COMPILED_AGAIN: Rest = Rest { at_best: 0.25, most_ps: i64::MAX, behind: REMOVED };
/// The same where Python in the input pipeline wanted a core and Python's lock all the time.
/// Source: choice, half for the core on a machine of two, and half of that for the lock; set after a
/// workload of `bench/diagnosis` gained more than was promised.
const UNCROWDED: Rest = Rest { at_best: 0.25, most_ps: i64::MAX, behind: SELDOM };
/// A device's part, or that of threads that are all busy before and after: slowed alike.
/// Source: physical, a device does not share the host's caches.
const AS_IT_IS: Rest = Rest { at_best: 1.0 - PROFILED, most_ps: 0, behind: MOVED };

/// What a change gives, and what bounds the step then.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    pub gain: Gain,
    pub then: Option<LimitedBy>,
    /// The row of the table `what_if` that it comes from.
    pub change: Option<String>,
}

/// What bounds a step, for people, after "then the bottleneck is".
pub fn bottleneck(limit: &LimitedBy) -> String {
    match limit {
        LimitedBy::Cores => "the CPU cores".to_owned(),
        LimitedBy::Stage(path) => {
            let path = path.trim_start_matches("Iterator::").trim_start_matches("Root::");
            format!("the input stage {}", path.replace("::", " ▸ "))
        }
        LimitedBy::Category(category) => category.replace('_', " "),
        LimitedBy::Rest | LimitedBy::Input => limit.to_string(),
    }
}

impl Prediction {
    /// What a change of the table `what_if` gives; absent where it predicts nothing.
    pub fn of(tables: &Tables, change: &Altered) -> Option<Prediction> {
        let rows = tables.get::<WhatIf>();
        let row = rows.iter().find(|it| *it.change == *change)?;
        let new = [row.worst_ps, row.new_step_ps, row.best_ps];
        let on_device = facts(tables)?.on_device;
        let recorded = match change.is_of_input() {
            true => tables.model::<Pipeline>().recorded_ps(),
            false => 0,
        };
        let old = row.step_ps - recorded;
        let then = Some((*row.limited_by).clone()).filter(|it| *it != LimitedBy::Rest);
        let rest = match change {
            _ if on_device || then.is_some() => AS_IT_IS,
            Altered::Without("compile") => NOT_COMPILED_AGAIN,
            Altered::WithoutPythonIn(_) => UNCROWDED,
            _ => UNDISTURBED,
        };
        let change = Some(row.change.words().to_owned());
        Some(Prediction { gain: Gain::between(old, new, &rest), then, change })
    }
}

impl From<Gain> for Prediction {
    fn from(gain: Gain) -> Prediction {
        Prediction { gain, then: None, change: None }
    }
}

impl Gain {
    /// The gain of a change of the table `what_if`.
    pub fn of_change(tables: &Tables, change: &Altered) -> Option<Gain> {
        Prediction::of(tables, change).map(|it| it.gain)
    }

    /// From a step time to another, both as profiled, with a device or all of the host busy.
    pub fn of_times(old_ps: i64, new_ps: i64) -> Gain {
        Gain::between(old_ps, [new_ps; 3], &AS_IT_IS)
    }

    /// From a step time to new ones, at worst, likely, at best, that leave nothing unknown.
    pub fn of_range(old_ps: i64, new_ps: [i64; 3]) -> Gain {
        let of = |new: i64| old_ps as f64 / new.max(1) as f64;
        Gain { low: of(new_ps[0]), speedup: of(new_ps[1]), high: of(new_ps[2]) }.in_order()
    }

    /// The same on a host that will be less disturbed.
    pub fn on_host(old_ps: i64, new_ps: [i64; 3]) -> Gain {
        Gain::between(old_ps, new_ps, &UNDISTURBED)
    }

    /// From a step time to new ones, at worst, likely, at best. Likely, what is taken away is gone
    /// and nothing else changes: milliseconds and speed-up agree by plain subtraction. Only the
    /// best case counts on a rest that runs undisturbed, and only as far as the range stays one
    /// that a person can plan by.
    fn between(old_ps: i64, new_ps: [i64; 3], rest: &Rest) -> Gain {
        let old = old_ps as f64;
        let [worst, likely, best] = new_ps.map(|it| (it.max(1) as f64).min(old));
        let gone = best * (1.0 - rest.at_best);
        let gone = gone.min((best * PROFILED).max(rest.most_ps as f64));
        let low = old / (worst + (old - worst) * rest.behind);
        let speedup = (old / likely).max(low);
        let high = (old - gone) / (best - gone);
        Gain { speedup, low, high }.in_order()
    }
}

#[cfg(test)]
mod tests {
    use super::{Dur, Gain, LimitedBy, bottleneck};

    #[test]
    fn milliseconds_and_speed_up_are_one_figure() {
        let gain = Gain { low: 2.0, speedup: 4.0, high: 5.0 };
        let after = gain.step_after(Dur(100));
        assert_eq!([after.low, after.likely, after.high], [Dur(20), Dur(25), Dur(50)]);
        assert_eq!(gain.saves(Dur(100)), Dur(75));
    }

    #[test]
    fn a_range_wider_than_sixfold_is_no_promise() {
        let gain = |high| Gain { low: 2.0, speedup: 4.0, high };
        assert!(gain(12.0).is_promise() && !gain(12.1).is_promise());
    }

    #[test]
    fn no_change_is_advised_to_slow_a_step_down() {
        let gain = Gain { low: 0.8, speedup: 0.9, high: 0.95 }.in_order();
        assert_eq!((gain.low, gain.speedup, gain.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn what_limits_a_step_has_a_name_and_words() {
        let stage = LimitedBy::Stage("Iterator::Root::Prefetch::Map".to_owned());
        assert_eq!(bottleneck(&stage), "the input stage Prefetch ▸ Map");
        assert_eq!(LimitedBy::Cores.name(), "cpu");
        assert_eq!(bottleneck(&LimitedBy::Category("transfer_in")), "transfer in");
    }
}
