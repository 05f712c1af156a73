//! A table for people: units instead of picoseconds, and as many columns as fit.

use session::report::words::{percent, thousands};
use trace::Dur;

use super::{Rows, Value};
use crate::output::{Grid, column};
use crate::top::words::{bytes, short};

/// What a column counts, as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// How long.
    Time,
    /// When: many of them are alike in their first digits.
    Instant,
    Bytes,
    BytesPerSecond,
    Share,
    /// Names something: a number to look up, not to compare.
    Id,
    Plain,
}

impl Unit {
    fn of(name: &str) -> Unit {
        match name {
            "start_ps" | "end_ps" | "time_ps" | "first_ps" | "last_ps" | "peak_ps" => Unit::Instant,
            "bytes_per_s" => Unit::BytesPerSecond,
            "id" | "name_id" | "parent" | "track" | "event" | "from_event" | "to_event" | "pid"
            | "line" | "end_line" | "end_col" | "text_line" | "defined_line" | "site"
            | "wall_unix_ns" => Unit::Id,
            it if it.ends_with("_ps") => Unit::Time,
            it if it == "bytes" || it.ends_with("_bytes") || it.contains("_bytes_") => Unit::Bytes,
            it if it == "share" || it.ends_with("_share") => Unit::Share,
            _ => Unit::Plain,
        }
    }

    fn text(self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Null) => String::new(),
            (_, Value::Text(it)) => it.clone(),
            (_, Value::Bool(it)) => (if *it { "yes" } else { "no" }).to_owned(),
            (Unit::Time | Unit::Instant, Value::Int(it)) => Dur(*it).to_string(),
            (Unit::Id, Value::Int(it)) => it.to_string(),
            (Unit::Bytes | Unit::BytesPerSecond, Value::Int(it)) => self.size(*it as f64),
            (Unit::Bytes | Unit::BytesPerSecond, Value::Float(it)) => self.size(*it),
            (Unit::Share, Value::Float(it)) => percent(*it),
            (_, Value::Int(it)) => signed(*it),
            (_, Value::Float(it)) => number(*it),
        }
    }

    fn size(self, value: f64) -> String {
        let (number, unit) = bytes(value, value);
        match self {
            Unit::BytesPerSecond => format!("{number} {unit}/s"),
            _ => format!("{number} {unit}"),
        }
    }
}

fn signed(value: i64) -> String {
    let digits = thousands(usize::try_from(value.unsigned_abs()).unwrap_or(usize::MAX));
    if value < 0 { format!("-{digits}") } else { digits }
}

/// Whole numbers without a point, others with the digits that count.
fn number(value: f64) -> String {
    match value {
        it if it.fract() == 0.0 && it.abs() < 1e15 => signed(it as i64),
        it if it.abs() >= 0.01 => match it < 0.0 {
            true => format!("-{}", short(-it)),
            false => short(it),
        },
        it => format!("{it:.2e}"),
    }
}

/// A column's name without its unit, which its cells have.
pub fn head(name: &str) -> &str {
    name.strip_suffix("_ps").unwrap_or(name)
}

/// All columns, in units.
pub fn grid(table: &Rows) -> Grid {
    let cells: Vec<Vec<String>> = (0..table.columns.len()).map(|at| texts(table, at)).collect();
    let is_number = |at: usize| {
        let mut values = table.rows.iter().map(|it| &it[at]);
        values.clone().any(|it| *it != Value::Null)
            && values.all(|it| matches!(it, Value::Null | Value::Int(_) | Value::Float(_)))
    };
    Grid {
        columns: table.columns.iter().map(|it| head(it).to_owned()).collect(),
        right: (0..table.columns.len()).map(is_number).collect(),
        rows: (0..table.rows.len())
            .map(|row| cells.iter().map(|it| it[row].clone()).collect())
            .collect(),
    }
}

fn texts(table: &Rows, at: usize) -> Vec<String> {
    let unit = Unit::of(&table.columns[at]);
    let values = table.rows.iter().map(|it| &it[at]);
    let times: Vec<Dur> = values
        .clone()
        .filter_map(|it| if let Value::Int(it) = it { Some(Dur(*it)) } else { None })
        .collect();
    let one_unit = match unit {
        Unit::Instant => Some(column(&times)),
        Unit::Time => Some(column(&times)).filter(|it| it.iter().zip(&times).all(tells)),
        _ => None,
    };
    let Some(mut texts) = one_unit.map(Vec::into_iter) else {
        return values.map(|it| unit.text(it)).collect();
    };
    let text = |it: &Value| match it {
        Value::Int(_) => texts.next().unwrap_or_default(),
        _ => unit.text(it),
    };
    values.map(text).collect()
}

/// Whether a time keeps two digits in the unit of its column. Where one does not, each has a unit
/// of its own.
fn tells((text, time): (&String, &Dur)) -> bool {
    let digits = text.trim_start_matches(['-', '0', '.']);
    time.0 == 0 || digits.chars().filter(char::is_ascii_digit).count() >= 2
}

