//! Whether one set of runs is faster than another.
//!
//! The interval of the shift holds, besides the noise of steps and runs, what those cannot show: how
//! much single runs would differ if there were more of them, and how far drifting and unsteady
//! runs may be off. Then it alone decides.
//!
//! ```text
//!     -margin     0     margin
//!        ├────────┼────────┤
//!              ├──┼●──┤                no difference: all of the interval is within the margin
//!                 │  ├──────●─────┤    slower: it is above 0, and the shift is beyond the margin
//!           ├─────┼───●────────┤       cannot tell: neither
//! ```

use crate::resample::{Estimate, midmean};
use crate::student::Level;
use crate::summary::{Interval, SEED};
use crate::{Drift, FEWEST_STEPS, Random, Run, Steadiness};

/// What is asked of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// A shift below this share of A's median is no difference, however sure.
    pub margin: f64,
    /// The n-th runs of both sides ran one after the other: what the machine did meanwhile happened
    /// to both, and only the difference of each pair counts.
    pub in_pairs: bool,
}

impl Default for Question {
    /// Two percent: the order in which a program is linked, or the size of its environment, moves
    /// its time by as much (Mytkowicz and others 2009), so less is no ground to act.
    fn default() -> Question {
        Question { margin: 0.02, in_pairs: false }
    }
}

/// What is said of B, seen from A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Faster,
    Slower,
    NoDifference,
    CannotTell,
}

impl Verdict {
    /// The words of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

/// What weakens a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// A side has fewer than [`FEWEST_STEPS`] steady steps.
    FewSteps,
    /// A run's level still changed near its end.
    NotSteady,
    /// A side's only run drifts.
    Drift,
    /// A side has one run: how much it would differ from others is assumed, not measured.
    OneRun,
    /// The steps vary too much for so small a shift.
    Noise,
}

/// B against A.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub verdict: Verdict,
    pub a_median: Interval,
    pub b_median: Interval,
    /// B less A: above 0 B is slower. With 99 %: one false alarm in twenty would be ignored soon.
    pub shift: Interval,
    /// The shift as a share of A's median.
    pub share: f64,
    /// Half of the interval of the shift: a smaller shift could not have been told from nothing.
    pub noise_floor_ps: i64,
    pub doubts: Vec<Doubt>,
    pub in_pairs: bool,
}

/// How much two starts of the same program differ, with 99 %, where that was not measured. One
/// percent is an assumption for a quiet machine; two runs a side measure it instead.
const UNSEEN_RUN_TO_RUN: f64 = 0.01;

/// `None`: a side has no steps at all.
pub fn compare(a: &[Run], b: &[Run], question: Question) -> Option<Comparison> {
    let with_steps = |runs: &[Run]| -> Vec<Run> {
        runs.iter().filter(|it| !it.steady.is_empty()).cloned().collect()
    };
    let in_pairs = question.in_pairs
        && a.len() == b.len()
        && a.len() > 1
        && a.iter().chain(b).all(|it| !it.steady.is_empty());
    let (a, b) = (with_steps(a), with_steps(b));
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut random = Random::seeded(SEED);
    let a_runs: Vec<Estimate> = a.iter().map(|it| it.median(&mut random)).collect();
    let b_runs: Vec<Estimate> = b.iter().map(|it| it.median(&mut random)).collect();
    let a_median = Estimate::of_runs(&a_runs, &mut random);
    let b_median = Estimate::of_runs(&b_runs, &mut random);
    let shift = match in_pairs {
        true => {
            let pairs: Vec<Estimate> =
                a_runs.iter().zip(&b_runs).map(|(a, b)| b.minus(a)).collect();
            Estimate::of_runs(&pairs, &mut random)
        }
        false => b_median.minus(&a_median),
    };
    let typical = a_median.value.abs();

    let mut doubts = Vec::new();
    let mut doubt = |doubt, size: f64| {
        if size > 0.0 {
            doubts.push(doubt);
        }
        size
    };
    let unseen = doubt(Doubt::OneRun, unseen(&a_runs, &b_runs));
    let off = doubt(Doubt::Drift, drift_of_one(&a) + drift_of_one(&b))
        + doubt(Doubt::NotSteady, wander(&a).max(wander(&b)));
    // A mean over several steps is one value, however many it stands for.
    let n_values = |runs: &[Run]| runs.iter().map(|it| it.steady.len() as u64).sum::<u64>();
    let too_few = n_values(&a).min(n_values(&b)) < FEWEST_STEPS;
    if too_few {
        doubts.push(Doubt::FewSteps);
    }

    let (low, high) = shift.interval_at(Level::Percent99);
    // Independent of the noise that was seen, so squares add; what is off is off to one side.
    let widened = |reach: f64| reach.hypot(unseen) + off;
    let (below, above) = (widened(shift.value - low), widened(high - shift.value));
    let (low, high) = (shift.value - below, shift.value + above);
    let margin = question.margin * typical;
    let verdict = match () {
        () if too_few => Verdict::CannotTell,
        () if low.abs().max(high.abs()) <= margin => Verdict::NoDifference,
        () if low > 0.0 && shift.value >= margin => Verdict::Slower,
        () if high < 0.0 && shift.value <= -margin => Verdict::Faster,
        () => Verdict::CannotTell,
    };
    if verdict == Verdict::CannotTell && (below - off).max(above - off) > margin {
        doubts.push(Doubt::Noise);
    }
    Some(Comparison {
        verdict,
        a_median: interval(a_median.value, a_median.interval()),
        b_median: interval(b_median.value, b_median.interval()),
        shift: interval(shift.value, (low, high)),
        share: if typical > 0.0 { shift.value / typical } else { 0.0 },
        noise_floor_ps: crate::to_ps(below.max(above)),
        doubts,
        in_pairs,
    })
}

