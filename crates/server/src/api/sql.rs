//! Any question in SQL: a few at a time, each for so long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRequest as _, Json, Request};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{QueryResult, SqlError, SqlLimits, SqlValue, StopFlag, value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Answer, Opened, Refusal, computed};
use crate::limits::Limits;
use crate::runs::Runs;

/// Longer than any question a person writes.
const LONGEST_QUERY: usize = 256 << 10;
const MOST_ROWS: usize = 100_000;

pub(super) fn routes(turns: Arc<QueryTurns>) -> Router<Arc<Runs>> {
    Router::new()
        .route("/sql", post(query))
        .layer(Extension(turns))
        .layer(DefaultBodyLimit::max(LONGEST_QUERY))
}

/// So many queries run at once.
#[derive(Debug)]
pub struct QueryTurns {
    free: Arc<Semaphore>,
    n_running: AtomicUsize,
    most_running: AtomicUsize,
    query_time: Duration,
    body_time: Duration,
}

impl QueryTurns {
    pub(crate) fn new(limits: &Limits) -> QueryTurns {
        QueryTurns {
            free: Arc::new(Semaphore::new(limits.queries)),
            n_running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            query_time: limits.query_time,
            body_time: limits.body_time,
        }
    }

    /// Queries that use a core now, whether or not somebody waits for their answer.
    pub fn n_running(&self) -> usize {
        self.n_running.load(Ordering::Relaxed)
    }

    /// As many as ever ran at once.
    pub fn most_running(&self) -> usize {
        self.most_running.load(Ordering::Relaxed)
    }

    /// A turn goes with its query to another thread: it ends when the query does, not when its
    /// client leaves.
    async fn next(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let closed = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server ends");
        Arc::clone(&self.free).acquire_owned().await.map_err(closed)
    }

    fn counted<T>(&self, query: impl FnOnce() -> T) -> T {
        let n = self.n_running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_running.fetch_max(n, Ordering::Relaxed);
        let result = query();
        self.n_running.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

/// Stops the query when the answer is not waited for any more: the request is then dropped.
struct StopWhenDropped(StopFlag);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.raise();
    }
}

#[derive(Debug, Deserialize)]
struct Question {
    query: String,
    #[serde(default = "some_rows")]
    limit: usize,
}

fn some_rows() -> usize {
    1000
}

async fn query(
    Opened(session): Opened,
    Extension(turns): Extension<Arc<QueryTurns>>,
    request: Request,
) -> Result<Answer, Refusal> {
    let arriving = Json::<Question>::from_request(request, &());
    let Ok(arrived) = tokio::time::timeout(turns.body_time, arriving).await else {
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the question does not arrive"));
    };
    let Json(question) = arrived?;
    let limits = SqlLimits {
        rows: question.limit.min(MOST_ROWS),
        time: turns.query_time,
        ..SqlLimits::default()
    };
    let turn = turns.next().await?;
    let stop = StopFlag::default();
    let _stopper = StopWhenDropped(stop.clone());
    let result = computed(move || {
        let _turn = turn;
        turns
            .counted(|| session.sql_until(&question.query, &limits, &stop))
            .map(|it| Answer::of(&SqlResult::of(&it)))
    });
    result.await?.map_err(|it| refuse(&it))
}

/// What a query returned.
#[derive(Debug, Serialize)]
struct SqlResult<'a> {
    columns: &'a [String],
    rows: Vec<Vec<Value>>,
    /// There is more than the limit lets through.
    truncated: bool,
}

impl SqlResult<'_> {
    fn of(it: &QueryResult) -> SqlResult<'_> {
        let row = |row: &Vec<SqlValue>| row.iter().map(value::of_sql).collect();
        let rows = it.rows.iter().map(row).collect();
        SqlResult { columns: &it.columns, rows, truncated: it.truncated }
    }
}

/// SQLite points at the place in a line of its own, which says more than a hint would.
fn refuse(error: &SqlError) -> Refusal {
    let refusal = Refusal::of(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string());
    match error {
        SqlError::Failed { at, .. } if !at.trim().is_empty() => refusal.hint(at.trim_matches('\n')),
        _ => refusal,
    }
}
