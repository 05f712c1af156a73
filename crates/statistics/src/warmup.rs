//! Finds where a run's steps have become steady.
//!
//! ```text
//! time │▚
//!      │ ▚▖    ▗                ▖
//!      │   ▀▀▀▀▘▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▝▀▀▀
//!      └─────┬──────────────────────▶ step
//!         steady from here
//! ```
//!
//! As Barrett and others found ("Virtual machine warmup blows hot and cold", 2017), a program
//! need not become faster, and need not become steady at all. So the whole run is cut at
//! change-points, and it is steady from where no level comes up that is not seen again.
//!
//! The cut is the one of least squared error and least cuts, found exactly by optimal partitioning
//! (Jackson and others 2005; PELT finds the same one). Three things keep it honest:
//! outliers are clipped to what their neighbours do; a change must be larger than noise *with
//! memory* makes by itself, where the memory is told from differences of neighbours, which level
//! shifts hardly touch (Chakar and others 2017); and levels within two percent are one level.

use crate::series::{Series, median, spread};

/// How many steps to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Warmup {
    #[default]
    Auto,
    Steps(u64),
}

/// Whether what is left was steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steadiness {
    Steady,
    /// The level still changed too near the end. What is left is everything but the first steps.
    NotReached {
        /// Steps before the last change.
        last_change: u64,
        /// The lowest and the highest level that lasted.
        low_ps: i64,
        high_ps: i64,
    },
    /// Not looked for: too few steps to tell, or it was said how many to leave out.
    NotLookedFor,
}

/// Below this a change-point cannot be told from an outlier.
const FEWEST_RECORDS: usize = 10;
/// Points of the partitioning, which takes quadratic time; longer runs are taken in groups.
const MOST_POINTS: usize = 1000;
/// A shorter piece is an outlier, not a level.
const SHORTEST_PIECE: usize = 3;
/// What must be left for a steady state. Barrett and others ask for the last 500 of 2000; runs here
/// are often short, and a mode that happens to last to the end is no steady state.
const LEAST_SHARE: f64 = 0.5;
/// Levels nearer than this are one: nobody acts on less, and drift is told apart.
const SAME_LEVEL: f64 = 0.02;
/// A cut must win so many times the noise's variance and the logarithm of the length. 2 is what
/// theory asks (BIC); the variance is itself estimated.
const PENALTY: f64 = 3.0;
/// Noise is never taken for smaller than this share, so that a clock's ticks are no levels.
const LEAST_NOISE: f64 = 0.002;
/// First steps that are further out than so many deviations belong to the warm-up.
const FAR_OUT: f64 = 5.0;

/// Where the steady part of a series begins, as a record.
pub(crate) fn find(series: &Series) -> (usize, Steadiness) {
    let n = series.len();
    if n < FEWEST_RECORDS {
        return (0, Steadiness::NotLookedFor);
    }
    let logs: Vec<f64> = series.ps().iter().map(|it| (*it).max(1) as f64).map(f64::ln).collect();
    let group = n.div_ceil(MOST_POINTS);
    let points: Vec<f64> = logs.chunks(group).filter_map(|it| median(&mut it.to_vec())).collect();
    let points = if group == 1 { clipped(&points) } else { points };
    let noise = long_run_variance(&points);
    let pieces = pieces(&points, noise);

    let least = (points.len() as f64 * LEAST_SHARE).ceil() as usize;
    let steady = (0..pieces.len())
        .find(|&first| is_steady(&pieces[first..], noise))
        .map(|first| pieces[first].start)
        .filter(|&start| points.len() - start >= least);
    let Some(start) = steady else {
        let last = pieces.last().map_or(0, |it| it.start * group);
        let last_change = series.part(0..last).n_steps();
        let levels = || pieces.iter().map(|it| crate::to_ps(it.level.exp()));
        let low_ps = levels().min().unwrap_or(0);
        let high_ps = levels().max().unwrap_or(0);
        let first = after_first_outliers(&logs, 0);
        return (first, Steadiness::NotReached { last_change, low_ps, high_ps });
    };
    (after_first_outliers(&logs, start * group), Steadiness::Steady)
}

/// A stretch of one level.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: usize,
    n: usize,
    /// Median.
    level: f64,
}

