//! What stands in a cell, as JSON: the same in the terminal, the page and scripts.

use analyses::Cell;
use serde::Serialize;
use serde_json::{Value, json};

use crate::SqlValue;

pub fn of_cell(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(it) => json!(it),
        Cell::Float(it) => json!(it),
        Cell::Text(it) => json!(it),
        Cell::Bool(it) => json!(it),
    }
}

pub fn of_sql(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Int(it) => json!(it),
        SqlValue::Float(it) => json!(it),
        SqlValue::Text(it) => json!(it),
        SqlValue::Blob(it) => json!(format!("{} bytes", it.len())),
    }
}

/// A shape of ours, all of which JSON can say.
pub fn of_json(it: &impl Serialize) -> Value {
    serde_json::to_value(it).unwrap_or(Value::Null)
}
