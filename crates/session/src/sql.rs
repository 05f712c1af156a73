//! Answers SQL about a trace: SQLite on top, our own rows below.
//!
//! ```text
//! query ─SQLite─▶ virtual tables ─┬▶ analyses::ALL       computed when a query first reads them
//!                                 ├▶ event track edge …  the trace's own columns
//!                                 └▶ args(event_id)      decoded from the source's bytes
//! ```
//!
//! Nothing is copied into SQLite; a connection lives for one query. It can only read, and only
//! for so long and so much as [`SqlLimits`] says, and until its [`StopFlag`] is raised. Both are
//! looked at between rows: a table that is being computed is waited for. What a query sorts or
//! groups stays in memory, within [`MOST_MEMORY`]; nothing is written to the disk.

mod args;
mod event;
mod hint;
mod rows;
mod vtab;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use analyses::{Column, Tables};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement};

/// How much a query may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlLimits {
    /// Wall time; a query that needs more is an error.
    pub time: Duration,
    /// Rows returned; the rest is cut off and the result says so.
    pub rows: usize,
    /// Bytes of all cells returned; cut off likewise.
    pub bytes: usize,
}

impl Default for SqlLimits {
    fn default() -> SqlLimits {
        SqlLimits { time: Duration::from_secs(30), rows: 10_000, bytes: 64 << 20 }
    }
}

/// Ends a query from elsewhere, as when whoever asked has left.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a query returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueryResult {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<SqlValue>>,
    /// There was more than the limits let through.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// Why a query was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    #[error(
        "only queries are answered, not {what}\n  hint: begin with SELECT, WITH, VALUES or EXPLAIN"
    )]
    NotAQuery { what: String },
    #[error("there is no table {name}\n  hint: {hint}")]
    UnknownTable { name: String, hint: String },
    #[error("there is no column {name}\n  hint: {hint}")]
    UnknownColumn { name: String, hint: String },
    #[error(
        "the query took longer than {} s and was stopped\n  hint: narrow it down by id, track, \
         name, kind or start_ps, which are looked up and not searched, or raise the limit",
        limit.as_secs_f64()
    )]
    TimeLimit { limit: Duration },
    #[error("the query was stopped")]
    Stopped,
    #[error(
        "the queries that run now need more than {} MB of memory\n  hint: sort or group fewer \
         rows or columns, or add a LIMIT to what is sorted",
        MOST_MEMORY / 1_000_000
    )]
    MemoryLimit,
    #[error("{message}{at}")]
    Failed {
        message: String,
        /// Where in the query, as a line of its own; or empty.
        at: String,
    },
}

/// A table that queries can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlTable {
    pub name: &'static str,
    pub doc: &'static str,
    pub columns: &'static [Column],
    /// Of a table that is called as a function: what it is given. Also a column, which
    /// `SELECT *` leaves out.
    pub parameter: Option<Column>,
}

/// Every table that queries can name: the events and their company, then the analyses.
pub fn schema() -> Vec<SqlTable> {
    let plain = |name, doc, columns| SqlTable { name, doc, columns, parameter: None };
    let mut all = vec![plain(event::NAME, event::DOC, event::COLUMNS), args::TABLE];
    all.extend(rows::OWN.iter().map(|it| plain(it.name, it.doc, it.columns)));
    all.extend(analyses::ALL.iter().map(|it| plain(it.name(), it.doc(), it.columns())));
    all
}

/// What all virtual tables of one query know.
#[derive(Debug, Clone)]
struct Shared {
    tables: Arc<Tables>,
    /// The tables that the query names, as SQLite comes across them.
    named: Arc<Mutex<Vec<&'static str>>>,
}

pub(crate) fn query(
    tables: &Arc<Tables>,
    query: &str,
    limits: &SqlLimits,
    stop: &StopFlag,
) -> Result<QueryResult, SqlError> {
    if stop.is_raised() {
        return Err(SqlError::Stopped);
    }
    let shared = Shared { tables: Arc::clone(tables), named: Arc::default() };
    let deadline = Instant::now().checked_add(limits.time);
    let refused = Arc::new(Mutex::new(None));
    let explain = |error| {
        if stop.is_raised() && is_interrupt(&error) {
            return SqlError::Stopped;
        }
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OutOfMemory) {
            return SqlError::MemoryLimit;
        }
        if deadline.is_some_and(|it| Instant::now() >= it) && is_interrupt(&error) {
            return SqlError::TimeLimit { limit: limits.time };
        }
        if let Some(what) = refused.lock().unwrap_or_else(|it| it.into_inner()).take() {
            return SqlError::NotAQuery { what };
        }
        let named = shared.named.lock().unwrap_or_else(|it| it.into_inner());
        hint::explain(error, &named)
    };
    let connection = connect(&shared, deadline, stop, Arc::clone(&refused)).map_err(explain)?;
    let mut statement = connection.prepare(query).map_err(explain)?;
    if !statement.readonly() || statement.column_count() == 0 {
        let what = if query.trim().is_empty() { "an empty text" } else { "this" };
        return Err(SqlError::NotAQuery { what: what.to_owned() });
    }
    if statement.parameter_count() > 0 {
        return Err(hint::failed("the query has a parameter, for which there is no value"));
    }
    collect(&mut statement, limits).map_err(explain)
}

