//! What of the findings' evidence is on the timeline.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use session::Session;
use session::spotlight::{self, evidence};
use session::timeline::Hit;

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new().route("/evidence", get(list)).route("/evidence/{id}", get(one))
}

async fn list(Opened(session): Opened) -> Result<Answer, Refusal> {
    computed(move || Answer::of(&all(&session, None).iter().map(Spotlight::of).collect::<Vec<_>>()))
        .await
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
        Ok(Answer::of(&LitEvidence::of(found)))
    })
    .await?
}

/// All evidence that is on the timeline, or in a part of it.
pub(crate) fn all(session: &Session, within: Option<(i64, i64)>) -> Vec<spotlight::Spotlight> {
    named(session, within, None)
}

fn named(
    session: &Session,
    within: Option<(i64, i64)>,
    id: Option<&str>,
) -> Vec<spotlight::Spotlight> {
    let diagnosis = session.report().diagnosis;
    let timeline = session.timeline();
    let overview = timeline.overview();
    evidence(&diagnosis)
        .into_iter()
        .filter(|it| id.is_none_or(|id| it.0 == id))
        .filter_map(|(id, it)| spotlight::Spotlight::of(&timeline, &overview, &id, it, within))
        .collect()
}

/// Evidence that is on the timeline: what to look at, and how much of it is lit.
#[derive(Debug, Serialize)]
pub(crate) struct Spotlight<'a> {
    /// `0.1` is the second evidence of the first finding; `0.2.1` is of its third symptom.
    id: &'a str,
    from: i64,
    to: i64,
    step: Option<i64>,
    n_events: usize,
    /// Time that is lit where no event stands for it.
    lit_ps: i64,
}

/// The same, with what is lit.
#[derive(Debug, Serialize)]
pub(crate) struct LitEvidence<'a> {
    #[serde(flatten)]
    short: Spotlight<'a>,
    /// `event, track, lane, start_ps, dur_ps`
    pub(crate) events: Vec<(u32, u32, u8, i64, i64)>,
    /// From and to.
    spans: Vec<(i64, i64)>,
    /// Events beyond those.
    left_out: usize,
}

impl Spotlight<'_> {
    pub(crate) fn of(it: &spotlight::Spotlight) -> Spotlight<'_> {
        Spotlight {
            id: &it.id,
            from: it.window.0,
            to: it.window.1,
            step: it.step,
            n_events: it.events.len() + it.left_out,
            lit_ps: it.spans.iter().map(|it| it.1 - it.0).sum(),
        }
    }
}

impl LitEvidence<'_> {
    pub(crate) fn of(it: &spotlight::Spotlight) -> LitEvidence<'_> {
        let event = |it: &Hit| (it.event.0, it.track.0, it.lane, it.start_ps, it.dur_ps);
        LitEvidence {
            short: Spotlight::of(it),
            events: it.events.iter().map(event).collect(),
            spans: it.spans.clone(),
            left_out: it.left_out,
        }
    }
}
