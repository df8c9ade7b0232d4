//! Holding on and letting go: one heartbeat for all elections of a session, and releases.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{Beaten, Heartbeat};
use bellwether_core::{
    Boot, Candidate, CandidateId, ElectionName, Error, Grant, Outcome, Parting, Planted, Seen, Signal, Timing,
};
use tokio::sync::oneshot;

use crate::Keys;
use crate::errors::{Failure, unavailable};
use crate::link::{Link, locks_of};
use crate::names::millis;
use crate::notices::Note;
use crate::postgres::{Inner, lock};
use crate::session::Values;
use crate::slots::Slot;

/// What one heartbeat showed: the locks of either session.
#[derive(Clone)]
pub(crate) struct Beat {
    pub(crate) a: Result<Arc<HashSet<Keys>>, Error>,
    pub(crate) b: Result<Arc<HashSet<Keys>>, Error>,
}

impl Beat {
    /// What either session said of one election.
    fn of(&self, keys: Keys) -> Heartbeat {
        let has = |locks: &Result<Arc<HashSet<Keys>>, Error>, keys: Keys| {
            locks.as_ref().ok().map(|locks| locks.contains(&keys))
        };
        Heartbeat { lock: has(&self.a, keys), presence: has(&self.b, keys.presence()) }
    }
}

/// Those who wait for a heartbeat. One that is under way serves nobody who came after it left: their renewals would count
/// from an instant that the server has not heard of.
#[derive(Default)]
pub(crate) struct Beats(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    waiting: Vec<oneshot::Sender<Beat>>,
    beating: bool,
}

impl Inner {
    /// The next heartbeat, shared with everybody who asks before it leaves.
    pub(crate) async fn beat(self: &Arc<Self>, link: &Arc<Link>) -> Beat {
        let (sender, answer) = oneshot::channel();
        let start = {
            let mut queue = lock(&link.beats.0);
            queue.waiting.push(sender);
            !std::mem::replace(&mut queue.beating, true)
        };
        if start {
            tokio::spawn(Arc::clone(self).beat_on(Arc::clone(link)));
        }
        let lost = || Err(unavailable("the heartbeat ended in a panic"));
        answer.await.unwrap_or_else(|_| Beat { a: lost(), b: lost() })
    }

