//! The store as a register: what [`Lease`] needs of it.
//!
//! The version of a record is its revision in the bucket. Revisions rise through deletions; in a bucket that was deleted and made anew they
//! start at one, which whoever had seen the earlier ones takes for a store that was rolled back, as it should.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{
    Capabilities, Changes, Discarded, Finding, Found, FoundNote, Lease, Note, Probing, Record, Register,
    Write, lock,
};
use bellwether_core::{Bid, CandidateId, Clock, ElectionName, Epoch, StoreError};
use futures_util::{StreamExt, stream};

use crate::bucket::{Bucket, BucketUse};
use crate::bucket_api::Content;
use crate::config::Config;
use crate::connection::NatsConnection;
use crate::errors::{BACKEND, STREAM_NOT_FOUND};
use crate::following::Following;
use crate::health::HealthChecker;
use crate::keys::Keys;
use crate::layout::Layout;
use crate::layout::cluster::{self, Cluster};
use crate::layout::leader::Leader;
use crate::layout::native::Native;
use crate::profile::Profile;
use crate::{changes, checkup};

/// Elections on NATS servers.
pub type Nats = Lease<NatsRegister>;

/// How long a call may take at the shortest and longest; in between it is a sixth of the shortest ttl. A stream that changes its
/// leader does not answer what it was sent meanwhile, so the next try must not wait long: with a call time of 5 s, a change of 6 s
/// cost 11 s of a lease.
const LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
/// For looks, where no ttl is known.
const LIMIT_OF_LOOKS: Duration = Duration::from_secs(5);
/// Reads that may be under way at once when elections are listed.
const READS_MAX: usize = 64;

/// Elections on the servers that a URL names; see [`Config`]. Connects with the first call.
///
/// # Errors
/// When the URL cannot be read.
pub fn from_url(url: &str, clock: Arc<dyn Clock>) -> Result<Nats, StoreError> {
    Ok(Lease::new(NatsRegister::new(Config::from_url(url)?), clock))
}

/// A bucket, or several, in which every election has a key.
pub struct NatsRegister {
    store: Arc<BucketStore>,
}

pub(crate) struct BucketStore {
    pub(crate) connection: Arc<NatsConnection>,
    pub(crate) layout: Arc<dyn Layout>,
    /// The bucket for notes, where the profile has one.
    pub(crate) notes: Option<Arc<Bucket>>,
    pub(crate) following: Arc<Following>,
    buckets: Mutex<HashMap<String, Arc<Bucket>>>,
    /// The shortest ttl that was written, in milliseconds; 0 before the first.
    shortest_ttl: AtomicU64,
}

impl NatsRegister {
    /// The register alone, to build something else on; [`from_url`] makes elections of it.
    pub fn new(config: Config) -> NatsRegister {
        let layout: Arc<dyn Layout> = match config.profile {
            Profile::Native => Arc::new(Native { bucket: config.bucket().to_owned() }),
            Profile::Cluster => Arc::new(Cluster),
            Profile::Leader => {
                Arc::new(Leader { bucket: config.bucket().to_owned(), group: config.group.clone() })
            }
        };
        let notes = config.notes().map(str::to_owned);
        let connection = Arc::new(NatsConnection::new(config));
        let notes = notes.map(|name| Arc::new(Bucket::new(name, BucketUse::Notes, Arc::clone(&connection))));
        let store = BucketStore {
            connection,
            layout,
            notes,
            following: Arc::default(),
            buckets: Mutex::default(),
            shortest_ttl: AtomicU64::new(0),
        };
        NatsRegister { store: Arc::new(store) }
    }

    /// The profile of these elections.
    pub fn profile(&self) -> Profile {
        self.store.connection.config().profile()
    }

    /// The bucket that this election is held in.
    pub fn bucket_of(&self, on: &ElectionName) -> String {
        self.store.layout.bucket(on)
    }

