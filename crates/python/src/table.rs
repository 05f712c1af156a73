//! A table as Arrow's PyCapsule interface hands it over: every library that knows the interface
//! takes the columns as they lie in memory.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};

use crate::columns::DOC;
use crate::error;

/// Columns of equal length.
#[pyclass(frozen, module = "stroboscope._native")]
#[derive(Debug)]
pub struct Table {
    batch: RecordBatch,
    truncated: bool,
}

impl Table {
    pub fn new(batch: RecordBatch, truncated: bool) -> Table {
        Table { batch, truncated }
    }
}

#[pymethods]
impl Table {
    /// What the table is about; empty for the answer to a query.
    #[getter]
    fn doc(&self) -> &str {
        self.batch.schema_ref().metadata().get(DOC).map_or("", String::as_str)
    }

    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.batch.schema_ref().fields().iter().map(|it| it.name().as_str()).collect()
    }

    /// What the columns mean, of those that say so.
    #[getter]
    fn docs(&self) -> HashMap<&str, &str> {
        let fields = self.batch.schema_ref().fields().iter();
        fields
            .filter_map(|it| Some((it.name().as_str(), it.metadata().get(DOC)?.as_str())))
            .collect()
    }

    /// Whether each column holds numbers.
    #[getter]
    fn numeric(&self) -> Vec<bool> {
        self.batch.columns().iter().map(|it| it.data_type().is_numeric()).collect()
    }

    /// There was more than the limits let through.
    #[getter]
    fn truncated(&self) -> bool {
        self.truncated
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// At most `n` rows, the first ones, as tuples; unknown is `None`.
    fn head<'py>(&self, py: Python<'py>, n: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let rows = 0..self.batch.num_rows().min(n);
        rows.map(|row| {
            let cells = self.batch.columns().iter().map(|it| cell(py, it, row));
            PyTuple::new(py, cells.collect::<PyResult<Vec<_>>>()?)
        })
        .collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref());
        let schema = schema.map_err(|it| error::other(it.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The interface makes it a wish which schema to send; ours is sent whatever was wished for.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = Arc::clone(self.batch.schema_ref());
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn cell<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Boolean => {
            column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any()
        }
        DataType::Utf8 => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        DataType::Binary => PyBytes::new(py, column.as_binary::<i32>().value(row)).into_any(),
        // A column of nothing but nulls.
        _ => py.None().into_bound(py),
    })
}
