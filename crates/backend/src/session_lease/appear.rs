//! Becoming present: only where the server finds that nobody else believes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_core::StoreError;

use super::Shared;
use super::claim::Claim;
use super::pair::Pair;
use crate::session::{Presence, Session, SessionFailure, WantedPresence};
use crate::session_store::{SessionId, SessionStore, WantedLockOf};
use crate::takeover::{Condition, Taken};

/// How long a claim looks out for a presence that is just going: of a process that was killed, both sessions end, one
/// a moment after the other.
const JUST_GOING: Duration = Duration::from_millis(60);

/// How often presence is asked for while a claim is being made durable. The first is usually too early by a few microseconds.
const EARLY_LOOKS: usize = 3;

impl<S: SessionStore> Claim<'_, S> {
    /// Waits a moment for a presence that is just going.
    pub(super) async fn judge(&self, taken: Taken) -> Result<bool, StoreError> {
        let longest = JUST_GOING.min(self.bid.ttl / 10);
        let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(1));
        loop {
            if self.appear(self.shared.condition(self.pair, taken)).await.map_err(SessionFailure::error)? {
                return Ok(true);
            }
            if waited >= longest {
                return Ok(false);
            }
            self.shared.store.pause(pause).await;
            waited += pause;
            pause *= 2;
        }
    }

    /// Becomes present, if that is met.
    pub(super) async fn appear(&self, condition: Condition) -> Result<bool, SessionFailure> {
        let wanted = WantedPresence { key: self.key, condition, if_locked_by: None, ttl: self.bid.ttl };
        let (wait, call) = (|span| self.shared.store.pause(span), |all| self.pair.appear_all(all));
        Ok(self.pair.appearances.ask(wanted, None, wait, call).await?.present)
    }
}

impl<S: SessionStore> Shared<S> {
    /// What the presence session has to find, with the lock in hand, before a candidate may lead.
    pub(super) fn condition(&self, pair: &Pair<S>, taken: Taken) -> Condition {
        let now = self.store.now();
        taken.condition(now, self.store.stood_since(&pair.sessions()))
    }

    /// Becomes present while the claim of that lock is under way and not yet `answered`: only if the lock is ours by then.
    /// True is an answer; false is none, since the claim may have come after it.
    pub(super) async fn appear_early(
        &self,
        pair: &Pair<S>,
        claimed: &WantedLockOf<S>,
        answered: &AtomicBool,
    ) -> bool {
        for _ in 0..EARLY_LOOKS {
            // As if it were granted now: nobody has waited for anything yet.
            let wanted = WantedPresence {
                key: claimed.key,
                condition: self.condition(pair, Taken::new(self.store.now(), self.span(claimed))),
                if_locked_by: Some(pair.lock.id()),
                ttl: claimed.ttl,
            };
            let found = pair.appear_all(vec![wanted]).await;
            if found.is_ok_and(|found| found.iter().any(|found| found.present)) {
                return true;
            }
            if answered.load(Ordering::Relaxed) {
                break;
            }
        }
        false
    }
}

impl<S: SessionStore> Pair<S> {
    pub(super) async fn appear_all(
        &self,
        wanted: Vec<WantedPresence<S::Key, SessionId<S>>>,
    ) -> Result<Vec<Presence>, SessionFailure> {
        let longest = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        self.presence().appear(&wanted, self.lease_with(longest)).await
    }
}
