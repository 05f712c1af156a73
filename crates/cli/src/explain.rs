//! `strobe explain`: what a rule looks for and what a table's columns mean, lifted from the code.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use rules::Rule;
use serde_json::json;
use session::SqlTable;

use crate::output::{Format, Grid, Output, beside, wrap};
use crate::table::first_sentence;

/// Say what a rule looks for and how to fix it, or what a table's columns mean
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A rule or a table; without it, all are listed
    name: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let all = session::schema();
    let Some(name) = &args.name else {
        let rules = rules::ALL.iter().map(|it| ("rule", it.name(), first_sentence(it.doc())));
        let tables = all.iter().map(|it| ("table", it.name, first_sentence(it.doc)));
        let rows: Vec<(&str, &str, String)> = rules.chain(tables).collect();
        if args.format == Format::Text {
            let room = rows.iter().map(|it| it.1.len()).max().unwrap_or(0) + 2;
            for (kind, name, what) in rows {
                let head = format!("{kind:<7}{name:<room$}");
                let line = beside(&head, &what, out.width);
                write!(out, "{line}")?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let grid = Grid {
            columns: ["kind", "name", "what"].map(str::to_owned).to_vec(),
            right: vec![false; 3],
            rows: rows
                .iter()
                .map(|it| vec![it.0.to_owned(), it.1.to_owned(), it.2.clone()])
                .collect(),
        };
        crate::table::print(&grid, args.format, out, || {
            let rules = rules::ALL.iter().map(|it| rule_json(*it));
            json!(rules.chain(all.iter().map(as_json)).collect::<Vec<_>>())
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(rule) = rules::find(name) {
        match args.format {
            Format::Json => out.json(&rule_json(rule))?,
            Format::Md | Format::Csv => write!(out, "{}", rule_markdown(rule))?,
            Format::Text => {
                let head = out.strong(rule.name());
                writeln!(out, "{head}")?;
                for paragraph in rule.doc().trim().split("\n\n") {
                    let text = rule_paragraph(paragraph, out);
                    write!(out, "{text}")?;
                }
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(table) = all.iter().find(|it| it.name == name.as_str()) else {
        let names = rules::ALL.iter().map(|it| it.name()).chain(all.iter().map(|it| it.name));
        let names: Vec<&str> = names.collect();
        bail!("{}", analyses::unknown_name("rule or table", name, &names));
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

/// A heading and its text, or text alone.
fn rule_paragraph(paragraph: &str, out: &Output) -> String {
    let mut lines = paragraph.trim().lines().map(str::trim);
    let Some(first) = lines.next() else { return String::new() };
    match first.strip_prefix("## ") {
        Some(head) => {
            let body = lines.collect::<Vec<_>>().join(" ");
            format!("\n  {}\n{}", out.strong(head), wrap(&body, out.width, "  "))
        }
        None => wrap(paragraph, out.width, "  "),
    }
}

fn rule_json(rule: &dyn Rule) -> serde_json::Value {
    json!({"rule": rule.name(), "doc": rule_doc(rule)})
}

fn rule_doc(rule: &dyn Rule) -> String {
    rule.doc().trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// One section of the reference.
fn rule_markdown(rule: &dyn Rule) -> String {
    format!("## `{}`\n\n{}\n", rule.name(), rule_doc(rule).replace("## ", "### "))
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
    use super::{markdown, rule_markdown};

    /// The reference is what the code says; `UPDATE=1 cargo test` rewrites it.
    fn check(name: &str, fresh: &str) {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, fresh).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == fresh, "docs/{name} is stale: run UPDATE=1 cargo test");
    }

    #[test]
    fn the_reference_of_rules_is_fresh() {
        let sections: Vec<String> = rules::ALL.iter().map(|it| rule_markdown(*it)).collect();
        let head = "# Rules\n\nMade from the doc comments in the code by `UPDATE=1 cargo test`; \
                    `strobe explain RULE` prints the same.\n";
        check("rules.md", &format!("{head}\n{}", sections.join("\n")));
    }

    #[test]
    fn the_reference_of_tables_is_fresh() {
        let sections: Vec<String> = session::schema().iter().map(markdown).collect();
        let fresh = format!(
            "# Tables\n\nMade from the doc comments in the code by `UPDATE=1 cargo test`; \
             `strobe explain TABLE` prints the same.\nTimes are integer picoseconds, shares go \
             from 0 to 1, an empty cell is not known.\n\n{}",
            sections.join("\n")
        );
        check("tables.md", &fresh);
    }
}
