//! Values over time, each as a line of some hundred points: memory levels, samples of the machine.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use trace::{Counter, Trace, TrackKind};

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

/// About one for each pixel of a chart.
const POINTS: i128 = 600;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new().route("/counters", get(all))
}

async fn all(Opened(session): Opened) -> Result<Answer, Refusal> {
    computed(move || Answer(lines_json(session.trace()))).await
}

pub(crate) fn lines_json(trace: &Trace) -> Value {
    let tracks = trace.counters.chunk_by(|a, b| a.track == b.track);
    tracks.filter_map(|it| line_json(trace, it)).collect()
}

/// The least, the greatest and the mean of each part of a counter's time that has samples.
fn line_json(trace: &Trace, samples: &[Counter]) -> Option<Value> {
    let (first, last) = (samples.first()?, samples.last()?);
    let since = |it: &Counter| i128::from(it.time.0) - i128::from(first.time.0);
    let part = (since(last) / POINTS).max(1);
    let parts = samples.chunk_by(|a, b| since(a) / part == since(b) / part);
    let points: Vec<(i64, f64, f64, f64)> = parts
        .filter_map(|it| {
            // What is not a number has no place on a chart.
            let values = || it.iter().map(|it| it.value).filter(|it| it.is_finite());
            let low = values().reduce(f64::min)?;
            let mean = values().sum::<f64>() / values().count() as f64;
            Some((it[0].time.0, low, values().fold(low, f64::max), mean))
        })
        .collect();
    let host = trace.ancestor(first.track, TrackKind::Host);
    Some(json!({
        "id": first.track.0,
        "name": trace.track_name(first.track),
        "host": host.map(|it| trace.track_name(it)),
        "n": samples.len(),
        "first_ps": first.time.0,
        "last_ps": last.time.0,
        "time_ps": points.iter().map(|it| it.0).collect::<Value>(),
        "low": points.iter().map(|it| it.1).collect::<Value>(),
        "high": points.iter().map(|it| it.2).collect::<Value>(),
        "mean": points.iter().map(|it| it.3).collect::<Value>(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trace::{Time, TraceBuilder, TrackKind};

    use super::lines_json;

    #[test]
    fn a_line_keeps_every_peak_in_few_points() {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "a");
        let level = out.track(Some(host), TrackKind::Counter, "level");
        for at in 0..100_000 {
            let value = if at == 77_777 { 9.0 } else { 1.0 };
            out.counter(level, Time(at * 1000), value);
        }
        out.counter(level, Time(5), f64::NAN);
        let lines = lines_json(&out.finish());
        let line = &lines[0];
        assert_eq!((&line["name"], &line["host"]), (&json!("level"), &json!("a")));
        assert_eq!(line["n"], 100_001);
        let points = |of: &str| line[of].as_array().map_or(0, Vec::len);
        assert!((550..=602).contains(&points("time_ps")), "{}", points("time_ps"));
        assert_eq!(points("time_ps"), points("high"));
        let highest = line["high"].as_array().unwrap().iter().filter(|it| **it == json!(9.0));
        assert_eq!(highest.count(), 1);
    }
}
