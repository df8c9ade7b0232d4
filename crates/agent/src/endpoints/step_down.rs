//! `POST /step-down`: asks the leader, wherever it runs, to hand over. Needs the token, and does nothing without one.
//!
//! The body is empty, or names the successor: `{"to": "ID"}`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bellwether_election::{CandidateId, Error};
use serde_json::{Value, json};

use super::{Context, Shared, changing, error, object};
use crate::limits::STEP_DOWN_TIMEOUT;

pub(super) async fn step_down(State(context): Shared, headers: HeaderMap, body: Body) -> Response {
    let off = "stepping down over HTTP is off: start bellwether with --http-token-file";
    if let Some(refusal) = changing::refusal(&context, &headers, off) {
        return refusal;
    }
    match changing::whole(body).await.and_then(|bytes| successor(&bytes)) {
        Ok(to) => ask(&context, to).await,
        Err(sentence) => error(StatusCode::BAD_REQUEST, &sentence),
    }
}

/// Whom the body names.
pub(crate) fn successor(bytes: &[u8]) -> Result<Option<CandidateId>, String> {
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let expected = "the body is empty, or names the successor: {\"to\": \"ID\"}";
    let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else { return Err(expected.to_owned()) };
    match fields.get("to") {
        _ if fields.keys().any(|key| key != "to") => Err(expected.to_owned()),
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => CandidateId::new(id.clone()).map(Some).map_err(|error| error.to_string()),
        Some(_) => Err(expected.to_owned()),
    }
}

/// In the process's own runtime, and to its end, even if the client does not wait for that.
async fn ask(context: &Context, to: Option<CandidateId>) -> Response {
    let (election, store) = (context.election.clone(), context.store.clone());
    let on = election.name().as_str().to_owned();
    let asked = context.main.spawn(async move {
        match election.leadership() {
            Some(leadership) => {
                match to {
                    Some(to) => election.step_down_to(to).await?,
                    None => election.step_down().await?,
                }
                Ok((leadership.epoch(), true))
            }
            None => store.ask_to_step_down(election.name(), to).await.map(|epoch| (epoch, false)),
        }
    });
    match tokio::time::timeout(STEP_DOWN_TIMEOUT, asked).await {
        Ok(Ok(Ok((epoch, has_ended)))) => {
            let status = if has_ended { StatusCode::OK } else { StatusCode::ACCEPTED };
            object(status, &json!({ "election": on, "epoch": epoch.get(), "ended": has_ended }))
        }
        Ok(Ok(Err(failed))) => refused(&failed),
        Ok(Err(_)) => error(StatusCode::INTERNAL_SERVER_ERROR, "this process is ending"),
        Err(_) => object(StatusCode::ACCEPTED, &json!({ "election": on, "epoch": null, "ended": false })),
    }
}

fn refused(failed: &Error) -> Response {
    let status = match failed {
        Error::NotLeader | Error::AlreadyLeader | Error::InCooldown | Error::CasFailed => {
            StatusCode::CONFLICT
        }
        Error::Backend(error) if !error.is_retryable() => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    error(status, &failed.to_string())
}
