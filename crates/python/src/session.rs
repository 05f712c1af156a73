//! An opened run, for Python. Everything that takes long leaves Python's other threads running.

use std::path::PathBuf;
use std::process;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::prelude::*;
use session::report::json::as_json;
use session::{Session as Opened, SqlLimits};

use crate::columns;
use crate::error;
use crate::table::Table;

/// One run, opened.
#[pyclass(frozen, module = "stroboscope._native")]
#[derive(Debug)]
pub struct Session {
    opened: Arc<Opened>,
    /// Made on first use: the rules take their time.
    report: OnceLock<String>,
}

#[pymethods]
impl Session {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Session> {
        check_not_forked()?;
        let opened = py.detach(|| Opened::open(&path)).map_err(|it| error::opening(&it))?;
        Ok(Session { opened: Arc::new(opened), report: OnceLock::new() })
    }

    /// What the user named.
    #[getter]
    fn path(&self) -> PathBuf {
        self.opened.run.path.clone()
    }

    /// The folder or file that was taken.
    #[getter]
    fn name(&self) -> &str {
        &self.opened.run.name
    }

    /// Folders of the runs that were not taken, newest first.
    #[getter]
    fn others(&self) -> Vec<PathBuf> {
        self.opened.run.others.clone()
    }

    #[getter]
    fn n_events(&self) -> usize {
        self.opened.trace().events.len()
    }

    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        check_not_forked()?;
        let table = analyses::find(name).ok_or_else(|| error::unknown_table(name))?;
        let batch = py.detach(|| columns::of_table(table, &*table.rows(self.opened.tables())));
        Ok(Table::new(batch.map_err(error::other)?, false))
    }

    /// At most `max_rows` rows of `max_bytes` bytes, after which the result says it was cut off.
    fn sql(
        &self,
        py: Python<'_>,
        query: &str,
        max_rows: usize,
        max_bytes: usize,
        max_seconds: f64,
    ) -> PyResult<Table> {
        check_not_forked()?;
        // A negative, infinite or absurd number of seconds is no limit that could be reached.
        let time = Duration::try_from_secs_f64(max_seconds).unwrap_or(Duration::MAX);
        let limits = SqlLimits { time, rows: max_rows, bytes: max_bytes };
        py.detach(|| {
            let result = self.opened.sql(query, &limits).map_err(|it| error::querying(&it))?;
            let truncated = result.truncated;
            let batch = columns::of_query(result).map_err(error::other)?;
            Ok(Table::new(batch, truncated))
        })
    }

    /// What `strobe report --format json` prints.
    fn report_json(&self, py: Python<'_>) -> PyResult<&str> {
        check_not_forked()?;
        let make = || as_json(&self.opened.report()).to_string();
        Ok(py.detach(|| self.report.get_or_init(make)))
    }
}

/// Files are read by a pool of threads, and threads do not survive a fork: the child of a process
/// that has read one would wait for them forever.
fn check_not_forked() -> PyResult<()> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let now = process::id();
    if *FIRST.get_or_init(|| now) == now {
        return Ok(());
    }
    Err(error::other(
        "this process was forked from one that had already opened a profile\n  \
         hint: open it in one of them only, or start processes by multiprocessing's \"spawn\"",
    ))
}
