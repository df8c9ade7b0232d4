//! Whether this user can hold elections in this namespace: reachable, of a known version, allowed, and quick.
//!
//! Looking writes nothing but questions about permissions, which the server keeps nowhere.

use std::time::Duration;

use bellwether_backend::Finding;
use bellwether_core::{Clock, ErrorKind, StoreError};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::register::LeaseStore;

const CALL_LIMIT: Duration = Duration::from_secs(5);
const READS: usize = 20;
const SLOW_READ: Duration = Duration::from_millis(100);
/// A Lease that no election has.
const NOBODY: &str = "bellwether.checkup.notes";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}

#[derive(Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Deserialize)]
struct ReviewStatus {
    allowed: bool,
}

pub(crate) async fn checkup(store: &LeaseStore, clock: &dyn Clock) -> Vec<Finding> {
    let namespace = match store.api.namespace().await {
        Ok(namespace) => namespace,
        Err(error) => return vec![bad("server", &error)],
    };
    let version = store.api.call::<Version>(Method::GET, "/version", None::<&()>, CALL_LIMIT).await;
    let mut findings = match version {
        Ok(version) => {
            vec![Finding::good("server", format!("the API server is Kubernetes {}", version.git_version))]
        }
        Err(failure) => return vec![bad("server", &failure.error("ask for the version"))],
    };
    findings.push(permissions(store, &namespace).await);
    findings.push(reading(store, clock).await);
    findings
}

/// What an election needs on any Lease of the namespace. Where a Role names Leases one by one, the server says no here.
async fn permissions(store: &LeaseStore, namespace: &str) -> Finding {
    let mut missing = Vec::new();
    for verb in ["create", "get", "update", "watch"] {
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": "coordination.k8s.io", "resource": "leases",
            } },
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        match store.api.call::<Review>(Method::POST, path, Some(&question), CALL_LIMIT).await {
            Ok(review) if review.status.allowed => {}
            Ok(_) => missing.push(verb),
            Err(failure) => return bad("permissions", &failure.error("ask for permissions")),
        }
    }
    match missing.as_slice() {
        [] => Finding::good(
            "permissions",
            format!("this user may create, get, update and watch Leases in {namespace}"),
        ),
        ["get", "update", "watch"] => Finding::warning(
            "permissions",
            format!(
                "this user may create Leases in {namespace}, and get, update and watch at most those that a Role names one by one"
            ),
        ),
        missing => {
            let sentence = format!(
                "this user may not {} Leases in {namespace}: grant it on leases.coordination.k8s.io in a Role",
                missing.join(", ")
            );
            Finding::bad("permissions", ErrorKind::PermissionDenied, sentence)
        }
    }
}

async fn reading(store: &LeaseStore, clock: &dyn Clock) -> Finding {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let start = clock.boot();
        match store.get(NOBODY).await {
            // Where single Leases are named in a Role, the answer to others is no, and it takes as long.
            Err(error) if error.kind() != ErrorKind::PermissionDenied => return bad("reading", &error),
            _ => times.push(clock.boot().since(start)),
        }
    }
    times.sort();
    let (middle, longest) = (times[READS / 2], times[READS - 1]);
    let said = format!("a read takes {middle:.1?}, at most {longest:.1?}");
    if middle > SLOW_READ {
        let sentence = format!("{said}: the API server is far away or busy; choose a long ttl");
        return Finding::warning("reading", sentence);
    }
    Finding::good("reading", said)
}

fn bad(what: &'static str, error: &StoreError) -> Finding {
    Finding::bad(what, error.kind(), error.to_string())
}
