//! When a follower may take over, rule by rule. Time is a number here; nothing waits.

mod pause;
mod release;
mod rollback;
mod vanished;

use bellwether_core::{Candidate, CandidateId, Holder, Incarnation, Request, Wall};

use super::*;
use crate::Reservation;

const TTL: Duration = Duration::from_secs(10);
const FREE: ClaimVerdict<u64> = ClaimVerdict::Write { at: None, after_crash: false };

fn at(seconds: u64) -> Boot {
    Boot::from_nanos(seconds * 1_000_000_000)
}

fn on() -> ElectionName {
    ElectionName::new("e").unwrap()
}

fn id(text: &str) -> CandidateId {
    CandidateId::new(text).unwrap()
}

fn bid(who: &str, start: u128) -> Bid {
    Bid::new(Candidate { id: id(who), incarnation: Incarnation::from_bits(start) }, TTL, Boot::default())
}

fn record(who: &str, start: u128, epoch: u64, beat: u64) -> Record {
    Record {
        holder: Some(Holder { id: id(who), incarnation: Some(Incarnation::from_bits(start)) }),
        epoch: Epoch::new(epoch),
        ttl: Some(TTL),
        beat,
        ..Record::default()
    }
}

fn released(epoch: u64, beat: u64) -> Record {
    Record { holder: None, ..record("a", 1, epoch, beat) }
}

fn foreign(who: &str) -> Record {
    Record { holder: Some(Holder { id: id(who), incarnation: None }), ..Record::default() }
}

fn write(version: u64) -> ClaimVerdict<u64> {
    ClaimVerdict::Write { at: Some(version), after_crash: false }
}

/// What one follower, `b`, has seen.
struct Follower(Observations<u64>);

impl Follower {
    fn new() -> Follower {
        Follower(Observations::default())
    }

    fn seeing(seconds: u64, record: Record, version: u64) -> Follower {
        let mut follower = Follower::new();
        assert!(follower.load(seconds, Some((record, version))));
        follower
    }

    fn load(&mut self, seconds: u64, found: Option<(Record, u64)>) -> bool {
        self.0.saw(at(seconds), &on(), found, Source::Load)
    }

    fn told(&mut self, seconds: u64, found: Option<(Record, u64)>) -> bool {
        self.0.saw(at(seconds), &on(), found, Source::Watch)
    }

    fn verdict(&self, seconds: u64) -> ClaimVerdict<u64> {
        self.0.verdict(at(seconds), &on(), &bid("b", 2), false)
    }

    fn seen(&self, seconds: u64) -> Seen {
        self.0.seen(at(seconds), &on(), Some(TTL), false)
    }
}

#[test]
fn what_was_never_seen_is_free_at_once() {
    let mut b = Follower::new();
    assert_eq!(b.verdict(0), FREE);
    b.load(1, None);
    assert_eq!(b.verdict(1), FREE);
    assert_eq!(b.seen(1), Seen::nothing());
}

#[test]
fn the_wait_is_a_whole_ttl_from_when_it_was_seen() {
    let b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert_eq!(b.verdict(100), ClaimVerdict::Wait(at(110)));
    assert_eq!(b.verdict(109), ClaimVerdict::Wait(at(110)));
    assert_eq!(b.verdict(110), write(1));
    assert_eq!(b.seen(100).free_at, Some(at(110)));
}

#[test]
fn no_wall_clock_in_the_record_changes_the_wait() {
    for hour in [-1, 1] {
        let wall = Some(Wall::from_unix_nanos(hour * 3_600_000_000_000));
        let b = Follower::seeing(100, Record { acquired: wall, renewed: wall, ..record("a", 1, 1, 1) }, 1);
        assert_eq!(b.verdict(109), ClaimVerdict::Wait(at(110)));
        assert_eq!(b.verdict(110), write(1));
    }
}

#[test]
fn the_ttl_in_the_record_counts_and_the_followers_own_only_where_there_is_none() {
    for (ttl, until) in [(Some(30), 130), (Some(3), 103), (None, 110)] {
        let ttl = ttl.map(Duration::from_secs);
        let b = Follower::seeing(100, Record { ttl, ..record("a", 1, 1, 1) }, 1);
        assert_eq!(b.verdict(100), ClaimVerdict::Wait(at(until)));
    }
}

#[test]
fn a_renewal_starts_the_wait_anew_and_the_same_news_does_not() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(!b.load(105, Some((record("a", 1, 1, 1), 1))));
    assert!(!b.told(106, Some((record("a", 1, 1, 1), 1))));
    assert_eq!(b.verdict(106), ClaimVerdict::Wait(at(110)));
    assert_eq!(b.seen(106).proof, Proof::Record);
    assert!(b.told(108, Some((record("a", 1, 1, 2), 2))));
    assert_eq!(b.verdict(108), ClaimVerdict::Wait(at(118)));
    assert_eq!(b.seen(108).proof, Proof::Alive);
}

#[test]
fn a_request_is_no_renewal_and_no_sign_of_death() {
    let asked = |beat| {
        let what = bellwether_core::Ask::StepDown { to: None };
        let request = Some(Request { epoch: Epoch::new(1).unwrap(), what });
        Record { request, ..record("a", 1, 1, beat) }
    };
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, Some((record("a", 1, 1, 2), 2)));
    assert!(b.load(105, Some((asked(2), 3))));
    assert_eq!(b.verdict(105), ClaimVerdict::Wait(at(111)));
    // It was seen to renew; that somebody else wrote since does not take that back.
    assert_eq!(b.seen(105).proof, Proof::Alive);
    assert_eq!(b.verdict(111), write(3));
}

