//! What of the findings' evidence is on the timeline.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use session::Session;
use session::spotlight::{Spotlight, evidence};

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new().route("/evidence", get(list)).route("/evidence/{id}", get(one))
}

async fn list(Opened(session): Opened) -> Result<Answer, Refusal> {
    computed(move || Answer(all(&session, None).iter().map(in_short).collect())).await
}

#[derive(Debug, Deserialize)]
struct Asked {
    id: String,
}

async fn one(
    Opened(session): Opened,
    asked: Result<Path<Asked>, PathRejection>,
) -> Result<Answer, Refusal> {
    let Path(Asked { id }) = asked?;
    computed(move || {
        let found = named(&session, None, Some(&id));
        let found = found.first().ok_or_else(|| {
            Refusal::missing("no such evidence is on the timeline")
                .hint("GET /api/runs/N/evidence lists what is")
        })?;
        Ok(Answer(in_full(found)))
    })
    .await?
}

/// All evidence that is on the timeline, or in a part of it.
pub(crate) fn all(session: &Session, within: Option<(i64, i64)>) -> Vec<Spotlight> {
    named(session, within, None)
}

fn named(session: &Session, within: Option<(i64, i64)>, id: Option<&str>) -> Vec<Spotlight> {
    let diagnosis = session.report().diagnosis;
    let timeline = session.timeline();
    let overview = timeline.overview();
    evidence(&diagnosis)
        .into_iter()
        .filter(|it| id.is_none_or(|id| it.0 == id))
        .filter_map(|(id, it)| Spotlight::of(&timeline, &overview, &id, it, within))
        .collect()
}

/// Without the events themselves.
pub(crate) fn in_short(it: &Spotlight) -> Value {
    let lit_ps: i64 = it.spans.iter().map(|it| it.1 - it.0).sum();
    json!({"id": it.id, "from": it.window.0, "to": it.window.1, "step": it.step,
           "n_events": it.events.len() + it.left_out, "lit_ps": lit_ps})
}

pub(crate) fn in_full(it: &Spotlight) -> Value {
    let mut full = in_short(it);
    full["events"] = it
        .events
        .iter()
        .map(|it| json!([it.event.0, it.track.0, it.lane, it.start_ps, it.dur_ps]))
        .collect();
    full["spans"] = it.spans.iter().map(|it| json!([it.0, it.1])).collect();
    full["left_out"] = json!(it.left_out);
    full
}
