//! A key of a NATS bucket, replaced only if no later epoch has written.
//!
//! The stamp stands in the message's headers (`Bellwether-Epoch`, `Bellwether-Election`), so that everybody else who reads or watches the
//! bucket sees the plain value. Check and write are one by the revision: the key is read from the stream's leader, never from a replica,
//! and the server takes the write only if the key still has the revision that was read. What the client sends late, after a
//! reconnect, names a revision that is gone.
//!
//! A removal is the usual mark of a deletion with the same headers: readers see a deleted key, and earlier epochs stay refused.
//!
//! # What ends the fence
//!
//! - **A write without the headers** (`nats kv put`) takes the epoch away with the value; the next fenced write fails with
//!   [`Failure::Unstamped`] until a person adopts the key.
//! - **A purge of deletion marks** (`nats kv compact`) or a bucket that is deleted: nothing is left of the epoch.
//! - **A bucket that forgets by age** would do so by itself, and is refused, as are buckets in memory and copies of others.
//! - **On a cluster**, a server that lost its disk, or an acknowledged write that a majority of them lost: as for elections
//!   (GUARANTEES.md).

use std::sync::Arc;

use bellwether_backend::Write;
use bellwether_core::{ElectionName, Epoch, StoreError};
pub use bellwether_nats::{Config, Keys};

use crate::compare_and_set::{Place, Rule, replace};
use crate::fields::{self, ELECTION_HEADER, EPOCH_HEADER};
use crate::rule::{admit, admit_adopting};
use crate::{Failure, FenceError, Found, Stamp, Value};

/// A key that only the latest epoch of one election replaces.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use bellwether_core::{ElectionName, Epoch};
/// use bellwether_fence::nats::{Config, FencedKey, Keys};
///
/// let keys = Arc::new(Keys::new(Config::from_url("nats://127.0.0.1?bucket=settings")?));
/// let routes = FencedKey::new(keys, "routes", ElectionName::new("router")?);
/// let epoch = Epoch::new(7).unwrap(); // leadership.epoch()
/// routes.write(epoch, b"via a").await?;
/// # Ok(())
/// # }
/// ```
pub struct FencedKey {
    keys: Arc<Keys>,
    key: String,
    election: ElectionName,
}

impl FencedKey {
    /// This key, for the leaders of this election. Connects to nothing yet.
    pub fn new(keys: Arc<Keys>, key: impl Into<String>, election: impl Into<ElectionName>) -> FencedKey {
        FencedKey { keys, key: key.into(), election: election.into() }
    }

    /// The value, and who wrote it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(&self) -> Result<Value<Vec<u8>>, FenceError> {
        match self.look().await.map_err(Failure::Store)? {
            (Found::Unreadable(what), ..) => Err(Failure::Unreadable(what).into()),
            (Found::By(stamp), content, _) => Ok(Value { stamp: Some(stamp), content }),
            (Found::Nothing | Found::Unstamped, content, _) => Ok(Value { stamp: None, content }),
        }
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub async fn write(&self, epoch: Epoch, value: &[u8]) -> Result<(), FenceError> {
        self.replace(epoch, admit, |_| Some(value.to_vec())).await.map(drop)
    }

    /// Replaces the value by what `change` makes of it, and returns that. `change` is called again when somebody else was faster.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub async fn update(
        &self,
        epoch: Epoch,
        mut change: impl FnMut(Option<Vec<u8>>) -> Vec<u8>,
    ) -> Result<Vec<u8>, FenceError> {
        Ok(self.replace(epoch, admit, |before| Some(change(before))).await?.unwrap_or_default())
    }

    /// Writes what is there again, under this epoch, and returns it: from now on no earlier epoch writes. Where there is nothing, it
    /// leaves the mark of a deletion.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub async fn raise(&self, epoch: Epoch) -> Result<Option<Vec<u8>>, FenceError> {
        self.replace(epoch, admit, |before| before).await
    }

    /// As [`raise`](FencedKey::raise), also where somebody wrote or deleted the key without an epoch. Nothing tells whether that was
    /// a later epoch's leader by other means, so do this by hand, or once, before any leader writes.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub async fn adopt(&self, epoch: Epoch) -> Result<Option<Vec<u8>>, FenceError> {
        self.replace(epoch, admit_adopting, |before| before).await
    }

    /// Deletes the key. The epoch stays with the mark of the deletion, and refuses earlier ones.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub async fn remove(&self, epoch: Epoch) -> Result<(), FenceError> {
        self.replace(epoch, admit, |_| None).await.map(drop)
    }

    async fn replace(
        &self,
        epoch: Epoch,
        rule: Rule,
        next: impl FnMut(Option<Vec<u8>>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, FenceError> {
        replace(self, &Stamp::new(&self.election, epoch), rule, next).await
    }
}

impl Place for FencedKey {
    type Value = Vec<u8>;
    type Version = u64;

    const BACKEND: &'static str = "nats";

    async fn look(&self) -> Result<(Found, Option<Vec<u8>>, u64), StoreError> {
        let Some(stored) = self.keys.last(&self.key).await? else {
            return Ok((Found::Nothing, None, 0));
        };
        let found = fields::read(stored.headers(EPOCH_HEADER), stored.headers(ELECTION_HEADER));
        let revision = stored.revision();
        Ok((found, stored.into_value(), revision))
    }

    async fn write(&self, at: &u64, stamp: &Stamp, value: Option<Vec<u8>>) -> Write<Option<Vec<u8>>> {
        let (epoch, election) = fields::write(stamp);
        let headers = [(EPOCH_HEADER, epoch.as_str()), (ELECTION_HEADER, election.as_str())];
        self.keys.write(&self.key, *at, &headers, value.as_deref()).await.map(|_| value)
    }
}
