//! `POST /campaign`: a client does the work of the leadership, in any language. docs/clients.md has the protocol.
//!
//! A Unix socket is for whoever may write to its file; on a network, every request needs the token.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bellwether_deadman::boot_now;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{Context, Shared, answer, changing, error, object};
use crate::campaign::{Roster, lines};
use crate::peer::Peer;

/// `POST /campaign`.
pub(super) async fn begin(
    State(context): Shared,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let roster = match admitted(&context, peer, &headers) {
        Ok(roster) => roster,
        Err(refusal) => return refusal,
    };
    let ends_with_process = match changing::whole(body).await.and_then(|bytes| ends_with_process(&bytes)) {
        Ok(ends) => ends,
        Err(sentence) => return error(StatusCode::BAD_REQUEST, &sentence),
    };
    let process = if ends_with_process { peer.process() } else { None };
    // After the body has arrived: later than the client's own reading, and that is what counts.
    let heard = boot_now();
    let Some(room) = context.feed.room() else { return full() };
    match roster.begin(process, heard) {
        Some(attached) => streamed(lines(attached, heard, roster.pace, room)),
        None => full(),
    }
}

/// `POST /campaign/ID`: asking again.
pub(super) async fn again(
    State(context): Shared,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let heard = boot_now();
    let roster = match admitted(&context, peer, &headers) {
        Ok(roster) => roster,
        Err(refusal) => return refusal,
    };
    let Some(room) = context.feed.room() else { return full() };
    match number(&id).and_then(|id| roster.again(id, heard)) {
        Some(attached) => streamed(lines(attached, heard, roster.pace, room)),
        None => unknown(),
    }
}

/// `DELETE /campaign/ID`: the client's work has ended, or never began.
pub(super) async fn end(
    State(context): Shared,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    match admitted(&context, peer, &headers) {
        Ok(roster) if number(&id).is_some_and(|id| roster.end(id)) => {
            object(StatusCode::OK, &json!({ "campaign": id, "gone": true }))
        }
        Ok(_) => unknown(),
        Err(refusal) => refusal,
    }
}

#[expect(clippy::result_large_err, reason = "the refusal is an answer, made once and sent")]
fn admitted<'a>(context: &'a Context, peer: Peer, headers: &HeaderMap) -> Result<&'a Arc<Roster>, Response> {
    let off =
        "campaigning over a network is off: start bellwether with --http-token-file, or use a Unix socket";
    let refusal = if peer.is_local() { None } else { changing::refusal(context, headers, off) };
    match (refusal, &context.campaigns) {
        (Some(refusal), _) => Err(refusal),
        (None, Some(roster)) => Ok(roster),
        (None, None) => {
            let sentence = "a command does the work of this candidate: clients campaign where `bellwether run` has no COMMAND";
            Err(error(StatusCode::CONFLICT, sentence))
        }
    }
}

/// Whether the body says that the end of the client's process is the end of its work.
pub(crate) fn ends_with_process(bytes: &[u8]) -> Result<bool, String> {
    if bytes.trim_ascii().is_empty() {
        return Ok(false);
    }
    let expected = "the body is empty, or says whether the work ends with the client's process: \
                    {\"ends_with_process\": true}";
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) if fields.keys().all(|key| key == "ends_with_process") => {
            match fields.get("ends_with_process") {
                None => Ok(false),
                Some(Value::Bool(ends)) => Ok(*ends),
                Some(_) => Err(expected.to_owned()),
            }
        }
        _ => Err(expected.to_owned()),
    }
}

pub(crate) fn number(id: &str) -> Option<u128> {
    let digits = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u128::from_str_radix(id, 16).ok()).flatten()
}

fn unknown() -> Response {
    error(StatusCode::NOT_FOUND, "there is no such campaign any more: begin anew with POST /campaign")
}

fn full() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "too many clients; try later")
}

fn streamed(lines: impl futures_util::Stream<Item = axum::body::Bytes> + Send + 'static) -> Response {
    let body = Body::from_stream(lines.map(Ok::<_, Infallible>));
    let mut response = answer(StatusCode::OK, "application/x-ndjson", body);
    // nginx would collect lines until it has enough of them.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