    /// Keys of this bucket, on the connection of the elections.
    pub fn keys(&self, bucket: impl Into<String>) -> Keys {
        Keys::on(Arc::clone(&self.store.connection), bucket.into())
    }

    /// Questions about health, and answers to them, on the connection of the elections.
    ///
    /// # Errors
    /// When cluster or node cannot be part of a subject.
    pub fn health(
        &self,
        cluster: &str,
        node: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<HealthChecker, StoreError> {
        HealthChecker::on(Arc::clone(&self.store.connection), cluster, node, clock)
    }

    /// As [`NatsRegister::health`], for a candidate of this election of the profile `cluster`: the cluster's name is that of the
    /// election, shortened as in the name of its bucket where it does not fit.
    ///
    /// # Errors
    /// When the id cannot be part of a subject.
    pub fn health_in(
        &self,
        on: &ElectionName,
        id: &CandidateId,
        clock: Arc<dyn Clock>,
    ) -> Result<HealthChecker, StoreError> {
        self.health(&cluster::name(on), id.as_str(), clock)
    }
}

impl BucketStore {
    pub(crate) fn bucket(&self, name: &str) -> Arc<Bucket> {
        let mut buckets = lock(&self.buckets);
        let new =
            || Arc::new(Bucket::new(name.to_owned(), BucketUse::Elections, Arc::clone(&self.connection)));
        Arc::clone(buckets.entry(name.to_owned()).or_insert_with(new))
    }

    pub(crate) fn limit(&self) -> Duration {
        match self.shortest_ttl.load(Ordering::Relaxed) {
            0 => LIMIT_OF_LOOKS,
            millis => Duration::from_millis(millis / 6).clamp(LIMITS.0, LIMITS.1),
        }
    }

    pub(crate) fn place(&self, on: &ElectionName) -> (Arc<Bucket>, String) {
        (self.bucket(&self.layout.bucket(on)), self.layout.key(on))
    }

    async fn write(
        &self,
        on: &ElectionName,
        at: Option<u64>,
        new: &Record,
    ) -> Result<Write<u64>, StoreError> {
        let (bucket, key) = self.place(on);
        if let Some(ttl) = new.ttl.filter(|_| new.holder.is_some()) {
            let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
            let shorter = |before: u64| (before == 0 || millis < before).then_some(millis);
            let _ = self.shortest_ttl.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shorter);
            bucket.refuse_ttl(ttl, self.layout.least_age(ttl))?;
        }
        let released = if new.is_held() { None } else { self.layout.print_released(on, new) };
        let content = match released {
            Some(said) => Content::Released(said),
            None => Content::Value(self.layout.print(on, new)?),
        };
        Ok(bucket.write(&key, at, content, self.limit()).await)
    }
}

impl Register for NatsRegister {
    type Version = u64;