/// Every level is seen again, or comes once between two stretches of the same level.
fn is_steady(pieces: &[Piece], noise: f64) -> bool {
    let same = |a: &Piece, b: &Piece| {
        let chance = 3.0 * (noise * (1.0 / a.n as f64 + 1.0 / b.n as f64)).sqrt();
        (a.level - b.level).abs() <= chance.max(SAME_LEVEL)
    };
    pieces.len() == 1
        || pieces.iter().enumerate().all(|(at, piece)| {
            let again = pieces.iter().enumerate().any(|(it, other)| it != at && same(piece, other));
            let around = at > 0 && at + 1 < pieces.len() && same(&pieces[at - 1], &pieces[at + 1]);
            again || around
        })
}

/// Values no further from the median of their neighbourhood than noise goes.
fn clipped(values: &[f64]) -> Vec<f64> {
    const REACH: usize = 5;
    let around: Vec<f64> = (0..values.len())
        .map(|at| {
            let window = at.saturating_sub(REACH)..(at + REACH + 1).min(values.len());
            median(&mut values[window].to_vec()).unwrap_or(values[at])
        })
        .collect();
    let distances: Vec<f64> = values.iter().zip(&around).map(|(value, it)| value - it).collect();
    let most = 3.0 * spread(&distances, 0.0).max(LEAST_NOISE);
    values.iter().zip(&around).map(|(value, it)| value.clamp(it - most, it + most)).collect()
}

/// The variance of a mean, times its length, of AR(1) noise under level shifts.
///
/// Differences of neighbours vary by 2σ²(1 − φ), those over two by 2σ²(1 − φ²); medians of both
/// do not see the few that a shift is in.
fn long_run_variance(values: &[f64]) -> f64 {
    let spread_over = |lag: usize| {
        let pairs = values.iter().zip(values.iter().skip(lag));
        spread(&pairs.map(|(a, b)| b - a).collect::<Vec<_>>(), 0.0).powi(2)
    };
    let (one, two) = (spread_over(1), spread_over(2));
    // Above 0.9 a memory cannot be told from the level wandering, below 0 it only helps.
    let memory = if one > 0.0 { (two / one - 1.0).clamp(0.0, 0.9) } else { 0.0 };
    let variance = one / (2.0 * (1.0 - memory));
    (variance * (1.0 + memory) / (1.0 - memory)).max(LEAST_NOISE.powi(2))
}

/// The stretches of least squared error, each paid for.
fn pieces(values: &[f64], noise: f64) -> Vec<Piece> {
    let n = values.len();
    let price = PENALTY * noise * (n as f64).ln();
    // Around the first value, so that squares keep their digits.
    let zero = values.first().copied().unwrap_or(0.0);
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let (sum, squares) = sums.last().copied().unwrap_or_default();
        let value = value - zero;
        sums.push((sum + value, squares + value * value));
    }
    let error = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        squares - sum * sum / (to - from) as f64
    };
    let mut best = vec![(0.0, 0_usize); n + 1];
    for to in 1..=n {
        best[to] = (error(0, to), 0);
        for from in SHORTEST_PIECE..=to.saturating_sub(SHORTEST_PIECE) {
            let cost = best[from].0 + error(from, to) + price;
            if cost < best[to].0 {
                best[to] = (cost, from);
            }
        }
    }
    let mut pieces = Vec::new();
    let mut end = n;
    while end > 0 {
        let start = best[end].1;
        let level = median(&mut values[start..end].to_vec()).unwrap_or(0.0);
        pieces.push(Piece { start, n: end - start, level });
        end = start;
    }
    pieces.reverse();
    pieces
}

