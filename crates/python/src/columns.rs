//! Rows into Arrow columns. Unknown is null; what a column means goes with it as metadata.

use std::collections::HashMap;
use std::sync::Arc;

use analyses::{AnyRows, AnyTable, Cell, CellKind};
use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch};
use arrow_schema::{Field, Schema};
use session::{QueryResult, SqlValue};

/// The metadata's key for what a table or column means.
pub const DOC: &str = "doc";

/// A table of an analysis.
pub fn of_table(table: &dyn AnyTable, rows: &dyn AnyRows) -> Result<RecordBatch, String> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (at, column) in table.columns().iter().enumerate() {
        let cells = (0..rows.len()).map(|row| rows.cell(row, at));
        let values: ArrayRef = match column.kind {
            CellKind::Int => Arc::new(Int64Array::from_iter(cells.map(|it| match it {
                Cell::Int(it) => Some(it),
                _ => None,
            }))),
            CellKind::Float => Arc::new(Float64Array::from_iter(cells.map(|it| match it {
                Cell::Float(it) => Some(it),
                _ => None,
            }))),
            CellKind::Bool => Arc::new(BooleanArray::from_iter(cells.map(|it| match it {
                Cell::Bool(it) => Some(it),
                _ => None,
            }))),
            CellKind::Text => texts(
                column.name,
                cells.map(|it| match it {
                    Cell::Text(it) => Some(it),
                    _ => None,
                }),
            )?,
        };
        let field = Field::new(column.name, values.data_type().clone(), true);
        fields.push(field.with_metadata(doc(column.doc)));
        columns.push(values);
    }
    batch(Schema::new_with_metadata(fields, doc(table.doc())), columns)
}

/// The answer to a query. SQLite's columns have no types of their own: each gets the narrowest
/// that holds all its cells, and one without any the type null.
pub fn of_query(result: QueryResult) -> Result<RecordBatch, String> {
    let names = without_doubles(&result.columns);
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let values = query_column(name, result.rows.iter().map(|it| &it[at]))?;
        fields.push(Field::new(name, values.data_type().clone(), true));
        columns.push(values);
    }
    batch(Schema::new(fields), columns)
}

fn query_column<'a>(
    name: &str,
    cells: impl ExactSizeIterator<Item = &'a SqlValue> + Clone,
) -> Result<ArrayRef, String> {
    let has = |test: fn(&SqlValue) -> bool| cells.clone().any(test);
    let has_int = has(|it| matches!(it, SqlValue::Int(_)));
    let has_float = has(|it| matches!(it, SqlValue::Float(_)));
    let has_text = has(|it| matches!(it, SqlValue::Text(_)));
    let has_blob = has(|it| matches!(it, SqlValue::Blob(_)));
    Ok(match (has_int, has_float, has_text, has_blob) {
        (false, false, false, false) => Arc::new(NullArray::new(cells.len())),
        (true, false, false, false) => Arc::new(Int64Array::from_iter(cells.map(|it| match it {
            SqlValue::Int(it) => Some(*it),
            _ => None,
        }))),
        (_, true, false, false) => Arc::new(Float64Array::from_iter(cells.map(|it| match it {
            SqlValue::Float(it) => Some(*it),
            SqlValue::Int(it) => Some(*it as f64),
            _ => None,
        }))),
        (false, false, false, true) => blobs(
            name,
            cells.map(|it| match it {
                SqlValue::Blob(it) => Some(it.as_slice()),
                _ => None,
            }),
        )?,
        // Texts among other things, as the arguments of events are.
        _ => texts(
            name,
            cells.map(|it| match it {
                SqlValue::Null => None,
                SqlValue::Int(it) => Some(it.to_string()),
                SqlValue::Float(it) => Some(it.to_string()),
                SqlValue::Text(it) => Some(it.clone()),
                SqlValue::Blob(it) => Some(String::from_utf8_lossy(it).into_owned()),
            }),
        )?,
    })
}

/// Arrow counts the bytes of a text column in 32 bits.
const MOST_BYTES: usize = i32::MAX as usize;

fn too_long(name: &str) -> String {
    format!("the texts of column {name} are longer than 2 GB\n  hint: ask for less of it by SQL")
}

fn texts<T: AsRef<str>>(
    name: &str,
    cells: impl Iterator<Item = Option<T>>,
) -> Result<ArrayRef, String> {
    let mut builder = StringBuilder::new();
    let mut n_bytes = 0usize;
    for cell in cells {
        n_bytes += cell.as_ref().map_or(0, |it| it.as_ref().len());
        if n_bytes > MOST_BYTES {
            return Err(too_long(name));
        }
        builder.append_option(cell);
    }
    Ok(Arc::new(builder.finish()))
}

fn blobs<'a>(
    name: &str,
    cells: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<ArrayRef, String> {
    let mut builder = BinaryBuilder::new();
    let mut n_bytes = 0usize;
    for cell in cells {
        n_bytes += cell.map_or(0, <[u8]>::len);
        if n_bytes > MOST_BYTES {
            return Err(too_long(name));
        }
        builder.append_option(cell);
    }
    Ok(Arc::new(builder.finish()))
}

/// A join may name two columns `id`; data frames want them told apart: `id`, `id_1`.
fn without_doubles(names: &[String]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        let mut unique = name.clone();
        let mut n = 0;
        while seen.contains(&unique) || (n > 0 && names.contains(&unique)) {
            n += 1;
            unique = format!("{name}_{n}");
        }
        seen.push(unique);
    }
    seen
}

fn doc(text: &str) -> HashMap<String, String> {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    HashMap::from([(DOC.to_owned(), lines.join("\n"))])
}

fn batch(schema: Schema, columns: Vec<ArrayRef>) -> Result<RecordBatch, String> {
    RecordBatch::try_new(Arc::new(schema), columns).map_err(|it| it.to_string())
}