    fn name(&self) -> &'static str {
        BACKEND
    }

    fn capabilities(&self) -> Capabilities {
        self.store.layout.capabilities()
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<u64>, StoreError> {
        let (bucket, key) = self.store.place(on);
        let Some(entry) = bucket.last(&key, self.store.limit()).await? else { return Ok(None) };
        bucket.found(&*self.store.layout, on, entry)
    }

    async fn write(&self, on: &ElectionName, at: Option<&u64>, new: &Record) -> Write<u64> {
        self.store.write(on, at.copied(), new).await.unwrap_or_else(Write::failed)
    }

    fn follow(&self, on: &ElectionName) {
        let layout = &self.store.layout;
        self.store.following.follow(layout.bucket(on), layout.key(on), on);
    }

    fn unfollow(&self, on: &ElectionName) {
        let layout = &self.store.layout;
        self.store.following.unfollow(&layout.bucket(on), &layout.key(on));
    }

    fn admit(&self, on: &ElectionName, bid: &Bid) -> Result<(), StoreError> {
        let layout = &self.store.layout;
        layout.admit(&bid.who.id)?;
        self.store.bucket(&layout.bucket(on)).make_with(layout.made_age(bid.ttl));
        Ok(())
    }

    async fn rehearse(&self, on: &ElectionName) -> Result<(), StoreError> {
        let (bucket, key) = self.store.place(on);
        bucket.rehearse(&key).await
    }

    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        self.store.following.unwatched_because(&self.store.layout.bucket(on))
    }

    fn changes(&self) -> Changes<u64> {
        changes::changes(&self.store)
    }

    async fn epoch(
        &self,
        on: &ElectionName,
        replaced: Option<(&Record, &u64)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        // One of ours is followed by the next, which the caller knows. Others write no beat, and may have begun to count anew.
        let before = replaced.and_then(|(record, _)| record.epoch);
        if before.is_some() && replaced.is_some_and(|(record, _)| record.beat > 0) {
            return Ok(least);
        }
        self.store.place(on).0.epoch(before, least, self.store.limit()).await
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        let store = &self.store;
        let mut elections = Vec::new();
        for name in store.layout.buckets() {
            let bucket = store.bucket(&name);
            let subjects = match bucket.api(store.limit()).info(Some(store.layout.leases())).await {
                Ok(info) => info.state.subjects.unwrap_or_default(),
                Err(failure) if failure.is(STREAM_NOT_FOUND) && store.connection.config().create => continue,
                Err(failure) => return Err(failure.error("list the elections")),
            };
            let prefix = crate::bucket_api::subject(&name, "");
            let keys: Vec<String> = subjects
                .keys()
                .filter_map(|subject| Some(subject.strip_prefix(&prefix)?.to_owned()))
                .collect();
            let reads = keys.into_iter().map(|key| {
                let bucket = &bucket;
                async move {
                    let found = bucket.load(&key, store.limit()).await?;
                    Ok::<_, StoreError>(
                        found.and_then(|(value, _)| store.layout.election(&bucket.name, &key, &value)),
                    )
                }
            });
            let mut reads = stream::iter(reads).buffer_unordered(READS_MAX);
            while let Some(read) = reads.next().await {
                elections.extend(read?);
            }
        }
        elections.sort();
        Ok(elections)
    }

    fn takes_away(&self, on: &ElectionName) -> bool {
        let (bucket, key) = self.store.place(on);
        bucket.takes_away(&key)
    }

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        self.store.read_note(on, note).await
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        self.store.write_note(on, note, at, bytes).await.unwrap_or_else(Write::failed)
    }

    async fn checkup(&self, probing: Probing<'_>, clock: &dyn Clock) -> Vec<Finding> {
        checkup::checkup(&self.store, probing, clock).await
    }

    async fn danger_discard(&self, on: &ElectionName) -> Result<Discarded, StoreError> {
        let store = &self.store;
        let (bucket, key) = store.place(on);
        let limit = store.limit();
        let Some(entry) = bucket.last(&key, limit).await? else { return Ok(Discarded::Gone) };
        let revision = entry.revision;
        if bucket.found(&*store.layout, on, entry)?.is_some_and(|(record, _)| record.is_held()) {
            return Ok(Discarded::Remains(format!("the key {key}, which is held")));
        }
        let mut all: Vec<(Arc<Bucket>, String, u64)> = store.past(on).await?.into_iter().collect();
        if store.layout.owns_bucket() {
            // Somebody else's bucket is theirs to remove.
            if !bucket.was_made_here() || bucket.api(limit).remove().await.is_err() {
                return Ok(Discarded::Remains(format!("the bucket {}", bucket.name)));
            }
        } else {
            all.push((bucket, key, revision));
        }
        for (bucket, key, revision) in all {
            let failed = |failure: crate::errors::CallFailure| failure.error("remove the record");
            let mark = bucket.api(limit).put(&key, revision, Content::Deleted).await.map_err(failed)?;
            if bucket.api(limit).forget(&key, mark).await.is_err() {
                return Ok(Discarded::Remains(format!("the mark of a deletion under the key {key}")));
            }
        }
        Ok(Discarded::Gone)
    }
}
