//! Which runs there are, how far they are open, and the verdict on one.

use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};
use session::report::json::as_json;

use super::{Answer, Opened, Refusal, RunNumber, computed, no_such_run};
use crate::runs::{Listed, Runs};

pub(super) async fn list(State(runs): State<Arc<Runs>>) -> Result<Answer, Refusal> {
    let list = computed(move || runs.list()).await?;
    let entry = |it: &Listed| {
        let path = it.path.display().to_string();
        json!({"id": it.id, "name": it.name, "path": path, "state": it.state})
    };
    Ok(Answer(list.iter().map(entry).collect::<Value>()))
}

pub(super) async fn status(
    State(runs): State<Arc<Runs>>,
    RunNumber(run): RunNumber,
) -> Result<Answer, Refusal> {
    let it = computed(move || runs.status(run)).await?.ok_or_else(no_such_run)?;
    Ok(Answer(json!({
        "state": it.state,
        "phase": it.phase,
        "bytes": it.bytes,
        "total_bytes": it.total_bytes,
        "seconds": it.seconds,
        "error": it.error,
    })))
}

pub(super) async fn report(Opened(session): Opened) -> Result<Answer, Refusal> {
    computed(move || Answer(as_json(&session.report()))).await
}
