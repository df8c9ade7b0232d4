//! Whether this user can hold elections in this namespace: reachable, of a known version, allowed, and quick.
//!
//! Looking writes nothing but questions about permissions, which the server keeps nowhere.

use std::time::Duration;

use bellwether_backend::{Finding, PERMISSIONS, Probing};
use bellwether_core::{Clock, ErrorKind, StoreError};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::leader_address::LeaderAddress;
use crate::names;
use crate::register::LeaseStore;

const CALL_LIMIT: Duration = Duration::from_secs(5);
const READS: usize = 20;
const SLOW_READ: Duration = Duration::from_millis(100);
/// A Lease that no election has.
const NOBODY: &str = "bellwether.checkup.notes";

/// Something to be allowed: these verbs on a resource, of which perhaps only one object is meant.
struct Need<'a> {
    verbs: &'static [&'static str],
    group: &'static str,
    resource: &'static str,
    name: Option<&'a str>,
}

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

pub(crate) async fn checkup(store: &LeaseStore, probing: Probing<'_>, clock: &dyn Clock) -> Vec<Finding> {
    let namespace = match store.api.namespace().await {
        Ok(namespace) => namespace,
        Err(error) => return vec![Finding::failed("server", &error)],
    };
    let version = store.api.call::<Version>(Method::GET, "/version", None::<&()>, CALL_LIMIT).await;
    let version = match version {
        Ok(version) => version.git_version,
        Err(failure) => return vec![Finding::failed("server", &failure.error("ask for the version"))],
    };
    let lease = if let Probing::LookAt(on) = probing { Some(names::lease(on)) } else { None };
    let mut findings = vec![Finding::good("server", format!("the API server is Kubernetes {version}"))];
    match permissions(store, &namespace, lease.as_deref()).await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(Finding::failed(PERMISSIONS, &error)),
    }
    findings.push(reading(store, clock, lease.as_deref().unwrap_or(NOBODY)).await);
    findings
}

/// For this Lease, or for all of the namespace.
async fn permissions(
    store: &LeaseStore,
    namespace: &str,
    lease: Option<&str>,
) -> Result<Vec<Finding>, StoreError> {
    let need = |verbs, group, resource, name| Need { verbs, group, resource, name };
    let leases = |verbs, name| need(verbs, "coordination.k8s.io", "leases", name);
    let missing = missing(store, namespace, leases(&["create", "get", "update", "watch"], lease)).await?;
    let mut findings = vec![judge(namespace, lease, &missing)];
    let notes = lease.map(|lease| format!("{lease}{}", names::NOTES));
    let config = store.api.config();
    let address = config.leader_address();
    let service = address.as_ref().map(LeaderAddress::service);
    for (what, is_asked_for, need, without) in [
        (
            "history",
            notes.is_some(),
            leases(&["get", "update"], notes.as_deref()),
            "past leaderships and cooldowns are not kept",
        ),
        (
            "events",
            config.events,
            need(&["create"], "", "events", None),
            "new leaders are not recorded on the Lease",
        ),
        (
            "label",
            config.labelled_pod().is_some(),
            need(&["patch"], "", "pods", None),
            "the leader's pod is not labelled",
        ),
        (
            "address",
            service.is_some(),
            need(&["create", "get", "update"], "discovery.k8s.io", "endpointslices", service),
            "the leader's address is not published",
        ),
    ] {
        if is_asked_for {
            let missing = self::missing(store, namespace, need).await?;
            let denied = format!("{without}, because this user may not {}", missing.join(", "));
            findings.extend((!missing.is_empty()).then(|| Finding::warning(what, denied)));
        }
    }
    Ok(findings)
}

/// Which of these verbs the server says that this user may not use, with what on.
async fn missing(store: &LeaseStore, namespace: &str, need: Need<'_>) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    for verb in need.verbs {
        // Kubernetes cannot limit `create` to a name.
        let name = need.name.filter(|_| *verb != "create").unwrap_or_default();
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": need.group, "resource": need.resource, "name": name,
            } },
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let review = store.api.call::<Review>(Method::POST, path, Some(&question), CALL_LIMIT).await;
        if !review.map_err(|failure| failure.error("ask for permissions"))?.status.allowed {
            let slash = if name.is_empty() { "" } else { "/" };
            missing.push(format!("{verb} {}{slash}{name}", need.resource));
        }
    }
    Ok(missing)
}

/// What the lack of these verbs on Leases means to a candidate.
fn judge(namespace: &str, lease: Option<&str>, missing: &[String]) -> Finding {
    let verbs: Vec<&str> = missing.iter().filter_map(|missing| missing.split(' ').next()).collect();
    let denied = format!("this user may not {} in {namespace}", missing.join(", "));
    let grant = "grant it on leases.coordination.k8s.io in a Role, and bind that to this user";
    match (verbs.as_slice(), lease) {
        ([], None) => {
            let sentence = format!("this user may create, get, update and watch Leases in {namespace}");
            Finding::good(PERMISSIONS, sentence)
        }
        ([], Some(lease)) => {
            let sentence =
                format!("this user may create Leases in {namespace}, and get, update and watch {lease}");
            Finding::good(PERMISSIONS, sentence)
        }
        (["get", "update", "watch"], None) => Finding::warning(
            PERMISSIONS,
            format!(
                "this user may create Leases in {namespace}, and get, update and watch at most those that a Role names one by one: \
                 to check one of these, run `bellwether doctor ELECTION`"
            ),
        ),
        (["watch"], _) => {
            Finding::warning(PERMISSIONS, format!("{denied}, so candidates here take over late: {grant}"))
        }
        _ => Finding::bad(PERMISSIONS, ErrorKind::PermissionDenied, format!("{denied}: {grant}")),
    }
}

async fn reading(store: &LeaseStore, clock: &dyn Clock, lease: &str) -> Finding {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let start = clock.boot();
        match store.get(lease).await {
            // Where single Leases are named in a Role, the answer to others is no, and it takes as long.
            Err(error) if error.kind() != ErrorKind::PermissionDenied => {
                return Finding::failed("reading", &error);
            }
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
