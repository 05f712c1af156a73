//! The tables, and what rules and columns mean.

use std::sync::Arc;

use analyses::{Cell, CellKind, Column};
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};

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
    let table = |it: &session::SqlTable| {
        json!({
            "name": it.name,
            "doc": it.doc.trim(),
            "columns": columns(it.columns),
            "parameter": it.parameter.map(|it| it.name),
        })
    };
    Answer(session::schema().iter().map(table).collect())
}

async fn rows(
    Opened(session): Opened,
    path: Result<Path<(String, String)>, PathRejection>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Answer, Refusal> {
    let Path((_, name)) = path?;
    let Query(page) = page?;
    let table = analyses::find(&name).ok_or_else(|| Refusal::missing("there is no such table"))?;
    computed(move || {
        let rows = table.rows(session.tables());
        let from = page.offset.min(rows.len());
        let to = from.saturating_add(page.limit.min(MOST_ROWS)).min(rows.len());
        let n_columns = table.columns().len();
        let row = |row: usize| -> Value {
            (0..n_columns).map(|column| value(rows.cell(row, column))).collect()
        };
        Answer(json!({
            "name": table.name(),
            "doc": table.doc().trim(),
            "columns": columns(table.columns()),
            "total": rows.len(),
            "rows": (from..to).map(row).collect::<Value>(),
        }))
    })
    .await
}

pub(super) async fn rules() -> Answer {
    let rule = |it: &&dyn rules::Rule| json!({"name": it.name(), "doc": it.doc().trim()});
    Answer(rules::ALL.iter().map(rule).collect())
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

fn value(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(it) => json!(it),
        Cell::Float(it) => json!(it),
        Cell::Text(it) => json!(it),
        Cell::Bool(it) => json!(it),
    }
}
