//! Maintaining the two sessions: their ends are told, the presence session is replaced, what waits and what is doubted is looked at.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bellwether_core::{Seen, Signal};

use super::pair::{ClaimStage, Pair};
use super::{Ear, Shared};
use crate::Fut;
use crate::session::{Session, WantedPresence};
use crate::session_store::SessionStore;
use crate::takeover::Condition;

/// From one look at what waits to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// From one look at what was doubted to the next.
const DOUBTED_EVERY: Duration = Duration::from_millis(100);
/// The longest pause before whoever has a lock and does not lead is looked at again.
const AGAIN_MAX: Duration = Duration::from_secs(2);
/// The ends of both sessions are seen so close to each other when one thing ended both.
const BOTH_WITHIN: Duration = Duration::from_millis(20);
/// From one try to reach the server to the next: doubled up to the second.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Runs until the lock session or the backend ends; after the session, until there is another one.
pub(super) fn maintain<S: SessionStore>(shared: Weak<Shared<S>>, pair: Arc<Pair<S>>) -> Fut<'static, ()> {
    // Boxed, since it opens the next pair, which is maintained in turn.
    Box::pin(maintain_to_the_end(shared, pair))
}

async fn maintain_to_the_end<S: SessionStore>(shared: Weak<Shared<S>>, pair: Arc<Pair<S>>) {
    let Some((store, mut alive)) = parts(&shared) else { return };
    loop {
        let presence = pair.presence();
        let waits = pair.is_waiting();
        tokio::select! {
            biased;
            _ = alive.changed() => return,
            () = pair.lock.over() => break,
            () = presence.over() => {
                // What cuts the one cuts the other, and then the old one is needed, to be ended when the work is over.
                let both = tokio::select! {
                    biased;
                    () = pair.lock.over() => true,
                    () = store.pause(BOTH_WITHIN) => false,
                };
                if both {
                    break;
                }
                let Some(shared) = shared.upgrade() else { return };
                shared.notices.all(Signal::Doubt);
                if shared.replace_presence(&pair).await {
                    shared.notices.all(Signal::Restored);
                } else {
                    store.pause(BACK_OFF.0).await;
                }
            }
            () = store.pause(LOOK_EVERY), if waits => {
                let Some(shared) = shared.upgrade() else { return };
                shared.look_at_waiting(&pair).await;
            }
            () = pair.waits.notified(), if !waits => {}
        }
    }
    let Some(strong) = shared.upgrade() else { return };
    strong.notices.all(Signal::Gone);
    strong.linger(&pair);
    drop((pair, strong));
    let mut pause = BACK_OFF.0;
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let follows = strong.known().follows_any();
        if strong.current().is_some() || (follows && strong.pair().await.is_ok()) {
            strong.notices.all(Signal::Restored);
            return;
        }
        drop(strong);
        tokio::select! {
            biased;
            _ = alive.changed() => return,
            () = store.pause(pause) => pause = (2 * pause).min(BACK_OFF.1),
        }
    }
}

/// Asks the server about what was doubted, until the lock session or the backend ends. Who was found to have a lock and not to lead yet is
/// looked at again, less and less often: nothing tells when it does.
pub(super) async fn look_at_doubted<S: SessionStore>(shared: Weak<Shared<S>>, pair: Arc<Pair<S>>) {
    let Some((store, mut alive)) = parts(&shared) else { return };
    let Some(doubted) = shared.upgrade().map(|shared| Arc::clone(&shared.doubted)) else { return };
    let mut again = None;
    loop {
        tokio::select! {
            biased;
            _ = alive.changed() => return,
            () = pair.lock.over() => return,
            () = doubted.notified() => again = None,
            () = store.pause(again.unwrap_or_default()), if again.is_some() => {}
        }
        let Some(strong) = shared.upgrade() else { return };
        let is_settled = strong.look_at_all_doubted(&pair).await;
        drop(strong);
        again =
            (!is_settled).then(|| again.map_or(DOUBTED_EVERY, |last: Duration| (2 * last).min(AGAIN_MAX)));
        tokio::select! {
            biased;
            _ = alive.changed() => return,
            () = pair.lock.over() => return,
            () = store.pause(DOUBTED_EVERY) => {}
        }
    }
}

