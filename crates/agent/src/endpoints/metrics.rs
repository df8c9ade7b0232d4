//! `/metrics`, for Prometheus: OpenMetrics for those who ask for it, which Prometheus does, else the text that came before it.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bellwether_election::Metrics;

use super::{Shared, answer};

pub(super) async fn metrics(State(context): Shared, headers: HeaderMap) -> Response {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if accepted.any(|value| value.contains("application/openmetrics-text")) {
        return answer(StatusCode::OK, Metrics::MEDIA_TYPE, context.metrics.to_text());
    }
    answer(StatusCode::OK, Metrics::PLAIN_MEDIA_TYPE, context.metrics.to_plain_text())
}
