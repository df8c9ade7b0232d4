//! Heartbeats: one statement on each session proves every election of this process.
//!
//! ```text
//!  a heartbeat: left ──▶ both sessions are asked ──▶ both answered
//!  a renewal:   ── asked before it left ── counts from `left`
//!               ── it left before, and is young and newer than what the grant counts from ── counts from `left` too
//!               ── else ── waits for the next
//! ```
//!
//! So elections that were taken at different instants fall into step: whoever is answered by a heartbeat that already left counts
//! from it, its next renewal is due when that of all the others is, and from then on all share one. Safe, because a grant counts
//! from the instant before its heartbeat left, never from when somebody asked. Live, because only one that moves the grant's
//! deadline forward will do, and the next renewal comes that much sooner.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_core::{Boot, Signal, StoreError};

use super::Shared;
use super::pair::Pair;
use crate::lock;
use crate::session::{LockKey, Session};
use crate::session_store::SessionStore;
use crate::takeover::Proven;

/// What one heartbeat showed: what either session holds.
#[derive(Clone)]
pub(super) struct Beat<K> {
    /// The instant before it left.
    pub(super) left: Boot,
    on_lock: Result<Arc<HashSet<K>>, StoreError>,
    on_presence: Result<Arc<HashSet<K>>, StoreError>,
    /// Nothing happened meanwhile that it does not know of.
    fresh: bool,
}

impl<K: LockKey> Beat<K> {
    /// What it proves of one election.
    pub(super) fn proves(&self, key: K) -> Proven {
        let has = |held: &Result<Arc<HashSet<K>>, StoreError>, wanted: K| {
            held.as_ref().ok().map(|held| held.contains(&wanted))
        };
        Proven::by(has(&self.on_lock, key), has(&self.on_presence, key.presence()))
    }

    /// What kept it from being whole, if anything.
    pub(super) fn error(&self) -> Option<StoreError> {
        self.on_lock.as_ref().err().or(self.on_presence.as_ref().err()).cloned()
    }
}

/// The heartbeat under way, and the last one.
pub(super) struct Heartbeats<K> {
    beating: tokio::sync::Mutex<()>,
    state: Mutex<BeatState<K>>,
}

struct BeatState<K> {
    /// When the one under way left; `None` too if nobody may join it any more.
    under_way: Option<Boot>,
    last: Option<Beat<K>>,
}

impl<K> Default for Heartbeats<K> {
    fn default() -> Heartbeats<K> {
        Heartbeats {
            beating: tokio::sync::Mutex::default(),
            state: Mutex::new(BeatState { under_way: None, last: None }),
        }
    }
}

impl<K: LockKey> Heartbeats<K> {
    /// Something happened that the last one, and the one under way, do not know of.
    pub(super) fn forget(&self) {
        let mut state = lock(&self.state);
        state.under_way = None;
        if let Some(last) = &mut state.last {
            last.fresh = false;
        }
    }

    fn last(&self, is_fit: impl FnOnce(&Beat<K>) -> bool) -> Option<Beat<K>> {
        lock(&self.state).last.as_ref().filter(|beat| is_fit(beat)).cloned()
    }
}

impl<S: SessionStore> Shared<S> {
    /// The last heartbeat, or the one under way, if it left no earlier than that and both sessions answered; nothing is asked of the server.
    pub(super) async fn heartbeat_since(&self, pair: &Pair<S>, earliest: Boot) -> Option<Beat<S::Key>> {
        let joins = lock(&pair.heartbeats.state).under_way.is_some_and(|left| left >= earliest);
        if joins {
            drop(pair.heartbeats.beating.lock().await);
        }
        pair.heartbeats.last(|beat| beat.fresh && beat.left >= earliest && beat.error().is_none())
    }

    /// The next heartbeat, shared with everybody who asks before it leaves.
    pub(super) async fn heartbeat(&self, pair: &Pair<S>) -> Beat<S::Key> {
        let asked = self.store.now();
        let _beating = pair.heartbeats.beating.lock().await;
        if let Some(others) = pair.heartbeats.last(|beat| beat.left > asked) {
            return others;
        }
        let left = self.store.now();
        lock(&pair.heartbeats.state).under_way = Some(left);
        let mut beat = self.beat(pair, left).await;
        let mut state = lock(&pair.heartbeats.state);
        beat.fresh = state.under_way.take().is_some();
        state.last = Some(beat.clone());
        beat
    }

    async fn beat(&self, pair: &Pair<S>, left: Boot) -> Beat<S::Key> {
        let presence = pair.presence();
        let ttl = pair.longest_ttl().unwrap_or(Duration::from_secs(1));
        let both = async { tokio::join!(pair.lock.beat(ttl), presence.beat(ttl)) };
        tokio::pin!(both);
        let (on_lock, on_presence) = tokio::select! {
            biased;
            said = &mut both => said,
            () = self.store.pause(ttl / 4) => {
                self.notices.all(Signal::Doubt);
                both.await
            }
        };
        Beat { left, on_lock: on_lock.map(Arc::new), on_presence: on_presence.map(Arc::new), fresh: false }
    }
}
