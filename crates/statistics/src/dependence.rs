//! How much neighbouring steps resemble each other, and how long a block must be to keep that.

/// What a series' own memory means for estimates of its median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dependence {
    /// Records of a block of the bootstrap.
    pub block: usize,
    /// How many dependent records say as much as one independent one; at least 1.
    pub inflation: f64,
}

/// Products of one correlogram at most: keeps a week of records below a tenth of a second.
const MOST_PRODUCTS: usize = 50_000_000;

/// The automatic choice of Politis and White (2004), as corrected with Patton (2009).
///
/// Applied to whether steps lie above or below `level`, not to the times: that is the influence
/// function of the median, so its memory is the one the median's interval needs, and an outlier
/// weighs no more than any other step.
///
/// Blocks have at least ∛n records. In a short series a weak memory does not show above the
/// noise, and where there is none such blocks cost next to nothing.
pub(crate) fn dependence(values: &[f64], level: f64) -> Dependence {
    let n = values.len();
    if n < 4 {
        return Dependence { block: 1, inflation: 1.0 };
    }
    let mut signs: Vec<f64> = values
        .iter()
        .map(|it| match it.total_cmp(&level) {
            std::cmp::Ordering::Less => -1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => 1.0,
        })
        .collect();
    let mean = signs.iter().sum::<f64>() / n as f64;
    signs.iter_mut().for_each(|it| *it -= mean);

    let count = n as f64;
    let least = count.cbrt().ceil() as usize;
    let quiet = (count.log10().sqrt().ceil() as usize).max(5);
    let furthest = (count.sqrt().ceil() as usize + quiet).min(n - 1).min(MOST_PRODUCTS / n + 8);
    let covariance = |lag: usize| -> f64 {
        signs.iter().zip(&signs[lag..]).map(|(a, b)| a * b).sum::<f64>() / count
    };
    let covariances: Vec<f64> = (0..=furthest).map(covariance).collect();
    let variance = covariances[0];
    if variance <= 0.0 {
        return Dependence { block: least, inflation: 1.0 };
    }

    // The memory ends where `quiet` autocorrelations in a row are no more than noise.
    let noise = 2.0 * (count.log10() / count).sqrt();
    let is_loud = |lag: &usize| (covariances[*lag] / variance).abs() >= noise;
    let mut memory = 0;
    for lag in 1..=furthest {
        if is_loud(&lag) {
            memory = lag;
        } else if lag - memory >= quiet {
            break;
        }
    }
    let window = (2 * memory).clamp(1, furthest);
    let weight = |lag: usize| {
        let t = lag as f64 / window as f64;
        if t <= 0.5 { 1.0 } else { 2.0 * (1.0 - t) }
    };
    let tail = || (1..=window).map(|lag| (lag as f64, weight(lag) * covariances[lag]));
    let long_run = variance + 2.0 * tail().map(|it| it.1).sum::<f64>();
    let slope = 2.0 * tail().map(|(lag, it)| lag * it).sum::<f64>();
    let block = match long_run > 0.0 {
        true => (1.5 * (slope / long_run).powi(2) * count).cbrt(),
        // The series swings back and forth: longer blocks gain nothing.
        false => 1.0,
    };
    let most = (3.0 * count.sqrt()).min(count / 3.0).ceil().max(1.0) as usize;
    let block = (block.ceil().min(count) as usize).max(least).min(most);
    Dependence { block, inflation: (long_run / variance).clamp(1.0, count) }
}

#[cfg(test)]
mod tests {
    use super::dependence;
    use crate::simulate::autoregressive;

    #[test]
    fn independent_steps_need_short_blocks() {
        let found = dependence(&autoregressive(1000, 0.0, 1), 0.0);
        assert!(found.block <= 20, "{found:?}");
        assert!(found.inflation < 1.3, "{found:?}");
    }

    #[test]
    fn steps_with_memory_need_long_blocks() {
        // Signs of an AR(1) correlate by 2/π·asin(φᵏ): at φ = 0.8 they say a sixth of what as
        // many independent ones would.
        let runs = (0..20).map(|seed| dependence(&autoregressive(2000, 0.8, seed), 0.0));
        let (mut block, mut inflation) = (0.0, 0.0);
        for found in runs {
            block += found.block as f64 / 20.0;
            inflation += found.inflation / 20.0;
        }
        assert!((20.0..80.0).contains(&block), "{block}");
        assert!((4.5..8.0).contains(&inflation), "{inflation}");
    }

    #[test]
    fn constant_and_tiny_series_have_an_answer() {
        assert_eq!(dependence(&[], 0.0).block, 1);
        assert_eq!(dependence(&[1.0; 3], 1.0).block, 1);
        let constant = dependence(&[5.0; 100], 5.0);
        assert_eq!((constant.block, constant.inflation), (5, 1.0));
        let alternating: Vec<f64> = (0..100).map(|it| f64::from(it % 2)).collect();
        assert_eq!(dependence(&alternating, 0.5).inflation, 1.0);
    }
}