/// Skips first steps that are far out, as the one that compiles: too few to be a level.
fn after_first_outliers(logs: &[f64], start: usize) -> usize {
    const IN_A_ROW: usize = 3;
    let steady = &logs[start..];
    let middle = median(&mut steady.to_vec()).unwrap_or(0.0);
    let most = FAR_OUT * spread(steady, middle).max(LEAST_NOISE);
    let is_near = |it: &f64| (it - middle).abs() <= most;
    let calm = steady.windows(IN_A_ROW).position(|it| it.iter().all(is_near));
    // Where nothing is calm, nothing is first.
    let calm = calm.filter(|it| *it as f64 <= steady.len() as f64 * (1.0 - LEAST_SHARE));
    start + calm.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Steadiness, find};
    use crate::simulate::{Noise, autoregressive};
    use crate::{Random, Series};

    const MS: f64 = 1e9;

    /// Levels in milliseconds and how many steps each lasts, with one percent of noise.
    fn steps(levels: &[(f64, usize)], seed: u64) -> Series {
        let n = levels.iter().map(|it| it.1).sum();
        let noise = autoregressive(n, 0.3, seed);
        let level = levels.iter().flat_map(|it| std::iter::repeat_n(it.0, it.1));
        Series::of_steps(level.zip(noise).map(|(ms, it)| (ms * MS * (1.0 + 0.01 * it)) as i64))
    }

    /// The steady part begins within these records, for twenty seeds.
    fn check(levels: &[(f64, usize)], from: std::ops::RangeInclusive<usize>) {
        for seed in 0..20 {
            let (at, steadiness) = find(&steps(levels, seed));
            assert_eq!(steadiness, Steadiness::Steady, "seed {seed}");
            assert!(from.contains(&at), "seed {seed}: steady from {at}, not {from:?}");
        }
    }

    #[test]
    fn no_warmup() {
        check(&[(30.0, 200)], 0..=2);
    }

    #[test]
    fn one_step_that_compiles() {
        check(&[(5000.0, 1), (30.0, 199)], 1..=3);
        check(&[(5000.0, 2), (30.0, 18)], 2..=4);
    }

    #[test]
    fn a_slow_start() {
        check(&[(60.0, 4), (40.0, 20), (30.0, 176)], 23..=27);
    }

    #[test]
    fn a_fast_start_while_queues_fill() {
        check(&[(3.0, 8), (30.0, 192)], 8..=10);
    }

    #[test]
    fn a_program_may_become_slower() {
        check(&[(30.0, 60), (33.0, 140)], 58..=62);
    }

    #[test]
    fn modes_that_return_are_steady() {
        check(&[(30.0, 30), (33.0, 30), (30.0, 40), (33.0, 50), (30.0, 50)], 0..=2);
        check(&[(90.0, 10), (30.0, 30), (33.0, 30), (30.0, 40), (33.0, 50)], 9..=12);
    }

    #[test]
    fn a_disturbance_in_the_middle_is_no_warmup() {
        check(&[(30.0, 100), (60.0, 15), (30.0, 85)], 0..=2);
    }

    #[test]
    fn a_long_run_is_taken_in_groups() {
        check(&[(60.0, 300), (30.0, 19_700)], 290..=340);
    }

    #[test]
    fn a_change_near_the_end_is_no_steady_state() {
        for seed in 0..20 {
            let (from, steadiness) = find(&steps(&[(30.0, 170), (36.0, 30)], seed));
            let Steadiness::NotReached { last_change, low_ps, high_ps } = steadiness else {
                panic!("{steadiness:?}");
            };
            assert!((168..=172).contains(&last_change), "{last_change}");
            assert!((29.5..30.5).contains(&(low_ps as f64 / MS)), "{low_ps}");
            assert!((35.5..36.5).contains(&(high_ps as f64 / MS)), "{high_ps}");
            assert!(from <= 2);
        }
    }

    #[test]
    fn noise_with_memory_and_outliers_is_seldom_taken_for_a_change() {
        // 200 runs each, nothing but noise: how many lose more than a tenth of their steps.
        for (memory, most) in [(0.0, 4), (0.5, 6), (0.8, 20)] {
            let noise = Noise { memory, warmup: 0.0, mode: 0.0, ..Noise::default() };
            let mut random = Random::seeded(3);
            let wrong = (0..200).filter(|_| {
                let (from, steadiness) = find(&noise.run(200, 30_000_000_000, &mut random));
                from > 20 || steadiness != Steadiness::Steady
            });
            let wrong = wrong.count();
            assert!(wrong <= most, "{wrong} of 200 at memory {memory}");
        }
    }

    #[test]
    fn few_and_hostile_values_have_an_answer() {
        assert_eq!(find(&Series::default()), (0, Steadiness::NotLookedFor));
        assert_eq!(find(&Series::of_steps([1; 9])), (0, Steadiness::NotLookedFor));
        assert_eq!(find(&Series::of_steps([7; 100])), (0, Steadiness::Steady));
        for hostile in [0, -1, i64::MIN, i64::MAX] {
            let series =
                Series::of_steps((0..100).map(|it| if it % 3 == 0 { hostile } else { it }));
            find(&series);
        }
    }
}