#[test]
fn a_read_that_was_overtaken_cannot_make_a_record_go_back_and_its_absence_is_not_certain() {
    // The read began before the record was written, and its answer came after the record had been told of.
    let mut b = Follower::new();
    b.load(99, None);
    let before = b.0.learnt(&on());
    b.told(100, Some((record("a", 1, 7, 1), 5)));
    assert_ne!(b.0.learnt(&on()), before);
    assert!(!b.0.saw(at(101), &on(), Some((record("a", 1, 6, 1), 4)), Source::Overtaken));
    assert_eq!(b.0.last(&on()).unwrap().1, 5);
    assert!(b.0.saw(at(101), &on(), None, Source::Overtaken));
    assert_eq!(b.verdict(102), ClaimVerdict::Wait(at(111)));
    // It was there all the time, and was renewed, until now: the wait begins with the first certain absence.
    b.load(108, None);
    assert_eq!(b.verdict(112), ClaimVerdict::Wait(at(118)));
    b.load(113, None);
    assert_eq!(b.verdict(113), ClaimVerdict::Wait(at(118)), "and not with every one after it");
    assert!(b.0.saw(at(113), &on(), Some((record("c", 3, 8, 1), 9)), Source::Overtaken), "newer is news");
}

/// A read that began before would otherwise be taken for one that nothing overtook.
#[test]
fn what_was_learnt_counts_up_with_every_news_and_with_nothing_else() {
    let mut b = Follower::new();
    let mut counts = vec![b.0.learnt(&on())];
    let (first, second) = (Some((record("a", 1, 7, 1), 5)), Some((record("a", 1, 7, 2), 6)));
    for found in [first.clone(), first.clone(), None, None, second, first] {
        b.told(100, found);
        counts.push(b.0.learnt(&on()));
    }
    assert_eq!(counts, [0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn after_a_reconnect_every_wait_starts_anew() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.0.restart(at(108));
    assert_eq!(b.verdict(108), ClaimVerdict::Wait(at(118)));
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, None);
    b.0.restart(at(108));
    assert_eq!(b.verdict(108), ClaimVerdict::Wait(at(118)));
}

#[test]
fn foreign_records_have_no_beat_so_every_difference_is_a_sign_of_life() {
    let mut b = Follower::seeing(100, foreign("x"), 1);
    assert_eq!(b.verdict(100), ClaimVerdict::Wait(at(110)));
    let again = Record { renewed: Some(Wall::from_unix_nanos(1)), ..foreign("x") };
    b.load(105, Some((again.clone(), 2)));
    assert_eq!(b.verdict(105), ClaimVerdict::Wait(at(115)));
    // Only the version moved: its writer is at work all the same.
    b.load(107, Some((again, 3)));
    assert_eq!(b.verdict(107), ClaimVerdict::Wait(at(117)));
    assert_eq!(b.verdict(117), write(3));
    assert_eq!(b.seen(107).epoch, None);
}

#[test]
fn a_foreign_record_with_our_id_is_not_ours() {
    let b = Follower::seeing(100, foreign("b"), 1);
    assert_eq!(b.verdict(100), ClaimVerdict::Wait(at(110)));
}

#[test]
fn a_broken_record_keeps_others_out_for_a_ttl_and_is_then_replaced() {
    let b = Follower::seeing(100, Record::unreadable(), 1);
    assert_eq!(b.verdict(109), ClaimVerdict::Wait(at(110)));
    assert_eq!(b.seen(100).holder, None);
    assert_eq!(b.verdict(110), write(1));
}

#[test]
fn a_reservation_keeps_all_but_one_out_for_its_span() {
    let reserved = Some(Reservation { candidate: id("c"), span: Duration::from_secs(1) });
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(103, Some((Record { reserved, ..released(1, 2) }, 2)));
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(104)));
    assert_eq!(b.0.verdict(at(103), &on(), &bid("c", 3), false), write(2));
    let seen = b.seen(103);
    assert_eq!((seen.reserved_for, seen.free_at), (Some(id("c")), Some(at(104))));
    assert_eq!(b.verdict(104), write(2));
}

#[test]
fn ones_own_record_is_free_at_once_and_that_of_an_earlier_start_is_not() {
    let b = Follower::seeing(100, record("b", 2, 1, 1), 1);
    assert_eq!(b.verdict(100), write(1));
    let later = bid("b", 99);
    assert_eq!(b.0.verdict(at(100), &on(), &later, false), ClaimVerdict::Wait(at(110)));
    let danger = Bid { danger_reclaim: true, ..later };
    assert_eq!(b.0.verdict(at(100), &on(), &danger, false), write(1));
}

#[test]
fn proof_of_death_frees_at_once_and_says_so() {
    let b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    let dead = b.0.verdict(at(100), &on(), &bid("b", 2), true);
    assert_eq!(dead, ClaimVerdict::Write { at: Some(1), after_crash: true });
    let seen = b.0.seen(at(101), &on(), Some(TTL), true);
    assert_eq!((seen.proof, seen.free_at, seen.leader()), (Proof::Dead, Some(at(101)), None));
}

#[test]
fn forgotten_is_never_seen() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.0.forget(&on());
    assert_eq!(b.verdict(100), FREE);
    assert_eq!(b.seen(100), Seen::nothing());
}
