//! Renewals, each answered by a heartbeat of all elections.

use std::time::Duration;

use bellwether_core::{Boot, ElectionName, ErrorKind, Grant, Outcome, Seen, StoreError};

use super::Shared;
use super::heartbeat::Beat;
use super::pair::Pair;
use crate::session::{Session, WantedPresence};
use crate::session_store::SessionStore;
use crate::takeover::{Condition, Proven};

/// How much of its ttl a heartbeat may be old and still answer a renewal. Half of a renewal interval: of two groups of elections that
/// renew at different instants one is always followed by the other within that, so all end in one group.
const YOUNG: u32 = 6;

impl<S: SessionStore> Shared<S> {
    pub(super) async fn renew(&self, on: &ElectionName, grant: &Grant, sent: Boot) -> Outcome<Grant> {
        // Where the session is over, so is every grant of it.
        let (Some(pair), Ok(key)) = (self.current(), self.store.key(on)) else {
            return Outcome::Denied(Seen::nothing());
        };
        if !pair.is_led(key, grant) {
            return Outcome::Denied(Seen::nothing());
        }
        let beat = match self.young_heartbeat(&pair, key, grant, sent).await {
            Some(beat) => beat,
            None => {
                let beat = self.heartbeat(&pair).await;
                let absent = beat.proves(key) == Proven::Absent;
                if absent && self.appear_again(&pair, key, grant).await {
                    self.heartbeat(&pair).await
                } else {
                    beat
                }
            }
        };
        // Looked up again: it may have been released meanwhile.
        if !pair.is_led(key, grant) {
            return Outcome::Denied(Seen::nothing());
        }
        let unknown = |sentence: &str| {
            let error = || StoreError::new(ErrorKind::Unavailable, self.store.name(), sentence);
            Outcome::Unknown(beat.error().unwrap_or_else(error))
        };
        match beat.proves(key) {
            Proven::Held => {
                pair.renewed(key, beat.left);
                Outcome::Done(Grant { counted_from: beat.left, ..grant.clone() })
            }
            Proven::Lost => {
                pair.remove(key);
                Outcome::Denied(Seen::nothing())
            }
            Proven::Absent => unknown("the second session was replaced, and is not present yet"),
            Proven::Nothing => unknown("not both sessions answered"),
        }
    }

    /// A heartbeat that others waited for, if it proves this grant and brings it further. One that left before the claim did says nothing
    /// of it.
    async fn young_heartbeat(
        &self,
        pair: &Pair<S>,
        key: S::Key,
        grant: &Grant,
        sent: Boot,
    ) -> Option<Beat<S::Key>> {
        let last = grant.counted_from.max(pair.last_renewed(key));
        let earliest = (last + Duration::from_nanos(1)).max(sent - grant.ttl / YOUNG);
        let beat = self.heartbeat_since(pair, earliest).await?;
        let over = pair.lock.is_over() || pair.presence().is_over();
        (!over && beat.proves(key) == Proven::Held).then_some(beat)
    }

    /// After the presence session was replaced: presence for what is renewed. But not behind the back of a release that is under way: it
    /// would release the lock and leave the presence behind, and every later candidate would wait for a leader that is gone.
    async fn appear_again(&self, pair: &Pair<S>, key: S::Key, grant: &Grant) -> bool {
        let Some(_turn) = pair.try_turn(key) else { return false };
        if !pair.is_led(key, grant) {
            return false;
        }
        let wanted =
            WantedPresence { key, condition: Condition::BY_FORCE, if_locked_by: None, ttl: grant.ttl };
        pair.appear_all(vec![wanted]).await.is_ok()
    }
}
