//! A watch: one request whose answer goes on for minutes and tells of changes.
//!
//! ```text
//!  open at a version ──▶ changes, bookmarks ──▶ the server ends it, as it should ──▶ open at the last version that was told
//!      ▲  ▲                   │
//!      │  └── 410: too old ◀──┤
//!      └── an outage ◀────────┘ an error, silence, nobody there
//! ```
//!
//! A watch begins at the oldest version that calls have met of what it tells of. Where there is none, or that is too old, it begins with
//! what the server has at hand, and everything that is followed is read once. Later it goes on where it was. That the server ends a watch is nothing special, and changes nothing in what is known. Whoever
//! listens is told of an outage only when the next watch cannot be opened at once, when the version to go on from is gone, or
//! when the watch kept silent about a version that a call has met.
//!
//! While nothing changes, nothing is sent to the server; it sends a bookmark about once a minute.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Change, Found};
use bellwether_core::{Boot, ElectionName, ErrorKind, StoreError};
use futures_util::StreamExt;
use kube::core::WatchEvent;
use tokio::sync::watch;

use crate::api::LeaseEvents;
use crate::errors::{BACKEND, CallFailure};
use crate::following::Scope;
use crate::lease_object::{LeaseObject, LeaseVersion, number};
use crate::register::LeaseStore;

/// Watches last up to this many seconds longer than they have to, so that not all end at once.
const SPREAD: u64 = 30;
/// What the server may be late by.
const LATE: Duration = Duration::from_secs(10);
/// How often a quiet watch is held against what calls have met.
const INTERVAL: Duration = Duration::from_secs(5);
/// For the server to begin.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// A watch that goes on within this time has missed nothing but what it is told then.
const PAUSE_MAX: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// For a right that is missing: somebody has to grant it first.
const REFUSED_RETRY: Duration = Duration::from_secs(10);
const GONE: u16 = 410;

pub(crate) struct LeaseWatch {
    scope: Scope,
    store: Arc<LeaseStore>,
    changed: watch::Receiver<u64>,
    state: State,
    /// The version to go on from; 0 for what the server has at hand.
    at: u64,
    /// Whether it was ever open: before that, nothing that was told can be in doubt.
    has_opened: bool,
    /// Whether everybody has been told that there is an outage.
    outage: bool,
    failures: u32,
}

enum State {
    /// Since then.
    Closed(Boot),
    Open(Open),
}

struct Open {
    events: LeaseEvents,
    ends: Boot,
    /// At the last look, calls had met what this had not told; nothing came since.
    is_behind: bool,
}

/// What came of waiting for the watch.
#[expect(clippy::large_enum_variant, reason = "made once and moved once")]
enum Heard {
    Event(WatchEvent<LeaseObject>),
    /// The server ended it.
    End,
    Failed(StoreError),
    /// The version is too old.
    Gone,
    Nothing,
}

impl LeaseWatch {
    pub(crate) fn new(scope: Scope, store: Arc<LeaseStore>) -> LeaseWatch {
        let changed = store.following.changed();
        let state = State::Closed(store.clock.boot());
        LeaseWatch { scope, store, changed, state, at: 0, has_opened: false, outage: false, failures: 0 }
    }

    /// The next change; `None` when this watch is no longer wanted.
    pub(crate) async fn next(&mut self) -> Option<Change<LeaseVersion>> {
        loop {
            self.changed.borrow_and_update();
            if !self.store.following.is_wanted(&self.scope) {
                return None;
            }
            let change = match &mut self.state {
                State::Closed(since) => {
                    let since = *since;
                    self.open(since).await
                }
                State::Open(open) => {
                    let heard = tokio::select! {
                        event = open.events.next() => heard(event),
                        () = tokio::time::sleep(INTERVAL) => {
                            open.silence(self.store.clock.boot(), self.store.following.is_behind(&self.scope))
                        }
                        _ = self.changed.changed() => Heard::Nothing,
                    };
                    self.hear(heard)
                }
            };
            if change.is_some() {
                return change;
            }
        }
    }

    async fn open(&mut self, since: Boot) -> Option<Change<LeaseVersion>> {
        if !self.has_opened && self.failures == 0 {
            self.at = self.store.following.oldest_met(&self.scope);
        }
        match self.request().await {
            Ok(events) => {
                let now = self.store.clock.boot();
                let first = self.at == 0;
                self.state = State::Open(Open { events, ends: now + self.lasts() + LATE, is_behind: false });
                (self.failures, self.has_opened) = (0, true);
                self.store.following.opened(&self.scope);
                if first {
                    self.store.following.look_at(&self.scope);
                }
                let restored = self.outage || (!first && now.since(since) > PAUSE_MAX);
                self.outage = false;
                restored.then_some(Change::Restored)
            }
            Err(failure) => {
                let is_gone = failure.is(GONE);
                let error = failure.error("watch Leases");
                if is_gone {
                    return self.gone();
                }
                self.failed(&error).await
            }
        }
    }

