//! The native half of the Python package `stroboscope`: a session, its tables as Arrow.
//!
//! ```text
//! path ─▶ Session ─┬─ table, sql ─▶ Table ─ Arrow's C stream ─▶ pandas, Polars, pyarrow, …
//!                  └─ report_json ─▶ the text of `strobe report --format json`
//! ```
//!
//! What people see of it is written in Python, in the folder `stroboscope`.

mod columns;
mod error;
mod session;
mod table;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::table::Table;

    /// The version of the wheel, which is that of the binary in it.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The names of all tables, as `strobe table PATH` lists them.
    #[pyo3::pyfunction]
    fn table_names() -> Vec<&'static str> {
        analyses::ALL.iter().map(|it| it.name()).collect()
    }
}
