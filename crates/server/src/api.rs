//! What the page asks (`docs/api.md`): JSON for what is small, a compact binary for the timeline.

mod compare;
pub(crate) mod counters;
pub(crate) mod evidence;
mod mean_step;
pub(crate) mod runs;
mod sql;
pub(crate) mod tables;
pub(crate) mod timeline;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use serde_json::Value;
use session::Session;
use session::value::of_json;
use tokio::sync::Semaphore;

use crate::runs::{Runs, Status};
pub use sql::QueryTurns;

pub(crate) fn routes(runs: Arc<Runs>, turns: Arc<QueryTurns>) -> Router {
    let run = Router::new()
        .route("/status", get(runs::status))
        .route("/report", get(runs::report))
        .merge(compare::routes())
        .merge(counters::routes())
        .merge(evidence::routes())
        .merge(mean_step::routes())
        .merge(tables::routes())
        .merge(sql::routes(turns))
        .merge(timeline::routes());
    let api = Router::new()
        .route("/runs", get(runs::list))
        .route("/rules", get(tables::rules))
        .nest("/runs/{run}", run)
        .fallback(async || Refusal::missing("there is no such question; see docs/api.md"))
        .with_state(runs);
    Router::new().nest("/api", api)
}

/// Why a request is not answered, in words.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: String,
    hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Refusal {
        Refusal { status, error: error.into(), hint: None }
    }

    pub(crate) fn forbidden(error: &str) -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, error)
    }

    pub(crate) fn missing(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, error)
    }

    /// An error of ours: its first line is what is wrong, `hint:` lines what to try.
    pub(crate) fn of(status: StatusCode, message: &str) -> Refusal {
        let (error, rest) = message.split_once('\n').unwrap_or((message, ""));
        let hint = rest.lines().find_map(|it| it.trim().strip_prefix("hint: "));
        Refusal { status, error: error.to_owned(), hint: hint.map(str::to_owned) }
    }

    pub(crate) fn hint(mut self, hint: &str) -> Refusal {
        self.hint = Some(hint.to_owned());
        self
    }
}

/// What went wrong.
#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
    /// What to try.
    hint: Option<&'a str>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: &self.error, hint: self.hint.as_deref() };
        (self.status, Answer::of(&body)).into_response()
    }
}

macro_rules! refusals {
    ($($rejection:ident),*) => { $(
        impl From<$rejection> for Refusal {
            fn from(it: $rejection) -> Refusal {
                Refusal::new(it.status(), it.body_text())
            }
        }
    )* };
}

refusals![JsonRejection, PathRejection, QueryRejection];

/// A JSON answer.
pub(crate) struct Answer(Value);

impl Answer {
    pub(crate) fn of(it: &impl Serialize) -> Answer {
        Answer(of_json(it))
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (kind, self.0.to_string()).into_response()
    }
}

/// The run that the path names, once it is open.
pub(crate) struct Opened(pub Arc<Session>);

impl FromRequestParts<Arc<Runs>> for Opened {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, runs: &Arc<Runs>) -> Result<Opened, Refusal> {
        let RunNumber(run) = RunNumber::from_request_parts(parts, runs).await?;
        opened(runs, run).await.map(Opened)
    }
}

/// A run, once it is open.
async fn opened(runs: &Arc<Runs>, run: usize) -> Result<Arc<Session>, Refusal> {
    if let Some(session) = runs.ready(run) {
        return Ok(session);
    }
    let runs = Arc::clone(runs);
    match computed(move || runs.session(run)).await? {
        Some(Ok(session)) => Ok(session),
        Some(Err(Status { error: Some(error), .. })) => {
            Err(Refusal::of(StatusCode::UNPROCESSABLE_ENTITY, &error))
        }
        Some(Err(_)) => {
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the run is still being opened")
                .hint("ask its status, and again"))
        }
        None => Err(no_such_run()),
    }
}

fn no_such_run() -> Refusal {
    Refusal::missing("there is no such run").hint("GET /api/runs lists them")
}

/// `/api/runs/N/…`
pub(crate) struct RunNumber(pub usize);

impl<S: Send + Sync> FromRequestParts<S> for RunNumber {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<RunNumber, Refusal> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| no_such_run())?;
        let number = params.iter().find(|it| it.0 == "run").and_then(|it| it.1.parse().ok());
        number.map(RunNumber).ok_or_else(no_such_run)
    }
}

/// What is computed at once. Who asks for more waits; many of these wait for one table anyway.
static COMPUTING: Semaphore = Semaphore::const_new(32);

/// Computes where it may take long, beside the threads that answer others. What has begun counts
/// until it has ended, also where whoever asked has left.
pub(crate) async fn computed<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let turn = COMPUTING.acquire().await;
    let work = move || {
        let _turn = turn;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "this question broke the server")
            .hint("please report it, with the profile if you can")
    })
}
