//! Releases: of a leadership, of a lock that is not led yet, and of what a candidate that has left leaves behind.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Candidate, CandidateId, ElectionName, Grant, Outcome, ReleaseOptions, Seen, Timing};

use super::pair::{ClaimStage, Pair};
use super::{Lingering, Shared, limit};
use crate::session::{Session, SessionFailure, SessionNotice};
use crate::session_store::SessionStore;

impl<S: SessionStore> Shared<S> {
    pub(super) async fn release(
        self: Arc<Self>,
        on: ElectionName,
        grant: Grant,
        how: ReleaseOptions,
    ) -> Outcome<()> {
        let key = match self.store.key(&on) {
            Ok(key) => key,
            Err(error) => return Outcome::Refused(error),
        };
        let Some(pair) = self.current() else {
            // The session is over; what it held is free, or about to be.
            return Outcome::Denied(Seen::nothing());
        };
        let _turn = pair.turn(key).await;
        let Some(ClaimStage::Led(id, _)) =
            pair.hold(key).filter(|hold| hold.is(&grant)).map(|hold| hold.stage)
        else {
            return Outcome::Denied(Seen::nothing());
        };
        self.store.releasing(&pair.sessions(), &on, &grant).await;
        let released = self.release_lock(&pair, key, grant.ttl, how.reserve_for.as_ref()).await;
        if let (Outcome::Done(()), Some(span)) = (&released, how.cooldown) {
            // After the release, so that nobody waits for it; if it is lost, only politeness is.
            self.store.cool_down(&pair.sessions(), &on, &id, span).await;
        }
        released
    }

    /// The work is over, so the order of presence and lock is free: both go at once. Whoever has the lock before the presence
    /// is gone looks again a millisecond later.
    ///
    /// Whom it is kept for is told in a statement of its own, and answered, before the lock is free: so whoever takes the
    /// lock hears of it by the next answer on its own presence session. The session that holds the lock tells it: the server says
    /// who tells what, and anybody else could say the same.
    pub(super) async fn release_lock(
        &self,
        pair: &Pair<S>,
        key: S::Key,
        ttl: Duration,
        reserve_for: Option<&CandidateId>,
    ) -> Outcome<()> {
        if let Some(id) = reserve_for {
            let notice = SessionNotice::Reserved(key, Timing::reservation(ttl), id.clone());
            let _ = pair.lock.tell(ttl, &notice).await;
        }
        let (lease, mark, presence) = (pair.lease_without(key), pair.mark(key), pair.presence());
        let unlock = || pair.lock.unlock(key, mark, ttl, lease);
        let ((), mut released) = tokio::join!(biased; presence.leave(key, ttl, lease), unlock());
        if let Err(SessionFailure::Said(_)) = released {
            // Nobody knows whether it took effect; and a lock that is not released here would keep out even this process's
            // own next candidate, for as long as other elections keep the session alive.
            released = unlock().await;
            if let Err(SessionFailure::Said(_)) = released {
                pair.lock.throw_away();
            }
        }
        match released {
            Ok(had) => {
                pair.remove(key);
                if had { Outcome::Done(()) } else { Outcome::Denied(Seen::nothing()) }
            }
            Err(failure) => Outcome::Unknown(failure.error()),
        }
    }

    /// The candidate has left the election: releases everything of it.
    pub(super) async fn retire(self: Arc<Self>, on: ElectionName, key: S::Key, who: Candidate) {
        self.leave_lingering(key, &who).await;
        let Some(pair) = self.current() else { return };
        let _turn = pair.turn(key).await;
        let Some(hold) = pair.hold(key) else { return };
        if let ClaimStage::Led(_, grant) = &hold.stage {
            if grant.incarnation != who.incarnation {
                return;
            }
            self.store.releasing(&pair.sessions(), &on, grant).await;
        }
        let _ = self.release_lock(&pair, key, hold.ttl, None).await;
    }

    /// The lock session ended: what it held is lost, but the work may still be stopping, and the presence says so to others.
    pub(super) fn linger(self: &Arc<Self>, pair: &Arc<Pair<S>>) {
        self.forget_pair(pair);
        self.store.lost(&pair.lock);
        let mut led = pair.every();
        led.retain(|(_, hold)| hold.waits_until().is_none());
        let presence = pair.presence();
        let Some(longest) = led.iter().map(|(_, hold)| hold.ttl).max() else {
            presence.throw_away();
            return;
        };
        self.lingering().push(Lingering { presence: Arc::clone(&presence), led });
        let shared = Arc::downgrade(self);
        let pause = async move {
            // Not for as long as the backend: whoever waits for the end of it would wait for this.
            let Some(store) = shared.upgrade().map(|shared| Arc::clone(&shared.store)) else { return };
            store.pause(longest).await;
            if let Some(shared) = shared.upgrade() {
                shared.lingering().retain(|old| !Arc::ptr_eq(&old.presence, &presence));
            }
            presence.throw_away();
        };
        self.store.spawn(Box::pin(pause));
    }

    /// This candidate claims again, or has left: its earlier work has ended, so nobody has to wait for it.
    pub(super) async fn leave_lingering(&self, key: S::Key, who: &Candidate) {
        let mut over = Vec::new();
        {
            let mut lingering = self.lingering();
            for old in lingering.iter_mut() {
                old.led.retain(|(other, hold)| {
                    let its = *other == key && hold.is_led_by(who);
                    if its {
                        over.push((Arc::clone(&old.presence), hold.ttl));
                    }
                    !its
                });
            }
            lingering.retain(|old| !old.led.is_empty());
        }
        for (presence, ttl) in over {
            let leaving = async {
                presence.leave(key, ttl, ttl).await;
                let _ = presence.tell(ttl, &SessionNotice::Released(key)).await;
            };
            if self.lingers(&presence) {
                // Others' work needs it too, and giving it up early would say that theirs is over as well.
                leaving.await;
            } else {
                let left = tokio::select! {
                    biased;
                    () = leaving => !presence.is_over(),
                    () = self.store.pause(limit(ttl / 5)) => false,
                };
                presence.throw_away();
                if let Some(pair) = self.current().filter(|_| !left) {
                    self.store.end_presence(&pair.presence(), &presence).await;
                }
            }
        }
    }

    /// Whether that presence session stands for somebody's work still.
    fn lingers(&self, presence: &Arc<S::Session>) -> bool {
        self.lingering().iter().any(|old| Arc::ptr_eq(&old.presence, presence))
    }
}
