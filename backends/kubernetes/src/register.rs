//! The namespace as a register: what [`Lease`] needs of it.
//!
//! The version of a record is the resource version of its Lease, together with the Lease as it was read, so that a write changes nothing
//! that is not ours.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_backend::{
    Capabilities, Changes, Discarded, Finding, Found, FoundNote, Lease, Note, Past, Probing, Record,
    Register, Write,
};
use bellwether_core::{Bid, Clock, ElectionName, Epoch, Options, StoreError};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::announce::Announcer;
use crate::api::Api;
use crate::config::Config;
use crate::errors::{BACKEND, CallFailure};
use crate::events::Recorder;
use crate::following::Following;
use crate::lease_object::{LeaseObject, LeaseVersion};
use crate::watch::found;
use crate::{changes, checkup, names, notes};

/// Elections on the Leases of a namespace.
pub type Kubernetes = Lease<KubernetesRegister>;

/// The API has whole seconds.
const TTL_UNIT: Duration = Duration::from_secs(1);
/// How long a call may take at the shortest and longest; in between it is a sixth of the shortest ttl.
const LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
/// For looks, where no ttl is known.
const LIMIT_OF_LOOKS: Duration = Duration::from_secs(5);
/// Leases that one answer may list.
const PAGE: usize = 500;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;

/// Elections in the namespace that a URL names; see [`Config::from_url`]. Connects with the first call.
///
/// # Errors
/// When the URL cannot be read.
pub fn from_url(url: &str, clock: Arc<dyn Clock>) -> Result<Kubernetes, StoreError> {
    Ok(from_config(Config::from_url(url)?, clock))
}

/// Elections in the cluster and the namespace that the environment names; see [`Config::from_env`]. Connects with the first call.
///
/// # Errors
/// As [`Config::from_env`].
pub fn from_env(clock: Arc<dyn Clock>) -> Result<Kubernetes, StoreError> {
    Ok(from_config(Config::from_env()?, clock))
}

/// Elections in that cluster. Connects with the first call.
pub fn from_config(config: Config, clock: Arc<dyn Clock>) -> Kubernetes {
    Lease::new(KubernetesRegister::new(config, Arc::clone(&clock)), clock)
}

/// The options that candidates start from: the usual ones, with a ttl in whole seconds.
pub fn options() -> Options {
    let mut options = Options::default();
    options.timing.ttl_unit = TTL_UNIT;
    options
}

/// A namespace in which every election has a Lease.
pub struct KubernetesRegister {
    store: Arc<LeaseStore>,
}

pub(crate) struct LeaseStore {
    pub(crate) api: Arc<Api>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) following: Arc<Following>,
    recorder: Option<Recorder>,
    announcer: Option<Arc<Announcer>>,
    /// The shortest ttl that was written, in milliseconds; 0 before the first.
    shortest_ttl: AtomicU64,
    /// Leases that this user is known to be allowed to write.
    rehearsed: Mutex<HashSet<String>>,
}

impl KubernetesRegister {
    /// The register alone, to build something else on; [`from_config`] makes elections of it.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> KubernetesRegister {
        let (recorded, pod, address) = (config.events, config.labelled_pod(), config.leader_address());
        let api = Arc::new(Api::new(config));
        let announcer = Announcer::new(Arc::clone(&api), pod, address);
        let recorder = recorded.then(|| Recorder::new(Arc::clone(&api), Arc::clone(&clock)));
        let store = LeaseStore {
            api,
            clock,
            following: Arc::default(),
            recorder,
            announcer,
            shortest_ttl: AtomicU64::new(0),
            rehearsed: Mutex::default(),
        };
        KubernetesRegister { store: Arc::new(store) }
    }
}

#[derive(Deserialize)]
struct LeaseList {
    metadata: ListMetadata,
    items: Vec<LeaseObject>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(default)]
    r#continue: String,
}

impl LeaseStore {
    pub(crate) fn limit(&self) -> Duration {
        let of_ttl = match self.shortest_ttl.load(Ordering::Relaxed) {
            0 => LIMIT_OF_LOOKS,
            millis => Duration::from_millis(millis / 6).clamp(LIMITS.0, LIMITS.1),
        };
        self.api.config().timeout.unwrap_or(of_ttl)
    }

