//! The tables, and what rules and columns mean.

use std::ops::Range;
use std::sync::Arc;

use analyses::{AnyTable, CellKind, Column};
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use session::{Session, value};

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new().route("/tables", get(schema)).route("/tables/{name}", get(rows))
}

/// More than anybody scrolls through; questions about more go to SQL.
const MOST_ROWS: usize = 100_000;

#[derive(Debug, Deserialize)]
struct Page {
    #[serde(default)]
    offset: usize,
    #[serde(default = "some_rows")]
    limit: usize,
}

fn some_rows() -> usize {
    10_000
}

async fn schema(Opened(_): Opened) -> Answer {
    Answer(schema_json())
}

pub(crate) fn schema_json() -> Value {
    let table = |it: &session::SqlTable| {
        json!({
            "name": it.name,
            "doc": it.doc.trim(),
            "columns": columns(it.columns),
            "parameter": it.parameter.map(|it| it.name),
        })
    };
    session::schema().iter().map(table).collect()
}

async fn rows(
    Opened(session): Opened,
    path: Result<Path<(String, String)>, PathRejection>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Answer, Refusal> {
    let Path((_, name)) = path?;
    let Query(page) = page?;
    let table = analyses::find(&name).ok_or_else(|| Refusal::missing("there is no such table"))?;
    let from = page.offset;
    let to = from.saturating_add(page.limit.min(MOST_ROWS));
    computed(move || Answer(rows_json(&session, table, from..to))).await
}

pub(crate) fn rows_json(session: &Session, table: &dyn AnyTable, wanted: Range<usize>) -> Value {
    let rows = table.rows(session.tables());
    let wanted = wanted.start.min(rows.len())..wanted.end.min(rows.len());
    let n_columns = table.columns().len();
    let row = |row: usize| -> Value {
        (0..n_columns).map(|column| value::of_cell(rows.cell(row, column))).collect()
    };
    json!({
        "name": table.name(),
        "doc": table.doc().trim(),
        "columns": columns(table.columns()),
        "total": rows.len(),
        "rows": wanted.map(row).collect::<Value>(),
    })
}

pub(super) async fn rules() -> Answer {
    Answer(rules_json())
}

pub(crate) fn rules_json() -> Value {
    let rule = |it: &&dyn rules::Rule| json!({"name": it.name(), "doc": it.doc().trim()});
    rules::ALL.iter().map(rule).collect()
}

fn columns(columns: &[Column]) -> Value {
    let column =
        |it: &Column| json!({"name": it.name, "kind": kind(it.kind), "doc": it.doc.trim()});
    columns.iter().map(column).collect()
}

fn kind(kind: CellKind) -> &'static str {
    match kind {
        CellKind::Int => "int",
        CellKind::Float => "float",
        CellKind::Text => "text",
        CellKind::Bool => "bool",
    }
}
