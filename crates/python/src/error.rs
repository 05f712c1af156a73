//! Our errors as Python's, with the messages of the command line.

use pyo3::PyErr;
use session::{OpenError, SqlError};

mod python {
    pyo3::import_exception!(stroboscope._errors, Error);
    pyo3::import_exception!(stroboscope._errors, NotFoundError);
    pyo3::import_exception!(stroboscope._errors, UnknownTableError);
}

pub fn opening(error: &OpenError) -> PyErr {
    match error {
        OpenError::Missing { .. } => python::NotFoundError::new_err(error.to_string()),
        _ => python::Error::new_err(error.to_string()),
    }
}

pub fn querying(error: &SqlError) -> PyErr {
    python::Error::new_err(error.to_string())
}

pub fn unknown_table(name: &str) -> PyErr {
    python::UnknownTableError::new_err(analyses::unknown(name))
}

pub fn other(message: impl Into<String>) -> PyErr {
    python::Error::new_err(message.into())
}
