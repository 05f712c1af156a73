//! `strobe table`: lists the tables, or prints one.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use analyses::{AnyRows, AnyTable, Cell, CellKind};
use anyhow::bail;
use serde_json::{Map, Value, json};
use session::value;

use crate::output::{Format, Grid, Output};

/// List the tables, or print one
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A profile, a run folder or a log folder
    path: PathBuf,
    /// The table; without it, all are listed
    name: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// At most so many rows; 0 for all
    #[arg(long, default_value_t = 0)]
    limit: usize,
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let session = crate::open(&args.path)?;
    let Some(name) = &args.name else {
        let rows = analyses::ALL.iter().map(|it| {
            let n = it.rows(session.tables()).len();
            vec![it.name().to_owned(), n.to_string(), first_line(it.doc()).to_owned()]
        });
        let grid = Grid {
            columns: ["table", "rows", "what"].map(str::to_owned).to_vec(),
            right: vec![false, true, false],
            rows: rows.collect(),
        };
        print(&grid, args.format, out, || {
            json!(analyses::ALL.iter().map(|it| it.name()).collect::<Vec<_>>())
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(table) = analyses::find(name) else { bail!("{}", analyses::unknown(name)) };
    let rows = table.rows(session.tables());
    let shown = if args.limit == 0 { rows.len() } else { rows.len().min(args.limit) };
    let grid = grid(table, &*rows, shown, args.format == Format::Csv);
    print(&grid, args.format, out, || as_json(table, &*rows, shown))?;
    Ok(ExitCode::SUCCESS)
}

pub fn first_line(doc: &str) -> &str {
    doc.trim().lines().next().unwrap_or("").trim()
}

pub fn print(
    grid: &Grid,
    format: Format,
    out: &mut Output,
    json: impl FnOnce() -> Value,
) -> anyhow::Result<()> {
    match format {
        Format::Text => {
            let text = grid.text(out.width, 0);
            write!(out, "{text}")?;
        }
        Format::Json => out.json(&json())?,
        Format::Md => write!(out, "{}", grid.markdown())?,
        Format::Csv => write!(out, "{}", grid.csv())?,
    }
    Ok(())
}

/// Cells as texts; `full` for programs, which want every digit.
fn grid(table: &dyn AnyTable, rows: &dyn AnyRows, n: usize, full: bool) -> Grid {
    let columns = table.columns();
    let text = |cell: Cell<'_>| match cell {
        Cell::Null => String::new(),
        Cell::Int(it) => it.to_string(),
        Cell::Float(it) if full => format!("{it}"),
        Cell::Float(it) => format!("{it:.4}"),
        Cell::Text(it) => it.to_owned(),
        Cell::Bool(it) => it.to_string(),
    };
    Grid {
        columns: columns.iter().map(|it| it.name.to_owned()).collect(),
        right: columns
            .iter()
            .map(|it| matches!(it.kind, CellKind::Int | CellKind::Float))
            .collect(),
        rows: (0..n)
            .map(|row| (0..columns.len()).map(|it| text(rows.cell(row, it))).collect())
            .collect(),
    }
}

fn as_json(table: &dyn AnyTable, rows: &dyn AnyRows, n: usize) -> Value {
    let row = |row: usize| -> Map<String, Value> {
        let cells = table.columns().iter().enumerate();
        cells.map(|(at, it)| (it.name.to_owned(), value::of_cell(rows.cell(row, at)))).collect()
    };
    json!((0..n).map(row).collect::<Vec<_>>())
}
