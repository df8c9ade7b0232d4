//! `/leader`: for load balancers, which send clients to whoever answers 200.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bellwether_election::leader_json;

use super::{Shared, object};

/// 200 while this process leads, else 503. Both by one look at the deadline, so that they cannot contradict each other.
pub(super) async fn leader(State(context): Shared) -> Response {
    let body = leader_json(&context.election);
    let leads = body["valid_ms"].as_u64().is_some_and(|ms| ms > 0);
    object(if leads { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &body)
}
