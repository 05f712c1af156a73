//! The timeline: what is on it, its tiles, and what is asked of events.

use std::sync::Arc;

use analyses::step_time::category;
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use session::report::json::Category;
use session::timeline::{
    self, CELLS, CounterCell, Detail, Found, Inside, Overview, Related, Search, TimelineError,
    TrackMark, wire,
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
    computed(move || Answer::of(&Timeline::of(&session.timeline().overview()))).await
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
        Ok(Answer::of(&tiles.iter().map(CounterTile::of).collect::<Vec<_>>()))
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
        Ok(Answer::of(&SearchResult::of(&session.timeline().search(&search)?)))
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
        Ok(Answer::of(&RangeResult::of(&inside)))
    })
    .await?
}

async fn event(
    Opened(session): Opened,
    path: Result<Path<(String, u32)>, PathRejection>,
) -> Result<Answer, Refusal> {
    let Path((_, event)) = path?;
    computed(move || Ok(Answer::of(&EventDetails::of(&session.timeline().event(EventId(event))?))))
        .await?
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

/// What is on the timeline.
#[derive(Debug, Serialize)]
pub(crate) struct Timeline<'a> {
    start_ps: i64,
    end_ps: i64,
    /// Of a tile.
    cells: u32,
    /// By the number that a span's kind has.
    kinds: Vec<Kind>,
    /// Parents first.
    tracks: Vec<Track<'a>>,
    /// Host by host, by time.
    steps: Vec<TimelineStep>,
    /// Which of `steps` took the median time, of those that count where any do.
    typical_step: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Kind {
    name: &'static str,
    category: Option<Category>,
}

#[derive(Debug, Serialize)]
struct Track<'a> {
    id: u32,
    parent: Option<u32>,
    kind: &'static str,
    name: &'a str,
    n_events: u32,
    /// Rows of spans.
    lanes: usize,
    /// When its first event or sample is.
    first_ps: Option<i64>,
    /// When its last one ends.
    last_ps: Option<i64>,
    /// Whether it is a thread that drives the steps.
    driving: bool,
    /// Of a track of values.
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<CounterRange>,
}

/// How many samples a counter has, and between which values they are.
#[derive(Debug, Serialize)]
struct CounterRange {
    n: usize,
    min: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct TimelineStep {
    /// The host's track.
    host: u32,
    step: i64,
    start_ps: i64,
    dur_ps: i64,
    /// Whether statistics rest on it.
    counts: bool,
}

/// Samples of a counter in a tile.
#[derive(Debug, Serialize)]
struct CounterTile {
    track: u32,
    /// `cell, min, max, last`: only cells with a sample.
    cells: Vec<(u32, f64, f64, f64)>,
}

/// Events whose name contains a text.
#[derive(Debug, Serialize)]
struct SearchResult<'a> {
    /// Events found, whether they are listed or not.
    total: u64,
    /// Those of the most time first.
    names: Vec<NameHits<'a>>,
    /// By start.
    hits: Vec<Hit>,
}

#[derive(Debug, Serialize)]
struct NameHits<'a> {
    name: &'a str,
    count: u64,
    total_ps: i64,
}

/// An event and where it is.
#[derive(Debug, Serialize)]
struct Hit {
    event: u32,
    track: u32,
    lane: u8,
    start_ps: i64,
    dur_ps: i64,
}

/// What is inside a range.
#[derive(Debug, Serialize)]
struct RangeResult<'a> {
    /// Events, of all rows.
    count: u64,
    /// The most self time first.
    rows: Vec<RangeRow<'a>>,
}

#[derive(Debug, Serialize)]
struct RangeRow<'a> {
    name: &'a str,
    kind: &'static str,
    category: Option<Category>,
    count: u64,
    /// The parts inside the range.
    total_ps: i64,
    self_ps: i64,
}

/// All that is known of an event.
#[derive(Debug, Serialize)]
struct EventDetails<'a> {
    #[serde(flatten)]
    at: Hit,
    name: &'a str,
    kind: &'static str,
    category: Option<Category>,
    /// Without the events directly inside.
    self_ps: i64,
    parent: Option<u32>,
    /// The step of its host that it begins in.
    step: Option<i64>,
    /// The framework's op behind it.
    op: Option<&'a str>,
    hlo_op: Option<&'a str>,
    hlo_module: Option<&'a str>,
    /// The instruction that ran, in XLA's words, where the profile holds its program.
    hlo: Option<&'a str>,
    /// File and line.
    source: Option<&'a str>,
    args: Vec<(&'a str, ArgValue<'a>)>,
    /// Innermost first.
    ancestors: Vec<EventRef<'a>>,
    causes: Vec<EventLink<'a>>,
    effects: Vec<EventLink<'a>>,
    same_name: SameName<'a>,
}

/// What an argument holds.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ArgValue<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
}

#[derive(Debug, Serialize)]
struct EventRef<'a> {
    event: u32,
    name: &'a str,
    start_ps: i64,
    dur_ps: i64,
}

/// An event at the other end of an edge.
#[derive(Debug, Serialize)]
struct EventLink<'a> {
    #[serde(flatten)]
    at: Hit,
    name: &'a str,
    /// Of the edge: `launch`, `function` or `flow`.
    kind: &'static str,
}

/// The events of one name on tracks of one kind.
#[derive(Debug, Serialize)]
struct SameName<'a> {
    count: usize,
    total_ps: i64,
    min_ps: i64,
    median_ps: i64,
    max_ps: i64,
    /// Steps that have any, by their number; steps of several hosts together.
    per_step: Vec<OfStep>,
    histogram: Histogram<'a>,
    /// There are more, and all of this rests on the first million.
    sampled: bool,
}

