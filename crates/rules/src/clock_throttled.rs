//! A GPU that runs below its clock.

use analyses::Tables;
use analyses::step::median;
use trace::{Counter, Dur};

use crate::confidence;
use crate::facts::{NO_STEPS, facts, percent};
use crate::gpu::gpu;
use crate::samples::Samples;
use crate::{Change, Finding, Fix, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// A GPU runs below its clock: power, heat or a limit somebody set.
    ///
    /// ## Evidence
    /// Samples of the clock while the GPU is busy during the steps, against the highest it can
    /// have, and the driver's own reasons for a lower one. A clock that is lower without a reason
    /// is what the driver chose, and nothing is said.
    ///
    /// ## Fix
    /// See why (`nvidia-smi -q -d PERFORMANCE`): a power cap can be raised up to the card's own
    /// limit, heat needs air, and a clock that somebody set can be reset (`nvidia-smi -rac`,
    /// `nvidia-smi -rgc`).
    ///
    /// ## When it is wrong
    /// Cards of little power never keep their highest clock under load: then the finding is low.
    /// Work that waits for memory loses less than the clock does.
    pub struct ClockThrottled = "clock-throttled";
}

/// A GPU that is idle for more than half of the time lowers its clock by itself.
/// Source: choice, a guess.
const BUSY: f64 = 0.5;
/// A reason that held in fewer samples passes by.
/// Source: choice, a guess.
const OFTEN: f64 = 0.25;
/// Where no reasons are told: chips of one kind differ by about a tenth in what they keep.
/// Source: choice, a guess: half as much again as a tenth.
const FAR_BELOW: f64 = 0.15;
/// No machine has more GPUs.
/// Source: choice, a bound on the work.
const MOST_GPUS: usize = 64;
/// Nearly all that the card allows.
/// Source: choice, a guess.
const AT_ITS_LIMIT: f64 = 0.98;

/// The driver's reasons, as NVML numbers them, and what they mean. The first, an idle GPU, is none.
/// Source: document, `nvmlClocksEventReasons` of the NVML API reference.
const REASONS: [(u64, &str); 8] = [
    (0x4, "its power limit"),
    (0x8, "a slowdown by the hardware, for heat, power or a fault"),
    (0x20, "heat, by the driver's judgement"),
    (0x40, "heat, by the hardware's judgement"),
    (0x80, "the power supply's brake"),
    (0x2, "a clock that somebody set"),
    (0x10, "the clock of other GPUs it is tied to"),
    (0x100, "a clock set for displays"),
];
/// The reason that is the power limit alone.
/// Source: document, `nvmlClocksEventReasonSwPowerCap` of the NVML API reference.
const POWER_LIMIT: u64 = 0x4;

/// What a GPU lost.
struct Throttled {
    gpu: usize,
    typical: f64,
    highest: f64,
    n: usize,
    /// Bits of those that held often; `None` where the driver tells none.
    reasons: Option<u64>,
}

impl Throttled {
    fn lost(&self) -> f64 {
        1.0 - self.typical / self.highest.max(1.0)
    }

    fn counts(&self) -> bool {
        match self.reasons {
            Some(reasons) => reasons != 0,
            None => self.lost() >= FAR_BELOW,
        }
    }

    fn why(&self) -> String {
        let held = |it: &&(u64, &str)| self.reasons.unwrap_or(0) & it.0 != 0;
        let words: Vec<&str> = REASONS.iter().filter(held).map(|it| it.1).collect();
        if words.is_empty() { "the driver gives no reason".to_owned() } else { words.join(", ") }
    }
}

