//! What one or several runs of the same thing took.

use crate::resample::{Estimate, Ranked};
use crate::{Random, Run};

/// A time and where it lies with 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub value_ps: i64,
    pub low_ps: i64,
    pub high_ps: i64,
}

/// The time that so many of a thousand steps do not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentile {
    pub permille: u16,
    pub at: Interval,
}

/// What one or several runs of the same thing took.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub n_runs: usize,
    pub n_steps: u64,
    /// Time of all steps by their number: what throughput is made of.
    pub mean_ps: i64,
    /// Of several runs that of a typical run, and its interval holds what differs between runs.
    pub median: Interval,
    /// Of all steps together. Those that so few steps cannot tell are absent.
    pub percentiles: Vec<Percentile>,
    /// Independent steps that would say as much as these.
    pub effective_steps: f64,
    /// Deviation of the runs' medians as a share of the median; of one run unknown.
    pub between_runs: Option<f64>,
}

/// Above the median, where latencies hurt.
const PERMILLE: [u16; 4] = [900, 950, 990, 999];
pub(crate) const SEED: u64 = 0x5354_524F_4245;

/// `None`: no steps at all.
pub fn summary(runs: &[Run]) -> Option<Summary> {
    let runs: Vec<&Run> = runs.iter().filter(|it| !it.steady.is_empty()).collect();
    if runs.is_empty() {
        return None;
    }
    let mut random = Random::seeded(SEED);
    let effective_steps = runs.iter().map(|it| it.effective_steps()).sum();
    let told = told_permille(&runs, effective_steps);
    let pooled = quantiles(&runs, &told, &mut random);
    let medians: Vec<Estimate> = match (runs.as_slice(), pooled.first()) {
        ([_], Some(median)) => vec![median.clone()],
        (several, _) => several.iter().map(|it| it.median(&mut random)).collect(),
    };
    let median = Estimate::of_runs(&medians, &mut random);
    let n_steps = runs.iter().map(|it| it.steady.n_steps()).sum::<u64>();
    let total: f64 = runs.iter().map(|it| it.steady.total_ps()).sum();
    let between_runs = (medians.len() > 1 && median.value > 0.0).then(|| {
        let mean = medians.iter().map(|it| it.value).sum::<f64>() / medians.len() as f64;
        let squares: f64 = medians.iter().map(|it| (it.value - mean).powi(2)).sum();
        (squares / (medians.len() - 1) as f64).sqrt() / median.value
    });
    Some(Summary {
        n_runs: runs.len(),
        n_steps,
        mean_ps: crate::to_ps(total / n_steps as f64),
        median: interval(&median),
        percentiles: percentiles(&told, pooled.get(1..).unwrap_or_default(), interval(&median)),
        effective_steps,
        between_runs,
    })
}

/// Which percentiles so many steps can tell.
fn told_permille(runs: &[&Run], effective_steps: f64) -> Vec<u16> {
    // A mean over several steps hides the slow one among them.
    if runs.iter().any(|it| it.steady.n_averaged() > 0) {
        return Vec::new();
    }
    let is_told = |it: &u16| can_be_told(f64::from(*it) / 1000.0, effective_steps);
    PERMILLE.into_iter().filter(is_told).collect()
}

/// The median of all steps together, then these percentiles: from the same resamples, as those
/// cost the most.
fn quantiles(runs: &[&Run], permille: &[u16], random: &mut Random) -> Vec<Estimate> {
    let permille = permille.iter().map(|it| f64::from(*it) / 1000.0);
    let shares: Vec<f64> = [0.5].into_iter().chain(permille).collect();
    // The median of several runs is another: that of a typical one.
    if runs.len() > 1 && shares.len() == 1 {
        return Vec::new();
    }
    let ranked = Ranked::new(runs.iter().map(|it| (&it.steady, it.dependence)));
    let values = ranked.quantiles(&shares);
    let draws = ranked.draws(&shares, random);
    let pieces = match runs {
        [one] => one.n_blocks(),
        several => several.len() as f64,
    };
    let estimate = |(at, value): (usize, &i64)| {
        let draws = draws.iter().filter_map(|it| it.get(at)).map(|it| *it as f64).collect();
        Estimate::new(*value as f64, draws, pieces)
    };
    values.iter().enumerate().map(estimate).collect()
}

fn percentiles(permille: &[u16], estimates: &[Estimate], median: Interval) -> Vec<Percentile> {
    // Few runs widen intervals beyond reason; a percentile is at least what the one below it is.
    let mut least = median.low_ps;
    let percentile = |(permille, estimate): (&u16, &Estimate)| {
        let mut at = interval(estimate);
        at.low_ps = at.low_ps.max(least).min(at.value_ps);
        least = at.low_ps;
        Percentile { permille: *permille, at }
    };
    permille.iter().zip(estimates).map(percentile).collect()
}

/// Whether the slowest of so many steps lies above the quantile with 97.5 %: only then is there
/// an upper end to its interval, whatever the distribution. From 36 steps on for p90, 368 for p99.
fn can_be_told(share: f64, effective_steps: f64) -> bool {
    share.powf(effective_steps) <= 0.025
}

/// Times are never below zero.
fn interval(estimate: &Estimate) -> Interval {
    let (low, high) = estimate.interval();
    let value_ps = crate::to_ps(estimate.value);
    Interval {
        value_ps,
        low_ps: crate::to_ps(low).max(0).min(value_ps),
        high_ps: crate::to_ps(high).max(value_ps),
    }
}

