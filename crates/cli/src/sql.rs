//! `strobe sql`: any question, over the same tables.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value, json};
use session::{SqlLimits, SqlValue, value};

use crate::output::{Format, Grid, Output, note};
use crate::table;

/// Ask any question in SQL, over all tables and the events themselves
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A profile, a run folder or a log folder
    path: PathBuf,
    /// A SELECT, as: select name, sum(dur_ps) from event group by 1 order by 2 desc limit 10
    query: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Maximum number of rows
    #[arg(long, default_value_t = 10_000)]
    limit: usize,
    /// Maximum time, in seconds
    #[arg(long, default_value_t = 30)]
    seconds: u64,
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let session = crate::open(&args.path)?;
    let limits = SqlLimits {
        rows: args.limit,
        time: Duration::from_secs(args.seconds),
        ..SqlLimits::default()
    };
    let result = session.sql(&args.query, &limits)?;
    let text = |it: &SqlValue| match it {
        SqlValue::Null => String::new(),
        SqlValue::Int(it) => it.to_string(),
        SqlValue::Float(it) => it.to_string(),
        SqlValue::Text(it) => it.clone(),
        SqlValue::Blob(it) => format!("{} bytes", it.len()),
    };
    let is_number = |column: usize| {
        let cells = result.rows.iter().map(|it| &it[column]);
        cells.clone().any(|it| !matches!(it, SqlValue::Null))
            && cells.clone().all(|it| !matches!(it, SqlValue::Text(_) | SqlValue::Blob(_)))
    };
    let grid = Grid {
        columns: result.columns.clone(),
        right: (0..result.columns.len()).map(is_number).collect(),
        rows: result.rows.iter().map(|row| row.iter().map(text).collect()).collect(),
    };
    table::print(&grid, args.format, out, || {
        let row = |row: &Vec<SqlValue>| -> Map<String, Value> {
            result.columns.iter().cloned().zip(row.iter().map(value::of_sql)).collect()
        };
        json!(result.rows.iter().map(row).collect::<Vec<_>>())
    })?;
    if result.truncated {
        out.flush()?;
        note(format!("note: cut off at {} rows; see --limit", result.rows.len()));
    }
    Ok(ExitCode::SUCCESS)
}
