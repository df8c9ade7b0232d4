//! `/livez` and `/readyz`, for whoever starts processes again and sends clients to them.
//!
//! Neither says who leads: a follower that is not ready would never be there when it is needed, and one that is not alive would be
//! started again for ever.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bellwether_election::StateName;
use serde_json::json;

use super::{Shared, error, object};
use crate::limits::ALIVE_TIMEOUT;

/// 200 while the runtime that renews does something.
pub(super) async fn livez(State(context): Shared) -> Response {
    match tokio::time::timeout(ALIVE_TIMEOUT, context.main.spawn(async {})).await {
        Ok(Ok(())) => object(StatusCode::OK, &json!({ "alive": true })),
        _ => error(StatusCode::SERVICE_UNAVAILABLE, "the runtime that renews does nothing"),
    }
}

/// 200 from when the candidate takes part and the store has answered once, until it stops. An outage of the store does not make it
/// unready: it would take everybody out of service at once, and help nobody.
pub(super) async fn readyz(State(context): Shared) -> Response {
    let status = context.election.status();
    let takes_part = status.state != StateName::Stopped;
    // Without a client it asks the store nothing, and is ready for one.
    let awaits_client = context.awaited.as_ref().is_some_and(|roster| roster.is_empty());
    let is_ready = status.is_ready() || (takes_part && awaits_client);
    let body = json!({
        "ready": is_ready,
        "state": status.state.as_str(),
        "connection": status.connection.as_str(),
        "why": match (takes_part, is_ready) {
            (_, true) => None,
            (true, false) => Some("the store has not answered yet"),
            (false, false) => Some("the candidate does not take part"),
        },
    });
    object(if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &body)
}