    /// The Lease of that name, as it is now: without a resource version, the server reads it from a majority of etcd.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<LeaseObject>, StoreError> {
        let path = self.api.lease_path(name).await?;
        match self.api.call::<LeaseObject>(Method::GET, &path, None::<&()>, self.limit()).await {
            Ok(object) => Ok(Some(object)),
            Err(failure) if failure.is(NOT_FOUND) => Ok(None),
            Err(failure) => Err(failure.error(&format!("get the Lease {name}"))),
        }
    }

    pub(crate) async fn post(&self, object: &LeaseObject) -> Result<LeaseObject, CallFailure> {
        let path = self.api.leases_path().await.map_err(CallFailure::NoAnswer)?;
        self.api.call(Method::POST, &path, Some(object), self.limit()).await
    }

    /// Replaces a Lease at the version and the uid that it has in it. Without the uid, a Lease that was deleted would be made again.
    pub(crate) async fn put(&self, object: &LeaseObject, query: &str) -> Result<LeaseObject, CallFailure> {
        let path = self.api.lease_path(&object.metadata.name).await.map_err(CallFailure::NoAnswer)?;
        self.api.call(Method::PUT, &(path + query), Some(object), self.limit()).await
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<LeaseVersion>, StoreError> {
        let name = names::lease(on);
        let Some(object) = self.get(&name).await? else { return Ok(None) };
        let found = found(on, object)?;
        if let Some((_, version)) = &found {
            self.following.met(&name, version);
        }
        Ok(found)
    }

    async fn write(&self, on: &ElectionName, at: Option<&LeaseVersion>, new: &Record) -> Write<LeaseVersion> {
        if let Some(ttl) = new.ttl.filter(|_| new.holder.is_some()) {
            let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
            let shorter = |before: u64| (before == 0 || millis < before).then_some(millis);
            let _ = self.shortest_ttl.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shorter);
        }
        let name = names::lease(on);
        let Some(at) = at else { return self.create(&name, on).await };
        let before = at.object();
        let pod = self.announcer.as_ref().and_then(|announcer| announcer.pod());
        let written = self.put(&before.with_record(on, new, pod), "").await;
        let version = match written.map(LeaseVersion::of) {
            Ok(Ok(version)) => version,
            // It was written; what came back only cannot be read.
            Ok(Err(error)) => return Write::Unknown(error),
            Err(failure) if failure.is(CONFLICT) => return Write::Conflict,
            Err(failure) => return Write::failed(failure.error(&format!("update the Lease {name}"))),
        };
        self.following.met(&name, &version);
        if let Some(recorder) = &self.recorder {
            recorder.record(before, new);
        }
        if let Some(announcer) = self.announcer.as_ref().filter(|_| before.is_taken_by(new)) {
            announcer.claimed(on, before.pod());
        }
        Write::Done(version)
    }

    /// A claim needs a version to replace, which is its epoch. So a Lease that is missing is made without a holder first, and the claim
    /// finds it there.
    async fn create(&self, name: &str, on: &ElectionName) -> Write<LeaseVersion> {
        match self.post(&LeaseObject::new(name, on)).await {
            Ok(_) => Write::Conflict,
            Err(failure) if failure.is(CONFLICT) => Write::Conflict,
            Err(failure) => Write::failed(failure.error(&format!("create the Lease {name}"))),
        }
    }

    /// Writes the Lease as it is, with the server's word that nothing is changed: only whether it is allowed is found out.
    async fn rehearse(&self, on: &ElectionName) -> Result<(), StoreError> {
        let name = names::lease(on);
        let rehearsed = || self.rehearsed.lock().unwrap_or_else(PoisonError::into_inner);
        if rehearsed().contains(&name) {
            return Ok(());
        }
        let Ok(Some(object)) = self.get(&name).await else { return Ok(()) };
        match self.put(&object, "?dryRun=All").await {
            Err(failure) if failure.is(403) => Err(failure.error(&format!("update the Lease {name}"))),
            Err(failure) if !failure.is(CONFLICT) => Ok(()),
            _ => {
                rehearsed().insert(name);
                Ok(())
            }
        }
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        let path = self.api.leases_path().await?;
        let (mut elections, mut next) = (Vec::new(), String::new());
        loop {
            let page = format!("{path}?limit={PAGE}&continue={next}");
            let list = self.api.call::<LeaseList>(Method::GET, &page, None::<&()>, LIMIT_OF_LOOKS).await;
            let list = list.map_err(|failure| failure.error("list the Leases of the namespace"))?;
            let of = |object: &LeaseObject| {
                let on = ElectionName::new(object.election()?).ok()?;
                (names::lease(&on) == object.metadata.name).then_some(on)
            };
            elections.extend(list.items.iter().filter_map(of));
            next = list.metadata.r#continue;
            if next.is_empty() {
                elections.sort();
                return Ok(elections);
            }
        }
    }

    async fn discard(&self, on: &ElectionName) -> Result<Discarded, StoreError> {
        let mut left = None;
        for name in [names::notes(on), names::lease(on)] {
            let Some(object) = self.get(&name).await? else { continue };
            object.check_election(on)?;
            // One that others made, or that is held, is not ours to remove.
            if object.election().is_none() || object.record().is_held() {
                return Ok(Discarded::Remains(format!("the Lease {name}")));
            }
            let metadata = &object.metadata;
            if metadata.annotations.get(notes::ONCE).is_some() {
                left = Some(format!("the Lease {name}, which holds a create-once note"));
                continue;
            }
            let path = self.api.lease_path(&name).await?;
            let options = json!({
                "preconditions": { "uid": metadata.uid, "resourceVersion": metadata.resource_version }
            });
            let deleted =
                self.api.call::<serde_json::Value>(Method::DELETE, &path, Some(&options), self.limit()).await;
            match deleted {
                Ok(_) => {}
                Err(failure) if failure.is(NOT_FOUND) => {}
                Err(failure) if failure.is(403) || failure.is(CONFLICT) => {
                    return Ok(Discarded::Remains(format!("the Lease {name}")));
                }
                Err(failure) => return Err(failure.error(&format!("delete the Lease {name}"))),
            }
        }
        Ok(left.map_or(Discarded::Gone, Discarded::Remains))
    }
}

