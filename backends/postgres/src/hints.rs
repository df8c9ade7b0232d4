//! What notices say, and what they are good for before the server was asked.
//!
//! Any role that may connect can send any notice, and the catalogue shows every key. So a notice is a hint: it has the server asked,
//! for all elections at once and at most ten times a second, and only the answer is told.
//!
//! ```text
//!  a release by the session that was seen to hold the lock ──▶ told at once     (the server says who sends a notice)
//!  any other release, any claim ──────────────────────────────▶ doubted ──▶ looked at ──▶ told as it is
//!  a reservation by that session ─────────────────────────────▶ kept for min(ttl / 5, 1 s)
//!  any other reservation ─────────────────────────────────────▶ kept as long if the lock is free, and not again at once
//! ```
//!
//! A claim nobody looked at yet does two things: should its holder die before the look, that counts as a crash; and a reservation for
//! whom it names is over.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bellwether_backend::Witness;
use bellwether_core::{Boot, CandidateId, ElectionName, Seen, Timing};
use tokio::sync::{Notify, watch};

use crate::Keys;
use crate::link::Link;
use crate::postgres::{Inner, lock};

/// From one look at what was doubted to the next.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The longest reservation there is, whatever the ttl.
const RESERVED_MAX: Duration = Duration::from_secs(1);
/// A reservation by nobody in particular is followed by none for so many times its length: it may be repeated for ever.
const REST: u32 = 5;
/// For so many elections reservations are remembered: anybody can send some for elections that do not exist.
const RESERVATIONS_MAX: usize = 1_024;

/// What was heard.
#[derive(Default)]
pub(crate) struct Hints {
    /// Holders that have not been heard to let go.
    witnessed: Mutex<HashMap<Keys, Known>>,
    reserved: Mutex<HashMap<Keys, Reservation>>,
    doubted: Mutex<HashSet<Keys>>,
    arrived: Notify,
}

/// A holder. Its process of the server is known only where the server showed it.
struct Known {
    pid: Option<i32>,
    last: Witness,
}

/// A lock that was let go for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) whom: CandidateId,
    from: Boot,
    span: Duration,
    /// By the session that held the lock.
    pub(crate) by_holder: bool,
}

impl Reservation {
    /// When it is over for candidates of this ttl.
    pub(crate) fn until(&self, ttl: Duration) -> Boot {
        self.from + self.span.min(Timing::reservation(ttl))
    }

    fn is_forgotten(&self, now: Boot) -> bool {
        now >= self.from + REST * self.span
    }
}

impl Hints {
    /// That session was seen to hold the lock. One that is just ending shows its lock still and its silence no more: then what was
    /// known before of that counts.
    pub(crate) fn witness(&self, now: Boot, keys: Keys, pid: i32, silent: Option<Duration>) {
        let mut witnessed = lock(&self.witnessed);
        let before = witnessed.get(&keys).filter(|known| silent.is_none() && known.pid == Some(pid));
        let last = before.map_or(Witness { at: now, silent: silent.unwrap_or_default() }, |known| known.last);
        witnessed.insert(keys, Known { pid: Some(pid), last });
    }

    /// Somebody says that it has the lock. Who is known to have it is still known.
    fn claimed(&self, now: Boot, keys: Keys) {
        let last = Witness { at: now, silent: Duration::ZERO };
        lock(&self.witnessed).entry(keys).or_insert(Known { pid: None, last });
    }

    pub(crate) fn take_witness(&self, keys: Keys) -> Option<Witness> {
        lock(&self.witnessed).remove(&keys).map(|known| known.last)
    }

    fn is_holder(&self, keys: Keys, pid: i32) -> bool {
        lock(&self.witnessed).get(&keys).is_some_and(|known| known.pid == Some(pid))
    }

    fn reserve(&self, keys: Keys, new: Reservation) {
        let (mut reserved, now) = (lock(&self.reserved), new.from);
        if reserved.get(&keys).is_some_and(|old| !new.by_holder && !old.is_forgotten(now)) {
            return;
        }
        if reserved.len() >= RESERVATIONS_MAX {
            reserved.retain(|_, old| !old.is_forgotten(now));
        }
        if reserved.len() < RESERVATIONS_MAX || new.by_holder {
            reserved.insert(keys, new);
        }
    }

    /// For whom a lock that was let go is still kept.
    pub(crate) fn reserved(&self, now: Boot, keys: Keys, ttl: Duration) -> Option<Reservation> {
        lock(&self.reserved).get(&keys).filter(|kept| now < kept.until(ttl)).cloned()
    }

    /// The one for whom it was kept has it.
    pub(crate) fn used(&self, keys: Keys, by: &CandidateId) {
        lock(&self.reserved).retain(|kept, reservation| *kept != keys || reservation.whom != *by);
    }

    fn doubt(&self, keys: Keys) {
        lock(&self.doubted).insert(keys);
        self.arrived.notify_one();
    }
}

impl Inner {
    pub(crate) fn heard_claim(&self, keys: Keys, sender: i32) {
        let Some(link) = self.current().filter(|_| self.follows(keys)) else { return };
        if sender != link.a.session.pid {
            self.hints.claimed(self.clock.boot(), keys);
            self.hints.doubt(keys);
        }
    }

    pub(crate) fn heard_reservation(&self, keys: Keys, sender: i32, span: Duration, whom: CandidateId) {
        let (from, span) = (self.clock.boot(), span.min(RESERVED_MAX));
        let by_holder = self.is_from_holder(keys, sender);
        self.hints.reserve(keys, Reservation { whom, from, span, by_holder });
    }

