//! Events on the Lease, as `kubectl describe lease` and client-go's users know them: who became leader, and who stopped leading.
//!
//! Best effort, in a task of its own: nothing waits for it, and a user who may not create Events is told once, at the level of details.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_backend::Record;
use bellwether_core::{Clock, Wall};
use http::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::lease_object::LeaseObject;

const LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Recorder {
    api: Arc<Api>,
    clock: Arc<dyn Clock>,
    /// This user may not create Events.
    refused: Arc<AtomicBool>,
}

impl Recorder {
    pub(crate) fn new(api: Arc<Api>, clock: Arc<dyn Clock>) -> Recorder {
        Recorder { api, clock, refused: Arc::default() }
    }

    /// Tells of a write that made or ended a leadership; a renewal is nothing to tell.
    pub(crate) fn record(&self, before: &LeaseObject, new: &Record) {
        let old = before.record();
        let (id, message) = match (&old.holder, &new.holder) {
            (old, Some(holder)) if old.as_ref() != Some(holder) => {
                (&holder.id, format!("{} became leader", holder.id))
            }
            (Some(holder), None) => (&holder.id, format!("{} stopped leading", holder.id)),
            _ => return,
        };
        if self.refused.load(Ordering::Relaxed) {
            return;
        }
        let (api, refused, now) = (Arc::clone(&self.api), Arc::clone(&self.refused), self.clock.wall());
        let (name, uid, id) = (before.metadata.name.clone(), before.metadata.uid.clone(), id.to_string());
        tokio::spawn(async move {
            let Ok(namespace) = api.namespace().await else { return };
            let path = format!("/api/v1/namespaces/{namespace}/events");
            let event = event(&namespace, (&name, &uid), &id, &message, now);
            if let Err(failure) = api.call_beside::<Value>(Method::POST, &path, Some(&event), LIMIT).await {
                refused.fetch_or(failure.is(403), Ordering::Relaxed);
                tracing::debug!(error = %failure.error("create an Event"), "a change of leader is not recorded");
            }
        });
    }
}

fn event(namespace: &str, (name, uid): (&str, &str), id: &str, message: &str, now: Wall) -> Value {
    // The name is that of the Lease and the time, as others name theirs.
    let unique = format!("{name}.{:x}", now.as_unix_nanos());
    // Events have whole seconds.
    let now = now.to_string();
    let seconds = format!("{}Z", now.split('.').next().unwrap_or_default());
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": unique, "namespace": namespace },
        "involvedObject": {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": namespace, "name": name, "uid": uid,
        },
        "reason": "LeaderElection",
        "message": message,
        "type": "Normal",
        "source": { "component": "bellwether", "host": id },
        "firstTimestamp": seconds,
        "lastTimestamp": seconds,
        "count": 1,
    })
}