    /// The future owns all that it needs: what a watch has open cannot be shared between threads.
    fn request(&self) -> impl Future<Output = Result<LeaseEvents, CallFailure>> + use<> {
        let only = match &self.scope {
            Scope::Namespace => String::new(),
            Scope::Lease(name) => format!("&fieldSelector=metadata.name%3D{name}"),
        };
        let (store, at, lasts) = (Arc::clone(&self.store), self.at, self.lasts().as_secs());
        // With an etcd before 3.4.25 the server has no bookmarks for a watch that begins with what is at hand.
        let bookmarks = at > 0;
        async move {
            let path = store.api.leases_path().await.map_err(CallFailure::NoAnswer)?;
            let query = format!(
                "watch=true&allowWatchBookmarks={bookmarks}&resourceVersion={at}&timeoutSeconds={lasts}{only}"
            );
            store.api.watch(&format!("{path}?{query}"), OPEN_LIMIT).await
        }
    }

    /// Another length every time, without a source of chance.
    fn lasts(&self) -> Duration {
        let least = self.store.api.config().watch.as_secs();
        Duration::from_secs(least + self.at % SPREAD.min(least))
    }

    fn hear(&mut self, heard: Heard) -> Option<Change<LeaseVersion>> {
        match heard {
            Heard::Nothing => None,
            Heard::End => {
                self.close();
                None
            }
            Heard::Gone => self.gone(),
            Heard::Failed(error) => {
                tracing::debug!(%error, scope = ?self.scope, "a watch of Leases broke; opening another");
                self.close();
                self.doubt()
            }
            Heard::Event(event) => {
                if let State::Open(open) = &mut self.state {
                    open.is_behind = false;
                }
                self.event(event)
            }
        }
    }

    fn event(&mut self, event: WatchEvent<LeaseObject>) -> Option<Change<LeaseVersion>> {
        let (object, is_there) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(mark) => {
                self.at = self.at.max(number(&mark.metadata.resource_version).unwrap_or(0));
                return None;
            }
            WatchEvent::Error(status) if status.code == GONE => return self.gone(),
            WatchEvent::Error(status) => {
                let failure = CallFailure::Answered(status);
                return self.hear(Heard::Failed(failure.error("watch Leases")));
            }
        };
        let version = number(&object.metadata.resource_version).unwrap_or(0);
        self.at = self.at.max(version);
        let name = object.metadata.name.clone();
        self.store.following.told(&name, version);
        let on = self.store.following.election(&name)?;
        if !is_there {
            return Some(Change::Now(on, None));
        }
        Some(match found(&on, object) {
            Ok(found) => {
                let one_copy = |(record, version)| (record, self.store.following.copy_of(&name, version));
                Change::Now(on, found.map(one_copy))
            }
            // Another election's: whoever looks gets the sentence.
            Err(_) => Change::Look(on),
        })
    }

    /// Nobody can say what happened between the last version and now.
    fn gone(&mut self) -> Option<Change<LeaseVersion>> {
        self.at = 0;
        self.failures = self.failures.saturating_add(1);
        self.close();
        self.doubt()
    }

    async fn failed(&mut self, error: &StoreError) -> Option<Change<LeaseVersion>> {
        self.failures = self.failures.saturating_add(1);
        let is_refused = !error.is_retryable();
        if is_refused && self.store.following.refused(&self.scope, error) {
            match self.scope {
                Scope::Namespace => {
                    tracing::debug!(%error, "the namespace cannot be watched; watching each Lease")
                }
                Scope::Lease(_) => {
                    tracing::warn!(%error, "changes are not announced, so candidates here take over late");
                }
            }
        }
        if is_refused {
            self.store.following.look_at(&self.scope);
        } else if let Some(doubt) = self.doubt() {
            return Some(doubt);
        }
        let delay = Duration::from_millis(50).saturating_mul(1 << self.failures.min(10)).min(RETRY_MAX);
        let delay = if is_refused && self.scope != Scope::Namespace { REFUSED_RETRY } else { delay };
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = self.changed.changed() => {}
        }
        None
    }

    fn close(&mut self) {
        self.store.following.closed(&self.scope);
        self.state = State::Closed(self.store.clock.boot());
    }

    /// Told once for each outage; before anything was ever heard, there is nothing to doubt.
    fn doubt(&mut self) -> Option<Change<LeaseVersion>> {
        let news = self.has_opened && !self.outage;
        self.outage |= self.has_opened;
        news.then_some(Change::Doubt)
    }
}

impl Open {
    /// A watch that says nothing of what calls have met, or that outlives its time, is dead.
    fn silence(&mut self, now: Boot, is_behind: bool) -> Heard {
        let was_behind = std::mem::replace(&mut self.is_behind, is_behind);
        if now > self.ends || (was_behind && is_behind) {
            let sentence = "the watch keeps silent about changes";
            return Heard::Failed(StoreError::new(ErrorKind::TimedOut, BACKEND, sentence));
        }
        Heard::Nothing
    }
}

fn heard(event: Option<Result<WatchEvent<LeaseObject>, CallFailure>>) -> Heard {
    match event {
        None => Heard::End,
        Some(Ok(event)) => Heard::Event(event),
        Some(Err(failure)) if failure.is(GONE) => Heard::Gone,
        Some(Err(failure)) => Heard::Failed(failure.error("watch Leases")),
    }
}

/// What a Lease is to the election that is held on it.
pub(crate) fn found(on: &ElectionName, object: LeaseObject) -> Result<Found<LeaseVersion>, StoreError> {
    object.check_election(on)?;
    let record = object.record();
    Ok(Some((record, LeaseVersion::of(object)?)))
}
