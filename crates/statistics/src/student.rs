//! Quantiles of Student's distribution, for spreads estimated from few pieces.

/// The quantile of the normal distribution for 95 % in the middle.
pub(crate) const NORMAL: f64 = 1.959_964;

/// How sure an interval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Percent95,
    Percent99,
}

impl Level {
    fn normal(self) -> f64 {
        match self {
            Level::Percent95 => NORMAL,
            Level::Percent99 => 2.575_829,
        }
    }

    /// For 1 to 10 degrees of freedom, from any table.
    fn few(self) -> [f64; 10] {
        match self {
            Level::Percent95 => {
                [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]
            }
            Level::Percent99 => {
                [63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169]
            }
        }
    }

    /// The factor that takes the middle 95 % of an estimate's draws to the interval that is due
    /// when their spread itself was estimated with so many degrees of freedom.
    pub fn factor(self, degrees: f64) -> f64 {
        self.quantile(degrees.max(1.0)) / NORMAL
    }

    pub fn quantile(self, degrees: f64) -> f64 {
        if degrees < 10.0 {
            // Straight in 1/degrees between the whole numbers, as the quantile nearly is.
            let few = self.few();
            let below = (degrees.floor() as usize).clamp(1, 9);
            let at = |n: usize| 1.0 / n as f64;
            let way = (at(below) - 1.0 / degrees) / (at(below) - at(below + 1));
            return few[below - 1] + way * (few[below] - few[below - 1]);
        }
        // Cornish and Fisher's series; right to three digits from ten on.
        let z = self.normal();
        let first = (z.powi(3) + z) / 4.0;
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
        z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
    }
}

#[cfg(test)]
mod tests {
    use super::Level::{Percent95, Percent99};

    #[test]
    fn it_agrees_with_tables() {
        let check = |level: super::Level, degrees: f64, table: f64| {
            let found = level.quantile(degrees);
            assert!((found - table).abs() < 0.01, "{level:?}, {degrees}: {found}");
        };
        check(Percent95, 1.0, 12.706);
        check(Percent95, 9.0, 2.262);
        check(Percent95, 10.0, 2.228);
        check(Percent95, 30.0, 2.042);
        check(Percent95, 1e9, 1.96);
        check(Percent99, 2.0, 9.925);
        check(Percent99, 10.0, 3.169);
        check(Percent99, 30.0, 2.750);
        check(Percent99, 1e9, 2.576);
        assert!((Percent95.quantile(2.5) - 3.558).abs() < 0.1, "{}", Percent95.quantile(2.5));
        assert!(Percent95.factor(0.0) > 6.0 && Percent95.factor(f64::INFINITY) == 1.0);
    }
}
