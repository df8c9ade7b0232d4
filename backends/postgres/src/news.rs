//! News for whoever drives the elections: one notice of each kind at a time, the latest last.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::{Mutex, PoisonError};

use bellwether_backend::Notice;
use bellwether_core::{ElectionName, Seen, Signal};
use tokio::sync::Notify;

/// What waits is bounded by the number of elections and of kinds: an older notice of the same kind is dropped.
#[derive(Default)]
pub(crate) struct News {
    waiting: Mutex<VecDeque<Notice>>,
    arrived: Notify,
}

impl News {
    /// About every election.
    pub(crate) fn all(&self, signal: Signal) {
        self.put(Notice { election: None, signal });
    }

    /// About one.
    pub(crate) fn changed(&self, on: ElectionName, seen: Seen) {
        self.about(on, Signal::Changed(seen));
    }

    /// About one, of any kind.
    pub(crate) fn about(&self, on: ElectionName, signal: Signal) {
        self.put(Notice { election: Some(on), signal });
    }

    /// What is no longer followed is not told.
    pub(crate) fn forget(&self, on: &ElectionName) {
        self.queue().retain(|notice| notice.election.as_ref() != Some(on));
    }

    pub(crate) async fn next(&self) -> Notice {
        loop {
            if let Some(notice) = self.queue().pop_front() {
                return notice;
            }
            self.arrived.notified().await;
        }
    }

    fn put(&self, notice: Notice) {
        let mut queue = self.queue();
        queue.retain(|old| {
            old.election != notice.election || discriminant(&old.signal) != discriminant(&notice.signal)
        });
        queue.push_back(notice);
        self.arrived.notify_one();
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Notice>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
