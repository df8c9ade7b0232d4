//! The watch of one bucket: one consumer on the server, whatever the number of elections.
//!
//! ```text
//!  open ──▶ newest record of every key ──▶ changes, heartbeats ──▶ a gap, silence, a new link, other elections ──┐
//!    ▲                                                                                                         │
//!    └─────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A watch that has missed something is thrown away and opened anew, which tells everything again; whoever listens drops what is not newer.
//! Keys of which the newest record does not come are looked at. While nothing changes, nothing is sent to the server: it
//! sends a heartbeat every two seconds, and the lack of two tells that the consumer is gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use bellwether_backend::Change;
use bellwether_core::{ElectionName, ErrorKind, StoreError};
use futures_util::StreamExt;
use tokio::sync::watch;

use crate::bucket::Bucket;
use crate::bucket_api::{self, KeyEntry};
use crate::following::Following;
use crate::layout::Layout;

const HEARTBEAT: Duration = Duration::from_secs(2);
/// Two heartbeats and some.
const SILENCE: Duration = Duration::from_secs(5);
/// Short, since a cluster that has just lost a server may place the consumer there: nobody answers then, and the next is placed anew.
const CALL_LIMIT: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// Without a watch, up to this many elections are read with every try to open one. With more, each is looked at when what was seen
/// of it could have run out, and no earlier.
const LOOKS_MAX: usize = 64;

pub(crate) struct BucketWatch {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) layout: Arc<dyn Layout>,
    pub(crate) following: Arc<Following>,
    pub(crate) changed: watch::Receiver<u64>,
    /// The link that everybody has been told of.
    pub(crate) announced: watch::Receiver<u64>,
    pub(crate) open: Option<Open>,
    pub(crate) failures: u32,
}

/// A consumer that is there.
pub(crate) struct Open {
    messages: Subscriber,
    filter: String,
    link: u64,
    /// The number of the last message.
    delivered: u64,
    /// Keys whose newest record has not come yet.
    missing: BTreeSet<String>,
}

/// What a message was.
enum WatchMessage {
    Record { key: String, entry: KeyEntry, last: bool },
    Nothing,
    Gap,
}

impl BucketWatch {
    /// The next change; `None` when nobody follows anything here any more.
    pub(crate) async fn next(&mut self) -> Option<Change<u64>> {
        loop {
            self.changed.borrow_and_update();
            let link = *self.announced.borrow_and_update();
            let filter = self.following.filter(&self.bucket.name, self.layout.leases())?;
            let Some(open) = self.open.as_mut().filter(|open| open.filter == filter && open.link == link)
            else {
                self.close();
                if let Err(error) = self.begin(filter).await {
                    self.failures = self.failures.saturating_add(1);
                    self.failed(&error);
                    let delay =
                        Duration::from_millis(50).saturating_mul(1 << self.failures.min(10)).min(RETRY_MAX);
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        _ = self.changed.changed() => {}
                        _ = self.announced.changed() => {}
                    }
                }
                continue;
            };
            let heard = tokio::select! {
                message = open.messages.next() => message.map_or(WatchMessage::Gap, |message| open.hear(message, &self.bucket.name)),
                () = tokio::time::sleep(SILENCE) => WatchMessage::Gap,
                _ = self.changed.changed() => continue,
                _ = self.announced.changed() => continue,
            };
            match heard {
                WatchMessage::Nothing => {}
                WatchMessage::Gap => self.close(),
                WatchMessage::Record { key, entry, last } => {
                    open.missing.remove(&key);
                    if last {
                        let missing = std::mem::take(&mut open.missing);
                        self.look(missing);
                    }
                    if let Some(on) = self.following.election(&self.bucket.name, &key) {
                        return Some(self.change(on, &key, entry));
                    }
                }
            }
        }
    }

    /// Servers that are away come back; a right that is missing, or a limit that is reached, is for somebody to see to.
    fn failed(&self, error: &StoreError) {
        let bucket = &self.bucket.name;
        if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut) || !self.bucket.is_known() {
            tracing::debug!(bucket, %error, "the bucket cannot be watched; trying again");
            return;
        }
        if self.following.refused(bucket, error) {
            tracing::warn!(bucket, %error, "changes are not announced, so candidates here take over late");
        }
        let keys = self.following.keys(bucket);
        if keys.len() <= LOOKS_MAX {
            self.look(keys);
        }
    }

    async fn begin(&mut self, filter: String) -> Result<(), StoreError> {
        let client = self.bucket.connection.client().await?;
        // Who listens must hear that the link is back before what comes over it.
        let times = self.bucket.connection.link().borrow().times;
        let link = *self
            .announced
            .wait_for(|announced| *announced >= times)
            .await
            .map_err(|_| crate::errors::unavailable("nobody listens to the watch any more"))?;
        // Somebody may have changed the bucket's settings, or put another in its place.
        self.bucket.info(CALL_LIMIT).await?;
        let inbox = client.new_inbox();
        let failed = |error| crate::errors::unavailable("cannot subscribe").caused_by(error);
        let messages = client.subscribe(inbox.clone()).await.map_err(failed)?;
        let pending = self.bucket.api(CALL_LIMIT).watch(&filter, &inbox, HEARTBEAT).await;
        let pending = pending.map_err(|failure| failure.error("watch the bucket"))?;
        let mut missing = self.following.opened(&self.bucket.name);
        if pending == 0 {
            self.look(std::mem::take(&mut missing));
        }
        self.failures = 0;
        self.open = Some(Open { messages, filter, link, delivered: 0, missing });
        Ok(())
    }

    fn close(&mut self) {
        self.open = None;
        self.following.closed(&self.bucket.name);
    }

    fn look(&self, keys: BTreeSet<String>) {
        for on in keys.iter().filter_map(|key| self.following.election(&self.bucket.name, key)) {
            self.following.mail.put(on);
        }
    }

    fn change(&self, on: ElectionName, key: &str, entry: KeyEntry) -> Change<u64> {
        self.bucket.note(key, Some(&entry));
        match self.bucket.found(&*self.layout, &on, entry) {
            Ok(found) => Change::Now(on, found),
            // Another election's: whoever looks gets the sentence.
            Err(_) => Change::Look(on),
        }
    }
}

