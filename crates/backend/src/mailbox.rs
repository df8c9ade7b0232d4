//! News that can wait without piling up.

use std::collections::BTreeSet;
use std::sync::Mutex;

use bellwether_core::ElectionName;
use tokio::sync::Notify;

use crate::lock;

/// Names of elections that somebody should look at.
///
/// However often a name is put in before it is taken out, it waits once: what waits is bounded by the number of
/// elections, and a slow reader gets the latest instead of a backlog.
#[derive(Debug, Default)]
pub struct Mailbox {
    waiting: Mutex<BTreeSet<ElectionName>>,
    arrived: Notify,
}

impl Mailbox {
    /// Something changed about this election.
    pub fn put(&self, on: ElectionName) {
        lock(&self.waiting).insert(on);
        self.arrived.notify_one();
    }

    /// The next election to look at, when there is one.
    pub async fn take(&self) -> ElectionName {
        loop {
            if let Some(on) = lock(&self.waiting).pop_first() {
                return on;
            }
            // A permit is kept if something arrives between the look and the wait.
            self.arrived.notified().await;
        }
    }
}
