//! Values by the second, of the last minutes: what sparklines are drawn of.

use std::collections::VecDeque;

/// More than the widest terminals have columns for; a run of days takes no more.
pub const MOST_CELLS: usize = 300;

const SECOND_NS: i64 = 1_000_000_000;

pub fn second_of(unix_ns: i64) -> i64 {
    unix_ns.div_euclid(SECOND_NS)
}

/// The values of one second.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    sum: f64,
    n: u32,
    most: f64,
}

#[derive(Debug, Clone, Default)]
pub struct Cells {
    /// The second behind the last cell.
    end: i64,
    cells: VecDeque<Cell>,
}

impl Cells {
    pub fn add(&mut self, second: i64, value: f64) {
        if self.cells.is_empty() {
            self.end = second;
        }
        let ahead = second.saturating_sub(self.end);
        if ahead >= MOST_CELLS as i64 {
            self.cells.clear();
            self.end = second;
        }
        while self.end <= second {
            if self.cells.len() == MOST_CELLS {
                self.cells.pop_front();
            }
            self.cells.push_back(Cell::default());
            self.end += 1;
        }
        // A clock that was set back writes into the past, as far as it is kept.
        let Some(at) = self.row(second) else { return };
        if let Some(cell) = self.cells.get_mut(at) {
            cell.most = if cell.n == 0 { value } else { cell.most.max(value) };
            cell.sum += value;
            cell.n += 1;
        }
    }

    /// Something that lasted over several seconds is in each of them.
    pub fn add_over(&mut self, from: i64, until: i64, value: f64) {
        for second in from.max(until.saturating_sub(MOST_CELLS as i64))..=until {
            self.add(second, value);
        }
    }

    fn row(&self, second: i64) -> Option<usize> {
        let first = self.end - self.cells.len() as i64;
        usize::try_from(second.checked_sub(first)?).ok()
    }

    fn cell(&self, second: i64) -> Option<&Cell> {
        self.cells.get(self.row(second)?).filter(|it| it.n > 0)
    }

    /// The mean of each second up to `last`, which comes last; a second without a value is `None`.
    pub fn means(&self, last: i64) -> Vec<Option<f64>> {
        self.each(last, |it| it.sum / f64::from(it.n))
    }

    pub fn largest(&self, last: i64) -> Vec<Option<f64>> {
        self.each(last, |it| it.most)
    }

    fn each(&self, last: i64, of: impl Fn(&Cell) -> f64) -> Vec<Option<f64>> {
        let first = last.saturating_sub(MOST_CELLS as i64 - 1);
        (first..=last).map(|it| self.cell(it).map(&of)).collect()
    }

    /// The mean over the last `n` seconds that end with `last`.
    pub fn mean_of_last(&self, last: i64, n: i64) -> Option<f64> {
        let cells = (last.saturating_sub(n - 1)..=last).filter_map(|it| self.cell(it));
        let (sum, count) = cells.fold((0.0, 0), |(sum, n), it| (sum + it.sum, n + it.n));
        (count > 0).then(|| sum / f64::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cells, MOST_CELLS};

    fn last(cells: Vec<Option<f64>>, n: usize) -> Vec<Option<f64>> {
        cells[cells.len() - n..].to_vec()
    }

    #[test]
    fn seconds_without_a_value_stay_unknown() {
        let mut cells = Cells::default();
        for (second, value) in [(100, 1.0), (100, 3.0), (103, 5.0)] {
            cells.add(second, value);
        }
        assert_eq!(last(cells.means(103), 5), [None, Some(2.0), None, None, Some(5.0)]);
        assert_eq!(last(cells.largest(101), 2), [Some(3.0), None]);
        assert_eq!(cells.mean_of_last(103, 4), Some(3.0));
        assert_eq!(cells.mean_of_last(102, 2), None);
    }

    #[test]
    fn days_take_no_more_than_minutes() {
        let mut cells = Cells::default();
        for second in 0..10_000 {
            cells.add(second, second as f64);
        }
        cells.add(3, 1.0);
        assert_eq!(cells.cells.len(), MOST_CELLS);
        assert_eq!(cells.means(9_999).first(), Some(&Some((10_000 - MOST_CELLS) as f64)));
        cells.add_over(0, 1_000_000, 7.0);
        assert_eq!(cells.cells.len(), MOST_CELLS);
        assert!(cells.means(1_000_000).iter().all(|it| *it == Some(7.0)));
        cells.add(i64::MAX - 1, 1.0);
        assert_eq!(cells.cells.len(), 1);
    }
}