impl Open {
    fn hear(&mut self, message: Message, bucket: &str) -> WatchMessage {
        if let Some(status) = message.status {
            let last = message.headers.as_ref().and_then(|headers| headers.get("Nats-Last-Consumer"));
            let last = last.and_then(|last| last.as_str().parse::<u64>().ok());
            let idle = status == 100_u16 && last.is_none_or(|last| last == self.delivered);
            return if idle { WatchMessage::Nothing } else { WatchMessage::Gap };
        }
        let Some(place) = message.reply.as_deref().and_then(MessagePosition::of) else {
            return WatchMessage::Gap;
        };
        if place.delivered != self.delivered + 1 {
            return WatchMessage::Gap;
        }
        self.delivered = place.delivered;
        let prefix = bucket_api::subject(bucket, "");
        let Some(key) = message.subject.as_str().strip_prefix(&prefix) else { return WatchMessage::Nothing };
        let content = bucket_api::content(message.headers.as_ref(), &message.payload);
        let entry = KeyEntry { revision: place.revision, content };
        WatchMessage::Record { key: key.to_owned(), entry, last: place.pending == 0 }
    }
}

/// Where a message stands, from the subject that it could be acknowledged on.
#[derive(Debug, PartialEq, Eq)]
struct MessagePosition {
    revision: u64,
    delivered: u64,
    pending: u64,
}

impl MessagePosition {
    /// `$JS.ACK.<stream>.<consumer>.<times>.<revision>.<number>.<time>.<pending>`, newer servers with `<domain>.<account>` before the
    /// stream and more at the end.
    fn of(reply: &str) -> Option<MessagePosition> {
        let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
        let first = if tokens.len() == 7 { 3 } else { 5 };
        let number = |at: usize| tokens.get(at)?.parse().ok();
        Some(MessagePosition {
            revision: number(first)?,
            delivered: number(first + 1)?,
            pending: number(first + 3)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_message_s_place_are_read() {
        let place = Some(MessagePosition { revision: 17, delivered: 4, pending: 2 });
        assert_eq!(MessagePosition::of("$JS.ACK.KV_b.c.1.17.4.1700000000.2"), place);
        assert_eq!(MessagePosition::of("$JS.ACK._.hash.KV_b.c.1.17.4.1700000000.2"), place);
        assert_eq!(MessagePosition::of("$JS.ACK._.hash.KV_b.c.1.17.4.1700000000.2.rnd"), place);
        assert_eq!(MessagePosition::of("_INBOX.x"), None);
        assert_eq!(MessagePosition::of("$JS.ACK.KV_b.c.1.x.4.1.2"), None);
    }
}