    pub(crate) fn heard_release(&self, keys: Keys, sender: i32) {
        if !self.is_from_holder(keys, sender) {
            if self.follows(keys) {
                self.hints.doubt(keys);
            }
            return;
        }
        self.hints.take_witness(keys);
        if let Some(link) = self.current() {
            link.released_by_other(keys);
            self.doubt_beat(&link, keys);
        }
        if let Some(on) = self.followed_as(keys) {
            let now = self.clock.boot();
            let kept = self.hints.reserved(now, keys, Duration::MAX).filter(|kept| kept.by_holder);
            let (reserved_for, free_at) =
                kept.map(|kept| (kept.whom.clone(), kept.until(Duration::MAX))).unzip();
            self.news.changed(on, Seen { reserved_for, free_at, ..released() });
        }
    }

    fn is_from_holder(&self, keys: Keys, sender: i32) -> bool {
        let own = self.current().is_some_and(|link| link.a.session.pid == sender);
        own || self.hints.is_holder(keys, sender)
    }

    /// News of others about what is led here: the next renewal asks the server, whatever was known before.
    fn doubt_beat(&self, link: &Link, keys: Keys) {
        if link.slots.of(keys).is_some() {
            link.beats.forget();
        }
    }

    pub(crate) fn followed_as(&self, keys: Keys) -> Option<ElectionName> {
        lock(&self.followed).get(&keys).cloned()
    }

    /// Asks the server about all that was doubted.
    async fn look_at_doubted(&self, link: &Link) {
        let doubted = std::mem::take(&mut *lock(&self.hints.doubted));
        let doubted: Vec<_> =
            doubted.into_iter().filter_map(|keys| Some((keys, self.followed_as(keys)?))).collect();
        let keys: Vec<Keys> = doubted.iter().map(|(keys, _)| *keys).collect();
        // Where it fails the session is over, and everything is found out anew.
        let Ok(rows) = self.rows_of(link, &keys).await else { return };
        for ((keys, on), row) in doubted.into_iter().zip(rows) {
            self.doubt_beat(link, keys);
            let (pid, seen) = self.shown(link, keys, &row);
            match pid.filter(|pid| *pid != link.a.session.pid) {
                Some(pid) => {
                    let silent = row.get::<_, Option<i64>>("idle_ms").and_then(|ms| u64::try_from(ms).ok());
                    self.hints.witness(self.clock.boot(), keys, pid, silent.map(Duration::from_millis));
                    link.held_by_other(pid, keys);
                }
                None => link.released_by_other(keys),
            }
            if let Some(holder) = &seen.holder {
                self.hints.used(keys, &holder.id);
            }
            let told = self.with_record(link, &on, pid, seen.clone()).await;
            self.news.changed(on, told.unwrap_or(seen));
        }
    }
}

/// Runs until session A or the backend ends.
pub(crate) async fn look_at_hints(inner: Weak<Inner>, link: Arc<Link>, mut alive: watch::Receiver<()>) {
    let Some(hints) = inner.upgrade().map(|inner| Arc::clone(&inner.hints)) else { return };
    loop {
        tokio::select! {
            () = hints.arrived.notified() => {}
            () = link.a.session.over() => return,
            _ = alive.changed() => return,
        }
        let Some(strong) = inner.upgrade() else { return };
        strong.look_at_doubted(&link).await;
        drop(strong);
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = link.a.session.over() => return,
            _ = alive.changed() => return,
        }
    }
}

fn released() -> Seen {
    Seen { proof: bellwether_core::Proof::Released, ..Seen::nothing() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys = Keys(1, 2);
    const TTL: Duration = Duration::from_secs(2);

    fn at(millis: u64) -> Boot {
        Boot::from_nanos(millis * 1_000_000)
    }

    fn reserve(hints: &Hints, millis: u64, span_ms: u64, by_holder: bool) {
        let whom = CandidateId::new("x").unwrap();
        hints.reserve(
            KEYS,
            Reservation { whom, from: at(millis), span: Duration::from_millis(span_ms), by_holder },
        );
    }

    #[test]
    fn nobody_in_particular_reserves_a_fifth_of_the_time_at_the_most() {
        let hints = Hints::default();
        let mut kept = 0;
        for millis in 0..60_000 {
            reserve(&hints, millis, 1_000, false);
            kept += u32::from(hints.reserved(at(millis), KEYS, TTL).is_some());
        }
        assert!((4_000..=12_000).contains(&kept), "{kept} ms of 60,000");
        // Its holder is not kept waiting for that.
        reserve(&hints, 60_000, 1_000, true);
        assert!(hints.reserved(at(60_399), KEYS, TTL).is_some(), "for a fifth of the ttl");
        assert!(hints.reserved(at(60_400), KEYS, TTL).is_none());
    }

    #[test]
    fn who_says_that_it_holds_does_not_hide_who_was_seen_to() {
        let hints = Hints::default();
        hints.witness(at(1), KEYS, 7, Some(Duration::ZERO));
        hints.claimed(at(2), KEYS);
        assert!(hints.is_holder(KEYS, 7));
        hints.take_witness(KEYS);
        hints.claimed(at(3), KEYS);
        assert!(!hints.is_holder(KEYS, 7) && hints.take_witness(KEYS).is_some());
    }

    #[test]
    fn reservations_of_what_nobody_knows_are_bounded() {
        let hints = Hints::default();
        for number in 0..10_000 {
            let whom = CandidateId::new("x").unwrap();
            let new = Reservation { whom, from: at(1), span: RESERVED_MAX, by_holder: false };
            hints.reserve(Keys(number, 0), new);
        }
        assert_eq!(lock(&hints.reserved).len(), RESERVATIONS_MAX);
    }
}
