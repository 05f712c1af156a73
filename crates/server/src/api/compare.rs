//! The run beside another.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::routing::get;
use serde::Deserialize;
use session::compare::Comparison;

use super::{Answer, Opened, Refusal, computed, opened};
use crate::runs::Runs;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new().route("/compare", get(compare))
}

#[derive(Debug, Deserialize)]
struct Other {
    with: usize,
}

async fn compare(
    State(runs): State<Arc<Runs>>,
    Opened(session): Opened,
    other: Result<Query<Other>, QueryRejection>,
) -> Result<Answer, Refusal> {
    let Query(Other { with }) = other?;
    let other = opened(&runs, with).await?;
    computed(move || Answer::of(&Comparison::of(&other, &session))).await
}
