//! The tables, and what rules and columns mean.

use std::ops::Range;
use std::sync::Arc;

use analyses::{AnyTable, CellKind};
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    Answer::of(&all())
}

/// What a table is.
#[derive(Debug, Serialize)]
pub(crate) struct TableHead {
    name: &'static str,
    doc: &'static str,
    columns: Vec<Column>,
}

/// A column: its name carries the unit, its doc says what it means.
#[derive(Debug, Serialize)]
pub(crate) struct Column {
    name: &'static str,
    kind: ColumnKind,
    doc: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ColumnKind {
    Int,
    Float,
    Text,
    Bool,
}

/// A table that queries can name.
#[derive(Debug, Serialize)]
pub(crate) struct TableSchema {
    #[serde(flatten)]
    head: TableHead,
    /// Of a table that is called as a function: what it is given.
    parameter: Option<&'static str>,
}

/// Rows of a table.
#[derive(Debug, Serialize)]
pub(crate) struct TableData {
    #[serde(flatten)]
    head: TableHead,
    /// How many rows there are.
    total: usize,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A rule, and what it looks for.
#[derive(Debug, Serialize)]
pub(crate) struct RuleDoc {
    name: &'static str,
    doc: &'static str,
}

pub(crate) fn all() -> Vec<TableSchema> {
    let table = |it: session::SqlTable| TableSchema {
        head: TableHead::of(it.name, it.doc, it.columns),
        parameter: it.parameter.map(|it| it.name),
    };
    session::schema().into_iter().map(table).collect()
}

impl TableHead {
    fn of(name: &'static str, doc: &'static str, columns: &[analyses::Column]) -> TableHead {
        TableHead { name, doc: doc.trim(), columns: columns.iter().map(Column::of).collect() }
    }
}

impl Column {
    fn of(it: &analyses::Column) -> Column {
        let kind = match it.kind {
            CellKind::Int => ColumnKind::Int,
            CellKind::Float => ColumnKind::Float,
            CellKind::Text => ColumnKind::Text,
            CellKind::Bool => ColumnKind::Bool,
        };
        Column { name: it.name, kind, doc: it.doc.trim() }
    }
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
    computed(move || Answer::of(&rows_of(&session, table, from..to))).await
}

pub(crate) fn rows_of(session: &Session, table: &dyn AnyTable, wanted: Range<usize>) -> TableData {
    let rows = table.rows(session.tables());
    let wanted = wanted.start.min(rows.len())..wanted.end.min(rows.len());
    let n_columns = table.columns().len();
    let row =
        |row: usize| (0..n_columns).map(|column| value::of_cell(rows.cell(row, column))).collect();
    TableData {
        head: TableHead::of(table.name(), table.doc(), table.columns()),
        total: rows.len(),
        rows: wanted.map(row).collect(),
    }
}

pub(super) async fn rules() -> Answer {
    Answer::of(&all_rules())
}

pub(crate) fn all_rules() -> Vec<RuleDoc> {
    let rule = |it: &&dyn rules::Rule| RuleDoc { name: it.name(), doc: it.doc().trim() };
    rules::ALL.iter().map(rule).collect()
}
