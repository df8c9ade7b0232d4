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
use tokio::sync::Semaphore;

use crate::api::Api;
use crate::errors::CallFailure;
use crate::lease_object::LeaseObject;

/// Events that wait to be written; more than these are not recorded.
const WAITING_MAX: usize = 2_000;
/// Events that are written at once. Those that wait take little room.
const AT_ONCE: usize = 2;
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Recorder {
    api: Arc<Api>,
    clock: Arc<dyn Clock>,
    /// This user may not create Events.
    refused: Arc<AtomicBool>,
    /// Those that wait for others to be written.
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Recorder {
    pub(crate) fn new(api: Arc<Api>, clock: Arc<dyn Clock>) -> Recorder {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Recorder {
            api,
            clock,
            refused: Arc::default(),
            places: semaphore(WAITING_MAX),
            turns: semaphore(AT_ONCE),
        }
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
        let place = Arc::clone(&self.places).try_acquire_owned();
        let Ok(place) = place.map_err(|_| tracing::debug!("too many Events wait; this one is not recorded"))
        else {
            return;
        };
        if self.refused.load(Ordering::Relaxed) {
            return;
        }
        let (api, refused, turns) =
            (Arc::clone(&self.api), Arc::clone(&self.refused), Arc::clone(&self.turns));
        let (name, uid, id) = (before.metadata.name.clone(), before.metadata.uid.clone(), id.to_string());
        let now = self.clock.wall();
        tokio::spawn(async move {
            let _place = place;
            // Never closed.
            let _turn = turns.acquire().await;
            // In a box that is made only now.
            if let Err(failure) = Box::pin(create(&api, (&name, &uid), &id, &message, now)).await {
                refused.fetch_or(failure.is(403), Ordering::Relaxed);
                tracing::debug!(error = %failure.error("create an Event"), "a change of leader is not recorded");
            }
        });
    }
}

async fn create(
    api: &Api,
    lease: (&str, &str),
    id: &str,
    message: &str,
    now: Wall,
) -> Result<(), CallFailure> {
    let namespace = api.namespace().await.map_err(CallFailure::NoAnswer)?;
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let event = event(&namespace, lease, id, message, now);
    api.call_beside::<Value>(Method::POST, &path, Some(&event), LIMIT).await.map(|_| ())
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