/// The columns that fit the width, those that tell most, and the names of the others.
pub fn fit(table: &Rows, width: usize) -> (Grid, Vec<String>) {
    let mut grid = grid(table);
    let mut names = table.columns.clone();
    let mut left_out = Vec::new();
    let mut ranks: Vec<usize> = (0..names.len()).map(|at| rank(table, at)).collect();
    // What a row is called, which is what rows differ by.
    let texts = (0..names.len()).filter(|&it| !grid.right[it]);
    if let Some(name) = texts.min_by_key(|&it| (ranks[it] >= SAME, it)) {
        ranks[name] = 0;
    }
    while least_width(&grid, &ranks) > width && names.len() > 1 {
        let drop = (0..names.len()).max_by_key(|&at| (ranks[at], at)).unwrap_or(0);
        left_out.push(names.remove(drop));
        ranks.remove(drop);
        grid.columns.remove(drop);
        grid.right.remove(drop);
        for row in &mut grid.rows {
            row.remove(drop);
        }
    }
    // In the table's own order.
    left_out.sort_by_key(|it| table.columns.iter().position(|name| name == it));
    (grid, left_out)
}

/// The rank of a column that has one value in all rows; one of nothing is worth less.
const SAME: usize = 5;

/// The lower, the more a person wants to see it.
fn rank(table: &Rows, at: usize) -> usize {
    let mut values = table.rows.iter().map(|it| &it[at]);
    let first = values.next();
    let is_same = values.all(|it| Some(it) == first);
    match first {
        Some(Value::Null | Value::Int(0)) if is_same => return SAME + 1,
        Some(_) if is_same && table.rows.len() > 1 => return SAME,
        _ => {}
    }
    match table.columns[at].as_str() {
        "total_ps" | "self_ps" | "dur_ps" | "per_step_ps" | "new_step_ps" | "work_ps"
        | "busy_ps" | "mean_ps" | "bytes" | "peak_bytes" | "value" | "name" | "step" => 1,
        "share" | "self_share" | "busy_share" | "peak_share" | "count" | "per_step" | "calls"
        | "op" | "limited_by" | "category" | "excess_ps" => 2,
        it if it.starts_with("min") || it.starts_with("max") || Unit::of(it) == Unit::Id => 4,
        _ => 3,
    }
}

/// How far a grid can be narrowed: numbers stay whole, names keep so much that they tell.
fn least_width(grid: &Grid, ranks: &[usize]) -> usize {
    let width = |at: usize| {
        let cells = grid.rows.iter().map(|it| it[at].chars().count());
        let head = grid.columns[at].chars().count();
        let whole = cells.max().unwrap_or(0).max(head);
        match (grid.right[at], ranks[at]) {
            (true, _) => whole,
            (false, 0) => whole.min(28).max(head),
            (false, _) => whole.min(16).max(head),
        }
    };
    (0..ranks.len()).map(width).sum::<usize>() + 2 * ranks.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{Rows, Value, fit, grid};

    fn table() -> Rows {
        let row = |name: &str, total: i64, bytes: i64, share: f64| {
            vec![
                Value::Text(name.to_owned()),
                Value::Text("host".to_owned()),
                Value::Int(total),
                Value::Int(bytes),
                Value::Float(share),
                Value::Int(1_234_567),
                Value::Bool(true),
            ]
        };
        let names = ["name", "host", "total_ps", "copy_bytes", "share", "count", "eager"];
        Rows {
            columns: names.map(str::to_owned).to_vec(),
            rows: vec![
                row("model/layer_1/attention/MatMul", 12_345_678, 4_000_000, 0.256),
                row("model/layer_1/attention/Softmax", 1_500, 12, 0.01),
            ],
        }
    }

    #[test]
    fn cells_have_the_units_that_their_columns_are_named_for() {
        let grid = grid(&table());
        assert_eq!(grid.columns[2], "total");
        assert_eq!(grid.rows[0][2..], ["12.3 µs", "4.00 MB", "26%", "1,234,567", "yes"]);
        assert_eq!(grid.rows[1][2..4], ["1.5 ns", "12 B"]);
    }

    #[test]
    fn times_of_a_column_have_one_unit_unless_the_small_ones_would_vanish() {
        let column = |times: &[Value]| {
            let rows = times.iter().map(|it| vec![it.clone()]).collect();
            let grid = grid(&Rows { columns: vec!["dur_ps".to_owned()], rows });
            grid.rows.concat()
        };
        let (long, short) = (Value::Int(3_000_000_000), Value::Int(600_000_000));
        assert_eq!(
            column(&[long.clone(), Value::Null, short, Value::Int(0)]),
            ["3.000 ms", "", "0.600 ms", "0.000 ms"]
        );
        assert_eq!(column(&[long, Value::Int(1_500)]), ["3 ms", "1.5 ns"]);
    }

    #[test]
    fn what_does_not_fit_is_left_out_by_worth_and_named() {
        let (grid, left_out) = fit(&table(), 60);
        assert_eq!(grid.columns, ["name", "total", "copy_bytes", "share"]);
        assert_eq!(left_out, ["host", "count", "eager"]);
        let text = grid.text(60, 0);
        assert!(text.lines().all(|it| it.chars().count() <= 60), "{text}");
        assert!(text.contains("MatMul") && text.contains("Softmax"), "ends of names tell: {text}");
        let (_, left_out) = fit(&table(), 200);
        assert!(left_out.is_empty());
    }
}
