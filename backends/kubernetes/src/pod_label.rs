//! The label that the leader's pod carries: `leader.bellwether/ELECTION: "true"`.
//!
//! Owns its name and the request that sets or removes it. The label is for people and for selectors that can live with an old answer: the
//! API server cannot compare a write to one pod with what happened to another, so a leader that was paused may label itself late. It takes
//! the label away again when it finds out. Whoever needs the right address uses an EndpointSlice
//! ([`LeaderAddress`](crate::LeaderAddress)).

use bellwether_core::{ElectionName, StoreError};
use http::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::errors::misconfigured;
use crate::{announce, names};

const NOT_FOUND: u16 = 404;

/// The key of the label of this election.
pub(crate) fn key(on: &ElectionName) -> String {
    format!("leader.bellwether/{}", names::label(on))
}

/// Labels this pod, or removes its label.
pub(crate) async fn set(api: &Api, on: &ElectionName, pod: &str, leads: bool) -> Result<(), StoreError> {
    let namespace = api.namespace().await?;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
    let value = if leads { Value::from("true") } else { Value::Null };
    let patch = json!({ "metadata": { "labels": { key(on): value } } });
    match api.call_beside::<Value>(Method::PATCH, &path, Some(&patch), announce::LIMIT).await {
        // A pod that is gone has no label.
        Err(failure) if failure.is(NOT_FOUND) && !leads => Ok(()),
        Err(failure) if failure.is(NOT_FOUND) => Err(misconfigured(format!(
            "there is no pod {pod} in the namespace {namespace} to label: let the downward API set POD_NAME, or write pod=NAME"
        ))),
        answer => answer.map(|_| ()).map_err(|failure| failure.error(&format!("patch the pod {pod}"))),
    }
}
