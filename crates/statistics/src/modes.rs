//! Whether steps come in kinds: most take 30 ms, every tenth or so 33.
//!
//! ```text
//!   peak
//!    ▟▙
//!   ▐██▌       ▗▖ lower peak
//!   ████▖     ▗██▖
//!  ▟█████▄___▄█████▖
//!          valley
//! ```
//!
//! A valley of the smoothed density is believed where it holds fewer steps than the lower of the
//! peaks beside it by more than chance, steps with memory counting less. Hartigan's dip asks the
//! same question of the whole distribution but does not say where, and its table holds for
//! independent values only.

use crate::dependence::Dependence;
use crate::series::{Series, median, spread};

/// Steps that come in several kinds.
#[derive(Debug, Clone, PartialEq)]
pub struct Modes {
    /// Fastest first; at least two.
    pub modes: Vec<Mode>,
    /// How empty the emptiest valley is: 1 where nothing lies between two peaks.
    pub depth: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mode {
    /// Median of its steps.
    pub typical_ps: i64,
    /// Of all steps.
    pub share: f64,
}

/// Points of the density.
const LEAST_CELLS: f64 = 256.0;
const MOST_CELLS: f64 = 4096.0;
/// A peak with less is a group of outliers.
const LEAST_SHARE: f64 = 0.05;
/// Nearer peaks are one, whatever the clock.
const LEAST_DISTANCE: f64 = 0.02;
/// Deviations by which a valley must be lower. The deepest of several valleys is looked at, and
/// its place is chosen by the same data: at 4 one series in a hundred without modes is taken for
/// one with them (see the tests).
const LEAST_DEVIATIONS: f64 = 4.0;

pub(crate) fn modes(series: &Series, dependence: Dependence) -> Option<Modes> {
    // Means over several steps have kinds of their own.
    if series.n_averaged() > 0 || series.len() < 20 {
        return None;
    }
    let mut logs: Vec<f64> =
        series.ps().iter().map(|it| (*it).max(1) as f64).map(f64::ln).collect();
    logs.sort_unstable_by(f64::total_cmp);
    let n = logs.len();
    let at = |share: f64| logs[((share * n as f64) as usize).min(n - 1)];
    let (low, high) = (at(0.01), at(0.99));
    // The rule of Silverman with a robust spread, which errs to the smooth side.
    let middle = at(0.5);
    let typical = spread(&logs, middle).min((at(0.75) - at(0.25)) / 1.349);
    let width = (0.9 * typical * (n as f64).powf(-0.2)).max(LEAST_DISTANCE / 8.0);
    let (from, to) = (low - 3.0 * width, high + 3.0 * width);
    // Cells must resolve the width, however far apart the ends are.
    let n_cells = (2.0 * (to - from) / width).ceil().clamp(LEAST_CELLS, MOST_CELLS) as usize;
    let cell = (to - from) / n_cells as f64;
    let density = density(&logs, from, cell, n_cells, width);

    let place = |at: usize| from + (at as f64 + 0.5) * cell;
    let near = |place: f64, reach: f64| {
        let rank = |it: f64| logs.partition_point(|value| *value < it);
        (rank(place + reach) - rank(place - reach)) as f64 / dependence.inflation
    };
    // A valley's depth in deviations; a stray step between two kinds is a peak of its own until
    // the shallowest valley beside it is filled.
    let depth = |left: usize, valley: usize, right: usize| {
        // As far as halfway to the nearer peak: as many steps as can be without counting twice.
        let reach = (valley - left).min(right - valley) as f64 * cell / 2.0;
        let peak = near(place(left), reach).min(near(place(right), reach));
        let bottom = near(place(valley), reach);
        let far = place(right) - place(left) >= LEAST_DISTANCE;
        let deviations = (peak - bottom) / (peak + bottom).max(1.0).sqrt();
        (if far { deviations } else { 0.0 }, 1.0 - bottom / peak.max(1.0))
    };
    let (mut peaks, mut valleys) = peaks_and_valleys(&density);
    loop {
        let depths = || {
            valleys.iter().enumerate().map(|(at, it)| (at, depth(peaks[at], *it, peaks[at + 1]).0))
        };
        let shallowest = depths().min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((at, _)) = shallowest.filter(|it| it.1 < LEAST_DEVIATIONS) else { break };
        let lower = if density[peaks[at]] < density[peaks[at + 1]] { at } else { at + 1 };
        // The peak goes, and of the valleys beside it the higher one.
        let beside = [lower.checked_sub(1), Some(lower)].into_iter().flatten();
        let higher = beside
            .filter(|it| *it < valleys.len())
            .max_by(|a, b| density[valleys[*a]].total_cmp(&density[valleys[*b]]));
        peaks.remove(lower);
        valleys.remove(higher.unwrap_or(at));
    }
    let depths = valleys.iter().enumerate().map(|(at, it)| depth(peaks[at], *it, peaks[at + 1]).1);
    let deepest = depths.fold(0.0, f64::max);
    let cuts: Vec<usize> =
        valleys.iter().map(|it| logs.partition_point(|value| *value < place(*it))).collect();
    let mut modes: Vec<Mode> = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([n]) {
        let share = (end - start) as f64 / n as f64;
        // A group of outliers stays with the next mode, or with the last one.
        if share >= LEAST_SHARE {
            let typical = median(&mut logs[start..end].to_vec())?;
            modes.push(Mode { typical_ps: crate::to_ps(typical.exp()), share });
            start = end;
        } else if let (true, Some(last)) = (end == n, modes.last_mut()) {
            last.share += share;
        }
    }
    (modes.len() > 1).then_some(Modes { modes, depth: deepest })
}

fn density(logs: &[f64], from: f64, cell: f64, n_cells: usize, width: f64) -> Vec<f64> {
    let mut counts = vec![0.0; n_cells];
    for value in logs {
        let at = (value - from) / cell;
        if at >= 0.0 && (at as usize) < n_cells {
            counts[at as usize] += 1.0;
        }
    }
    let reach = (3.0 * width / cell).ceil() as usize;
    let kernel: Vec<f64> =
        (0..=reach).map(|it| (-0.5 * (it as f64 * cell / width).powi(2)).exp()).collect();
    let mut smooth = vec![0.0; n_cells];
    for (at, count) in counts.iter().enumerate().filter(|it| *it.1 > 0.0) {
        for (there, out) in
            smooth.iter_mut().enumerate().take(at + reach + 1).skip(at.saturating_sub(reach))
        {
            *out += count * kernel[at.abs_diff(there)];
        }
    }
    smooth
}

/// Peaks in order, and the valley between each and the next.
fn peaks_and_valleys(density: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let (mut peaks, mut valleys) = (vec![0], Vec::new());
    // While climbing the last peak moves along, while falling the last valley.
    let mut falls_from = None;
    for at in 1..density.len() {
        let last = peaks.len() - 1;
        match falls_from {
            None if density[at] >= density[at - 1] => peaks[last] = at,
            None => falls_from = Some(at),
            Some(bottom) if density[at] < density[bottom] => falls_from = Some(at),
            Some(bottom) if density[at] > density[bottom] => {
                // An empty valley is wide: its middle.
                valleys.push(usize::midpoint(bottom, at - 1));
                peaks.push(at);
                falls_from = None;
            }
            Some(_) => (),
        }
    }
    (peaks, valleys)
}

#[cfg(test)]
mod tests {
    use super::modes;
    use crate::dependence::dependence;
    use crate::simulate::Noise;
    use crate::{Modes, Random, Series};

