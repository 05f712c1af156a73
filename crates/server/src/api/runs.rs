//! Which runs there are, how far they are open, and the verdict on one.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use session::report::json::Report;

use super::{Answer, Opened, Refusal, RunNumber, computed, no_such_run};
use crate::runs::{Listed, RunState, Runs, Status};

/// A run that can be looked at.
#[derive(Debug, Serialize)]
pub(crate) struct RunEntry<'a> {
    pub id: usize,
    pub name: &'a str,
    pub path: String,
    pub state: RunState,
}

/// How far a run is.
#[derive(Debug, Serialize)]
pub(crate) struct RunStatus<'a> {
    pub state: RunState,
    /// What is done now, in words.
    pub phase: &'a str,
    pub bytes: u64,
    pub total_bytes: u64,
    pub seconds: f64,
    pub error: Option<&'a str>,
}

impl RunEntry<'_> {
    fn of(it: &Listed) -> RunEntry<'_> {
        let path = it.path.display().to_string();
        RunEntry { id: it.id, name: &it.name, path, state: it.state }
    }
}

impl RunStatus<'_> {
    fn of(it: &Status) -> RunStatus<'_> {
        RunStatus {
            state: it.state,
            phase: &it.phase,
            bytes: it.bytes,
            total_bytes: it.total_bytes,
            seconds: it.seconds,
            error: it.error.as_deref(),
        }
    }
}

pub(super) async fn list(State(runs): State<Arc<Runs>>) -> Result<Answer, Refusal> {
    let list = computed(move || runs.list()).await?;
    Ok(Answer::of(&list.iter().map(RunEntry::of).collect::<Vec<_>>()))
}

pub(super) async fn status(
    State(runs): State<Arc<Runs>>,
    RunNumber(run): RunNumber,
) -> Result<Answer, Refusal> {
    let it = computed(move || runs.status(run)).await?.ok_or_else(no_such_run)?;
    Ok(Answer::of(&RunStatus::of(&it)))
}

pub(super) async fn report(Opened(session): Opened) -> Result<Answer, Refusal> {
    computed(move || Answer::of(&Report::of(&session.report()))).await
}
