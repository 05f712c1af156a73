//! Turns SQLite's messages into ours, with what would have worked.

use rusqlite::Error;

use super::{SqlError, schema};

/// `named` are the tables that the query was found to name before it failed.
pub(super) fn explain(error: Error, named: &[&'static str]) -> SqlError {
    let (message, at) = match error {
        Error::SqlInputError { msg, sql, offset, .. } => {
            let at = usize::try_from(offset).ok().and_then(|it| sql.get(it..));
            (msg, at.map(place).unwrap_or_default())
        }
        Error::SqliteFailure(_, Some(message)) => (message, String::new()),
        Error::MultipleStatement => {
            return SqlError::NotAQuery { what: "several statements at once".to_owned() };
        }
        other => (other.to_string(), String::new()),
    };
    if let Some(name) = message.strip_prefix("no such table: ") {
        return SqlError::UnknownTable { name: name.to_owned(), hint: tables_hint() };
    }
    if let Some(name) = message.strip_prefix("no such column: ") {
        return SqlError::UnknownColumn { name: name.to_owned(), hint: columns_hint(named) };
    }
    // SQLite refuses to change a virtual table before it asks whether that is allowed.
    if let Some((table, _)) = message.split_once(" may not be ") {
        return SqlError::NotAQuery { what: format!("a change of {table}") };
    }
    SqlError::Failed { message: lower_first(&message), at }
}

pub(super) fn failed(message: &str) -> SqlError {
    SqlError::Failed { message: message.to_owned(), at: String::new() }
}

/// The query from where it went wrong, shortened to what the eye needs.
fn place(rest: &str) -> String {
    let line = rest.lines().next().unwrap_or_default();
    let short: String = line.chars().take(40).collect();
    if short.is_empty() { String::new() } else { format!("\n  at: {short}") }
}

fn tables_hint() -> String {
    let names: Vec<&str> = schema().iter().map(|it| it.name).collect();
    format!("there are {}", names.join(", "))
}

fn columns_hint(named: &[&'static str]) -> String {
    let mut hints = Vec::new();
    for table in schema().iter().filter(|it| named.contains(&it.name)) {
        let columns: Vec<&str> = table.columns.iter().map(|it| it.name).collect();
        hints.push(format!("{} has {}", table.name, columns.join(", ")));
    }
    if hints.is_empty() {
        return "texts stand in single quotes, and columns need a table after FROM".to_owned();
    }
    hints.join("; ")
}

fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    // All capitals are a keyword, not the start of a sentence.
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &message[first.len_utf8()..])
        }
        _ => message.to_owned(),
    }
}
