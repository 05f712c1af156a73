//! `strobe table`: lists the tables, or prints one.

mod fold;
mod readable;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use analyses::{AnyTable, Cell};
use anyhow::bail;
use serde_json::{Map, json};
use session::{Session, SqlLimits, SqlTable, SqlValue};

use crate::output::{Format, Grid, Output, beside, note};

/// List the tables, or print one
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A profile, a run folder or a log folder
    path: PathBuf,
    /// The table; without it, all are listed
    name: Option<String>,
    /// How to print; csv and json have exact integers and all columns
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Maximum number of rows; 0 for all
    #[arg(long, default_value_t = 0)]
    limit: usize,
    /// All columns and whole names, however long the lines get
    #[arg(long, conflicts_with = "columns")]
    wide: bool,
    /// Only these columns, in this order
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    columns: Vec<String>,
    /// Add up the rows that have the same value in this column, or are of the same `layer`
    #[arg(long, value_name = "COLUMN")]
    by: Option<String>,
}

/// A table's cells, as values of their own.
#[derive(Debug, Default)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    Bool(bool),
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let session = crate::open(&args.path)?;
    let schema = session::schema();
    let Some(name) = &args.name else {
        list(&session, &schema, args.format, out)?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut cut = None;
    let mut table = match (analyses::find(name), schema.iter().find(|it| it.name == name)) {
        (Some(table), _) => Rows::of_analysis(table, &session),
        (None, Some(table)) if table.parameter.is_none() => {
            let most = if args.limit == 0 { MOST_EVENTS } else { args.limit };
            let (rows, is_cut) = Rows::of_trace(table, &session, most)?;
            cut = is_cut.then_some(most);
            rows
        }
        _ => bail!("{}", unknown(name, &schema)),
    };
    if let Some(by) = &args.by {
        table = fold::by(table, by)?;
    }
    if !args.columns.is_empty() {
        table = table.only(&args.columns)?;
    }
    if args.limit > 0 {
        table.rows.truncate(args.limit);
    }
    table.print(args, out)?;
    if let Some(most) = cut.filter(|_| args.limit == 0) {
        out.flush()?;
        note(format!("note: the first {most} rows; --limit asks for more"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A profile has millions of events, and nobody reads them all.
const MOST_EVENTS: usize = 10_000;

/// Where reading events takes longer, something is wrong.
const LONGEST: Duration = Duration::from_secs(60);

fn list(
    session: &Session,
    schema: &[SqlTable],
    format: Format,
    out: &mut Output,
) -> anyhow::Result<()> {
    let rows = analyses::ALL.iter().map(|it| {
        let n = it.rows(session.tables()).len();
        vec![it.name().to_owned(), n.to_string(), first_sentence(it.doc())]
    });
    let is_plain = |it: &&SqlTable| it.parameter.is_none() && analyses::find(it.name).is_none();
    let of_trace = schema
        .iter()
        .filter(is_plain)
        .map(|it| vec![it.name.to_owned(), String::new(), first_sentence(it.doc)]);
    let rows: Vec<Vec<String>> = rows.chain(of_trace).collect();
    if format == Format::Text {
        let room = rows.iter().map(|it| it[0].len()).max().unwrap_or(0);
        let digits = rows.iter().map(|it| it[1].len()).max().unwrap_or(0).max("rows".len());
        let heads = ["table", "rows", "what"].map(str::to_owned);
        for it in std::iter::once(heads.as_slice()).chain(rows.iter().map(Vec::as_slice)) {
            let head = format!("{:<room$}  {:>digits$}  ", it[0], it[1]);
            let line = beside(&head, &it[2], out.width);
            write!(out, "{line}")?;
        }
        return Ok(());
    }
    let grid = Grid {
        columns: ["table", "rows", "what"].map(str::to_owned).to_vec(),
        right: vec![false, true, false],
        rows,
    };
    print(&grid, format, out, || {
        json!(analyses::ALL.iter().map(|it| it.name()).collect::<Vec<_>>())
    })
}

fn unknown(name: &str, schema: &[SqlTable]) -> String {
    let names: Vec<&str> =
        schema.iter().filter(|it| it.parameter.is_none()).map(|it| it.name).collect();
    analyses::unknown_name("table", name, &names)
}

/// However many lines it is written in.
pub fn first_sentence(doc: &str) -> String {
    let paragraph = doc.trim().split("\n\n").next().unwrap_or("");
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let last = words.iter().position(|it| it.ends_with('.') && !["e.g.", "i.e."].contains(it));
    words[..last.map_or(words.len(), |it| it + 1)].join(" ")
}

pub fn print(
    grid: &Grid,
    format: Format,
    out: &mut Output,
    json: impl FnOnce() -> serde_json::Value,
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

impl Rows {
    fn of_analysis(table: &dyn AnyTable, session: &Session) -> Rows {
        let rows = table.rows(session.tables());
        let columns = table.columns();
        let value = |row: usize, column: usize| match rows.cell(row, column) {
            Cell::Null => Value::Null,
            Cell::Int(it) => Value::Int(it),
            Cell::Float(it) => Value::Float(it),
            Cell::Text(it) => Value::Text(it.to_owned()),
            Cell::Bool(it) => Value::Bool(it),
        };
        Rows {
            columns: columns.iter().map(|it| it.name.to_owned()).collect(),
            rows: (0..rows.len())
                .map(|row| (0..columns.len()).map(|it| value(row, it)).collect())
                .collect(),
        }
    }

    /// Of the trace's own tables, which can be long: the first rows, and whether there are more.
    fn of_trace(table: &SqlTable, session: &Session, most: usize) -> anyhow::Result<(Rows, bool)> {
        let limits = SqlLimits { rows: most, time: LONGEST, ..SqlLimits::default() };
        let found = session.sql(&format!("select * from {}", table.name), &limits)?;
        let value = |it: SqlValue| match it {
            SqlValue::Null => Value::Null,
            SqlValue::Int(it) => Value::Int(it),
            SqlValue::Float(it) => Value::Float(it),
            SqlValue::Text(it) => Value::Text(it),
            SqlValue::Blob(it) => Value::Text(format!("{} bytes", it.len())),
        };
        let rows = found.rows.into_iter().map(|row| row.into_iter().map(value).collect());
        Ok((Rows { columns: found.columns, rows: rows.collect() }, found.truncated))
    }

    fn only(self, wanted: &[String]) -> anyhow::Result<Rows> {
        let mut at = Vec::new();
        for name in wanted {
            at.push(self.column(name)?);
        }
        Ok(Rows {
            columns: at.iter().map(|&it| self.columns[it].clone()).collect(),
            rows: self
                .rows
                .iter()
                .map(|row| at.iter().map(|&it| row[it].clone()).collect())
                .collect(),
        })
    }

    /// By its name, or by the head that people see above it.
    fn column(&self, name: &str) -> anyhow::Result<usize> {
        let is_meant = |it: &String| it == name || readable::head(it) == name;
        let Some(at) = self.columns.iter().position(is_meant) else {
            let names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
            bail!("{}", analyses::unknown_name("column", name, &names));
        };
        Ok(at)
    }

    fn print(&self, args: &Args, out: &mut Output) -> anyhow::Result<()> {
        match args.format {
            Format::Json => out.json(&self.as_json())?,
            Format::Csv => write!(out, "{}", self.exact().csv())?,
            Format::Md => write!(out, "{}", readable::grid(self).markdown())?,
            Format::Text if args.wide => {
                write!(out, "{}", readable::grid(self).text(usize::MAX, 0))?;
            }
            Format::Text if !args.columns.is_empty() => {
                let text = readable::grid(self).text(out.width, 0);
                write!(out, "{text}")?;
            }
            Format::Text => {
                let (grid, left_out) = readable::fit(self, out.width);
                write!(out, "{}", grid.text(out.width, 0))?;
                if !left_out.is_empty() {
                    let text = format!("Not shown: {} (--wide)", left_out.join(", "));
                    let text = crate::output::wrap(&text, out.width, "");
                    write!(out, "\n{}", out.faint(text.trim_end()))?;
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }

    /// For programs, which want every digit.
    fn exact(&self) -> Grid {
        let text = |it: &Value| match it {
            Value::Null => String::new(),
            Value::Int(it) => it.to_string(),
            Value::Float(it) => it.to_string(),
            Value::Text(it) => it.clone(),
            Value::Bool(it) => it.to_string(),
        };
        Grid {
            columns: self.columns.clone(),
            right: vec![false; self.columns.len()],
            rows: self.rows.iter().map(|row| row.iter().map(text).collect()).collect(),
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let value = |it: &Value| match it {
            Value::Null => serde_json::Value::Null,
            Value::Int(it) => json!(it),
            Value::Float(it) => json!(it),
            Value::Text(it) => json!(it),
            Value::Bool(it) => json!(it),
        };
        let row = |row: &Vec<Value>| -> Map<String, serde_json::Value> {
            self.columns.iter().cloned().zip(row.iter().map(value)).collect()
        };
        json!(self.rows.iter().map(row).collect::<Vec<_>>())
    }
}
