//! The timeline: what is on it, its tiles, and what is asked of events.

use std::sync::Arc;

use analyses::step_time::category;
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use session::timeline::{
    CELLS, Detail, Found, Hit, Inside, Overview, Related, Search, TimelineError, TrackMark, wire,
};
use trace::{EdgeKind, EventId, FactValue, TrackId};

use super::{Answer, Opened, Refusal, computed};
use crate::runs::Runs;

pub(super) fn routes() -> Router<Arc<Runs>> {
    Router::new()
        .route("/timeline", get(overview))
        .route("/timeline/tiles", get(tiles))
        .route("/timeline/counters", get(counters))
        .route("/timeline/search", get(search))
        .route("/timeline/range", get(range))
        .route("/events/{event}", get(event))
}

/// More than fit on a screen by far.
const MOST_TRACKS: usize = 4096;
const MOST_HITS: usize = 10_000;

impl From<TimelineError> for Refusal {
    fn from(it: TimelineError) -> Refusal {
        let status = match it {
            TimelineError::Track(_) | TimelineError::Event(_) => StatusCode::NOT_FOUND,
            TimelineError::Level(_) | TimelineError::Range { .. } => StatusCode::BAD_REQUEST,
        };
        Refusal::of(status, &it.to_string())
    }
}

async fn overview(Opened(session): Opened) -> Result<Answer, Refusal> {
    computed(move || Answer(overview_json(&session.timeline().overview()))).await
}

#[derive(Debug, Deserialize)]
struct Tiles {
    level: u8,
    tile: i64,
    tracks: String,
}

async fn tiles(
    Opened(session): Opened,
    asked: Result<Query<Tiles>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(asked) = asked?;
    let tracks = numbers(&asked.tracks)?;
    let bytes = computed(move || {
        let tile = session.timeline().tile(asked.level, asked.tile, &tracks)?;
        Ok::<_, Refusal>(wire::encode(&tile, &session.trace().strings))
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, bytes.await??).into_response())
}

async fn counters(
    Opened(session): Opened,
    asked: Result<Query<Tiles>, QueryRejection>,
) -> Result<Answer, Refusal> {
    let Query(asked) = asked?;
    let tracks = numbers(&asked.tracks)?;
    computed(move || {
        let tiles = session.timeline().counters(asked.level, asked.tile, &tracks)?;
        let tiles = tiles.iter().map(|tile| {
            let cell =
                |it: &session::timeline::CounterCell| json!([it.cell, it.min, it.max, it.last]);
            json!({"track": tile.track.0, "cells": tile.cells.iter().map(cell).collect::<Value>()})
        });
        Ok(Answer(tiles.collect()))
    })
    .await?
}

#[derive(Debug, Deserialize)]
struct Sought {
    q: String,
    #[serde(default = "some_hits")]
    limit: usize,
    from: Option<i64>,
    to: Option<i64>,
}

fn some_hits() -> usize {
    1000
}

async fn search(
    Opened(session): Opened,
    asked: Result<Query<Sought>, QueryRejection>,
) -> Result<Answer, Refusal> {
    let Query(asked) = asked?;
    computed(move || {
        let range = match (asked.from, asked.to) {
            (None, None) => None,
            (from, to) => Some((from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX))),
        };
        let search = Search { text: &asked.q, limit: asked.limit.min(MOST_HITS), range };
        Ok(Answer(found_json(&session.timeline().search(&search)?)))
    })
    .await?
}

#[derive(Debug, Deserialize)]
struct Part {
    from: i64,
    to: i64,
    tracks: Option<String>,
}

async fn range(
    Opened(session): Opened,
    asked: Result<Query<Part>, QueryRejection>,
) -> Result<Answer, Refusal> {
    let Query(asked) = asked?;
    let tracks = asked.tracks.as_deref().map(numbers).transpose()?;
    computed(move || {
        let inside = session.timeline().range(asked.from, asked.to, tracks.as_deref())?;
        Ok(Answer(inside_json(&inside)))
    })
    .await?
}

async fn event(
    Opened(session): Opened,
    path: Result<Path<(String, u32)>, PathRejection>,
) -> Result<Answer, Refusal> {
    let Path((_, event)) = path?;
    computed(move || Ok(Answer(detail_json(&session.timeline().event(EventId(event))?)))).await?
}

/// `3,4,17`
fn numbers(text: &str) -> Result<Vec<TrackId>, Refusal> {
    let parts = text.split(',').filter(|it| !it.is_empty());
    let tracks: Result<Vec<TrackId>, _> = parts.map(|it| it.parse().map(TrackId)).collect();
    match tracks {
        Ok(tracks) if tracks.len() <= MOST_TRACKS => Ok(tracks),
        Ok(_) => Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too many tracks at once")),
        Err(_) => Err(Refusal::new(StatusCode::BAD_REQUEST, "tracks are numbers, as 3,4,17")),
    }
}

