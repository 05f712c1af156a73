//! Whether steps become slower or faster over a run.

use crate::dependence::dependence;
use crate::series::{Series, median};

/// A trend over a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Change from the first to the last step, and its 95 % interval.
    pub total_ps: i64,
    pub low_ps: i64,
    pub high_ps: i64,
    /// The change as a share of the median step.
    pub share: f64,
}

/// Below this share of a step nobody asks where it comes from.
const WORTH_TELLING: f64 = 0.02;
/// Groups of steps whose medians are compared: pairs grow quadratically.
const MOST_GROUPS: usize = 100;
/// Fewer groups have too few orders for a 95 % interval.
const FEWEST_GROUPS: usize = 8;

impl Drift {
    /// More than chance, and large enough to matter.
    pub fn is_real(&self) -> bool {
        (self.low_ps > 0 || self.high_ps < 0) && self.share.abs() >= WORTH_TELLING
    }
}

/// The slope of Theil and Sen through medians of groups, with the interval from Kendall's order
/// statistic. That interval asks for independence, so groups are at least twice as long as the
/// memory of the steps around a first slope, and what memory the groups still have widens it, as
/// Hamed and Rao (1998) do. `None`: too few such groups to tell.
pub(crate) fn drift(series: &Series) -> Option<Drift> {
    let values: Vec<f64> = series.ps().iter().map(|it| *it as f64).collect();
    // Middle of each record on the axis of steps.
    let mut n_steps = 0.0;
    let places: Vec<f64> = series
        .steps()
        .iter()
        .map(|it| {
            let middle = n_steps + f64::from(*it) / 2.0;
            n_steps += f64::from(*it);
            middle
        })
        .collect();
    let first = slopes(&groups(&places, &values, values.len().div_ceil(MOST_GROUPS / 2).max(2)));
    let slope = first.get(first.len() / 2)?;
    let straight: Vec<f64> =
        values.iter().zip(&places).map(|(value, place)| value - slope * place).collect();
    // A slow mode that lasts for some steps shows in the memory of the slower steps.
    let mut sorted = straight.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let levels = [0.25, 0.5, 0.75].map(|it| sorted[(it * sorted.len() as f64) as usize]);
    let memory = levels.map(|it| dependence(&straight, it).inflation);
    let group = (2.0 * memory.into_iter().fold(1.0, f64::max)).ceil() as usize;
    let group = group.max(values.len().div_ceil(MOST_GROUPS)).max(1);
    let n_groups = values.len() / group;
    if n_groups < FEWEST_GROUPS {
        return None;
    }
    let points = groups(&places, &values, group);
    let slopes = slopes(&points);
    let slope = slopes.get(slopes.len() / 2)?;
    let memory = memory_of_neighbours(&points, *slope);
    let n = n_groups as f64;
    let wider = (1.0 + memory) / (1.0 - memory);
    let variance = wider * n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let reach = crate::student::NORMAL * variance.sqrt();
    let middle = slopes.len() as f64 / 2.0;
    let last = slopes.len().saturating_sub(1);
    let low = slopes.get((middle - reach / 2.0).floor().max(0.0) as usize)?;
    let high = slopes.get(((middle + reach / 2.0).ceil() as usize).min(last))?;
    let typical = median(&mut values.clone())?;
    Some(Drift {
        total_ps: crate::to_ps(slope * n_steps),
        low_ps: crate::to_ps(low * n_steps),
        high_ps: crate::to_ps(high * n_steps),
        share: if typical > 0.0 { slope * n_steps / typical } else { 0.0 },
    })
}

/// Medians of place and value of each group. A last one that is not full is left out.
fn groups(places: &[f64], values: &[f64], group: usize) -> Vec<(f64, f64)> {
    let groups = places.chunks_exact(group).zip(values.chunks_exact(group));
    groups.filter_map(|(x, y)| Some((median(&mut x.to_vec())?, median(&mut y.to_vec())?))).collect()
}

/// Autocorrelation of neighbours around a line, from 0 to 0.8.
fn memory_of_neighbours(points: &[(f64, f64)], slope: f64) -> f64 {
    let rest: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    let level = rest.iter().sum::<f64>() / rest.len().max(1) as f64;
    let product = |lag: usize| -> f64 {
        rest.iter().zip(rest.iter().skip(lag)).map(|(a, b)| (a - level) * (b - level)).sum()
    };
    let all = product(0);
    // The estimate itself is too small by about this much for so few points.
    let bias = 2.0 / rest.len().max(1) as f64;
    if all > 0.0 { (product(1) / all + bias).clamp(0.0, 0.8) } else { 0.0 }
}

/// Slopes between all pairs of points, ascending.
fn slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (at, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[at + 1..].iter().map(|(x2, y2)| (y2 - y) / (x2 - x)));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes
}

#[cfg(test)]
mod tests {
    use super::drift;
    use crate::simulate::Noise;
    use crate::{Random, Series};

    const STEP: i64 = 30_000_000_000;

    fn steady() -> Noise {
        Noise { warmup: 0.0, ..Noise::default() }
    }

    #[test]
    fn a_planted_drift_is_measured() {
        let noise = Noise { drift: 0.10, ..steady() };
        let mut random = Random::seeded(1);
        let inside = (0..100)
            .filter(|_| {
                let found = drift(&noise.run(400, STEP, &mut random)).unwrap();
                assert!((0.06..0.14).contains(&found.share), "{found:?}");
                assert!(found.is_real(), "{found:?}");
                let planted = 0.10 * STEP as f64;
                (found.low_ps as f64..=found.high_ps as f64).contains(&planted)
            })
            .count();
        assert!(inside >= 90, "{inside} of 100 intervals hold the truth");
    }

    #[test]
    fn noise_with_memory_is_seldom_taken_for_drift() {
        for memory in [0.0, 0.5, 0.8] {
            let noise = Noise { memory, ..steady() };
            let mut random = Random::seeded(2);
            let series = |_| drift(&noise.run(200, STEP, &mut random));
            let wrong = (0..200).filter_map(series).filter(super::Drift::is_real).count();
            // Five of a hundred are what an interval of 95 % promises.
            assert!(wrong <= 16, "{wrong} of 200 at memory {memory}");
        }
    }

    #[test]
    fn steps_that_were_averaged_are_placed_where_they_ran() {
        // The step takes a thousandth more each time, whether written singly or by tens.
        let mut random = Random::seeded(3);
        let mut time = |step: i64| STEP + step * STEP / 1000 + (random.normal() * 1e7) as i64;
        let mut series = Series::of_steps((0..200).map(&mut time).collect::<Vec<_>>());
        for ten in 20..100 {
            series.push(time(ten * 10 + 5), 10);
        }
        let found = drift(&series).unwrap();
        let total = found.total_ps as f64 / STEP as f64;
        assert!((0.99..1.01).contains(&total), "{total}");
    }

    #[test]
    fn too_few_steps_have_no_drift_to_tell() {
        assert_eq!(drift(&Series::default()), None);
        assert_eq!(drift(&Series::of_steps([1, 2, 3])), None);
        let hostile =
            Series::of_steps((0..64).map(|it| if it % 2 == 0 { i64::MIN } else { i64::MAX }));
        assert!(drift(&hostile).is_none_or(|it| it.share.is_finite()));
    }
}