#[cfg(test)]
mod tests {
    use super::{can_be_told, summary};
    use crate::simulate::{Noise, autoregressive};
    use crate::{Random, Run, Series, Warmup};

    const STEP: f64 = 30e9;

    fn run(values: impl IntoIterator<Item = f64>) -> Run {
        Run::new(&Series::of_steps(values.into_iter().map(|it| it as i64)), Warmup::Steps(0))
    }

    /// The share of 95 % intervals for the median of AR(1) series that hold the truth.
    fn coverage(n: usize, memory: f64, n_series: u32) -> f64 {
        let holds = |seed: &u32| {
            let values = autoregressive(n, memory, u64::from(*seed));
            let run = run(values.iter().map(|it| STEP * (1.0 + 0.02 * it)));
            let (low, high) = run.median(&mut Random::seeded(super::SEED)).interval();
            (low..=high).contains(&STEP)
        };
        (0..n_series).filter(holds).count() as f64 / f64::from(n_series)
    }

    #[test]
    fn intervals_of_95_percent_hold_the_truth_in_at_least_90() {
        let check = |n, memory, n_series, least: f64| {
            let inside = coverage(n, memory, n_series);
            println!("{n} steps, memory {memory}: {inside}");
            assert!((least..0.995).contains(&inside), "{inside} for {n} steps, memory {memory}");
        };
        check(20, 0.0, 500, 0.90);
        check(20, 0.3, 500, 0.90);
        check(20, 0.5, 400, 0.88);
        check(50, 0.5, 500, 0.90);
        check(200, 0.0, 300, 0.90);
        check(200, 0.5, 300, 0.90);
        check(200, 0.8, 300, 0.90);
        check(1000, 0.8, 100, 0.90);
        // A thousand such steps say as much as forty: what is known of their memory is too little.
        check(1000, 0.95, 100, 0.85);
    }

    #[test]
    fn intervals_over_runs_hold_what_differs_between_runs() {
        let noise =
            Noise { between_runs: 0.02, warmup: 0.0, mode: 0.0, outliers: 0.0, ..Noise::default() };
        for n_runs in [2, 3, 6] {
            let mut random = Random::seeded(9);
            let inside = (0..200).filter(|_| {
                let runs: Vec<Run> = (0..n_runs)
                    .map(|_| Run::new(&noise.run(60, STEP as i64, &mut random), Warmup::Steps(0)))
                    .collect();
                let found = summary(&runs).unwrap();
                (found.median.low_ps..=found.median.high_ps).contains(&(STEP as i64))
            });
            let inside = inside.count();
            println!("{n_runs} runs: {inside} of 200");
            assert!(inside >= 180, "{inside} of 200 for {n_runs} runs");
        }
    }

    #[test]
    fn percentiles_agree_with_the_distribution_and_are_absent_where_unknown() {
        let known = [(900, 1.2816), (950, 1.6449), (990, 2.3263)];
        let mut inside = [0; 3];
        for seed in 0..50 {
            let values = autoregressive(1000, 0.0, seed);
            let found = summary(&[run(values.iter().map(|it| STEP * (1.0 + 0.02 * it)))]).unwrap();
            let told: Vec<u16> = found.percentiles.iter().map(|it| it.permille).collect();
            assert!(told.starts_with(&[900, 950]) && !told.contains(&999), "{told:?}");
            for (at, (permille, deviations)) in known.into_iter().enumerate() {
                let truth = (STEP * (1.0 + 0.02 * deviations)) as i64;
                let found = found.percentiles.iter().find(|it| it.permille == permille).unwrap();
                inside[at] += usize::from((found.at.low_ps..=found.at.high_ps).contains(&truth));
            }
        }
        assert!(inside.iter().all(|it| *it >= 44), "{inside:?}");
        let few = autoregressive(200, 0.0, 3);
        let few = summary(&[run(few.iter().map(|it| STEP * (1.0 + 0.02 * it)))]).unwrap();
        let told: Vec<u16> = few.percentiles.iter().map(|it| it.permille).collect();
        assert_eq!(told, [900, 950]);
    }

    #[test]
    fn a_percentile_needs_steps_above_it() {
        assert!(!can_be_told(0.9, 35.0) && can_be_told(0.9, 36.0));
        assert!(!can_be_told(0.99, 367.0) && can_be_told(0.99, 368.0));
    }

    #[test]
    fn averaged_steps_have_no_percentiles() {
        let mut series = Series::of_steps(vec![100; 500]);
        series.push(100, 10);
        let found = summary(&[Run::new(&series, Warmup::Steps(0))]).unwrap();
        assert_eq!((found.n_steps, found.percentiles.len()), (510, 0));
    }

    #[test]
    fn nothing_and_hostile_values_have_an_answer() {
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[run([])]), None);
        let one = summary(&[run([7.0])]).unwrap();
        assert_eq!((one.median.value_ps, one.n_steps), (7, 1));
        let hostile = (0..100).map(|it| [i64::MIN, i64::MAX, 0, -1][it % 4]);
        let found = summary(&[Run::new(&Series::of_steps(hostile), Warmup::Auto)]).unwrap();
        assert!(found.median.low_ps <= found.median.high_ps);
    }
}