    const STEP: i64 = 30_000_000_000;

    fn found(series: &Series) -> Option<Modes> {
        let values: Vec<f64> = series.ps().iter().map(|it| *it as f64).collect();
        let level = crate::series::median(&mut values.clone()).unwrap_or(0.0);
        modes(series, dependence(&values, level))
    }

    #[test]
    fn two_kinds_of_steps_are_told_with_their_shares() {
        for share in [0.2, 0.5] {
            let mut random = Random::seeded(4);
            for _ in 0..20 {
                let time = |_: i32| {
                    let level = if random.uniform() < share { 1.1 } else { 1.0 };
                    (STEP as f64 * level * (1.0 + 0.01 * random.normal())) as i64
                };
                let series = Series::of_steps((0..300).map(time).collect::<Vec<_>>());
                let found = found(&series).unwrap();
                let [fast, slow] = found.modes.as_slice() else { panic!("{found:?}") };
                assert!((fast.typical_ps - STEP).abs() < STEP / 100, "{found:?}");
                assert!((slow.typical_ps - STEP * 11 / 10).abs() < STEP / 50, "{found:?}");
                assert!((slow.share - share).abs() < 0.1, "{found:?}");
                assert!((fast.share + slow.share - 1.0).abs() < 1e-9);
                assert!(found.depth > 0.5, "{found:?}");
            }
        }
    }

    #[test]
    fn three_kinds_are_three() {
        let mut random = Random::seeded(5);
        let time = |at: usize| {
            let level = [1.0, 1.2, 1.5][at % 3];
            (STEP as f64 * level * (1.0 + 0.01 * random.normal())) as i64
        };
        let series = Series::of_steps((0..600).map(time).collect::<Vec<_>>());
        assert_eq!(found(&series).unwrap().modes.len(), 3);
    }

    #[test]
    fn noise_with_memory_and_outliers_has_seldom_more_than_one() {
        for memory in [0.0, 0.5, 0.8] {
            let noise = Noise { memory, mode: 0.0, warmup: 0.0, ..Noise::default() };
            let mut random = Random::seeded(6);
            let wrong = (0..500).filter(|_| found(&noise.run(200, STEP, &mut random)).is_some());
            let wrong = wrong.count();
            assert!(wrong <= 10, "{wrong} of 500 at memory {memory}");
        }
    }

    #[test]
    fn few_constant_and_hostile_values_have_no_modes_or_finite_ones() {
        assert_eq!(found(&Series::default()), None);
        assert_eq!(found(&Series::of_steps([5; 500])), None);
        let hostile = Series::of_steps((0..200).map(|it| [0, -5, i64::MAX, i64::MIN][it % 4]));
        assert!(found(&hostile).is_none_or(|it| it.depth.is_finite()));
        let mut averaged = Series::of_steps((0..100).map(|it| if it % 2 == 0 { 100 } else { 200 }));
        assert!(found(&averaged).is_some());
        averaged.push(150, 10);
        assert_eq!(found(&averaged), None);
    }
}
