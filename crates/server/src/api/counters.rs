//! Values over time, each as a line.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use serde::Serialize;
use session::counter_line::{CounterLine, lines};
use trace::Trace;

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new().route("/counters", get(list))
}

async fn list(Opened(session): Opened) -> Result<Answer, Refusal> {
    computed(move || Answer::of(&all(session.trace()))).await
}

/// Lowest, highest and mean value in each of some hundred parts of the counter's time.
#[derive(Debug, Serialize)]
pub(crate) struct CounterTrack<'a> {
    id: u32,
    name: &'a str,
    host: Option<&'a str>,
    /// Samples.
    n: usize,
    first_ps: i64,
    last_ps: i64,
    time_ps: Vec<i64>,
    low: Vec<f64>,
    high: Vec<f64>,
    mean: Vec<f64>,
}

pub(crate) fn all(trace: &Trace) -> Vec<CounterTrack<'_>> {
    lines(trace).iter().map(|it| CounterTrack::of(trace, it)).collect()
}

impl<'a> CounterTrack<'a> {
    fn of(trace: &'a Trace, it: &CounterLine) -> CounterTrack<'a> {
        let points = it.points.iter();
        CounterTrack {
            id: it.track.0,
            name: trace.track_name(it.track),
            host: it.host(trace),
            n: it.n_samples,
            first_ps: it.first_ps,
            last_ps: it.last_ps,
            time_ps: points.clone().map(|it| it.time_ps).collect(),
            low: points.clone().map(|it| it.low).collect(),
            high: points.clone().map(|it| it.high).collect(),
            mean: points.map(|it| it.mean).collect(),
        }
    }
}
