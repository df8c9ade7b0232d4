//! One bucket: whether it is there and fit for what it is for, reading and writing keys of it.
//!
//! Its settings are read before the first call and with every watch that is opened, and judged then; what is unsafe is refused with what to change. A bucket that is missing is
//! made only when that was asked for, by a claim or the first note and never by a look, and never again once it has been seen: one that
//! somebody deleted stays deleted, and every call fails at once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{Found, Record, Write, lock};
use bellwether_core::{ElectionName, Epoch, StoreError};

use crate::bucket_api::{BucketApi, Content, Info, KeyEntry, StreamSettings, subject};
use crate::connection::NatsConnection;
use crate::epoch;
use crate::errors::{
    CallFailure, STREAM_NAME_IN_USE, STREAM_NOT_FOUND, WRONG_LAST_SEQUENCE, misconfigured, unavailable,
};
use crate::fitness::unfit;
use crate::layout::Layout;

/// What a bucket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketUse {
    /// Elections, and notes on them where the profile keeps them there.
    Elections,
    /// Notes only. Nothing depends on it.
    Notes,
    /// What a program keeps there itself; see [`Keys`](crate::Keys).
    Values,
}

/// How long a claim that was denied waits to hear whether it could have written.
const REHEARSAL_LIMIT: Duration = Duration::from_millis(500);

pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) purpose: BucketUse,
    pub(crate) connection: Arc<NatsConnection>,
    known: Mutex<Known>,
}

/// What is known of a bucket.
#[derive(Default)]
struct Known {
    /// Its settings, where they are fit.
    settings: Option<StreamSettings>,
    /// It was there.
    seen: bool,
    /// When it was created, by the server's word.
    created: Option<String>,
    /// It was deleted and made anew under our eyes: what is missing from it was not taken away by age.
    anew: bool,
    made_here: bool,
    /// How long it keeps records if it is made here, in nanoseconds; 0 is for good.
    age: u64,
    /// Keys of which only the mark of a deletion is left, with its revision: creating anew is a write over that.
    marks: HashMap<String, u64>,
    /// Keys that this user is known to be let write.
    rehearsed: HashSet<String>,
}

impl Known {
    fn max_age(&self) -> Option<Duration> {
        let age = Duration::from_nanos(self.settings.as_ref()?.max_age);
        Some(age).filter(|age| !age.is_zero())
    }
}

impl Bucket {
    pub(crate) fn new(name: String, purpose: BucketUse, connection: Arc<NatsConnection>) -> Bucket {
        Bucket { name, purpose, connection, known: Mutex::default() }
    }