    async fn beat_on(self: Arc<Self>, link: Arc<Link>) {
        loop {
            let waiting = {
                let mut queue = lock(&link.beats.0);
                if queue.waiting.is_empty() {
                    queue.beating = false;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            let beat = self.beat_once(&link).await;
            for waiter in waiting {
                let _ = waiter.send(beat.clone());
            }
        }
    }

    async fn beat_once(&self, link: &Link) -> Beat {
        let longest = link.slots.every().iter().map(|(_, slot)| slot.ttl()).max();
        let ttl = longest.unwrap_or(Duration::from_secs(1));
        let b = link.b();
        let both = async { tokio::join!(link.a.row(ttl, &link.a.beat, &[]), b.row(ttl, &b.beat, &[])) };
        tokio::pin!(both);
        let (on_a, on_b) = tokio::select! {
            rows = &mut both => rows,
            () = tokio::time::sleep(ttl / 4) => {
                self.news.all(Signal::Doubt);
                both.await
            }
        };
        let read = |row: Result<_, Failure>, session| {
            let locks = row.map_err(Failure::error).and_then(|row| locks_of(&row, session))?;
            Ok(Arc::new(locks.into_iter().collect()))
        };
        Beat { a: read(on_a, &link.a.session), b: read(on_b, &b.session) }
    }

    pub(crate) async fn renew(
        self: Arc<Self>,
        sent: Boot,
        held: Vec<(ElectionName, Grant)>,
    ) -> Vec<Outcome<Grant>> {
        let Some(link) = self.current() else {
            // The session is over, and so is every grant of it.
            return held.iter().map(|_| Outcome::Denied(Seen::nothing())).collect();
        };
        let ours = |on: &ElectionName, grant: &Grant| {
            let keys = self.keys(on).ok()?;
            link.slots.of(keys).is_some_and(|slot| slot.is(grant)).then_some(keys)
        };
        if !held.iter().any(|(on, grant)| ours(on, grant).is_some()) {
            return held.iter().map(|_| Outcome::Denied(Seen::nothing())).collect();
        }
        let mut beat = self.beat(&link).await;
        let ours: Vec<_> = held.iter().map(|(on, grant)| ours(on, grant)).collect();
        if self.appear_where_missing(&link, &beat, &held, &ours).await {
            beat = self.beat(&link).await;
        }
        // Looked up again: it may have been let go meanwhile.
        let still = |keys: &Keys, grant| link.slots.of(*keys).is_some_and(|slot| slot.is(grant));
        let answers =
            held.iter().zip(&ours).map(|((_, grant), keys)| match keys.filter(|keys| still(keys, grant)) {
                None => Outcome::Denied(Seen::nothing()),
                Some(keys) => renewed(&link, &beat, keys, sent, grant),
            });
        answers.collect()
    }

    /// After the second session was replaced: presence for what is renewed. True if it was missing anywhere.
    async fn appear_where_missing(
        &self,
        link: &Link,
        beat: &Beat,
        held: &[(ElectionName, Grant)],
        ours: &[Option<Keys>],
    ) -> bool {
        let mut missing = false;
        for ((_, grant), keys) in held.iter().zip(ours) {
            let absent = |keys: &Keys| beat.of(*keys).says(Planted::default()) == Beaten::Absent;
            let Some(keys) = keys.filter(absent) else { continue };
            // Not behind the back of a release that is under way: it would let go of the lock and leave the presence behind,
            // and everybody after it would wait for nobody.
            let Some(_turn) = link.slots.try_turn(keys) else { continue };
            if link.slots.of(keys).is_some_and(|slot| slot.is(grant)) {
                missing = true;
                self.appear(link, keys, grant.ttl).await;
            }
        }
        missing
    }

    /// Takes presence for what is already led.
    async fn appear(&self, link: &Link, keys: Keys, ttl: Duration) {
        let (presence, b) = (keys.presence(), link.b());
        let lease = millis(ttl.max(link.slots.lease_without(keys))).to_string();
        let _ = b.row(ttl, &b.presence, &[&presence.0, &presence.1, &0_i64, &true, &lease]).await;
    }

    pub(crate) async fn release(
        self: Arc<Self>,
        on: ElectionName,
        grant: Grant,
        how: Parting,
    ) -> Outcome<()> {
        let keys = match self.keys(&on) {
            Ok(keys) => keys,
            Err(error) => return Outcome::Refused(error),
        };
        let Some(link) = self.current() else {
            // The session is over; what it held is free, or about to be.
            return Outcome::Denied(Seen::nothing());
        };
        let _turn = link.slots.turn(keys).await;
        if !link.slots.of(keys).is_some_and(|slot| slot.is(&grant)) {
            return Outcome::Denied(Seen::nothing());
        }
        self.release_record(&link, &on, (grant.epoch, grant.incarnation, grant.ttl)).await;
        let id = match link.slots.of(keys) {
            Some(Slot::Held { who, .. }) => Some(who.id),
            _ => None,
        };
        let released = self.let_go(&link, keys, grant.ttl, how.reserve_for.as_ref()).await;
        if let (Outcome::Held(()), Some(span), Some(id)) = (&released, how.cooldown, id) {
            // After the release, so that nobody waits for it; if it is lost, only politeness is.
            self.cool_down(&link, &on, &id, span).await;
        }
        released
    }

    /// Presence first: whoever finds the lock free must find nobody in its way.
    ///
    /// Whom it is kept for is told in a statement of its own, and answered, before the lock is free: so whoever takes the
    /// lock hears of it by the next answer on its own second session.
    pub(crate) async fn let_go(
        &self,
        link: &Link,
        keys: Keys,
        ttl: Duration,
        reserve_for: Option<&CandidateId>,
    ) -> Outcome<()> {
        let lease = link.slots.lease_without(keys);
        let b = link.b();
        b.leave(keys, ttl, lease).await;
        if let Some(id) = reserve_for {
            let _ = b.tell(ttl, &Note::Reserved(keys, Timing::reservation(ttl), id.clone())).await;
        }
        let (lease, notice) = (millis(lease).to_string(), Note::Released(keys).write());
        let mark = link.slots.of(keys).map_or(0, |slot| slot.mark());
        let values: Values<'_> = &[&keys.0, &keys.1, &lease, &notice, &mark];
        let mut released = link.a.row(ttl, &link.a.release, values).await;
        if let Err(Failure::Said(_)) = released {
            // Nobody knows whether it took effect; and a lock that is not let go of here would keep out even this process's
            // own next candidate, for as long as other elections keep the session alive.
            released = link.a.row(ttl, &link.a.release, values).await;
            if let Err(Failure::Said(_)) = released {
                link.a.session.throw_away();
            }
        }
        match released {
            Ok(row) => {
                link.slots.remove(keys);
                if row.get(0) { Outcome::Held(()) } else { Outcome::Denied(Seen::nothing()) }
            }
            Err(failure) => Outcome::Unknown(failure.error()),
        }
    }

    /// The candidate takes part no more: nothing of it stays behind.
    pub(crate) async fn retired(&self, on: &ElectionName, keys: Keys, who: &Candidate) {
        self.leave_lingering(keys, who).await;
        let Some(link) = self.current() else { return };
        let _turn = link.slots.turn(keys).await;
        let slot = link.slots.of(keys).filter(|slot| match slot {
            Slot::Held { who: leader, .. } => leader.incarnation == who.incarnation,
            Slot::Waiting { .. } => true,
        });
        if let Some(slot) = slot {
            if let Slot::Held { epoch, ttl, .. } = slot {
                self.release_record(&link, on, (epoch, who.incarnation, ttl)).await;
            }
            let _ = self.let_go(&link, keys, slot.ttl(), None).await;
        }
    }
}

/// What a heartbeat says of one grant. Both sessions have to answer for it.
fn renewed(link: &Link, beat: &Beat, keys: Keys, sent: Boot, grant: &Grant) -> Outcome<Grant> {
    match beat.of(keys).says(Planted::default()) {
        Beaten::Lost => {
            link.slots.remove(keys);
            Outcome::Denied(Seen::nothing())
        }
        Beaten::Absent => {
            Outcome::Unknown(unavailable("the second session was replaced, and is not present yet"))
        }
        Beaten::Unknown => {
            let error = beat.a.as_ref().err().or(beat.b.as_ref().err()).cloned();
            Outcome::Unknown(error.unwrap_or_else(|| unavailable("not both sessions answered")))
        }
        Beaten::Held => Outcome::Held(Grant { counted_from: sent, ..grant.clone() }),
    }
}
