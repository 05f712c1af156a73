//! Numbers as a person reads them at a glance.

use session::report::words::thousands;

/// In place of what is not known.
pub const UNKNOWN: &str = "–";

/// Three digits that count: `0.52`, `31.2`, `998`, `23,456`.
pub fn short(value: f64) -> String {
    match value.abs() {
        it if it >= 999.5 => thousands(value.round() as usize),
        it if it >= 99.95 => format!("{value:.0}"),
        it if it >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A number and its unit, chosen for `most`, so that two of them can be compared.
pub fn bytes(value: f64, most: f64) -> (String, &'static str) {
    const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let (unit, scale) =
        UNITS.into_iter().find(|it| most.abs() >= it.1 * 0.9995).unwrap_or(("B", 1.0));
    let number = if unit == "B" { format!("{value:.0}") } else { short(value / scale) };
    (number, unit)
}

/// `12:41`, `3:12:41`, `2 d 03:12:41`.
pub fn elapsed(ns: i64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, hours, minutes, seconds) =
        (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days} d {hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// A time as a number and its unit.
pub fn time(ns: i64) -> (String, &'static str) {
    const UNITS: [(&str, f64); 3] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
    let ns = ns as f64;
    let (unit, scale) = UNITS.into_iter().find(|it| ns >= it.1 * 0.9995).unwrap_or(("ns", 1.0));
    (short(ns / scale), unit)
}

pub fn time_and_unit(ns: i64) -> String {
    let (number, unit) = time(ns);
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{bytes, elapsed, short, time_and_unit};

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 0.5, 9.996, 31.24, 99.96, 999.4, 23_456.0];
        let expected = ["0.00", "0.50", "10.0", "31.2", "100", "999", "23,456"];
        assert_eq!(all.map(short), expected);
        assert_eq!(bytes(1.21e9, 7.8e9), ("1.21".to_owned(), "GB"));
        assert_eq!(bytes(2e6, 7.8e9), ("0.00".to_owned(), "GB"));
        assert_eq!(bytes(512.0, 512.0), ("512".to_owned(), "B"));
        assert_eq!(time_and_unit(31_000_000), "31.0 ms");
        assert_eq!(time_and_unit(999_999_999), "1.00 s");
        assert_eq!(elapsed(761_000_000_000), "12:41");
        assert_eq!(elapsed(3_661_000_000_000), "1:01:01");
        assert_eq!(elapsed((2 * 86_400 + 61) * 1_000_000_000), "2 d 00:01:01");
    }
}