impl Register for KubernetesRegister {
    type Version = LeaseVersion;

    fn name(&self) -> &'static str {
        BACKEND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER.with(|can| {
            can.ttl_unit = TTL_UNIT;
            can.floor_outlives_record = false;
            can.create_once = true;
        })
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<LeaseVersion>, StoreError> {
        self.store.load(on).await
    }

    async fn write(&self, on: &ElectionName, at: Option<&LeaseVersion>, new: &Record) -> Write<LeaseVersion> {
        self.store.write(on, at, new).await
    }

    fn follow(&self, on: &ElectionName) {
        self.store.following.follow(names::lease(on), on);
    }

    fn unfollow(&self, on: &ElectionName) {
        self.store.following.unfollow(&names::lease(on));
    }

    fn changes(&self) -> Changes<LeaseVersion> {
        changes::changes(&self.store)
    }

    fn change_runtime(&self) -> Result<(), StoreError> {
        if self.store.api.forget_client() {
            Ok(())
        } else {
            Err(bellwether_backend::ended_with_its_runtime(BACKEND))
        }
    }

    async fn epoch(
        &self,
        _: &ElectionName,
        replaced: Option<(&Record, &LeaseVersion)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        Ok(replaced.map_or(least, |(_, version)| version.next_epoch(least)))
    }

    fn admit(&self, on: &ElectionName, _: &Bid) -> Result<(), StoreError> {
        if let Some(announcer) = &self.store.announcer {
            announcer.candidate(on);
        }
        Ok(())
    }

    async fn rehearse(&self, on: &ElectionName) -> Result<(), StoreError> {
        self.store.rehearse(on).await
    }

    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        self.store.following.unwatched_because(&names::lease(on))
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.store.elections().await
    }

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        self.store.read_note(on, note).await
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        let text = String::from_utf8_lossy(bytes);
        self.store.write_note(on, note, at, &text).await.unwrap_or_else(Write::failed)
    }

    async fn announce(&self, on: &ElectionName, past: &Past) {
        if let Some(announcer) = &self.store.announcer {
            announcer.announce(on, past).await;
        }
    }

    async fn checkup(&self, probing: Probing<'_>, clock: &dyn Clock) -> Vec<Finding> {
        checkup::checkup(&self.store, probing, clock).await
    }

    async fn danger_discard(&self, on: &ElectionName) -> Result<Discarded, StoreError> {
        self.store.discard(on).await
    }
}
