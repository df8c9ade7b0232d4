//! What is answered about a node of a cluster: `/livez`, `/readyz`, `/metrics`. Nothing can be changed.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use bellwether_election::Metrics;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::endpoints::{answer, error, not_allowed, not_found, object};
use crate::limits::ALIVE_TIMEOUT;
use crate::store_reads::StoreRead;

/// A node, as those who watch over it ask. Everything but [`answers`](NodeReport::answers) is called in the thread of the server, and must not
/// wait.
pub trait NodeReport: Send + Sync + 'static {
    /// Returns true once what all the node's work goes through has answered. It runs in the runtime of the node, once at a time.
    fn answers(&self) -> BoxFuture<'static, bool>;

    /// Whether the node takes part in its cluster, with all that there is to say about it.
    fn readiness(&self) -> (bool, Value);

    /// Its metrics, in Prometheus's text format.
    fn metrics(&self) -> String;
}

/// For whoever asks for something else.
const ALL: &str = "/livez, /readyz, /metrics";

struct Context {
    node: Arc<dyn NodeReport>,
    /// One question at a time, however many clients ask.
    alive: StoreRead,
}

pub(crate) fn router(main: &Handle, node: Arc<dyn NodeReport>) -> Router {
    let asked = Arc::clone(&node);
    let alive = StoreRead::new(main, move || {
        let answer = asked.answers();
        Box::pin(async move { (Ok(Arc::new(Value::from(answer.await))), 1) })
    });
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .fallback(|uri| not_found(uri, ALL))
        .method_not_allowed_fallback(|| not_allowed(ALL))
        .with_state(Arc::new(Context { node, alive }))
}

type Shared = State<Arc<Context>>;

/// 200 while the node does something.
async fn livez(State(context): Shared) -> Response {
    match tokio::time::timeout(ALIVE_TIMEOUT, context.alive.ask()).await {
        Ok(Ok(alive)) if *alive == Value::Bool(true) => object(StatusCode::OK, &json!({ "alive": true })),
        _ => error(StatusCode::SERVICE_UNAVAILABLE, "the node does nothing"),
    }
}

/// 200 while a leader is known, the node is a member, and has caught up.
async fn readyz(State(context): Shared) -> Response {
    let (is_ready, body) = context.node.readiness();
    object(if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &body)
}

async fn metrics(State(context): Shared) -> Response {
    answer(StatusCode::OK, Metrics::PLAIN_MEDIA_TYPE, context.node.metrics())
}
