//! What is answered to whom: one file an endpoint, or a few that belong together.

pub(crate) mod campaign;
mod changing;
mod events;
mod health;
mod leader;
mod metrics;
mod root;
mod status;
pub(crate) mod step_down;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use bellwether_election::{Election, Metrics, Store};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::Token;
use crate::campaign::Roster;
use crate::feed::Feed;
use crate::store_reads::StoreRead;

/// What answers are made of.
pub(crate) struct Context {
    pub(crate) election: Election,
    /// The clients that campaign, where they may.
    pub(crate) campaigns: Option<Arc<Roster>>,
    /// The same, where the candidate competes only while there are any.
    pub(crate) awaited: Option<Arc<Roster>>,
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) token: Option<Token>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) record: StoreRead,
    pub(crate) history: StoreRead,
    pub(crate) elections: StoreRead,
    /// The process's own runtime, in which the store lives.
    pub(crate) main: Handle,
}

type Shared = axum::extract::State<Arc<Context>>;

/// For whoever asks for something else.
const ALL: &str = "/, /leader, /livez, /readyz, /candidate, /status, /elections, /history, /events, /metrics, POST /step-down, POST /campaign";

/// Every endpoint.
pub(crate) fn router(context: Context) -> Router {
    Router::new()
        .route("/", get(root::root))
        .route("/leader", get(leader::leader))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/candidate", get(status::candidate))
        .route("/status", get(status::status))
        .route("/elections", get(status::elections))
        .route("/history", get(status::history))
        .route("/events", get(events::events))
        .route("/metrics", get(metrics::metrics))
        .route("/dashboard/{file}", get(root::file))
        .route("/step-down", post(step_down::step_down))
        .route("/campaign", post(campaign::begin))
        .route("/campaign/{id}", post(campaign::again).delete(campaign::end))
        .fallback(|uri| not_found(uri, ALL))
        .method_not_allowed_fallback(|| not_allowed(ALL))
        .with_state(Arc::new(context))
}

pub(crate) async fn not_found(uri: Uri, all: &str) -> Response {
    let path: String = uri.path().chars().take(64).collect();
    error(StatusCode::NOT_FOUND, &format!("there is no {path}; there are {all}"))
}

pub(crate) async fn not_allowed(all: &str) -> Response {
    error(StatusCode::METHOD_NOT_ALLOWED, &format!("not with this method; there are {all}"))
}

/// JSON on one line. Nothing here may be kept: it holds for a moment.
pub(crate) fn object(status: StatusCode, value: &Value) -> Response {
    answer(status, "application/json", format!("{value}\n"))
}

pub(crate) fn error(status: StatusCode, sentence: &str) -> Response {
    object(status, &json!({ "error": sentence }))
}

pub(crate) fn answer(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
