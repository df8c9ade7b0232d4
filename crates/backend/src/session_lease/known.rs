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
//! A claim nobody looked at yet does two things: should its holder die before the look, that counts as a crash; and a reservation for
//! whom it names is over.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use bellwether_core::{Boot, CandidateId, ElectionName, Incarnation, Timing};

use crate::session::LockHolder;
use crate::takeover::Witness;

/// The longest reservation there is, whatever the ttl.
const RESERVED_MAX: Duration = Duration::from_secs(1);
/// After a reservation that the holder did not make, others like it are ignored for this many times its length: anybody can repeat one
/// for ever.
const REST: u32 = 5;

/// The most elections that nobody here takes part in yet whose reservations are remembered: anybody can send some for elections that do
/// not exist.
const UNKNOWN_MAX: usize = 1_024;

/// What is known of every election that a candidate here has followed or claimed.
pub(super) struct KnownElections<K, Id> {
    all: HashMap<K, Known<Id>>,
    /// Reservations of others, for whoever takes part a moment later.
    unknown: HashMap<K, LockReservation>,
}

/// What is known of one.
pub(super) struct Known<Id> {
    pub(super) name: ElectionName,
    /// How many here want its news.
    pub(super) followers: usize,
    /// Who of them claims it.
    pub(super) candidates: BTreeSet<Incarnation>,
    /// Another session that has the lock, and is not known to have released it.
    holder: Option<Other<Id>>,
    reserved: Option<LockReservation>,
    /// A notice says otherwise than the server did.
    doubted: bool,
    /// How many releases its holders told. What was looked at before the last of them is old.
    pub(super) releases: u64,
}

/// Another process's session that has the lock.
struct Other<Id> {
    /// Which; only where the server showed it.
    session: Option<Id>,
    last: Witness,
    /// Its ttl, where it leads and shows that.
    ttl: Option<Duration>,
    /// That session is over.
    over: bool,
}

/// A lock that was released for a named candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockReservation {
    pub(super) whom: CandidateId,
    from: Boot,
    span: Duration,
    /// By the session that held the lock.
    pub(super) by_holder: bool,
    /// The one for whom it was kept has said that it has it.
    used: bool,
}

impl LockReservation {
    pub(super) fn new(whom: CandidateId, from: Boot, span: Duration, by_holder: bool) -> LockReservation {
        LockReservation { whom, from, span: span.min(RESERVED_MAX), by_holder, used: false }
    }

    /// When it is over for candidates of this ttl.
    pub(super) fn until(&self, ttl: Duration) -> Boot {
        self.from + self.span.min(Timing::reservation(ttl))
    }

    fn is_forgotten(&self, now: Boot) -> bool {
        now >= self.from + REST * self.span
    }

    fn comes_too_soon_after(&self, before: Option<&LockReservation>) -> bool {
        before.is_some_and(|before| !self.by_holder && !before.is_forgotten(self.from))
    }
}

impl<Id: Copy + Eq> Known<Id> {
    /// That session was seen to hold the lock. One that is just ending shows its lock still and its silence no more: then what was
    /// known before of that counts.
    pub(super) fn held_by(&mut self, now: Boot, holder: &LockHolder<Id>) {
        let LockHolder { session, silent, .. } = *holder;
        let before = self.holder.take().filter(|other| silent.is_none() && other.session == Some(session));
        let last = before.as_ref().map(|other| other.last);
        let last = last.unwrap_or(Witness { at: now, silent: silent.unwrap_or_default() });
        // Whoever does not lead believes nothing, whatever ttl it shows.
        let ttl = holder.ttl.filter(|_| holder.leads).or(before.and_then(|other| other.ttl));
        self.holder = Some(Other { session: Some(session), last, ttl, over: false });
    }

    /// Somebody says that it has the lock. Who is known to have it is still known.
    pub(super) fn claimed(&mut self, now: Boot) {
        let last = Witness { at: now, silent: Duration::ZERO };
        self.holder.get_or_insert(Other { session: None, last, ttl: None, over: false });
    }

    /// The ttl of whoever has the lock, or had it last.
    pub(super) fn their_ttl(&self) -> Option<Duration> {
        self.holder.as_ref()?.ttl
    }

    /// The holder released it, or this process has it.
    pub(super) fn free(&mut self) -> Option<Witness> {
        self.holder.take().map(|other| other.last)
    }

    /// The server shows that no other session has it. What was known of the last one is kept: its end may be a crash.
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

    fn reserve(&mut self, new: LockReservation) {
        if !new.comes_too_soon_after(self.reserved.as_ref()) {
            self.reserved = Some(new);
        }
    }

