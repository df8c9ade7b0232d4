//! What is kept beside elections: past leaderships, until when an id stays away, and create-once notes.
//!
//! The native profile keeps it in its bucket. The others hold elections in buckets that are not only ours, and no key is added to
//! those: their notes lie in a bucket of Bellwether's own. No leadership depends on that one. Where it is missing, closed to us or silent,
//! elections go on as if there were no notes; only whoever reads or writes past leaderships or create-once notes is told.
//!
//! A create-once note is kept for good, so a bucket that forgets by age is refused for it, by settings that are read anew each time.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{FoundNote, Note, Write};
use bellwether_core::{ElectionName, StoreError};

use crate::bucket::{Bucket, BucketUse};
use crate::bucket_api::Content;
use crate::layout::NoteKey;
use crate::register::BucketStore;

/// How long a claim waits for one answer about a cooldown that lies apart. No leadership may hang on it.
const COOLDOWN_LIMIT: Duration = Duration::from_secs(1);

impl BucketStore {
    fn note(&self, on: &ElectionName, note: &Note) -> (Arc<Bucket>, String) {
        match self.layout.note(on, note) {
            NoteKey::Beside(key) => (self.place(on).0, key),
            NoteKey::Apart(key) => {
                let bucket = self.notes.as_ref().expect("a profile with notes apart has a bucket for them");
                (Arc::clone(bucket), key)
            }
        }
    }

    /// Where the past leaderships of an election lie, and their revision.
    pub(crate) async fn past(
        &self,
        on: &ElectionName,
    ) -> Result<Option<(Arc<Bucket>, String, u64)>, StoreError> {
        let (bucket, key) = self.note(on, &Note::History);
        let found = match bucket.load(&key, self.limit()).await {
            // Where nothing can be read, nothing was written.
            Err(_) if bucket.purpose == BucketUse::Notes => None,
            found => found?,
        };
        Ok(found.map(|(_, revision)| (bucket, key, revision)))
    }

    pub(crate) async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        let (bucket, key) = self.note(on, note);
        if *note == Note::Once {
            let found = bucket.load(&key, self.limit()).await?;
            // Not yet made, it has lost nothing.
            if bucket.is_known() {
                bucket.refuse_forgetting(self.limit()).await?;
            }
            return Ok(found);
        }
        if bucket.purpose == BucketUse::Elections || *note == Note::History {
            return bucket.load(&key, self.limit()).await;
        }
        match bucket.load(&key, COOLDOWN_LIMIT).await {
            // Without a link the claim fails as well, and asks again with the next.
            Err(error) if self.connection.is_up() => {
                tracing::debug!(%error, bucket = bucket.name, "a cooldown cannot be looked up");
                Ok(None)
            }
            found => found,
        }
    }

    pub(crate) async fn write_note(
        &self,
        on: &ElectionName,
        note: &Note,
        at: Option<u64>,
        bytes: &[u8],
    ) -> Result<Write<u64>, StoreError> {
        let (bucket, key) = self.note(on, note);
        let limit = self.limit();
        bucket.make_if_missing(limit).await?;
        if *note == Note::Once {
            bucket.refuse_forgetting(limit).await?;
        }
        Ok(bucket.write(&key, at, Content::Value(bytes.to_vec()), limit).await)
    }
}
