//! A device that runs below its clock.

use analyses::Tables;
use analyses::step::median;
use trace::{Dur, TrackId};

use crate::facts::{NO_STEPS, facts, percent};
use crate::gpu::gpu;
use crate::{Evidence, Finding, Rule, Verdict, WORTH_SAYING};

rule! {
    /// The device runs below its clock: power, heat or a limit somebody set.
    ///
    /// ## Evidence
    /// Samples of the clock during the steps, against the highest seen. Profiles of the framework
    /// hold none; they have to be recorded beside the run.
    ///
    /// ## Fix
    /// See why (`nvidia-smi -q -d PERFORMANCE`): a power cap can be raised, heat needs air, and an
    /// application clock somebody set can be reset (`nvidia-smi -rac`).
    ///
    /// ## When it is wrong
    /// Clocks also fall while a device idles: samples outside of work say nothing.
    pub struct ClockThrottled = "clock-throttled";
}

impl Rule for ClockThrottled {
    fn check(&self, tables: &Tables) -> Verdict {
        let trace = tables.trace();
        let is_clock = |track: TrackId| {
            let name = trace.track_name(track).to_ascii_lowercase();
            name.contains("clock") && !name.contains("mem")
        };
        let samples: Vec<i64> = trace
            .counters
            .iter()
            .filter(|it| it.value > 0.0 && is_clock(it.track))
            .map(|it| (it.value * 1000.0) as i64)
            .collect();
        let (Some(&highest), Some(typical)) = (samples.iter().max(), median(&mut samples.clone()))
        else {
            return Verdict::unknown(match gpu(trace) {
                Some(_) => {
                    "no samples of the clocks; `nvidia-smi dmon -s pcv` beside the run shows them"
                }
                None => "no samples of the clocks; `turbostat` beside the run shows them",
            });
        };
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let lost = 1.0 - typical as f64 / highest as f64;
        let cost = Dur((facts.of("compute").0 as f64 * lost) as i64);
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        Finding::new(
            format!("the clock is typically {} below the highest seen", percent(lost)),
            cost,
            facts.step,
        )
        .confidence(0.6)
        .evidence(Evidence::text(format!("{} samples of the clock", trace.counters.len())))
        .fix("see why: `nvidia-smi -q -d PERFORMANCE`; raise the power cap, or cool the device")
        .found()
    }
}

#[cfg(test)]
mod tests {
    use super::ClockThrottled;
    use crate::Verdict;
    use crate::testing::{missing, sampled};

    #[test]
    fn a_clock_that_stays_low_is_throttled() {
        let clocks = [1410.0, 900.0, 910.0, 905.0, 900.0];
        let Verdict::Found(found) = sampled(&ClockThrottled, "gpu0 SM clock", &clocks) else {
            unreachable!("a third is lost")
        };
        assert_eq!(found.title, "the clock is typically 36 % below the highest seen");
    }

    #[test]
    fn a_steady_clock_is_clear() {
        let clocks = [1410.0, 1395.0, 1410.0, 1410.0];
        assert_eq!(sampled(&ClockThrottled, "gpu0 SM clock", &clocks), Verdict::Clear);
    }

    #[test]
    fn without_samples_it_says_how_to_get_them() {
        let why = missing(&ClockThrottled, "gpu0/s: k 0..10");
        assert!(why.contains("`nvidia-smi dmon -s pcv`"), "{why}");
    }
}
