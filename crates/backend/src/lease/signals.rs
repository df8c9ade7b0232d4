//! From changes of the register to news of elections.
//!
//! What the register says is heard as soon as it says it: that the connection is back must be known before anything
//! is judged by what came over it, and so must never queue behind a read that hangs. Reads that the register asks for
//! run beside it, one an election, so that a slow one holds nobody else's news up either.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bellwether_core::{ElectionName, Grant, Incarnation, Request, Signal};
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::mpsc;

use super::renew::meant_for;
use super::{Held, REQUESTS_WAITING_MAX, Shared};
use crate::{Change, Changes, Fut, Notice, Notices, Record, Register, Source, lock};

/// Reads that may be under way at once: enough to keep a connection busy, few enough not to swamp a store that
/// announces ten thousand elections in one go.
pub(super) const LOOKS_MAX: usize = 64;

/// The register's changes and the requests that renewals come across, as one stream.
pub(super) fn signals<R: Register>(shared: &Arc<Shared<R>>) -> Notices {
    let (notices, taken) = mpsc::channel(REQUESTS_WAITING_MAX);
    *lock(&shared.notices) = notices;
    let told = stream::unfold(taken, |mut taken| async {
        let notice = taken.recv().await?;
        Some((notice, taken))
    });
    let news = SignalStream {
        shared: Arc::clone(shared),
        changes: Some(shared.register.changes()),
        wanted: BTreeSet::new(),
        under_way: BTreeSet::new(),
        looks: FuturesUnordered::new(),
    };
    Box::pin(stream::select(told, news))
}

struct SignalStream<R: Register> {
    shared: Arc<Shared<R>>,
    /// `None` when the register has said its last.
    changes: Option<Changes<R::Version>>,
    /// Elections to be read. A change that comes while a read is under way may be newer than what that finds, so
    /// it asks for another.
    wanted: BTreeSet<ElectionName>,
    under_way: BTreeSet<ElectionName>,
    looks: FuturesUnordered<Fut<'static, (ElectionName, bool)>>,
}

impl<R: Register> Stream for SignalStream<R> {
    type Item = Notice;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice>> {
        let this = self.get_mut();
        while let Some(changes) = &mut this.changes {
            match changes.poll_next_unpin(context) {
                Poll::Ready(Some(change)) => {
                    if let Some(notice) = this.hear(change) {
                        return Poll::Ready(Some(notice));
                    }
                }
                Poll::Ready(None) => this.changes = None,
                Poll::Pending => break,
            }
        }
        loop {
            this.begin_looks();
            match this.looks.poll_next_unpin(context) {
                Poll::Ready(Some((on, found))) => {
                    this.under_way.remove(&on);
                    // A look that fails is no loss: the follower's own timer is the net.
                    if found {
                        return Poll::Ready(Some(this.shared.changed(on)));
                    }
                }
                Poll::Ready(None) if this.changes.is_none() => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<R: Register> SignalStream<R> {
    fn hear(&mut self, change: Change<R::Version>) -> Option<Notice> {
        let shared = &self.shared;
        match change {
            Change::Doubt => {
                shared.memory().observations.doubt();
                Some(Notice { election: None, signal: Signal::Doubt })
            }
            Change::Restored => {
                let now = shared.clock.boot();
                let mut memory = shared.memory();
                memory.observations.restart(now);
                // A store that fell back counts up again, and what is at a version that was read before may be another's: whoever
                // holds something reads it again before it writes.
                memory.held.clear();
                drop(memory);
                Some(Notice { election: None, signal: Signal::Restored })
            }
            Change::Look(on) => {
                if shared.is_followed(&on) {
                    self.wanted.insert(on);
                }
                None
            }
            Change::Now(on, found) => {
                if found.is_none() && shared.is_followed(&on) {
                    // Nothing has no version, and old news of it looks like new: a read makes it certain.
                    self.wanted.insert(on.clone());
                }
                let now = shared.clock.boot();
                let news = shared.is_followed(&on) && {
                    let mut memory = shared.memory();
                    let found = memory.recognise(&on, found);
                    memory.observations.saw(now, &on, found, Source::Watch)
                };
                news.then(|| shared.changed(on))
            }
        }
    }

    fn begin_looks(&mut self) {
        while self.looks.len() < LOOKS_MAX {
            let Some(on) = self.wanted.difference(&self.under_way).next().cloned() else { return };
            self.wanted.remove(&on);
            self.under_way.insert(on.clone());
            let shared = Arc::clone(&self.shared);
            self.looks.push(Box::pin(async move {
                let found = shared.is_followed(&on) && shared.look(&on).await.is_ok();
                (on, found)
            }));
        }
    }
}

impl<R: Register> Shared<R> {
    fn changed(&self, on: ElectionName) -> Notice {
        self.tell_requests(&on);
        let seen = self.seen(&on);
        Notice { election: Some(on), signal: Signal::Changed(seen) }
    }

    /// What this process wrote itself is no news to its watch. The one that wrote knows it; other candidates of the process are told here.
    pub(super) fn tell_siblings(&self, on: &ElectionName) {
        let has_siblings = self.memory().followers.get(on).is_some_and(|count| *count > 1);
        if has_siblings {
            let notice = Notice { election: Some(on.clone()), signal: Signal::Changed(self.seen(on)) };
            let _ = lock(&self.notices).try_send(notice);
        }
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
            let _ = lock(&self.notices).try_send(notice);
        }
        Some(request)
    }

    fn told(&self, on: &ElectionName, who: Incarnation) -> Option<Request> {
        self.memory().held.get(&(on.clone(), who)).and_then(|held| held.told.clone())
    }
}