impl Rule for ClockThrottled {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(samples) = Samples::of(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let all: Vec<Throttled> = (0..MOST_GPUS).filter_map(|it| look(&samples, it)).collect();
        if all.is_empty() {
            return Verdict::unknown(match gpu(tables.trace()) {
                Some(_) => "no samples of the GPU clocks; `strobe run` takes them",
                None => "no GPU clock was sampled",
            });
        }
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let counted = all.iter().filter(|it| it.counts());
        let Some(worst) = counted.max_by(|a, b| a.lost().total_cmp(&b.lost())) else {
            return Verdict::Clear;
        };
        let cost = Dur((facts.of("compute").0 as f64 * worst.lost().max(0.0)) as i64);
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        found(&samples, worst, cost, facts.step)
    }
}

/// What a GPU's clock was while it was busy during the steps; `None` where that is not known.
fn look(samples: &Samples<'_>, gpu: usize) -> Option<Throttled> {
    let name = |it: &str| format!("gpu {gpu}/{it}");
    let (clock, busy) = (name("sm_clock"), name("busy"));
    let clocks = samples.during_steps(&clock);
    let (all_busy, all_reasons) = (samples.all(&busy), samples.all(&name("throttled")));
    let works = |it: &&Counter| at(all_busy, it).is_none_or(|it| it >= BUSY);
    let clocks: Vec<&Counter> = clocks.iter().filter(|it| it.value > 0.0).filter(works).collect();
    let mut milli: Vec<i64> = clocks.iter().map(|it| (it.value * 1000.0) as i64).collect();
    let typical = median(&mut milli)? as f64 / 1000.0;
    let seen = samples.all(&clock).iter().map(|it| it.value).fold(0.0, f64::max);
    let highest = samples.fact(&name("max_sm_clock_mhz")).unwrap_or(seen).max(typical);
    let told: Vec<u64> =
        clocks.iter().filter_map(|it| at(all_reasons, it)).map(|it| it as u64).collect();
    let often = |bit: u64| {
        let n = told.iter().filter(|it| *it & bit != 0).count();
        n as f64 >= OFTEN * told.len() as f64
    };
    let reasons = REASONS.iter().map(|it| it.0).filter(|&it| often(it)).fold(0, |all, it| all | it);
    let reasons = (!told.is_empty()).then_some(reasons);
    Some(Throttled { gpu, typical, highest, n: clocks.len(), reasons })
}

/// The value of the same row.
fn at(samples: &[Counter], of: &Counter) -> Option<f64> {
    let row = samples.binary_search_by_key(&of.time, |it| it.time).ok()?;
    Some(samples[row].value)
}

fn found(samples: &Samples<'_>, worst: &Throttled, cost: Dur, step: Dur) -> Verdict {
    let gpu = worst.gpu;
    let name = |it: &str| format!("gpu {gpu}/{it}");
    let limit = samples.fact(&name("power_limit_w")).zip(samples.fact(&name("power_limit_max_w")));
    let at_its_limit = worst.reasons == Some(POWER_LIMIT)
        && limit.is_some_and(|(now, most)| now >= AT_ITS_LIMIT * most);
    let mut text = format!("{} samples while the GPU was busy", worst.n);
    if let Some(watts) = samples.mean(&name("power")) {
        text += &format!(", {watts:.0} W");
        if let Some((now, most)) = limit {
            text += &format!(" (limit {now:.0} W, could be {most:.0} W)");
        }
    }
    if let Some(degrees) = samples.mean(&name("temperature")) {
        text += &format!(", {degrees:.0} °C");
    }
    let counters = ["sm_clock", "throttled", "power", "temperature"].map(name);
    let counters: Vec<&str> = counters.iter().map(String::as_str).collect();
    let title = format!(
        "GPU {gpu} runs at {:.0} MHz, {} below its {:.0} MHz: {}",
        worst.typical,
        percent(worst.lost()),
        worst.highest,
        worst.why()
    );
    let mut finding = Finding::new(title, cost, step)
        .confidence(if worst.reasons.is_some() { confidence::MEASURED } else { confidence::EVEN })
        .evidence(samples.evidence(text, &counters));
    if at_its_limit {
        finding = finding.severity(Severity::Low).fix(
            Fix::new(
                Change::Machine,
                "The card is at its power limit; 16-bit math needs less power",
            )
            .untold("a clock cannot be promised"),
        );
    } else {
        finding = finding
            .fix(
                Fix::new(
                    Change::Machine,
                    "See why with `nvidia-smi -q -d PERFORMANCE`; raise the power cap, or cool the device",
                )
                .untold("a clock cannot be promised"),
            );
    }
    finding.found()
}

