//! What users asked the API server for, by its own audit log.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Value, json};

const POLICY: &str = "audit-policy.json";
const LOG: &str = "audit.log";

/// A request that was answered. A watch is one from its first answer on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked.
    pub user: String,
    /// What for: `get`, `create`, `update`, `watch`, …
    pub verb: String,
    /// Of what: `leases`, …
    pub resource: String,
    /// Where; empty for what is in no namespace.
    pub namespace: String,
    /// Of which one; empty for all.
    pub name: String,
    /// The status that the server answered with.
    pub status: u16,
}

/// Everything but what the server asks of itself, and whether it is ready.
pub(super) fn configure(dir: &Path) {
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            { "level": "None", "users": ["system:apiserver"] },
            { "level": "None", "nonResourceURLs": ["/readyz"] },
            { "level": "Metadata" },
        ],
    });
    std::fs::write(dir.join(POLICY), policy.to_string()).expect("a scratch directory is writable");
}

pub(super) fn flags(dir: &Path) -> [String; 2] {
    let file = |flag: &str, name: &str| format!("--{flag}={}", dir.join(name).display());
    [file("audit-policy-file", POLICY), file("audit-log-path", LOG)]
}

pub(super) fn read(dir: &Path) -> Vec<Request> {
    let log = std::fs::read_to_string(dir.join(LOG)).unwrap_or_default();
    let mut seen = HashSet::new();
    // A line that is still being written is not yet one.
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| seen.insert(event["auditID"].to_string())).map(|event| request(&event)).collect()
}

fn request(event: &Value) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    Request {
        user: text(&event["user"]["username"]),
        verb: text(&event["verb"]),
        resource: text(&object["resource"]),
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
        status: event["responseStatus"]["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(0),
    }
}
