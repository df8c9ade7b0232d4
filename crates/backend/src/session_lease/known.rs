//! What this process knows of each election that it takes part in, from what the server showed and from what others told.
//!
//! Anybody who may connect can send any notice, and the catalogue shows every key. So a notice is a hint: it has the server asked,
//! for all elections at once and at most ten times a second, and only the answer is told.
//!
//! ```text
//!  a release by the session that was seen to hold the lock ──▶ told at once     (the server says who sends a notice)
//!  any other release, any claim ──────────────────────────────▶ doubted ──▶ looked at ──▶ told as it is
//!  a reservation by that session ─────────────────────────────▶ kept for min(ttl / 5, 1 s)
//!  any other reservation ─────────────────────────────────────▶ kept as long if the lock is free, and not again at once
//! ```
//!
//! A claim nobody looked at yet does one thing: should its holder die before the look, that counts as a crash.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use bellwether_core::{Boot, CandidateId, ElectionName, Timing};

use crate::takeover::Witness;

/// The longest reservation there is, whatever the ttl.
const RESERVED_MAX: Duration = Duration::from_secs(1);
/// A reservation by nobody in particular is followed by none for so many times its length: it may be repeated for ever.
const REST: u32 = 5;

/// What is known of every election that a candidate here has followed or claimed.
pub(super) struct KnownElections<K, Id>(HashMap<K, Known<Id>>);

/// What is known of one.
pub(super) struct Known<Id> {
    pub(super) name: ElectionName,
    /// How many candidates here want its news.
    pub(super) followers: usize,
    /// Somebody else who has the lock and was not heard to let go, nor found to have done so.
    holder: Option<Other<Id>>,
    reserved: Option<Reservation>,
    /// A notice says otherwise than the server did.
    doubted: bool,
    /// The ttl of the last holder that was met.
    pub(super) their_ttl: Option<Duration>,
}

/// Another process's session that has the lock.
struct Other<Id> {
    /// Which; only where the server showed it.
    session: Option<Id>,
    last: Witness,
    /// That session is over.
    over: bool,
}

/// A lock that was let go of for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) whom: CandidateId,
    from: Boot,
    span: Duration,
    /// By the session that held the lock.
    pub(super) by_holder: bool,
}

impl Reservation {
    pub(super) fn new(whom: CandidateId, from: Boot, span: Duration, by_holder: bool) -> Reservation {
        Reservation { whom, from, span: span.min(RESERVED_MAX), by_holder }
    }

    /// When it is over for candidates of this ttl.
    pub(super) fn until(&self, ttl: Duration) -> Boot {
        self.from + self.span.min(Timing::reservation(ttl))
    }

    fn is_forgotten(&self, now: Boot) -> bool {
        now >= self.from + REST * self.span
    }
}

impl<Id: Copy + Eq> Known<Id> {
    /// That session was seen to hold the lock. One that is just ending shows its lock still and its silence no more: then what was
    /// known before of that counts.
    pub(super) fn held_by(&mut self, now: Boot, session: Id, silent: Option<Duration>) {
        let before = self.holder.take().filter(|other| silent.is_none() && other.session == Some(session));
        let last = before.map_or(Witness { at: now, silent: silent.unwrap_or_default() }, |other| other.last);
        self.holder = Some(Other { session: Some(session), last, over: false });
    }

    /// Somebody says that it has the lock. Who is known to have it is still known.
    pub(super) fn claimed(&mut self, now: Boot) {
        let last = Witness { at: now, silent: Duration::ZERO };
        self.holder.get_or_insert(Other { session: None, last, over: false });
    }

    /// The lock is free, or this process's.
    pub(super) fn free(&mut self) -> Option<Witness> {
        self.holder.take().map(|other| other.last)
    }

    /// The server shows nobody else who has it. How the last one was known to be is still known: its end may be a crash.
    pub(super) fn found_free(&mut self) {
        self.holder.iter_mut().for_each(|other| other.over = true);
    }

    /// Somebody else is known to have the lock, and nothing was heard of its end.
    pub(super) fn other(&self) -> Option<Id> {
        self.holder.as_ref().filter(|other| !other.over)?.session
    }

    /// Whether that session was seen to hold the lock.
    pub(super) fn is_holder(&self, session: Id) -> bool {
        self.holder.as_ref().is_some_and(|other| other.session == Some(session))
    }

    pub(super) fn reserve(&mut self, new: Reservation) {
        let rests = self.reserved.as_ref().is_some_and(|old| !new.by_holder && !old.is_forgotten(new.from));
        if !rests {
            self.reserved = Some(new);
        }
    }

    /// For whom a lock that was let go of is still kept.
    pub(super) fn reserved(&self, now: Boot, ttl: Duration) -> Option<Reservation> {
        self.reserved.as_ref().filter(|kept| now < kept.until(ttl)).cloned()
    }

    /// The one for whom it was kept has it.
    pub(super) fn used_by(&mut self, id: &CandidateId) {
        self.reserved.take_if(|kept| kept.whom == *id);
    }
}