#[cfg(test)]
mod tests {
    use super::ClockThrottled;
    use crate::testing::{Beside, missing};
    use crate::{Severity, Verdict};

    fn t4(clock: f64, reasons: f64) -> Beside {
        Beside::gpu()
            .fact("gpu 0/max_sm_clock_mhz", 1590.0)
            .counter("gpu 0/sm_clock", &[clock; 8])
            .counter("gpu 0/busy", &[1.0; 8])
            .counter("gpu 0/throttled", &[reasons; 8])
    }

    #[test]
    fn a_clock_that_stays_low_has_a_reason() {
        let found =
            t4(954.0, 36.0).counter("gpu 0/temperature", &[89.0; 8]).finding(&ClockThrottled);
        assert_eq!(
            found.title,
            "GPU 0 runs at 954 MHz, 40% below its 1590 MHz: its power limit, heat, by the driver's judgement"
        );
        assert_eq!(found.severity, Severity::High);
        assert_eq!(found.evidence[0].text, "8 samples while the GPU was busy, 89 °C");
        assert_eq!(found.evidence[0].rows.len(), 3);
    }

    #[test]
    fn a_card_at_its_own_limit_is_low() {
        let limited = |now: f64| {
            t4(954.0, 4.0).fact("gpu 0/power_limit_w", now).fact("gpu 0/power_limit_max_w", 70.0)
        };
        assert_eq!(limited(70.0).finding(&ClockThrottled).severity, Severity::Low);
        assert_eq!(limited(50.0).finding(&ClockThrottled).severity, Severity::High, "capped");
    }

    #[test]
    fn where_no_reasons_are_told_the_clock_speaks() {
        let clocks = [1410.0, 900.0, 910.0, 905.0, 900.0, 900.0];
        let found = Beside::gpu().counter("gpu 1/sm_clock", &clocks).finding(&ClockThrottled);
        assert!(found.title.ends_with("the driver gives no reason"), "{}", found.title);
        let steady = Beside::gpu().counter("gpu 1/sm_clock", &[1410.0, 1300.0, 1300.0]);
        assert_eq!(steady.verdict(&ClockThrottled), Verdict::Clear);
    }

    #[test]
    fn a_healthy_clock_is_clear() {
        assert_eq!(t4(1575.0, 4.0).verdict(&ClockThrottled), Verdict::Clear, "hardly lower");
        assert_eq!(t4(600.0, 0.0).verdict(&ClockThrottled), Verdict::Clear, "no reason");
        assert_eq!(t4(600.0, 1.0).verdict(&ClockThrottled), Verdict::Clear, "idle");
        let memory = Beside::gpu().counter("gpu 0/memory_clock", &[100.0, 5000.0]);
        assert!(matches!(memory.verdict(&ClockThrottled), Verdict::Unknown(_)), "another clock");
    }

    #[test]
    fn without_samples_it_says_how_to_get_them() {
        let steps = "host/python: train#1 0..100, train#2 100..200, train#3 200..300\n";
        let why = missing(&ClockThrottled, &format!("{steps}gpu0/s: k 0..10"));
        assert!(why.contains("`strobe run` takes them"), "{why}");
        // A GPU that idles keeps a low clock.
        let idle = Beside::gpu()
            .fact("gpu 0/max_sm_clock_mhz", 1590.0)
            .counter("gpu 0/sm_clock", &[300.0; 8])
            .counter("gpu 0/busy", &[0.1; 8])
            .counter("gpu 0/throttled", &[4.0; 8]);
        assert!(matches!(idle.verdict(&ClockThrottled), Verdict::Unknown(_)));
    }
}
