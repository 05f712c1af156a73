//! Any question in SQL: a few at a time, each for so long.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Json};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use session::{SqlError, SqlLimits, SqlValue, value};
use tokio::sync::Semaphore;

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

/// Longer than any question a person writes.
const LONGEST_QUERY: usize = 256 << 10;
/// As many as two people ask; the others wait their turn.
const AT_ONCE: usize = 4;
const MOST_ROWS: usize = 100_000;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new()
        .route("/sql", post(query))
        .layer(Extension(Arc::new(Semaphore::new(AT_ONCE))))
        .layer(DefaultBodyLimit::max(LONGEST_QUERY))
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
    Extension(turns): Extension<Arc<Semaphore>>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<Answer, Refusal> {
    let Json(question) = question?;
    let _turn = turns.acquire_owned().await;
    let limits = SqlLimits {
        rows: question.limit.min(MOST_ROWS),
        time: Duration::from_secs(20),
        ..SqlLimits::default()
    };
    let result = computed(move || session.sql(&question.query, &limits)).await?;
    let result = result.map_err(|it| refuse(&it))?;
    let row = |row: &Vec<SqlValue>| -> Value { row.iter().map(value::of_sql).collect() };
    Ok(Answer(json!({
        "columns": result.columns,
        "rows": result.rows.iter().map(row).collect::<Value>(),
        "truncated": result.truncated,
    })))
}

/// SQLite points at the place in a line of its own, which says more than a hint would.
fn refuse(error: &SqlError) -> Refusal {
    let refusal = Refusal::of(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string());
    match error {
        SqlError::Failed { at, .. } if !at.trim().is_empty() => refusal.hint(at.trim_matches('\n')),
        _ => refusal,
    }
}