impl<K, Id> Default for KnownElections<K, Id> {
    fn default() -> KnownElections<K, Id> {
        KnownElections(HashMap::new())
    }
}

impl<K: Copy + Eq + Hash + Ord, Id: Copy + Eq + Ord> KnownElections<K, Id> {
    pub(super) fn of(&mut self, key: K, name: &ElectionName) -> &mut Known<Id> {
        self.0.entry(key).or_insert_with(|| Known {
            name: name.clone(),
            followers: 0,
            holder: None,
            reserved: None,
            doubted: false,
            their_ttl: None,
        })
    }

    pub(super) fn get(&self, key: K) -> Option<&Known<Id>> {
        self.0.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut Known<Id>> {
        self.0.get_mut(&key)
    }

    pub(super) fn forget(&mut self, key: K) {
        self.0.remove(&key);
    }

    /// Its name, if it is followed here.
    pub(super) fn followed(&self, key: K) -> Option<ElectionName> {
        self.0.get(&key).filter(|known| known.followers > 0).map(|known| known.name.clone())
    }

    pub(super) fn follows_any(&self) -> bool {
        self.0.values().any(|known| known.followers > 0)
    }

    /// Whether it is followed here, and will be looked at.
    pub(super) fn doubt(&mut self, key: K) -> bool {
        match self.0.get_mut(&key).filter(|known| known.followers > 0) {
            Some(known) => {
                known.doubted = true;
                true
            }
            None => false,
        }
    }

    /// All that were doubted, from now on no more.
    pub(super) fn take_doubted(&mut self) -> Vec<(K, ElectionName)> {
        let mut doubted: Vec<_> = Vec::new();
        for (key, known) in &mut self.0 {
            if std::mem::take(&mut known.doubted) {
                doubted.push((*key, known.name.clone()));
            }
        }
        doubted.sort_unstable_by_key(|(key, _)| *key);
        doubted
    }

    /// Another session that holds something wanted here: the next one after that.
    pub(super) fn other_after(&self, last: Option<Id>) -> Option<Id> {
        let others = || self.0.values().filter(|known| known.followers > 0).filter_map(Known::other);
        let next = others().filter(|id| last.is_none_or(|last| *id > last)).min();
        next.or_else(|| others().min())
    }

    /// That session is over: what it held.
    pub(super) fn ended(&mut self, session: Id) -> Vec<(K, ElectionName)> {
        let mut gone: Vec<_> = Vec::new();
        for (key, known) in &mut self.0 {
            if known.other() == Some(session) {
                known.found_free();
                gone.push((*key, known.name.clone()));
            }
        }
        gone.sort_unstable_by_key(|(key, _)| *key);
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(2);

    fn at(millis: u64) -> Boot {
        Boot::from_nanos(millis * 1_000_000)
    }

    fn name() -> ElectionName {
        ElectionName::new("a").unwrap()
    }

    fn reserve(known: &mut Known<u8>, millis: u64, by_holder: bool) {
        let whom = CandidateId::new("x").unwrap();
        known.reserve(Reservation::new(whom, at(millis), Duration::from_secs(1), by_holder));
    }

    #[test]
    fn nobody_in_particular_reserves_a_fifth_of_the_time_at_the_most() {
        let mut elections = KnownElections::<u8, u8>::default();
        let known = elections.of(1, &name());
        let mut kept = 0;
        for millis in 0..60_000 {
            reserve(known, millis, false);
            kept += u32::from(known.reserved(at(millis), TTL).is_some());
        }
        assert!((4_000..=12_000).contains(&kept), "{kept} ms of 60,000");
        // Its holder is not kept waiting for that.
        reserve(known, 60_000, true);
        assert!(known.reserved(at(60_399), TTL).is_some(), "for a fifth of the ttl");
        assert!(known.reserved(at(60_400), TTL).is_none());
    }

    #[test]
    fn who_says_that_it_holds_does_not_hide_who_was_seen_to() {
        let mut elections = KnownElections::<u8, u8>::default();
        let known = elections.of(1, &name());
        known.held_by(at(1), 7, Some(Duration::ZERO));
        known.claimed(at(2));
        assert!(known.is_holder(7));
        known.free();
        known.claimed(at(3));
        assert!(!known.is_holder(7) && known.free().is_some());
    }

    #[test]
    fn a_session_that_ended_holds_nothing_and_how_it_ended_is_still_known() {
        let mut elections = KnownElections::<u8, u8>::default();
        for (key, session) in [(1, 1), (2, 2), (3, 1)] {
            let known = elections.of(key, &name());
            known.followers = 1;
            known.held_by(at(1), session, None);
        }
        assert_eq!(elections.other_after(None), Some(1));
        assert_eq!(elections.other_after(Some(1)), Some(2));
        assert_eq!(elections.other_after(Some(2)), Some(1), "every session gets its turn");
        elections.of(3, &name()).held_by(at(2), 2, None);
        let gone: Vec<u8> = elections.ended(2).into_iter().map(|(key, _)| key).collect();
        assert_eq!(gone, [2, 3]);
        assert_eq!(elections.other_after(None), Some(1));
        assert!(elections.of(2, &name()).free().is_some());
    }
}
