//! Becoming present: only where the server finds that nobody else believes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_core::StoreError;

use super::claim::Claim;
use super::pair::Pair;
use crate::Fut;
use crate::session::{Presence, PresenceSession, Session, SessionFailure, WantedPresence};
use crate::session_store::{SessionId, SessionStore};
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
            if self.appear(self.condition(taken)).await.map_err(SessionFailure::error)? {
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

    /// What the presence session has to find, with the lock in hand, before this candidate may lead.
    pub(super) fn condition(&self, taken: Taken) -> Condition {
        let (now, presence) = (self.now(), self.pair.presence());
        taken.condition(now, self.shared.store.stood_since(self.pair.sessions(&presence)))
    }

    /// Becomes present, if that is met.
    pub(super) async fn appear(&self, condition: Condition) -> Result<bool, SessionFailure> {
        let wanted = WantedPresence { key: self.key, condition, if_locked_by: None, ttl: self.bid.ttl };
        let all =
            |wanted: Vec<_>| -> Fut<'_, _> { Box::pin(async move { self.pair.appear_all(&wanted).await }) };
        let alone = async {
            let mut found = self.pair.appear_all(std::slice::from_ref(&wanted)).await?;
            found
                .pop()
                .ok_or_else(|| SessionFailure::Said(self.unavailable("the server answered with nothing")))
        };
        let wait = |span| self.shared.store.pause(span);
        Ok(self.pair.appearances.ask(wanted.clone(), None, wait, all, alone).await?.present)
    }

    /// As [`Claim::appear`], asked while the claim is under way and not yet `answered`: only if the lock is ours by then.
    /// True is an answer; false is none, since the claim may have come after it.
    pub(super) async fn appear_early(&self, answered: &AtomicBool) -> bool {
        for _ in 0..EARLY_LOOKS {
            // As if it were granted now: nobody has waited for anything yet.
            let wanted = WantedPresence {
                key: self.key,
                condition: self.condition(Taken::new(self.now(), self.span())),
                if_locked_by: Some(self.pair.lock.id()),
                ttl: self.bid.ttl,
            };
            let found = self.pair.appear_all(&[wanted]).await;
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
        wanted: &[WantedPresence<S::Key, SessionId<S>>],
    ) -> Result<Vec<Presence>, SessionFailure> {
        let longest = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        self.presence().appear(wanted, self.lease_with(longest)).await
    }
}