#[derive(Debug, Serialize)]
struct OfStep {
    step: i64,
    count: usize,
    total_ps: i64,
}

/// How many durations are between one edge and the next; the last edge is inside too.
#[derive(Debug, Serialize)]
struct Histogram<'a> {
    /// One more than counts.
    edges_ps: &'a [i64],
    counts: &'a [u32],
}

impl Timeline<'_> {
    pub(crate) fn of(it: &Overview) -> Timeline<'_> {
        let kind = |it: &timeline::Kind| Kind { name: it.name, category: it.category };
        let step = |it: &timeline::StepMark| TimelineStep {
            host: it.host.0,
            step: it.step,
            start_ps: it.start_ps,
            dur_ps: it.dur_ps,
            counts: it.counts,
        };
        Timeline {
            start_ps: it.start_ps,
            end_ps: it.end_ps,
            cells: CELLS,
            kinds: it.kinds.iter().map(kind).collect(),
            tracks: it.tracks.iter().map(Track::of).collect(),
            steps: it.steps.iter().map(step).collect(),
            typical_step: it.typical_step,
        }
    }
}

impl Track<'_> {
    fn of(it: &TrackMark) -> Track<'_> {
        Track {
            id: it.id.0,
            parent: it.parent.map(|it| it.0),
            kind: it.kind.name(),
            name: &it.name,
            n_events: it.n_events,
            lanes: it.lanes,
            first_ps: it.first_ps,
            last_ps: it.last_ps,
            driving: it.driving,
            counter: it.counter.map(|it| CounterRange { n: it.n, min: it.min, max: it.max }),
        }
    }
}

impl CounterTile {
    fn of(it: &timeline::CounterTile) -> CounterTile {
        let cell = |it: &CounterCell| (it.cell, it.min, it.max, it.last);
        CounterTile { track: it.track.0, cells: it.cells.iter().map(cell).collect() }
    }
}

impl Hit {
    fn of(it: &timeline::Hit) -> Hit {
        let &timeline::Hit { event, track, lane, start_ps, dur_ps } = it;
        Hit { event: event.0, track: track.0, lane, start_ps, dur_ps }
    }
}

impl<'a> SearchResult<'a> {
    fn of(it: &'a Found) -> SearchResult<'a> {
        let name = |it: &'a timeline::NameHits| NameHits {
            name: &it.name,
            count: it.count,
            total_ps: whole(it.total_ps),
        };
        SearchResult {
            total: it.total,
            names: it.names.iter().map(name).collect(),
            hits: it.hits.iter().map(Hit::of).collect(),
        }
    }
}

impl<'a> RangeResult<'a> {
    fn of(it: &'a Inside) -> RangeResult<'a> {
        let row = |it: &'a timeline::RangeRow| RangeRow {
            name: &it.name,
            kind: it.kind.name(),
            category: category(it.kind),
            count: it.count,
            total_ps: whole(it.total_ps),
            self_ps: whole(it.self_ps),
        };
        RangeResult { count: it.count, rows: it.rows.iter().map(row).collect() }
    }
}

impl<'a> EventDetails<'a> {
    fn of(it: &'a Detail) -> EventDetails<'a> {
        let ancestor = |it: &'a timeline::Ancestor| EventRef {
            event: it.event.0,
            name: &it.name,
            start_ps: it.start_ps,
            dur_ps: it.dur_ps,
        };
        EventDetails {
            at: Hit::of(&it.at),
            name: &it.name,
            kind: it.kind.name(),
            category: it.category,
            self_ps: it.self_ps,
            parent: it.parent.map(|it| it.0),
            step: it.step,
            op: it.op.as_deref(),
            hlo_op: it.hlo_op.as_deref(),
            hlo_module: it.hlo_module.as_deref(),
            hlo: it.hlo.as_deref(),
            source: it.source.as_deref(),
            args: args_of(&it.args),
            ancestors: it.ancestors.iter().map(ancestor).collect(),
            causes: it.causes.iter().map(EventLink::of).collect(),
            effects: it.effects.iter().map(EventLink::of).collect(),
            same_name: SameName::of(&it.same_name),
        }
    }
}

impl EventLink<'_> {
    fn of(it: &Related) -> EventLink<'_> {
        EventLink { at: Hit::of(&it.at), name: &it.name, kind: edge_name(it.kind) }
    }
}

impl SameName<'_> {
    fn of(it: &timeline::SameName) -> SameName<'_> {
        let of_step = |it: &timeline::OfStep| OfStep {
            step: it.step,
            count: it.count,
            total_ps: whole(it.total_ps),
        };
        let histogram =
            Histogram { edges_ps: &it.histogram.edges_ps, counts: &it.histogram.counts };
        SameName {
            count: it.count,
            total_ps: whole(it.total_ps),
            min_ps: it.min_ps,
            median_ps: it.median_ps,
            max_ps: it.max_ps,
            per_step: it.per_step.iter().map(of_step).collect(),
            histogram,
            sampled: it.sampled,
        }
    }
}

pub(crate) fn args_of(args: &[(String, FactValue)]) -> Vec<(&str, ArgValue<'_>)> {
    let value = |it| match it {
        &FactValue::Int(it) => ArgValue::Int(it),
        &FactValue::Float(it) => ArgValue::Float(it),
        FactValue::Text(it) => ArgValue::Text(it),
    };
    args.iter().map(|it| (it.0.as_str(), value(&it.1))).collect()
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
