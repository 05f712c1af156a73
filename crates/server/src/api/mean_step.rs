//! The mean of some steps: of a host, of a device, of a range.

use std::sync::Arc;

use analyses::mean_step::Mean;
use axum::Router;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use session::report::json::{Share, ms};
use session::report::shares;
use trace::Dur;

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new().route("/mean_step", get(mean_step))
}

#[derive(Debug, Deserialize)]
struct Chosen {
    host: Option<String>,
    device: Option<String>,
    first: Option<i64>,
    last: Option<i64>,
}

/// The mean of the steps that count, of those that were asked for.
#[derive(Debug, Serialize)]
struct MeanOfSteps {
    /// A step counts once for each device.
    n_steps: usize,
    /// Null without any step.
    mean_ms: Option<f64>,
    breakdown: Vec<Share>,
}

async fn mean_step(
    Opened(session): Opened,
    chosen: Result<Query<Chosen>, QueryRejection>,
) -> Result<Answer, Refusal> {
    let Query(chosen) = chosen?;
    computed(move || {
        let mean = Mean::of_chosen(session.tables(), |it| {
            chosen.host.as_ref().is_none_or(|host| *host == it.host)
                && chosen.device.as_ref().is_none_or(|device| *device == it.device)
                && chosen.first.is_none_or(|first| first <= it.step)
                && chosen.last.is_none_or(|last| it.step <= last)
        });
        Answer::of(&MeanOfSteps::of(mean.as_ref()))
    })
    .await
}

impl MeanOfSteps {
    fn of(mean: Option<&Mean>) -> MeanOfSteps {
        MeanOfSteps {
            n_steps: mean.map_or(0, |it| it.n_steps),
            mean_ms: mean.map(|it| ms(Dur(it.dur_ps))),
            breakdown: mean.map(shares).unwrap_or_default().iter().map(Share::of).collect(),
        }
    }
}