/// How much a side's only run may differ from another of the same: as much as the other side's
/// runs do, or what is assumed.
fn unseen(a: &[Estimate], b: &[Estimate]) -> f64 {
    let (one, other) = match (a, b) {
        ([one], other) | (other, [one]) => (one, other),
        _ => return 0.0,
    };
    let n = other.len() as f64;
    let mean = other.iter().map(|it| it.value).sum::<f64>() / n;
    let squares: f64 = other.iter().map(|it| (it.value - mean).powi(2)).sum();
    let seen = match other {
        [_] => 0.0,
        _ => Level::Percent99.quantile(n - 1.0) * (squares / (n - 1.0)).sqrt(),
    };
    seen.max(UNSEEN_RUN_TO_RUN * one.value.abs())
}

/// How far the median of a side's only run may be off because it drifts. Several runs that drift
/// differ by it, and that is in their interval.
fn drift_of_one(runs: &[Run]) -> f64 {
    let [one] = runs else { return 0.0 };
    one.drift.filter(Drift::is_real).map_or(0.0, |it| it.total_ps as f64).abs() / 2.0
}

/// How far apart the levels are within runs that never became steady; of several runs the typical
/// one's, as a few unsteady ones differ from the others, and that is in their interval.
fn wander(runs: &[Run]) -> f64 {
    let of_run = |run: &Run| match run.steadiness {
        Steadiness::NotReached { low_ps, high_ps, .. } => high_ps as f64 - low_ps as f64,
        Steadiness::Steady | Steadiness::NotLookedFor => 0.0,
    };
    midmean(&mut runs.iter().map(of_run).collect::<Vec<_>>())
}

fn interval(value: f64, (low, high): (f64, f64)) -> Interval {
    Interval {
        value_ps: crate::to_ps(value),
        low_ps: crate::to_ps(low),
        high_ps: crate::to_ps(high),
    }
}

#[cfg(test)]
mod tests {
    use super::{Doubt, Question, Verdict, compare};
    use crate::simulate::Noise;
    use crate::{Comparison, Random, Run, Series, Warmup};

    const STEP: i64 = 30_000_000_000;

    fn runs(noise: Noise, n: usize, n_runs: usize, factor: f64, random: &mut Random) -> Vec<Run> {
        let typical = (STEP as f64 * factor) as i64;
        (0..n_runs).map(|_| Run::new(&noise.run(n, typical, random), Warmup::Auto)).collect()
    }

    fn compared(a: &[Run], b: &[Run]) -> Comparison {
        compare(a, b, Question::default()).unwrap()
    }

    #[test]
    fn faster_slower_and_neither() {
        let noise = Noise { between_runs: 0.0, mode: 0.0, ..Noise::default() };
        let mut random = Random::seeded(1);
        let a = runs(noise, 300, 1, 1.0, &mut random);
        let slower = compared(&a, &runs(noise, 300, 1, 1.1, &mut random));
        assert_eq!(slower.verdict, Verdict::Slower, "{slower:?}");
        assert!((slower.share - 0.1).abs() < 0.02, "{slower:?}");
        let planted = STEP / 10;
        assert!((slower.shift.low_ps..=slower.shift.high_ps).contains(&planted), "{slower:?}");
        let faster = compared(&a, &runs(noise, 300, 1, 0.9, &mut random));
        assert_eq!(faster.verdict, Verdict::Faster, "{faster:?}");
        let same = compared(&a, &runs(noise, 300, 1, 1.0, &mut random));
        assert_eq!(same.verdict, Verdict::NoDifference, "{same:?}");
        assert_eq!(same.doubts, [Doubt::OneRun]);
    }

