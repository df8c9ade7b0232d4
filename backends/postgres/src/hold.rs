//! Holding on and letting go: renewals, each answered by a heartbeat of all elections, and releases.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::Beaten;
use bellwether_core::{
    Boot, Candidate, CandidateId, ElectionName, Grant, Outcome, Parting, Planted, Seen, Timing,
};

use crate::Keys;
use crate::beats::Beat;
use crate::errors::{Failure, unavailable};
use crate::link::Link;
use crate::names::millis;
use crate::notices::Note;
use crate::postgres::Inner;
use crate::session::Values;
use crate::slots::Slot;

/// How much of its ttl a beat may be old and still answer a renewal. Half of a renewal interval: of two groups of elections that
/// renew at different instants one is always followed by the other within that, so all end in one group.
const YOUNG: u32 = 6;

impl Inner {
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
        if let Some(answers) = self.renewed_already(&link, sent, &held).await {
            return answers;
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
                Some(keys) => renewed(&link, &beat, keys, grant),
            });
        answers.collect()
    }

    /// The answers, if a beat that others waited for has proven all of these grants a moment ago.
    async fn renewed_already(
        &self,
        link: &Link,
        sent: Boot,
        held: &[(ElectionName, Grant)],
    ) -> Option<Vec<Outcome<Grant>>> {
        let keys: Vec<Keys> = held.iter().map(|(on, _)| self.keys(on)).collect::<Result<_, _>>().ok()?;
        // One that left before the claim did says nothing of this grant, and one that brings it no further is of no use.
        let last = |keys: Keys, grant: &Grant| grant.counted_from.max(link.slots.last_renewed(keys));
        let earliest = |(keys, (_, grant)): (&Keys, &(_, Grant))| {
            (last(*keys, grant) + Duration::from_nanos(1)).max(sent - grant.ttl / YOUNG)
        };
        let beat = self.beat_since(link, keys.iter().zip(held).map(earliest).max()?).await?;
        let proven = |(keys, (_, grant)): (&Keys, &(_, Grant))| {
            beat.of(*keys).says(Planted::default()) == Beaten::Held
                && link.slots.of(*keys).is_some_and(|slot| slot.is(grant))
        };
        let over = link.a.session.is_over() || link.b().session.is_over();
        if over || !keys.iter().zip(held).all(proven) {
            return None;
        }
        let answer = |(keys, (_, grant)): (&Keys, &(_, Grant))| renewed(link, &beat, *keys, grant);
        Some(keys.iter().zip(held).map(answer).collect())
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
        let values: Values<'_> = &[&presence.0, &presence.1, &0_i64, &true, &lease, &0, &keys.0, &keys.1];
        let _ = b.row(ttl, &b.presence, values).await;
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

    /// The work is over, so the order of presence and lock is free: both go at once. Whoever has the lock before the presence
    /// is gone looks again a millisecond later.
    ///
    /// Whom it is kept for is told in a statement of its own, and answered, before the lock is free: so whoever takes the
    /// lock hears of it by the next answer on its own second session. The session that holds the lock tells it: the server says
    /// who tells what, and anybody else could say the same.
    pub(crate) async fn let_go(
        &self,
        link: &Link,
        keys: Keys,
        ttl: Duration,
        reserve_for: Option<&CandidateId>,
    ) -> Outcome<()> {
        let lease = link.slots.lease_without(keys);
        let b = link.b();
        if let Some(id) = reserve_for {
            let _ = link.a.tell(ttl, &Note::Reserved(keys, Timing::reservation(ttl), id.clone())).await;
        }
        let (rest, notice) = (millis(lease).to_string(), Note::Released(keys).write());
        let mark = link.slots.of(keys).map_or(0, |slot| slot.mark());
        let values: Values<'_> = &[&keys.0, &keys.1, &rest, &notice, &mark];
        let (mut released, ()) =
            tokio::join!(link.a.row(ttl, &link.a.release, values), b.leave(keys, ttl, lease));
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
            Slot::Waiting { .. } | Slot::Fenced { .. } => true,
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
fn renewed(link: &Link, beat: &Beat, keys: Keys, grant: &Grant) -> Outcome<Grant> {
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
        Beaten::Held => {
            link.slots.renewed(keys, beat.left);
            Outcome::Held(Grant { counted_from: beat.left, ..grant.clone() })
        }
    }
}
