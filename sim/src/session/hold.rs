//! Holding on and letting go.

use bellwether_backend::{Beaten, Condition, Heartbeat};
use bellwether_core::{Boot, Bug, Candidate, ErrorKind, Grant, Outcome, Seen};
use std::sync::Arc;
use std::time::Duration;

use super::backend::{Inner, Link, Slot, limit, unavailable};
use super::wire::{Connection, Failure, Said, Statement};
use crate::port::{lock, trouble};

impl Inner {
    pub(super) async fn renew(&self, sent: Boot, grant: &Grant) -> Outcome<Grant> {
        let is_ours = |link: &Arc<Link>| link.slot().is_some_and(|slot| slot.is(grant));
        let Some(link) = self.current().filter(is_ours) else { return Outcome::Denied(Seen::nothing()) };
        let mut says = self.beat(&link, grant.ttl).await;
        if says == Beaten::Absent && self.appear_again(&link, grant).await {
            says = self.beat(&link, grant.ttl).await;
        }
        // Looked up again: it may have been let go meanwhile.
        if !is_ours(&link) {
            return Outcome::Denied(Seen::nothing());
        }
        match says {
            Beaten::Held => {
                let counted_from = if self.has(Bug::RenewalFromAnswer) { self.wire.now() } else { sent };
                Outcome::Held(Grant { counted_from, ..grant.clone() })
            }
            Beaten::Lost => {
                link.put(None);
                Outcome::Denied(Seen::nothing())
            }
            Beaten::Absent | Beaten::Unknown => {
                Outcome::Unknown(trouble(ErrorKind::Unavailable, "not both sessions answered"))
            }
        }
    }

    pub(super) async fn beat(&self, link: &Link, ttl: Duration) -> Beaten {
        let b = link.b();
        let (lock, presence) = futures_util::future::join(
            self.wire.ask(&link.a, limit(ttl), Statement::Beat),
            self.wire.ask(&b, limit(ttl), Statement::Beat),
        )
        .await;
        let holds = |said: Result<Said, Failure>| said.ok().map(|said| said == Said::Yes(true));
        Heartbeat { lock: holds(lock), presence: holds(presence) }.says(self.planted)
    }

    /// After B was replaced: presence for what is renewed. But not behind the back of a release that is under way: it
    /// would let go of the lock and leave the presence behind, and everybody would wait for nobody.
    async fn appear_again(&self, link: &Link, grant: &Grant) -> bool {
        let turn = link.try_turn();
        if turn.is_none() && !self.has(Bug::PresentAfterLeaving) {
            return false;
        }
        if !link.slot().is_some_and(|slot| slot.is(grant)) {
            return false;
        }
        self.appear(&link.b(), grant.ttl).await;
        true
    }

    /// Takes presence for what is already led.
    pub(super) async fn appear(&self, b: &Connection, ttl: Duration) {
        let _ = self.wire.ask(b, limit(ttl), Statement::Appear(Condition::BY_FORCE, ttl)).await;
    }

    pub(super) async fn release(&self, grant: &Grant) -> Outcome<()> {
        let Some(link) = self.current() else { return Outcome::Denied(Seen::nothing()) };
        let _turn = link.turn().await;
        if !link.slot().is_some_and(|slot| slot.is(grant)) {
            return Outcome::Denied(Seen::nothing());
        }
        self.let_go(&link, grant.ttl).await
    }

    /// Presence first: whoever finds the lock free must find nobody in its way.
    pub(super) async fn let_go(&self, link: &Link, ttl: Duration) -> Outcome<()> {
        let b = link.b();
        if !self.has(Bug::LockBeforePresence) {
            let _ = self.wire.ask(&b, limit(ttl), Statement::Leave(false)).await;
        }
        let mut released = self.wire.ask(&link.a, limit(ttl), Statement::Unlock(true)).await;
        if released == Err(Failure::Error) {
            // Nobody knows whether it took effect; and what is not let go of here would keep out even this process's
            // own next candidate.
            released = self.wire.ask(&link.a, limit(ttl), Statement::Unlock(true)).await;
            if released == Err(Failure::Error) {
                self.wire.throw_away(&link.a);
            }
        }
        if self.has(Bug::LockBeforePresence) {
            let _ = self.wire.ask(&b, limit(ttl), Statement::Leave(false)).await;
        }
        match released {
            Ok(said) => {
                link.put(None);
                if said == Said::Yes(true) { Outcome::Held(()) } else { Outcome::Denied(Seen::nothing()) }
            }
            Err(failure) => Outcome::Unknown(unavailable(failure)),
        }
    }

    /// The candidate takes part no more: nothing of it stays behind. Done by whoever tends.
    pub(super) fn retired(&self, who: &Candidate) {
        lock(&self.retiring).push(who.clone());
    }

    pub(super) async fn retire(&self, who: &Candidate) {
        self.leave_lingering(who).await;
        let Some(link) = self.current() else { return };
        let _turn = link.turn().await;
        let its = |slot: &Slot| match slot {
            Slot::Held { who: leader, .. } => leader.incarnation == who.incarnation,
            Slot::Waiting(_) => true,
        };
        if let Some(slot) = link.slot().filter(its) {
            let _ = self.let_go(&link, slot.ttl()).await;
        }
    }
}