    #[test]
    fn swapping_sides_swaps_the_answer() {
        let mut random = Random::seeded(2);
        let a = runs(Noise::default(), 200, 4, 1.0, &mut random);
        let b = runs(Noise::default(), 200, 4, 1.05, &mut random);
        let (there, back) = (compared(&a, &b), compared(&b, &a));
        assert_eq!(there.shift.value_ps, -back.shift.value_ps);
        assert_eq!((there.verdict, back.verdict), (Verdict::Slower, Verdict::Faster));
        assert_eq!(there, compared(&a, &b), "the same input gives the same answer");
    }

    #[test]
    fn too_few_steps_too_much_noise_and_two_runs_cannot_tell() {
        let mut random = Random::seeded(3);
        let few = runs(Noise::white(0.001), 15, 1, 1.0, &mut random);
        let found = compared(&few, &few);
        assert_eq!(found.verdict, Verdict::CannotTell);
        assert!(found.doubts.contains(&Doubt::FewSteps));
        let noisy = Noise::white(0.5);
        let (a, b) = (runs(noisy, 60, 1, 1.0, &mut random), runs(noisy, 60, 1, 1.03, &mut random));
        let found = compared(&a, &b);
        assert_eq!(found.verdict, Verdict::CannotTell);
        assert!(found.doubts.contains(&Doubt::Noise), "{found:?}");
        let differ = Noise { between_runs: 0.03, ..Noise::white(0.01) };
        let (a, b) =
            (runs(differ, 200, 2, 1.0, &mut random), runs(differ, 200, 2, 1.03, &mut random));
        assert_eq!(compared(&a, &b).verdict, Verdict::CannotTell);
    }

    #[test]
    fn a_drift_of_a_single_run_is_no_difference_to_tell() {
        let mut random = Random::seeded(4);
        let drifts = Noise { drift: 0.10, ..Noise::white(0.01) };
        let a = runs(drifts, 300, 1, 1.0, &mut random);
        let b = runs(drifts, 300, 1, 1.03, &mut random);
        let found = compared(&a, &b);
        assert_eq!(found.verdict, Verdict::CannotTell, "{found:?}");
        assert!(found.doubts.contains(&Doubt::Drift) || found.doubts.contains(&Doubt::NotSteady));
        assert!(found.noise_floor_ps > STEP * 3 / 100, "{found:?}");
        // What is larger than the drift is told all the same.
        let c = runs(drifts, 300, 1, 3.0, &mut random);
        assert_eq!(compared(&a, &c).verdict, Verdict::Slower);
    }

    #[test]
    fn one_run_is_trusted_as_little_as_the_other_side_shows() {
        let mut random = Random::seeded(6);
        let differ = Noise { between_runs: 0.05, ..Noise::white(0.01) };
        let (a, b) =
            (runs(differ, 200, 5, 1.0, &mut random), runs(differ, 200, 1, 1.0, &mut random));
        let found = compared(&a, &b);
        assert_eq!(found.verdict, Verdict::CannotTell, "{found:?}");
        assert!(found.doubts.contains(&Doubt::OneRun) && found.noise_floor_ps > STEP / 10);
    }

    #[test]
    fn pairs_cancel_what_the_machine_did_to_both() {
        let mut random = Random::seeded(5);
        let levels = [1.0, 1.3, 0.9, 1.1, 1.2];
        let side = |factor: f64, random: &mut Random| -> Vec<Run> {
            let noise = Noise::white(0.01);
            levels.iter().flat_map(|it| runs(noise, 40, 1, it * factor, random)).collect()
        };
        let (a, b) = (side(1.0, &mut random), side(1.03, &mut random));
        assert_eq!(compared(&a, &b).verdict, Verdict::CannotTell);
        let in_pairs = Question { in_pairs: true, ..Question::default() };
        let found = compare(&a, &b, in_pairs).unwrap();
        assert_eq!(found.verdict, Verdict::Slower, "{found:?}");
        // Sides of different size have no pairs.
        assert!(!compare(&a[1..], &b, in_pairs).unwrap().in_pairs);
    }

    #[test]
    fn no_steps_and_hostile_steps_have_an_answer() {
        assert_eq!(compare(&[], &[], Question::default()), None);
        let hostile = (0..100).map(|it| [i64::MIN, i64::MAX, 0, -1, 5][it % 5]);
        let hostile = [Run::new(&Series::of_steps(hostile), Warmup::Auto)];
        let found = compared(&hostile, &hostile);
        assert_ne!(found.verdict, Verdict::Slower);
        assert_ne!(found.verdict, Verdict::Faster);
        assert!(found.share.is_finite());
    }
}