    pub(crate) fn api(&self, limit: Duration) -> BucketApi<'_> {
        BucketApi { connection: &self.connection, bucket: &self.name, limit }
    }

    /// Reads the settings anew.
    pub(crate) async fn info(&self, limit: Duration) -> Result<Info, StoreError> {
        self.learnt(self.api(limit).info(None).await)
    }

    /// As [`Bucket::info`]; `None` where the bucket is yet to be made.
    async fn info_if_made(&self, limit: Duration) -> Result<Option<Info>, StoreError> {
        // Asked before the call: while it was under way, another election's claim may have made the bucket, and that is not one that
        // was there and is gone.
        let may_be_made = self.connection.config().create && !lock(&self.known).seen;
        match self.api(limit).info(None).await {
            Err(failure) if may_be_made && failure.is(STREAM_NOT_FOUND) => Ok(None),
            info => self.learnt(info).map(Some),
        }
    }

    fn learnt(&self, info: Result<Info, CallFailure>) -> Result<Info, StoreError> {
        let info = info.map_err(|failure| self.unseen(failure))?;
        let mut known = lock(&self.known);
        let before = known.created.replace(info.created.clone());
        known.anew |= before.is_some_and(|before| before != info.created);
        drop(known);
        self.learn(&info.config)?;
        Ok(info)
    }

    /// The newest value of a key. `None` also where the bucket is yet to be made.
    pub(crate) async fn load(
        &self,
        key: &str,
        limit: Duration,
    ) -> Result<Option<(Vec<u8>, u64)>, StoreError> {
        let found = self.last(key, limit).await?;
        Ok(found.and_then(|entry| match entry.content {
            Content::Value(value) => Some((value, entry.revision)),
            _ => None,
        }))
    }

    /// The newest of a key, the mark of a deletion included.
    pub(crate) async fn last(&self, key: &str, limit: Duration) -> Result<Option<KeyEntry>, StoreError> {
        if !self.is_known() && self.info_if_made(limit).await?.is_none() {
            return Ok(None);
        }
        let found = match self.api(limit).last(key).await {
            Err(failure) if failure.is(STREAM_NOT_FOUND) => return Err(self.gone_or_not_ready(limit).await),
            found => found.map_err(|failure| failure.error("read the record"))?,
        };
        self.note(key, found.as_ref());
        if found.is_none() && lock(&self.known).max_age().is_some() {
            // Taken away by age, or is this another bucket of the same name?
            self.info(limit).await?;
        }
        Ok(found)
    }

    /// Remembers marks of deletions.
    pub(crate) fn note(&self, key: &str, found: Option<&KeyEntry>) {
        let mark = found.filter(|entry| !matches!(entry.content, Content::Value(_)));
        let mut known = lock(&self.known);
        match mark {
            Some(mark) => known.marks.insert(key.to_owned(), mark.revision),
            None => known.marks.remove(key),
        };
    }

    /// What lies under the key of a lease, as a record.
    pub(crate) fn found(
        &self,
        layout: &dyn Layout,
        on: &ElectionName,
        entry: KeyEntry,
    ) -> Result<Found<u64>, StoreError> {
        let mut record = match entry.content {
            Content::Value(value) => layout.read(on, &value)?,
            Content::Released(said) => match layout.read_released(on, &said)? {
                Some(record) => record,
                None => return Ok(None),
            },
            // The max age is at least the ttl, or nobody here would have written: what it took away had run out.
            Content::Expired => Record::default(),
            Content::Deleted => return Ok(None),
        };
        if record.holder.is_some() && record.ttl.is_none() && layout.others_go_by_age() {
            record.ttl = lock(&self.known).max_age();
        }
        Ok(Some((record, entry.revision)))
    }

    /// Whether a key under which nothing was found can be one whose record the server has taken away by its age: without a
    /// mark, on a bucket that has a max age.
    pub(crate) fn takes_away(&self, key: &str) -> bool {
        let known = lock(&self.known);
        !known.marks.contains_key(key) && !known.anew && known.max_age().is_some()
    }

    /// Writes at that revision; `None` creates, also where a key was deleted.
    pub(crate) async fn write(
        &self,
        key: &str,
        at: Option<u64>,
        content: Content,
        limit: Duration,
    ) -> Write<u64> {
        let mark = || lock(&self.known).marks.get(key).copied().unwrap_or(0);
        let expected = at.unwrap_or_else(mark);
        match self.api(limit).put(key, expected, content.clone()).await {
            Err(failure) if at.is_none() && failure.is(WRONG_LAST_SEQUENCE) => {}
            written => return self.judged(written, limit).await,
        }
        // Something is there. If it is only the mark of a deletion that we had not heard of, it is still ours to create.
        match self.load(key, limit).await {
            Ok(None) if mark() != expected => {
                let written = self.api(limit).put(key, mark(), content).await;
                self.judged(written, limit).await
            }
            Ok(_) => Write::Conflict,
            Err(error) => Write::Unknown(error),
        }
    }

    /// Whether this user may write a key, found out once and without writing. What gets no answer is asked again the next time.
    pub(crate) async fn rehearse(&self, key: &str) -> Result<(), StoreError> {
        if lock(&self.known).rehearsed.contains(key) {
            return Ok(());
        }
        match self.api(REHEARSAL_LIMIT).rehearse(key).await {
            Ok(()) => {
                lock(&self.known).rehearsed.insert(key.to_owned());
                Ok(())
            }
            Err(CallFailure::NoAnswer(error)) if !error.is_retryable() => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// Above everything that this life of the bucket, or an earlier one, has issued, as far as the stream can tell.
    /// `before` is the epoch that is replaced.
    pub(crate) async fn epoch(
        &self,
        before: Option<Epoch>,
        least: Epoch,
        limit: Duration,
    ) -> Result<Epoch, StoreError> {
        let info = self.info_or_make(limit).await?;
        let created = info.created_micros();
        let created =
            created.ok_or_else(|| unavailable("the server does not tell when the bucket was created"))?;
        epoch::after(before, least, created, info.state.last_seq)
    }

    /// How long it keeps values, by its settings as they are known; `None` for good.
    pub(crate) fn max_age(&self) -> Option<Duration> {
        lock(&self.known).max_age()
    }

    /// The next call judges the settings anew.
    pub(crate) fn forget_settings(&self) {
        lock(&self.known).settings = None;
    }

    pub(crate) fn was_made_here(&self) -> bool {
        lock(&self.known).made_here
    }

    /// Sets how long the bucket keeps records if it has to be made; zero means for good.
    pub(crate) fn make_with(&self, age: Duration) {
        lock(&self.known).age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Refuses a lease of this length if the bucket forgets records earlier than that.
    pub(crate) fn refuse_ttl(&self, ttl: Duration, least_age: Duration) -> Result<(), StoreError> {
        if let Some(max_age) = lock(&self.known).max_age().filter(|max_age| *max_age < least_age) {
            let print = bellwether_core::duration::print;
            return Err(misconfigured(format!(
                "the bucket {} forgets records after {}, too early for a ttl of {}: set its max age to 0 or to at least {}, or \
                 shorten the ttl",
                self.name,
                print(max_age),
                print(ttl),
                print(least_age),
            )));
        }
        Ok(())
    }

    /// Refuses a note that is to stay for good if the bucket forgets by age, by its settings as they are now.
    pub(crate) async fn refuse_forgetting(&self, limit: Duration) -> Result<(), StoreError> {
        let age = Duration::from_nanos(self.info(limit).await?.config.max_age);
        if age.is_zero() {
            return Ok(());
        }
        let another = match self.purpose {
            BucketUse::Elections | BucketUse::Values => "bucket=BUCKET",
            BucketUse::Notes => "notes=BUCKET",
        };
        Err(misconfigured(format!(
            "the bucket {} forgets records after {}, and a create-once note has to stay: set its max age to 0, or name another with {another}",
            self.name,
            bellwether_core::duration::print(age),
        )))
    }

    /// Makes the bucket if it is yet to be made.
    pub(crate) async fn make_if_missing(&self, limit: Duration) -> Result<(), StoreError> {
        if !self.is_known() {
            self.info_or_make(limit).await?;
        }
        Ok(())
    }

    async fn info_or_make(&self, limit: Duration) -> Result<Info, StoreError> {
        match self.info_if_made(limit).await? {
            Some(info) => Ok(info),
            None => self.make(limit).await,
        }
    }

    async fn make(&self, limit: Duration) -> Result<Info, StoreError> {
        let age = lock(&self.known).age;
        match self.api(limit).create(self.connection.config().replicas, age).await {
            Ok(_) => {
                lock(&self.known).made_here = true;
                tracing::info!(bucket = self.name, "the bucket was created");
            }
            // Somebody was first, with other settings, which are looked at now.
            Err(failure) if failure.is(STREAM_NAME_IN_USE) => {}
            Err(failure) => return Err(failure.error("create the bucket")),
        }
        // Whoever answers this may be behind whoever made it.
        let info = self.info_if_made(limit).await?;
        info.ok_or_else(|| unavailable("the bucket was made just now, and not all servers know of it yet"))
    }

    /// It is there, and fit for what it is for.
    pub(crate) fn is_known(&self) -> bool {
        lock(&self.known).settings.is_some()
    }

    fn learn(&self, settings: &StreamSettings) -> Result<(), StoreError> {
        let fit = match unfit(settings, &subject(&self.name, ">")) {
            None => Ok(()),
            Some(reason) => {
                let cannot = match self.purpose {
                    BucketUse::Elections => "no election can be held on",
                    BucketUse::Notes => "no notes can be kept in",
                    BucketUse::Values => "no values can be kept safe in",
                };
                Err(misconfigured(format!("{cannot} the bucket {}, because {reason}", self.name)))
            }
        };
        let mut known = lock(&self.known);
        known.seen = true;
        known.settings = fit.is_ok().then(|| settings.clone());
        fit
    }

    /// Why its settings could not be read.
    fn unseen(&self, failure: CallFailure) -> StoreError {
        if !failure.is(STREAM_NOT_FOUND) {
            return failure.error("look at the bucket");
        }
        // What is made anew in its place is looked at like a new one.
        lock(&self.known).settings = None;
        let (what, another) = match self.purpose {
            BucketUse::Elections | BucketUse::Values => ("", ""),
            BucketUse::Notes => (" for notes, such as past leaderships", " name another with notes=BUCKET,"),
        };
        misconfigured(format!(
            "there is no bucket {name}{what}: create it (nats kv add {name} --history 1, on a cluster with --replicas 3),{another} or have it \
             created with create=yes in the URL",
            name = self.name
        ))
    }

    /// Servers that have only just made a bucket may not find it yet. Whether it is there, its settings tell.
    async fn gone_or_not_ready(&self, limit: Duration) -> StoreError {
        match self.info(limit).await {
            Err(gone) => gone,
            Ok(_) => unavailable("the servers do not find the bucket yet, which is there"),
        }
    }

    pub(crate) async fn judged(&self, written: Result<u64, CallFailure>, limit: Duration) -> Write<u64> {
        let failure = match written {
            Ok(revision) => return Write::Done(revision),
            Err(failure) if failure.is(WRONG_LAST_SEQUENCE) => return Write::Conflict,
            Err(failure) => failure,
        };
        let error = match failure {
            // Between two leaders of the stream, or after its deletion: only the latter is for good.
            CallFailure::NobodyListens => match self.info(limit).await {
                Err(error) if !error.is_retryable() => error,
                _ => CallFailure::NobodyListens.error("write the record"),
            },
            failure if failure.is(STREAM_NOT_FOUND) => self.gone_or_not_ready(limit).await,
            failure => failure.error("write the record"),
        };
        Write::failed(error)
    }
}