fn parts<S: SessionStore>(shared: &Weak<Shared<S>>) -> Option<(Arc<S>, tokio::sync::watch::Receiver<()>)> {
    let shared = shared.upgrade()?;
    Some((Arc::clone(&shared.store), shared.alive.subscribe()))
}

impl<S: SessionStore> Shared<S> {
    async fn replace_presence(self: &Arc<Self>, pair: &Pair<S>) -> bool {
        match self.store.open_presence(&pair.lock, Ear::new(self)).await {
            Ok(new) => {
                pair.replace_presence(new);
                true
            }
            Err(_) => false,
        }
    }

    /// Wakes those whose wait is over early because the presence went, keeps the sessions awake meanwhile, and releases what
    /// no candidate came back for.
    async fn look_at_waiting(&self, pair: &Pair<S>) {
        let now = self.store.now();
        let (mut shortest, mut waiting) = (Duration::MAX, Vec::new());
        for (key, hold) in pair.every() {
            let (Some(until), ttl) = (hold.waits_until(), hold.ttl) else { continue };
            shortest = shortest.min(ttl);
            if now >= until + ttl {
                let _turn = pair.turn(key).await;
                if pair.hold(key).and_then(|hold| hold.waits_until()) == Some(until) {
                    let _ = self.release_lock(pair, key, ttl, None).await;
                }
            } else if let ClaimStage::Waiting(taken) = hold.stage {
                // Only a look: whoever waits asks by itself.
                let look = WantedPresence { key, condition: Condition::NEVER, if_locked_by: None, ttl };
                waiting.push(((key, self.condition(pair, taken)), look));
            }
        }
        let (waiting, looks): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        if !looks.is_empty()
            && let Ok(found) = pair.appear_all(looks).await
        {
            for ((key, condition), found) in waiting.into_iter().zip(found) {
                if condition.is_met(found.others, found.quiet) {
                    self.changed(key, Seen::nothing());
                }
            }
        }
        // By the clock: a look takes as long as its answer, and looks that were counted would let the lock's session fall asleep.
        if self.heartbeat_since(pair, self.store.now() - shortest / 3).await.is_none() {
            let _ = self.heartbeat(pair).await;
        }
    }

    /// False if somebody was found to have a lock and not to lead yet.
    async fn look_at_all_doubted(&self, pair: &Pair<S>) -> bool {
        let doubted = self.known().take_doubted();
        let keys: Vec<S::Key> = doubted.iter().map(|(key, ..)| *key).collect();
        let sessions = pair.sessions();
        // Where it fails the session is over, and everything is found out anew.
        let Ok(found) = sessions.presence.look(&keys).await else { return true };
        let mut is_settled = true;
        for ((key, on, releases), holder) in doubted.into_iter().zip(found) {
            // A release that was told meanwhile is newer than what was found.
            let is_old = || self.known().get(key).is_none_or(|known| known.releases != releases);
            self.doubt_heartbeat(pair, key);
            if is_old() {
                continue;
            }
            self.saw_holder(pair, key, holder.as_ref());
            if holder
                .as_ref()
                .is_some_and(|holder| holder.is_ours && !holder.leads && holder.session != pair.lock.id())
            {
                is_settled = false;
                self.known().doubt(key);
            }
            let seen = self.seen(pair, key, holder.as_ref());
            let session = holder.map(|holder| holder.session);
            let told = self.store.describe(&sessions, &on, session, seen.clone()).await;
            if !is_old() {
                self.changed(key, told.unwrap_or(seen));
            }
        }
        is_settled
    }

    /// News of others about what is led here: the next renewal asks the server, whatever was known before.
    pub(super) fn doubt_heartbeat(&self, pair: &Pair<S>, key: S::Key) {
        if pair.hold(key).is_some() {
            pair.heartbeats.forget();
        }
    }
}
