//! Keys of a bucket that belong to the program and not to an election: read from the stream's leader, written at the revision read.
//!
//! Owns nothing but the bucket's name. The calls, their bounds and what answers mean are those of elections. Whoever reads the bucket
//! by other means sees plain values, and plain deletions; headers stand beside them.
//!
//! A bucket that forgets values by age is refused, because what a header says about a value must last as long as its effect.

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use bellwether_backend::Write;
use bellwether_core::{StoreError, duration};

use crate::bucket::{Bucket, BucketUse};
use crate::bucket_api::OPERATION;
use crate::config::Config;
use crate::connection::NatsConnection;
use crate::errors::{STREAM_NOT_FOUND, invalid, misconfigured};
use crate::key_message::KeyMessage;

/// Longer than a stream takes to find a new leader, and short enough for a caller that has a lease to mind.
const LIMIT: Duration = Duration::from_secs(5);

/// The keys of one bucket.
pub struct Keys {
    bucket: Bucket,
    limit: Duration,
}

/// A key's newest message: a value, or the mark of a deletion.
pub struct StoredKey {
    message: KeyMessage,
}

impl StoredKey {
    /// What a write that replaces it must name.
    pub fn revision(&self) -> u64 {
        self.message.revision
    }

    /// The values of this header, in their order.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.message.headers(name)
    }

    /// The value; `None` where it was deleted.
    pub fn into_value(self) -> Option<Vec<u8>> {
        if self.message.is_mark() { None } else { Some(self.message.payload) }
    }
}

impl Keys {
    /// Those of the bucket that a URL names, on a connection of their own; see [`Config`]. Connects with the first call.
    pub fn new(config: Config) -> Keys {
        let bucket = config.bucket().to_owned();
        Keys::on(Arc::new(NatsConnection::new(config)), bucket)
    }

    pub(crate) fn on(connection: Arc<NatsConnection>, bucket: String) -> Keys {
        Keys { bucket: Bucket::new(bucket, BucketUse::Values, connection), limit: LIMIT }
    }

    /// The same with another bound for each call than 5 s.
    #[must_use]
    pub fn within(self, limit: Duration) -> Keys {
        Keys { limit, ..self }
    }

    /// The newest message of a key, by the stream's leader and never by a replica.
    ///
    /// # Errors
    /// When it cannot be read, or the bucket is unfit.
    pub async fn last(&self, key: &str) -> Result<Option<StoredKey>, StoreError> {
        check(key)?;
        self.look_at_bucket().await?;
        match self.bucket.api(self.limit).last_message(key).await {
            Ok(message) => Ok(message.map(|message| StoredKey { message })),
            Err(failure) if failure.is(STREAM_NOT_FOUND) => Err(match self.bucket.info(self.limit).await {
                Err(gone) => gone,
                Ok(_) => failure.error("read the key"),
            }),
            Err(failure) => Err(failure.error("read the key")),
        }
    }

    /// Writes a value, or the mark of a deletion, if the key's newest message has this revision; 0 if there is none.
    pub async fn write(
        &self,
        key: &str,
        expected: u64,
        headers: &[(&str, &str)],
        value: Option<&[u8]>,
    ) -> Write<u64> {
        let fit = match check(key) {
            Ok(()) => self.look_at_bucket().await,
            Err(error) => Err(error),
        };
        if let Err(error) = fit {
            return Write::failed(error);
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        if value.is_none() {
            map.insert(OPERATION, "DEL");
        }
        let value = value.unwrap_or_default().to_vec();
        let written = self.bucket.api(self.limit).publish(key, expected, map, value).await;
        self.bucket.judged(written, self.limit).await
    }

    /// Reads and judges the settings, once for as long as the bucket is there.
    async fn look_at_bucket(&self) -> Result<(), StoreError> {
        if !self.bucket.is_known() {
            self.bucket.info(self.limit).await?;
        }
        let Some(age) = self.bucket.max_age() else { return Ok(()) };
        // Read again by the next call, for whoever mends it.
        self.bucket.forget_settings();
        Err(misconfigured(format!(
            "the bucket {} forgets values after {}, and what is known about them: set its max age to 0",
            self.bucket.name,
            duration::print(age),
        )))
    }
}

/// What may be a key, so that none becomes a wildcard or another subject.
fn check(key: &str) -> Result<(), StoreError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-/_=.".contains(letter);
    let dots = key.starts_with('.') || key.ends_with('.') || key.contains("..");
    if key.is_empty() || dots || !key.chars().all(fits) {
        let sentence =
            format!("{key:?} cannot be a key: use letters, digits, -, /, _, = and single dots inside");
        return Err(invalid(sentence));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_one_key_is_a_key() {
        for good in ["routes", "a.b/c_d-e=F9"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "*", "a.>", "a b", ".a", "a.", "a..b", "é", "a\nb"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
