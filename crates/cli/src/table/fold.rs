//! Rows added up: the launches of a kernel, the kernels of an op, the ops of a layer.

use std::collections::HashMap;

use super::{Rows, Value};

/// Adds up rows that have the same value in a column. `layer` is the scope of an op: its name up to
/// the last `/`.
pub fn by(table: Rows, column: &str) -> anyhow::Result<Rows> {
    let (at, is_layer) = match column {
        "layer" => (layer_column(&table)?, true),
        _ => (table.column(column)?, false),
    };
    let key = |row: &[Value]| match &row[at] {
        Value::Text(it) if is_layer => {
            Value::Text(it.rsplit_once('/').map_or("", |it| it.0).to_owned())
        }
        it => it.clone(),
    };
    let mut groups: Vec<(Value, Vec<Vec<Value>>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for row in table.rows {
        let value = key(&row);
        let group = *known.entry(format!("{value:?}")).or_insert_with(|| {
            groups.push((value, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(row);
    }
    let mut columns = table.columns;
    let sums: Vec<Sum> = columns.iter().map(|it| Sum::of(it)).collect();
    let weight = columns.iter().position(|it| it == "count");
    let total = columns.iter().position(|it| it == "total_ps");
    let mut rows: Vec<Vec<Value>> = groups
        .into_iter()
        .map(|(value, rows)| {
            let mut row: Vec<Value> =
                sums.iter().enumerate().map(|(at, it)| it.of_cells(&rows, at)).collect();
            // A mean of means is none.
            for (at, sum) in sums.iter().enumerate() {
                if let (Sum::Mean, Some(total), Some(weight)) = (sum, total, weight)
                    && let (Value::Int(total), Value::Int(n)) = (&row[total], &row[weight])
                {
                    row[at] = Value::Int(total / (*n).max(1));
                }
            }
            row[at] = value;
            row
        })
        .collect();
    // What the rows were grouped by comes first, the most expensive on top.
    let name = columns.remove(at);
    columns.insert(0, if is_layer { "layer".to_owned() } else { name });
    for row in &mut rows {
        let value = row.remove(at);
        row.insert(0, value);
    }
    let time = columns.iter().position(|it| it == "self_ps" || it == "total_ps");
    let time = time.or_else(|| columns.iter().position(|it| it.ends_with("_ps")));
    if let Some(time) = time {
        let of = |row: &Vec<Value>| if let Value::Int(it) = row[time] { it } else { 0 };
        rows.sort_by_key(|it| std::cmp::Reverse(of(it)));
    }
    Ok(Rows { columns, rows })
}

fn layer_column(table: &Rows) -> anyhow::Result<usize> {
    // A kernel's own name has no scope; that of its op does.
    table.column("op").or_else(|_| table.column("name"))
}

/// How cells of one column become one.
#[derive(Debug, Clone, Copy)]
enum Sum {
    Add,
    Least,
    Most,
    Mean,
    /// What they have in common, if anything.
    Same,
}

impl Sum {
    fn of(column: &str) -> Sum {
        match column {
            it if it.starts_with("min") => Sum::Least,
            it if it.starts_with("max") || it.starts_with("longest") => Sum::Most,
            "mean_ps" => Sum::Mean,
            "start_ps" | "first_ps" => Sum::Least,
            "end_ps" | "last_ps" => Sum::Most,
            "time_ps" | "peak_ps" | "static_shared_bytes" | "dynamic_shared_bytes" => Sum::Same,
            "count" | "calls" | "samples" | "per_step" | "bytes" | "share" | "self_share" => {
                Sum::Add
            }
            it if it.ends_with("_ps") || it.ends_with("_bytes") || it.starts_with("n_") => Sum::Add,
            _ => Sum::Same,
        }
    }

    fn of_cells(self, rows: &[Vec<Value>], at: usize) -> Value {
        let cells = rows.iter().map(|it| &it[at]);
        let known = cells.clone().filter(|it| **it != Value::Null);
        let joined = known.cloned().reduce(|a, b| match (self, a, b) {
            (Sum::Add, Value::Int(a), Value::Int(b)) => Value::Int(a.saturating_add(b)),
            (Sum::Add, Value::Float(a), Value::Float(b)) => Value::Float(a + b),
            (Sum::Least, Value::Int(a), Value::Int(b)) => Value::Int(a.min(b)),
            (Sum::Most, Value::Int(a), Value::Int(b)) => Value::Int(a.max(b)),
            (Sum::Least | Sum::Most | Sum::Add | Sum::Mean, _, _) => Value::Null,
            (Sum::Same, a, b) => {
                if a == b {
                    a
                } else {
                    Value::Null
                }
            }
        });
        let is_same = cells.clone().all(|it| Some(it) == joined.as_ref());
        match joined {
            Some(it) if !matches!(self, Sum::Same) || is_same => it,
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rows, Value, by};

    fn table() -> Rows {
        let row = |name: &str, op: &str, count: i64, total: i64, longest: i64| {
            let mean = total / count;
            vec![
                Value::Text(name.to_owned()),
                Value::Text(op.to_owned()),
                Value::Int(count),
                Value::Int(total),
                Value::Int(longest),
                Value::Int(mean),
                Value::Float(0.25),
            ]
        };
        Rows {
            columns: ["name", "op", "count", "total_ps", "max_ps", "mean_ps", "share"]
                .map(str::to_owned)
                .to_vec(),
            rows: vec![
                row("gemm", "model/a/MatMul", 2, 100, 60),
                row("gemm", "model/b/MatMul", 1, 500, 500),
                row("relu", "model/a/Relu", 4, 40, 10),
            ],
        }
    }

    #[test]
    fn launches_of_a_kernel_are_one_row() {
        let rows = by(table(), "name").unwrap();
        assert_eq!(rows.columns[0], "name");
        let gemm = &rows.rows[0];
        assert_eq!(gemm[0], Value::Text("gemm".to_owned()));
        assert_eq!(gemm[1], Value::Null, "two ops: no one op is its own");
        assert_eq!(gemm[2..6], [3, 600, 500, 200].map(Value::Int));
        assert_eq!(gemm[6], Value::Float(0.5));
    }

    #[test]
    fn a_layer_is_the_scope_of_its_ops() {
        let rows = by(table(), "layer").unwrap();
        assert_eq!(rows.columns[..2], ["layer", "name"]);
        assert_eq!(rows.rows[0][0], Value::Text("model/b".to_owned()));
        assert_eq!(rows.rows[1][0], Value::Text("model/a".to_owned()));
        assert_eq!(rows.rows[1][2..4], [6, 140].map(Value::Int));
    }

    #[test]
    fn no_column_of_that_name_is_said() {
        let error = by(table(), "totl").unwrap_err().to_string();
        assert!(error.contains("did you mean total_ps?"), "{error}");
    }
}
