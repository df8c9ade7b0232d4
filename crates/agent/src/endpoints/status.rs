//! `/status`, `/elections` and `/history`: what the commands print, and `/candidate`: what this candidate knows.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bellwether_election::{candidate_json, record_json};
use serde_json::{Value, json};

use super::{Shared, error, object};

/// The record, and under `candidate` how this process stands. Where the store cannot be read, the record is null, and `error` says why.
pub(super) async fn status(State(context): Shared) -> Response {
    let (mut status, why) = match context.record.ask().await {
        Ok(record) => (Value::clone(&record), Value::Null),
        Err(why) => (record_json(context.election.name(), &bellwether_core::Seen::nothing()), why.into()),
    };
    status["error"] = why;
    status["candidate"] = candidate_json(&context.election);
    let backend = context.store.backend();
    let can = backend.capabilities();
    status["store"] = json!({ "kind": backend.name(), "lists": can.lists, "history": can.history });
    object(StatusCode::OK, &status)
}

/// How this process stands. Asks no store, and is 200 whoever leads.
pub(super) async fn candidate(State(context): Shared) -> Response {
    object(StatusCode::OK, &candidate_json(&context.election))
}

/// The elections of the store, by name: their records, and how many there are.
pub(super) async fn elections(State(context): Shared) -> Response {
    let backend = context.store.backend();
    if !backend.capabilities().lists {
        let sentence = format!("the {} store cannot list its elections", backend.name());
        return error(StatusCode::NOT_IMPLEMENTED, &sentence);
    }
    match context.elections.ask().await {
        Ok(all) => object(StatusCode::OK, &all),
        Err(why) => error(StatusCode::SERVICE_UNAVAILABLE, &format!("cannot list the elections: {why}")),
    }
}

/// Past leaderships, oldest first.
pub(super) async fn history(State(context): Shared) -> Response {
    let backend = context.store.backend();
    if !backend.capabilities().history {
        let sentence = format!("the {} store keeps no history", backend.name());
        return error(StatusCode::NOT_IMPLEMENTED, &sentence);
    }
    match context.history.ask().await {
        Ok(past) => object(StatusCode::OK, &past),
        Err(why) => error(StatusCode::SERVICE_UNAVAILABLE, &format!("cannot read past leaderships: {why}")),
    }
}