    /// For whom a released lock is still reserved.
    pub(super) fn reserved(&self, now: Boot, ttl: Duration) -> Option<LockReservation> {
        self.reserved.as_ref().filter(|kept| !kept.used && now < kept.until(ttl)).cloned()
    }

    /// Somebody has it, or says so. A reservation for it is over, and remembered: else whoever sends both could reserve for ever.
    pub(super) fn used_by(&mut self, id: &CandidateId) {
        self.reserved.iter_mut().filter(|kept| kept.whom == *id).for_each(|kept| kept.used = true);
    }
}

impl<K, Id> Default for KnownElections<K, Id> {
    fn default() -> KnownElections<K, Id> {
        KnownElections { all: HashMap::new(), unknown: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash + Ord, Id: Copy + Eq + Ord> KnownElections<K, Id> {
    pub(super) fn of(&mut self, key: K, name: &ElectionName) -> &mut Known<Id> {
        let unknown = &mut self.unknown;
        self.all.entry(key).or_insert_with(|| Known {
            name: name.clone(),
            followers: 0,
            candidates: BTreeSet::new(),
            holder: None,
            reserved: unknown.remove(&key),
            doubted: false,
            releases: 0,
        })
    }

    pub(super) fn get(&self, key: K) -> Option<&Known<Id>> {
        self.all.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut Known<Id>> {
        self.all.get_mut(&key)
    }

    /// A notice says that a lock is about to be released for a named candidate.
    pub(super) fn reserve(&mut self, key: K, new: LockReservation) {
        if let Some(known) = self.all.get_mut(&key) {
            known.reserve(new);
            return;
        }
        if new.comes_too_soon_after(self.unknown.get(&key)) {
            return;
        }
        if self.unknown.len() >= UNKNOWN_MAX {
            self.unknown.retain(|_, old| !old.is_forgotten(new.from));
        }
        if self.unknown.len() < UNKNOWN_MAX || self.unknown.contains_key(&key) {
            self.unknown.insert(key, new);
        }
    }

    pub(super) fn forget(&mut self, key: K) {
        self.all.remove(&key);
    }

    /// Its name, if it is followed here.
    pub(super) fn followed(&self, key: K) -> Option<ElectionName> {
        self.all.get(&key).filter(|known| known.followers > 0).map(|known| known.name.clone())
    }

    pub(super) fn follows_any(&self) -> bool {
        self.all.values().any(|known| known.followers > 0)
    }

    /// Whether it is followed here, and will be looked at.
    pub(super) fn doubt(&mut self, key: K) -> bool {
        match self.all.get_mut(&key).filter(|known| known.followers > 0) {
            Some(known) => {
                known.doubted = true;
                true
            }
            None => false,
        }
    }

    /// All that were doubted, from now on no more, and how many releases of each were told.
    pub(super) fn take_doubted(&mut self) -> Vec<(K, ElectionName, u64)> {
        let mut doubted: Vec<_> = Vec::new();
        for (key, known) in &mut self.all {
            if std::mem::take(&mut known.doubted) {
                doubted.push((*key, known.name.clone(), known.releases));
            }
        }
        doubted.sort_unstable_by_key(|(key, ..)| *key);
        doubted
    }

    /// Another session that holds something wanted here: the next one after that.
    pub(super) fn other_after(&self, last: Option<Id>) -> Option<Id> {
        let others = || self.all.values().filter(|known| known.followers > 0).filter_map(Known::other);
        let next = others().filter(|id| last.is_none_or(|last| *id > last)).min();
        next.or_else(|| others().min())
    }

    /// The elections that candidates here wait for while others have them.
    pub(super) fn led_by_others(&self) -> Vec<K> {
        let waits = |known: &Known<Id>| !known.candidates.is_empty() && known.other().is_some();
        self.all.iter().filter(|(_, known)| waits(known)).map(|(key, _)| *key).collect()
    }

    /// That session is over: what it held and is followed here.
    pub(super) fn ended(&mut self, session: Id) -> Vec<ElectionName> {
        let mut gone: Vec<_> = Vec::new();
        for (key, known) in &mut self.all {
            if known.other() == Some(session) {
                known.found_free();
                if known.followers > 0 {
                    gone.push((*key, known.name.clone()));
                }
            }
        }
        gone.sort_unstable_by_key(|(key, _)| *key);
        gone.into_iter().map(|(_, name)| name).collect()
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

    fn holder(session: u8, ttl: Option<Duration>) -> LockHolder<u8> {
        LockHolder {
            session,
            name: String::new(),
            is_ours: true,
            id: None,
            leads: true,
            ttl,
            silent: Some(Duration::ZERO),
            epoch: None,
        }
    }

    fn reserve(known: &mut Known<u8>, millis: u64, by_holder: bool) {
        let whom = CandidateId::new("x").unwrap();
        known.reserve(LockReservation::new(whom, at(millis), Duration::from_secs(1), by_holder));
    }

    #[test]
    fn reservations_that_no_holder_made_count_for_at_most_a_fifth_of_the_time() {
        let mut elections = KnownElections::<u8, u8>::default();
        let known = elections.of(1, &name());
        let mut kept = 0;
        for millis in 0..60_000 {
            reserve(known, millis, false);
            // Whoever forges the one can forge the other.
            if millis % 100 == 99 {
                known.used_by(&CandidateId::new("x").unwrap());
            }
            kept += u32::from(known.reserved(at(millis), TTL).is_some());
        }
        assert!((500..=12_000).contains(&kept), "{kept} ms of 60,000");
        // Its holder is not kept waiting for that.
        reserve(known, 60_000, true);
        assert!(known.reserved(at(60_399), TTL).is_some(), "for a fifth of the ttl");
        assert!(known.reserved(at(60_400), TTL).is_none());
    }

    #[test]
    fn a_reservation_is_over_when_whom_it_was_for_is_heard_to_have_claimed() {
        let mut elections = KnownElections::<u8, u8>::default();
        for key in [1, 2] {
            let named = LockReservation::new(CandidateId::new("named").unwrap(), at(1), RESERVED_MAX, true);
            elections.reserve(key, named);
        }
        let mut reserved = |key, claims: &str| {
            let known = elections.of(key, &name());
            known.used_by(&CandidateId::new(claims).unwrap());
            known.reserved(at(2), TTL).is_some()
        };
        assert!(reserved(1, "another"), "it was not for that one");
        assert!(!reserved(1, "named") && reserved(2, "another"));
    }

    #[test]
    fn reservations_of_what_nobody_here_takes_part_in_are_kept_and_bounded() {
        let mut elections = KnownElections::<u32, u8>::default();
        let new = || LockReservation::new(CandidateId::new("x").unwrap(), at(1), RESERVED_MAX, false);
        (0..10_000).for_each(|key| elections.reserve(key, new()));
        assert_eq!(elections.unknown.len(), UNKNOWN_MAX);
        assert!(elections.of(7, &name()).reserved(at(2), TTL).is_some(), "for who comes a moment later");
        assert_eq!(elections.unknown.len(), UNKNOWN_MAX - 1);
    }

    #[test]
    fn who_says_that_it_holds_does_not_hide_who_was_seen_to() {
        let mut elections = KnownElections::<u8, u8>::default();
        let known = elections.of(1, &name());
        known.held_by(at(1), &holder(7, None));
        known.claimed(at(2));
        assert!(known.is_holder(7));
        known.free();
        known.claimed(at(3));
        assert!(!known.is_holder(7) && known.free().is_some());
    }

    #[test]
    fn the_ttl_of_a_holder_goes_with_it_and_one_that_does_not_lead_has_none() {
        let mut elections = KnownElections::<u8, u8>::default();
        let known = elections.of(1, &name());
        known.held_by(at(1), &holder(7, Some(TTL)));
        known.held_by(at(2), &LockHolder { silent: None, leads: false, ..holder(7, None) });
        known.found_free();
        assert_eq!(known.their_ttl(), Some(TTL), "it may have believed until now");
        known.held_by(at(3), &LockHolder { leads: false, ..holder(8, Some(TTL * 1_000)) });
        assert_eq!(known.their_ttl(), None);
    }

    #[test]
    fn a_session_that_ended_holds_nothing_and_how_it_ended_is_still_known() {
        let mut elections = KnownElections::<u8, u8>::default();
        for (key, session) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
            let known = elections.of(key, &ElectionName::new(key.to_string()).unwrap());
            known.followers = usize::from(key < 4);
            known.held_by(at(1), &holder(session, None));
        }
        assert_eq!(elections.other_after(None), Some(1));
        assert_eq!(elections.other_after(Some(1)), Some(2));
        assert_eq!(elections.other_after(Some(2)), Some(1), "every session gets its turn");
        elections.of(3, &name()).held_by(at(2), &holder(2, None));
        let gone: Vec<String> = elections.ended(2).iter().map(ToString::to_string).collect();
        assert_eq!(gone, ["2", "3"], "4 is not followed here");
        assert_eq!(elections.other_after(None), Some(1));
        assert!(elections.of(2, &name()).free().is_some());
    }
}
