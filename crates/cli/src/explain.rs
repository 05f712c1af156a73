//! `strobe explain`: what a table and its columns mean, lifted from the code that makes them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;
use session::SqlTable;

use crate::output::{Format, Grid, Output, wrap};
use crate::table::first_line;

/// Say what a table and its columns mean
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A table; without it, all are listed
    name: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let all = session::schema();
    let Some(name) = &args.name else {
        let grid = Grid {
            columns: vec!["table".to_owned(), "what".to_owned()],
            right: vec![false, false],
            rows: all
                .iter()
                .map(|it| vec![it.name.to_owned(), first_line(it.doc).to_owned()])
                .collect(),
        };
        crate::table::print(&grid, args.format, out, || {
            json!(all.iter().map(as_json).collect::<Vec<_>>())
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(table) = all.iter().find(|it| it.name == name.as_str()) else {
        let names: Vec<&str> = all.iter().map(|it| it.name).collect();
        bail!("nothing is called {name:?}\n  hint: there are: {}", names.join(", "));
    };
    match args.format {
        Format::Json => out.json(&as_json(table))?,
        Format::Md => write!(out, "{}", markdown(table))?,
        Format::Csv => {
            let grid = Grid {
                columns: ["column", "what"].map(str::to_owned).to_vec(),
                right: vec![false, false],
                rows: columns(table),
            };
            write!(out, "{}", grid.csv())?;
        }
        Format::Text => {
            let head = out.strong(table.name);
            writeln!(out, "{head}")?;
            for paragraph in table.doc.trim().split("\n\n") {
                let text = wrap(paragraph, out.width, "  ");
                writeln!(out, "{text}")?;
            }
            for row in columns(table) {
                let name = out.strong(&row[0]);
                let text = wrap(&row[1], out.width, "      ");
                write!(out, "  {name}\n{text}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn columns(table: &SqlTable) -> Vec<Vec<String>> {
    let one_line = |doc: &str| doc.split_whitespace().collect::<Vec<_>>().join(" ");
    table.columns.iter().map(|it| vec![it.name.to_owned(), one_line(it.doc)]).collect()
}

fn as_json(table: &SqlTable) -> serde_json::Value {
    let columns: Vec<_> =
        columns(table).iter().map(|it| json!({"name": it[0], "doc": it[1]})).collect();
    json!({"table": table.name, "doc": table.doc.trim(), "columns": columns})
}

/// One section of the reference.
pub fn markdown(table: &SqlTable) -> String {
    let doc: Vec<&str> = table.doc.trim().lines().map(str::trim).collect();
    let grid = Grid {
        columns: ["column", "what"].map(str::to_owned).to_vec(),
        right: vec![false, false],
        rows: columns(table)
            .into_iter()
            .map(|it| vec![format!("`{}`", it[0]), it[1].clone()])
            .collect(),
    };
    format!("## `{}`\n\n{}\n\n{}", table.name, doc.join("\n"), grid.markdown())
}

#[cfg(test)]
mod tests {
    use super::markdown;

    /// The reference is what the code says; `UPDATE=1 cargo test` rewrites it.
    #[test]
    fn the_reference_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables.md");
        let sections: Vec<String> = session::schema().iter().map(markdown).collect();
        let fresh = format!(
            "# Tables\n\nMade from the doc comments in the code by `UPDATE=1 cargo test`; \
             `strobe explain TABLE` prints the same.\nTimes are integer picoseconds, shares go \
             from 0 to 1, an empty cell is not known.\n\n{}",
            sections.join("\n")
        );
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &fresh).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == fresh, "docs/tables.md is stale: run UPDATE=1 cargo test");
    }
}
