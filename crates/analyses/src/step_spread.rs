//! Says how the steps of a host are spread: percentiles, what is typical, what is not.
//!
//! ```text
//! steps    |  ||||||||  |  |||                    ||  |
//!              typical ^      ^ noise             ^ slow: beyond the limit
//! ```
//!
//! Robust: the median and the median distance from it say what is typical, so a few long steps do
//! not hide themselves. Where steps fall into two groups, the faster one is typical.

use crate::step::{HostSteps, Step, median, percentile};
use crate::{Analysis, Tables};

table! {
    /// How the lengths of a host's steps are spread, over all that count.
    pub struct StepSpread = "step_spread" {
        /// The host whose steps these are.
        host: String,
        /// Steps that count.
        steps: i64,
        /// The mean step.
        mean_ps: i64,
        /// What an ordinary step takes: the median of those that are not slow.
        typical_ps: i64,
        /// The median distance of a step from the typical one.
        spread_ps: i64,
        /// A step beyond this is slow: an outlier.
        limit_ps: i64,
        /// The median step: half of the steps take no longer.
        p50_ps: i64,
        /// Nine of ten steps take no longer.
        p90_ps: i64,
        /// 99 of 100 steps take no longer; with fewer steps, the longest.
        p99_ps: i64,
        /// 999 of 1000 steps take no longer; with fewer steps, the longest.
        p999_ps: i64,
        /// Steps beyond the limit.
        slow: i64,
        /// One, or two where slow steps are a group of their own with a gap before them.
        modes: i64,
        /// How much longer slow steps make the mean step.
        slow_cost_ps: i64,
    }
}

/// With fewer steps it cannot be told what is ordinary.
/// Source: choice, a guess.
pub const FEWEST: usize = 5;

/// The ranks that the columns of the table are called after.
/// Source: choice, those that latencies are promised by.
const QUANTILES: [f64; 3] = [0.9, 0.99, 0.999];
/// Of two groups the faster has at least one part in so many of the steps.
/// Source: choice, a guess: a third.
const FASTER_PART: usize = 3;

/// Median distances from the median that make a slow step: five standard deviations where lengths
/// are spread normally, which one step in three million exceeds.
/// Source: choice, five; 1.4826 median distances are a standard deviation where lengths are spread
/// normally.
const DISTANCES: f64 = 5.0 * 1.4826;

/// However alike the others are, a step that takes less than half as long again is not slow: a busy
/// machine does that.
/// Source: choice, a guess.
const SLOW: f64 = 1.5;

impl Analysis for StepSpread {
    fn run(tables: &Tables) -> Vec<StepSpread> {
        let steps = tables.get::<Step>();
        let of_hosts = tables.model::<HostSteps>();
        let mut hosts: Vec<&str> = steps.iter().map(|it| it.host.as_str()).collect();
        hosts.dedup();
        let durs =
            |host: &str| -> Vec<i64> { of_hosts.counted(host).map(|it| it.dur_ps).collect() };
        hosts.into_iter().filter_map(|it| spread(it, durs(it))).collect()
    }
}

fn spread(host: &str, mut durs: Vec<i64>) -> Option<StepSpread> {
    if durs.len() < FEWEST {
        return None;
    }
    durs.sort_unstable();
    let two = gap(&durs);
    // Of two groups the faster is typical, also where it is the smaller one.
    let ordinary = two.map_or(&durs[..], |it| &durs[..it]);
    let middle = median(&mut ordinary.to_vec())?;
    let distances =
        |of: &[i64]| median(&mut of.iter().map(|it| (it - middle).abs()).collect::<Vec<_>>());
    let spread_ps = distances(ordinary)?;
    let limit = (middle as f64 * SLOW).max(middle as f64 + DISTANCES * spread_ps as f64);
    let limit_ps = limit as i64;
    let first_slow = durs.partition_point(|&it| it <= limit_ps);
    let typical_ps = median(&mut durs[..first_slow].to_vec()).unwrap_or(middle);
    let excess: i128 = durs[first_slow..].iter().map(|&it| i128::from(it - typical_ps)).sum();
    let n = durs.len() as i128;
    let [p90_ps, p99_ps, p999_ps] =
        QUANTILES.map(|it| percentile(&mut durs, it).unwrap_or(typical_ps));
    let p50_ps = median(&mut durs)?;
    let slow = durs.len() - first_slow;
    Some(StepSpread {
        host: host.to_owned(),
        steps: durs.len() as i64,
        mean_ps: (durs.iter().map(|&it| i128::from(it)).sum::<i128>() / n) as i64,
        typical_ps,
        spread_ps,
        limit_ps,
        p50_ps,
        p90_ps,
        p99_ps,
        p999_ps,
        slow: slow as i64,
        modes: if two == Some(first_slow) && slow >= 2 { 2 } else { 1 },
        slow_cost_ps: (excess / n) as i64,
    })
}

/// Where sorted lengths fall into two groups: the widest gap, as a ratio, that leaves at least a
/// third below it and at least two above.
fn gap(durs: &[i64]) -> Option<usize> {
    let ratio = |it: usize| durs[it] as f64 / durs[it - 1].max(1) as f64;
    let from = durs.len().div_ceil(FASTER_PART);
    let at = (from..durs.len() - 1).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))?;
    (ratio(at) >= SLOW).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::spread;

    /// Typical, slow ones, modes.
    fn check(durs: &[i64], expected: (i64, i64, i64)) {
        let row = spread("h", durs.to_vec()).unwrap();
        assert_eq!((row.typical_ps, row.slow, row.modes), expected, "{row:?}");
    }

    #[test]
    fn a_few_long_steps_do_not_hide_themselves() {
        check(&[100, 102, 98, 101, 99, 900, 100, 100], (100, 1, 1));
        check(&[100, 900, 100, 910, 100, 905, 100, 100, 100], (100, 3, 2));
        check(&[627, 17, 15, 180, 16, 22, 182, 16, 15, 166, 24, 16], (16, 4, 2));
    }

    #[test]
    fn of_two_groups_the_faster_is_typical() {
        check(&[10, 50, 10, 51, 10, 52, 50, 11, 50, 50], (10, 6, 2));
    }

    #[test]
    fn a_busy_machine_is_not_slow() {
        check(&[230, 220, 268, 199, 239, 281, 253, 245, 245, 266], (245, 0, 1));
        check(&[100, 148, 100, 101, 130, 99, 102, 100], (100, 0, 1));
        check(&[100, 180, 60, 140, 90, 220, 70, 110, 130, 95], (105, 0, 1));
    }

    #[test]
    fn percentiles_are_steps() {
        let durs: Vec<i64> = (1..=100).collect();
        let row = spread("h", durs).unwrap();
        // The median of an even number lies between two.
        assert_eq!((row.p50_ps, row.p90_ps, row.p99_ps, row.p999_ps), (50, 90, 99, 100));
        let row = spread("h", vec![10, 20, 40, 50, 60, 80]).unwrap();
        assert_eq!((row.p50_ps, row.p90_ps, row.p99_ps), (45, 80, 80));
        assert!(spread("h", vec![1, 2, 3, 4]).is_none());
    }
}
