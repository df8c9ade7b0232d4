//! What a request that changes something has to show, and may send.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::{BodyExt, Limited};

use super::{Context, error};
use crate::limits::{BODY_MAX_BYTES, BODY_TIMEOUT};

/// Refuses a request without the token; `off` is what to say where there is none.
pub(super) fn refusal(context: &Context, headers: &HeaderMap, off: &str) -> Option<Response> {
    let Some(token) = &context.token else { return Some(error(StatusCode::FORBIDDEN, off)) };
    if token.is_shown_by(headers) {
        return None;
    }
    let sentence = "send the token of --http-token-file: `Authorization: Bearer TOKEN`";
    let mut response = error(StatusCode::UNAUTHORIZED, sentence);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Some(response)
}

/// The whole body.
pub(super) async fn whole(body: Body) -> Result<Bytes, String> {
    let read = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, BODY_MAX_BYTES).collect());
    match read.await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(_)) => Err(format!("the body could not be read, or has more than {BODY_MAX_BYTES} bytes")),
        Err(_) => Err(format!("the body did not arrive within {BODY_TIMEOUT:?}")),
    }
}
