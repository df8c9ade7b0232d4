//! `/events`: every event as it happens, as server-sent events.
//!
//! A stream begins with an event `status`, which says how the candidate stands, and has another one whenever the connection to the store
//! goes silent or returns. The others are those of `--events`, by their own names. A reader that comes back after a break begins anew;
//! with `?kept`, the last events before come first.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use futures_util::StreamExt;

use super::{Shared, answer, error};
use crate::feed::From;

pub(super) async fn events(State(context): Shared, method: Method, uri: Uri) -> Response {
    if method == Method::HEAD {
        return answer(StatusCode::OK, "text/event-stream", Body::empty());
    }
    let from = if uri.query() == Some("kept") { From::Kept } else { From::Now };
    let Some(stream) = context.feed.subscribe(from) else {
        return error(StatusCode::SERVICE_UNAVAILABLE, "too many event streams; try later");
    };
    let body = Body::from_stream(stream.map(Ok::<_, Infallible>));
    let mut response = answer(StatusCode::OK, "text/event-stream", body);
    // nginx would collect events until it has enough of them.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