fn is_interrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted)
}

fn collect(statement: &mut Statement<'_>, limits: &SqlLimits) -> rusqlite::Result<QueryResult> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut result = QueryResult { columns, ..QueryResult::default() };
    let mut n_bytes = 0;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if result.rows.len() == limits.rows {
            result.truncated = true;
            break;
        }
        let cells: Vec<SqlValue> = (0..result.columns.len())
            .map(|it| row.get_ref(it).map(SqlValue::from))
            .collect::<Result<_, _>>()?;
        n_bytes += cells.iter().map(SqlValue::n_bytes).sum::<usize>();
        if n_bytes > limits.bytes {
            result.truncated = true;
            break;
        }
        result.rows.push(cells);
    }
    Ok(result)
}

impl From<ValueRef<'_>> for SqlValue {
    fn from(value: ValueRef<'_>) -> SqlValue {
        match value {
            ValueRef::Null => SqlValue::Null,
            ValueRef::Integer(it) => SqlValue::Int(it),
            ValueRef::Real(it) => SqlValue::Float(it),
            ValueRef::Text(it) => SqlValue::Text(String::from_utf8_lossy(it).into_owned()),
            ValueRef::Blob(it) => SqlValue::Blob(it.to_owned()),
        }
    }
}

impl SqlValue {
    fn n_bytes(&self) -> usize {
        match self {
            SqlValue::Null | SqlValue::Int(_) | SqlValue::Float(_) => 8,
            SqlValue::Text(it) => it.len(),
            SqlValue::Blob(it) => it.len(),
        }
    }
}

/// An empty database with our tables, closed to everything but reading.
fn connect(
    shared: &Shared,
    deadline: Option<Instant>,
    stop: &StopFlag,
    refused: Arc<Mutex<Option<String>>>,
) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    // Temporary files would fill the disk unbounded, and outlive a program that is killed.
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "hard_heap_limit", MOST_MEMORY)?;
    // A misspelt "column" would otherwise silently be a text.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    for (limit, value) in LIMITS {
        connection.set_limit(*limit, *value)?;
    }
    vtab::register(&connection, shared)?;
    connection.authorizer(Some(move |it: AuthContext<'_>| match refusal(&it.action) {
        None => Authorization::Allow,
        Some(what) => {
            *refused.lock().unwrap_or_else(|it| it.into_inner()) = Some(what);
            Authorization::Deny
        }
    }))?;
    let stop = stop.clone();
    let is_over =
        move || stop.is_raised() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    connection.progress_handler(1_000, Some(is_over))?;
    Ok(connection)
}

/// All queries of the process together, as SQLite counts it. Sorting ten million rows of a few
/// numbers takes about as much.
const MOST_MEMORY: i64 = 1 << 30;

/// Far above what people write and far below what exhausts the stack, the memory, or the patience
/// between two looks at the clock: one step of SQLite's machine can handle a whole text.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, 16 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (Limit::SQLITE_LIMIT_COLUMN, 500),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 500),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// What a statement would do that is not reading; nothing where it only reads.
fn refusal(action: &AuthAction<'_>) -> Option<String> {
    // Kept out although nothing of ours enables them.
    const FUNCTIONS: &[&str] = &["load_extension", "fts3_tokenizer"];
    const PRAGMAS: &[&str] = &["table_info", "table_xinfo", "function_list"];
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => None,
        AuthAction::Function { function_name } => FUNCTIONS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(function_name))
            .then(|| format!("a call of {function_name}")),
        AuthAction::Pragma { pragma_name, .. } => {
            let reads = PRAGMAS.iter().any(|it| it.eq_ignore_ascii_case(pragma_name));
            (!reads).then(|| format!("PRAGMA {pragma_name}"))
        }
        AuthAction::Attach { .. } => Some("ATTACH".to_owned()),
        AuthAction::Detach { .. } => Some("DETACH".to_owned()),
        AuthAction::Insert { table_name } => Some(format!("a change of table {table_name}")),
        AuthAction::Update { table_name, .. } => Some(format!("a change of table {table_name}")),
        AuthAction::Delete { table_name } => Some(format!("a change of table {table_name}")),
        _ => Some("a change".to_owned()),
    }
}
