//! Times of steps in the order they ran.

/// Times of steps in the order they ran: one record for each step, or one for several steps where
/// only their mean was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    ps: Vec<i64>,
    steps: Vec<u32>,
}

impl Series {
    pub fn of_steps(times_ps: impl IntoIterator<Item = i64>) -> Series {
        let ps: Vec<i64> = times_ps.into_iter().collect();
        Series { steps: vec![1; ps.len()], ps }
    }

    /// Adds `steps` steps that took `mean_ps` each.
    pub fn push(&mut self, mean_ps: i64, steps: u32) {
        if steps > 0 {
            self.ps.push(mean_ps);
            self.steps.push(steps);
        }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.ps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ps.is_empty()
    }

    pub fn n_steps(&self) -> u64 {
        self.steps.iter().map(|it| u64::from(*it)).sum()
    }

    /// Steps of which only a mean with others is known. Percentiles cannot be told of them.
    pub fn n_averaged(&self) -> u64 {
        self.steps.iter().filter(|it| **it > 1).map(|it| u64::from(*it)).sum()
    }

    /// Mean time of each record.
    pub fn ps(&self) -> &[i64] {
        &self.ps
    }

    /// Steps of each record.
    pub fn steps(&self) -> &[u32] {
        &self.steps
    }

    /// Time of all steps; as a float, as hostile input may exceed any integer.
    pub fn total_ps(&self) -> f64 {
        self.ps.iter().zip(&self.steps).map(|(ps, n)| *ps as f64 * f64::from(*n)).sum()
    }

    pub fn mean_ps(&self) -> Option<i64> {
        let n = self.n_steps();
        (n > 0).then(|| crate::to_ps(self.total_ps() / n as f64))
    }

    /// The records of this range.
    pub fn part(&self, range: std::ops::Range<usize>) -> Series {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        Series { ps: self.ps[start..end].to_vec(), steps: self.steps[start..end].to_vec() }
    }

    /// At most the first `n` steps; a record that reaches beyond is left out.
    pub fn first_steps(&self, n: u64) -> Series {
        let mut sum = 0;
        let fits = self.steps.iter().take_while(|it| {
            sum += u64::from(**it);
            sum <= n
        });
        self.part(0..fits.count())
    }
}

/// Median of floats, which are no NaN; the mean of the two middle ones of an even number.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut at, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return Some(at);
    }
    let before = below.iter().copied().max_by(f64::total_cmp).unwrap_or(at);
    Some(before.midpoint(at))
}

/// Distance from the median that half of the values keep, as deviation of a normal distribution.
pub(crate) fn spread(values: &[f64], around: f64) -> f64 {
    let mut distances: Vec<f64> = values.iter().map(|it| (it - around).abs()).collect();
    1.4826 * median(&mut distances).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Series, median};

    #[test]
    fn steps_are_counted_by_weight() {
        let mut series = Series::of_steps([10, 20]);
        series.push(40, 4);
        series.push(99, 0);
        assert_eq!((series.len(), series.n_steps(), series.n_averaged()), (3, 6, 4));
        assert_eq!(series.mean_ps(), Some(32));
        assert_eq!(series.first_steps(5), Series::of_steps([10, 20]));
        assert_eq!(series.part(2..9).n_steps(), 4);
        assert_eq!(Series::default().mean_ps(), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0]), Some(3.0));
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&mut [9.0, 1.0, 3.0]), Some(3.0));
    }
}