pub(crate) fn overview_json(it: &Overview) -> Value {
    let kind = |it: &session::timeline::Kind| json!({"name": it.name, "category": it.category});
    let step = |it: &session::timeline::StepMark| {
        json!({"host": it.host.0, "step": it.step, "start_ps": it.start_ps, "dur_ps": it.dur_ps,
               "counts": it.counts})
    };
    json!({
        "start_ps": it.start_ps,
        "end_ps": it.end_ps,
        "cells": CELLS,
        "kinds": it.kinds.iter().map(kind).collect::<Value>(),
        "tracks": it.tracks.iter().map(track_json).collect::<Value>(),
        "steps": it.steps.iter().map(step).collect::<Value>(),
        "typical_step": it.typical_step,
    })
}

fn track_json(it: &TrackMark) -> Value {
    let mut value = json!({
        "id": it.id.0,
        "parent": it.parent.map(|it| it.0),
        "kind": it.kind.name(),
        "name": it.name,
        "n_events": it.n_events,
        "lanes": it.lanes,
        "first_ps": it.first_ps,
        "last_ps": it.last_ps,
        "driving": it.driving,
    });
    if let Some(it) = it.counter {
        value["counter"] = json!({"n": it.n, "min": it.min, "max": it.max});
    }
    value
}

fn hit_json(it: &Hit) -> Value {
    json!({"event": it.event.0, "track": it.track.0, "lane": it.lane, "start_ps": it.start_ps,
           "dur_ps": it.dur_ps})
}

fn found_json(it: &Found) -> Value {
    let name = |it: &session::timeline::NameHits| json!({"name": it.name, "count": it.count, "total_ps": whole(it.total_ps)});
    json!({
        "total": it.total,
        "names": it.names.iter().map(name).collect::<Value>(),
        "hits": it.hits.iter().map(hit_json).collect::<Value>(),
    })
}

fn inside_json(it: &Inside) -> Value {
    let row = |it: &session::timeline::RangeRow| {
        json!({"name": it.name, "kind": it.kind.name(), "category": category(it.kind), "count": it.count,
               "total_ps": whole(it.total_ps), "self_ps": whole(it.self_ps)})
    };
    json!({"count": it.count, "rows": it.rows.iter().map(row).collect::<Value>()})
}

fn detail_json(it: &Detail) -> Value {
    let mut value = hit_json(&it.at);
    let ancestor = |it: &session::timeline::Ancestor| json!({"event": it.event.0, "name": it.name, "start_ps": it.start_ps, "dur_ps": it.dur_ps});
    let of_step = |it: &session::timeline::OfStep| json!({"step": it.step, "count": it.count, "total_ps": whole(it.total_ps)});
    let same = &it.same_name;
    let more = json!({
        "name": it.name,
        "kind": it.kind.name(),
        "category": it.category,
        "self_ps": it.self_ps,
        "parent": it.parent.map(|it| it.0),
        "step": it.step,
        "op": it.op,
        "hlo_op": it.hlo_op,
        "hlo_module": it.hlo_module,
        "hlo": it.hlo,
        "source": it.source,
        "args": args_json(&it.args),
        "ancestors": it.ancestors.iter().map(ancestor).collect::<Value>(),
        "causes": it.causes.iter().map(related_json).collect::<Value>(),
        "effects": it.effects.iter().map(related_json).collect::<Value>(),
        "same_name": {
            "count": same.count,
            "total_ps": whole(same.total_ps),
            "min_ps": same.min_ps,
            "median_ps": same.median_ps,
            "max_ps": same.max_ps,
            "per_step": same.per_step.iter().map(of_step).collect::<Value>(),
            "histogram": {"edges_ps": same.histogram.edges_ps, "counts": same.histogram.counts},
            "sampled": same.sampled,
        },
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

pub(crate) fn args_json(args: &[(String, FactValue)]) -> Value {
    let arg = |(key, value): &(String, FactValue)| match value {
        FactValue::Int(it) => json!([key, it]),
        FactValue::Float(it) => json!([key, it]),
        FactValue::Text(it) => json!([key, it]),
    };
    args.iter().map(arg).collect()
}

fn related_json(it: &Related) -> Value {
    let mut value = hit_json(&it.at);
    value["name"] = json!(it.name);
    value["kind"] = json!(edge_name(it.kind));
    value
}

pub(crate) fn edge_name(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Launch => "launch",
        EdgeKind::Function => "function",
        EdgeKind::Flow => "flow",
    }
}

/// JSON's readers know no larger integers; sums that long come from damaged files only.
fn whole(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
}
