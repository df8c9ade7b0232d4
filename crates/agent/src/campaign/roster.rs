//! Who campaigns, in the order of asking.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::{ReadableFd, random_bits};
use tokio::sync::Notify;

use super::entry::Attached;
use super::{Entry, Pace, Place};
use crate::limits::{CAMPAIGNS_MAX, CLIENT_RETURNS};

pub(crate) struct Roster {
    entries: Mutex<Vec<Arc<Entry>>>,
    /// For whoever gives out leaderships.
    changed: Notify,
    pub(crate) pace: Pace,
}

impl Roster {
    pub(crate) fn new(pace: Pace) -> Roster {
        Roster { entries: Mutex::new(Vec::new()), changed: Notify::new(), pace }
    }

    /// A new campaign; `None` when there are too many.
    pub(crate) fn begin(self: &Arc<Roster>, process: Option<ReadableFd>, heard: Boot) -> Option<Attached> {
        let mut entries = self.entries();
        if entries.len() >= CAMPAIGNS_MAX {
            return None;
        }
        let entry = Arc::new(Entry::new(random_bits(), process, heard));
        entries.push(Arc::clone(&entry));
        drop(entries);
        let attached = Attached::new(entry, Arc::clone(self), heard);
        self.look();
        Some(attached)
    }

    /// The client asks again; `None` when there is no such campaign any more.
    pub(crate) fn again(self: &Arc<Roster>, id: u128, heard: Boot) -> Option<Attached> {
        let attached = Attached::new(self.find(id)?, Arc::clone(self), heard);
        self.look();
        Some(attached)
    }

    /// The client's work has ended, and it campaigns no more. Whether there was such a campaign.
    pub(crate) fn end(&self, id: u128) -> bool {
        let Some(entry) = self.find(id) else { return false };
        self.remove(&entry);
        true
    }

    fn find(&self, id: u128) -> Option<Arc<Entry>> {
        self.entries().iter().find(|entry| entry.id == id).map(Arc::clone)
    }

    pub(super) fn remove(&self, entry: &Arc<Entry>) {
        self.entries().retain(|other| !Arc::ptr_eq(other, entry));
        entry.proceed(Place::Gone);
        self.look();
    }

    /// Forgets clients that wait but have not come back.
    pub(super) fn forget_absent(&self, now: Boot) {
        let patience = CLIENT_RETURNS.max(self.pace.again);
        let absent = |entry: &Arc<Entry>| {
            let since = entry.is_waiting().then(|| entry.is_absent_since()).flatten();
            since.is_some_and(|since| now >= since + patience)
        };
        self.entries().retain(|entry| {
            let absent = absent(entry);
            if absent {
                entry.proceed(Place::Gone);
            }
            !absent
        });
    }

    /// Nobody gives out leaderships any more.
    pub(crate) fn close(&self) {
        for entry in self.entries().drain(..) {
            entry.proceed(Place::Gone);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// The first that waits for an answer.
    pub(super) fn next(&self) -> Option<Arc<Entry>> {
        let mut entries = self.entries().clone().into_iter();
        entries.find(|entry| entry.is_waiting() && entry.is_attached())
    }

    /// Waits for a client that comes, comes back or leaves; at most until somebody has been absent for too long.
    pub(super) async fn changed(&self) {
        let patience: Duration = CLIENT_RETURNS.min(self.pace.again);
        let _ = tokio::time::timeout(patience, self.changed.notified()).await;
    }

    pub(super) fn look(&self) {
        self.changed.notify_one();
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
