//! Integer time: picoseconds since the start of the trace.
//!
//! No float ever holds a timestamp; a double at today's Unix time steps by 250 ns, enough to
//! make back-to-back kernels overlap.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A moment, in picoseconds since the start of the trace. An `i64` holds 106 days of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
#[repr(transparent)]
pub struct Time(pub i64);

/// A length of time in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
#[repr(transparent)]
pub struct Dur(pub i64);

impl Add<Dur> for Time {
    type Output = Time;
    /// Saturates: a moment past the end of time is still past everything.
    fn add(self, by: Dur) -> Time {
        Time(self.0.saturating_add(by.0))
    }
}

impl Sub for Time {
    type Output = Dur;
    fn sub(self, from: Time) -> Dur {
        Dur(self.0.saturating_sub(from.0))
    }
}

impl Add for Dur {
    type Output = Dur;
    fn add(self, by: Dur) -> Dur {
        Dur(self.0.saturating_add(by.0))
    }
}

impl AddAssign for Dur {
    fn add_assign(&mut self, by: Dur) {
        *self = *self + by;
    }
}

impl std::iter::Sum for Dur {
    fn sum<I: Iterator<Item = Dur>>(items: I) -> Dur {
        items.fold(Dur(0), Add::add)
    }
}

/// Three significant digits and the unit that suits the size: `7.61 ms`, `74 µs`.
impl fmt::Display for Dur {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, f64); 5] =
            [("s", 1e12), ("ms", 1e9), ("µs", 1e6), ("ns", 1e3), ("ps", 1.0)];
        let ps = self.0 as f64;
        // 999.6 ms would print as "1000 ms": the next unit starts where rounding reaches it.
        let (unit, scale) =
            UNITS.into_iter().find(|&(_, scale)| ps.abs() >= scale * 0.9995).unwrap_or(UNITS[4]);
        let value = ps / scale;
        let decimals = match value.abs() {
            it if it >= 99.95 || unit == "ps" => 0,
            it if it >= 9.995 => 1,
            _ => 2,
        };
        let digits = format!("{value:.decimals$}");
        let digits = match decimals {
            0 => &digits,
            _ => digits.trim_end_matches('0').trim_end_matches('.'),
        };
        out.pad(&format!("{digits} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Dur;

    #[test]
    fn durations_print_with_three_digits_and_their_own_unit() {
        let print = |ps: i64| Dur(ps).to_string();
        assert_eq!(print(0), "0 ps");
        assert_eq!(print(999), "999 ps");
        assert_eq!(print(7_612_345_678), "7.61 ms");
        assert_eq!(print(495_500_000_000), "496 ms");
        assert_eq!(print(999_960_000_000), "1 s");
        assert_eq!(print(12_345_678_000_000), "12.3 s");
        assert_eq!(print(-2_500_000), "-2.5 µs");
    }
}
