//! From changes of the register to news of elections.

use std::sync::{Arc, PoisonError};

use bellwether_core::{ElectionName, Grant, Incarnation, Request, Signal};
use futures_util::{StreamExt, stream};

use super::keep::meant_for;
use super::{Held, Shared};
use crate::{Change, Notice, Notices, Record, Register, Source};

/// The register's changes and the requests that renewals come across, as one stream.
pub(super) fn signals<R: Register>(shared: &Arc<Shared<R>>) -> Notices {
    let taken = shared.notices_taken.lock().unwrap_or_else(PoisonError::into_inner).take();
    let told = stream::unfold(taken, |receiver| async {
        let mut receiver = receiver?;
        let notice = receiver.recv().await?;
        Some((notice, Some(receiver)))
    });
    let of_changes = Arc::clone(shared);
    let changes = shared.register.changes().filter_map(move |change| {
        let shared = Arc::clone(&of_changes);
        async move { shared.notice(change).await }
    });
    Box::pin(stream::select(told, changes))
}

impl<R: Register> Shared<R> {
    async fn notice(&self, change: Change<R::Version>) -> Option<Notice> {
        let on = match change {
            Change::Doubt => return Some(Notice { election: None, signal: Signal::Doubt }),
            Change::Restored => {
                let now = self.clock.boot();
                self.memory().observations.restart(now);
                return Some(Notice { election: None, signal: Signal::Restored });
            }
            Change::Now(on, found) => {
                let now = self.clock.boot();
                if !self.is_followed(&on) || !self.memory().observations.saw(now, &on, found, Source::Watch) {
                    return None;
                }
                on
            }
            Change::Look(on) => {
                // A look that fails here is no loss: the follower's own timer is the net.
                if !self.is_followed(&on) || self.look(&on).await.is_err() {
                    return None;
                }
                on
            }
        };
        self.tell_requests(&on);
        let seen = self.seen(&on);
        Some(Notice { election: Some(on), signal: Signal::Changed(seen) })
    }

    fn is_followed(&self, on: &ElectionName) -> bool {
        self.memory().followers.contains_key(on)
    }

    /// If the record is held by somebody of this process and asks something, tell them once.
    fn tell_requests(&self, on: &ElectionName) {
        let last = self.memory().observations.last(on).cloned();
        let Some((record, version)) = last else { return };
        let (Some(epoch), Some(holder)) = (record.epoch, &record.holder) else { return };
        let Some(incarnation) = holder.incarnation else { return };
        let key = (on.clone(), incarnation);
        if record.request.is_none() || !self.memory().held.contains_key(&key) {
            return;
        }
        let ttl = record.ttl.unwrap_or_default();
        let counted_from = self.clock.boot();
        let grant = Grant { epoch, incarnation, ttl, counted_from, after_crash: false };
        let told = self.tell_request(on, &grant, &record);
        self.memory().held.insert(key, Held { record, version, told });
    }

    /// Tells the driver of a request, unless it has been told; returns what it has been told.
    pub(super) fn tell_request(&self, on: &ElectionName, grant: &Grant, record: &Record) -> Option<Request> {
        let request = record.request.clone().filter(|request| meant_for(request, grant.epoch))?;
        if self.told(on, grant.incarnation).as_ref() != Some(&request) {
            let notice = Notice { election: Some(on.clone()), signal: Signal::Requested(request.clone()) };
            // A full queue means that nobody drives these elections; then nobody can obey either.
            let _ = self.notices.try_send(notice);
        }
        Some(request)
    }

    fn told(&self, on: &ElectionName, who: Incarnation) -> Option<Request> {
        self.memory().held.get(&(on.clone(), who)).and_then(|held| held.told.clone())
    }
}
