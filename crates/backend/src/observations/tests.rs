//! When a follower may take over, rule by rule. Time is a number here; nothing waits.

use bellwether_core::{Candidate, CandidateId, Holder, Incarnation, Request, Wall};

use super::*;
use crate::Reservation;

const TTL: Duration = Duration::from_secs(10);
const FREE: Verdict<u64> = Verdict::Write { at: None, after_crash: false };

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

fn write(version: u64) -> Verdict<u64> {
    Verdict::Write { at: Some(version), after_crash: false }
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

    fn verdict(&self, seconds: u64) -> Verdict<u64> {
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
    assert_eq!(b.verdict(100), Verdict::Wait(at(110)));
    assert_eq!(b.verdict(109), Verdict::Wait(at(110)));
    assert_eq!(b.verdict(110), write(1));
    assert_eq!(b.seen(100).free_at, Some(at(110)));
}

#[test]
fn no_wall_clock_in_the_record_changes_the_wait() {
    for hour in [-1, 1] {
        let wall = Some(Wall::from_unix_nanos(hour * 3_600_000_000_000));
        let b = Follower::seeing(100, Record { acquired: wall, renewed: wall, ..record("a", 1, 1, 1) }, 1);
        assert_eq!(b.verdict(109), Verdict::Wait(at(110)));
        assert_eq!(b.verdict(110), write(1));
    }
}

#[test]
fn the_ttl_in_the_record_counts_and_the_followers_own_only_where_there_is_none() {
    for (ttl, until) in [(Some(30), 130), (Some(3), 103), (None, 110)] {
        let ttl = ttl.map(Duration::from_secs);
        let b = Follower::seeing(100, Record { ttl, ..record("a", 1, 1, 1) }, 1);
        assert_eq!(b.verdict(100), Verdict::Wait(at(until)));
    }
}

#[test]
fn a_renewal_starts_the_wait_anew_and_the_same_news_does_not() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(!b.load(105, Some((record("a", 1, 1, 1), 1))));
    assert!(!b.told(106, Some((record("a", 1, 1, 1), 1))));
    assert_eq!(b.verdict(106), Verdict::Wait(at(110)));
    assert_eq!(b.seen(106).proof, Proof::Record);
    assert!(b.told(108, Some((record("a", 1, 1, 2), 2))));
    assert_eq!(b.verdict(108), Verdict::Wait(at(118)));
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
    assert_eq!(b.verdict(105), Verdict::Wait(at(111)));
    // It was seen to renew; that somebody else wrote since does not take that back.
    assert_eq!(b.seen(105).proof, Proof::Alive);
    assert_eq!(b.verdict(111), write(3));
}

#[test]
fn seen_and_vanished_counts_for_a_whole_ttl_from_when_it_was_noticed() {
    // The leader may have renewed at 103, and the renewal vanished with the record before anybody saw it.
    let mut b = Follower::seeing(100, record("a", 1, 7, 1), 1);
    assert!(b.load(104, None));
    assert!(!b.load(108, None));
    assert_eq!(b.verdict(108), Verdict::Wait(at(114)));
    let seen = b.seen(108);
    assert_eq!((seen.leader(), seen.epoch, seen.free_at), (None, Epoch::new(7), Some(at(114))));
    assert_eq!(seen.ttl, Some(TTL));
    assert_eq!(b.0.epoch(&on()), Epoch::new(7).unwrap());
    assert_eq!(b.verdict(114), FREE);
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
    assert_eq!(b.verdict(102), Verdict::Wait(at(111)));
    // It was there all the time, and was renewed, until now: the wait begins with the first certain absence.
    b.load(108, None);
    assert_eq!(b.verdict(112), Verdict::Wait(at(118)));
    b.load(113, None);
    assert_eq!(b.verdict(113), Verdict::Wait(at(118)), "and not with every one after it");
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
fn released_and_vanished_is_free_at_once() {
    let mut b = Follower::seeing(100, released(1, 2), 2);
    b.load(101, None);
    assert_eq!(b.verdict(101), FREE);
}

#[test]
fn what_comes_after_a_vanished_record_does_not_shorten_its_wait() {
    let mut b = Follower::seeing(100, Record { ttl: Some(3 * TTL), ..record("a", 1, 1, 1) }, 1);
    b.load(101, None);
    // Somebody who had never seen it came and went; the first may still believe.
    b.load(102, Some((record("c", 3, 2, 1), 5)));
    assert_eq!(b.verdict(102), Verdict::Wait(at(131)));
    b.load(103, Some((released(2, 2), 6)));
    assert_eq!(b.verdict(103), Verdict::Wait(at(131)));
    assert_eq!(b.seen(103).free_at, Some(at(131)));
    assert_eq!(b.verdict(131), write(6));
    assert_eq!(b.seen(131).free_at, None);
}

#[test]
fn of_two_vanished_records_the_one_that_lasts_longer_counts() {
    let mut b = Follower::seeing(100, Record { ttl: Some(3 * TTL), ..record("a", 1, 1, 1) }, 1);
    b.load(101, None);
    b.load(102, Some((record("c", 3, 2, 1), 5)));
    b.load(103, None);
    assert_eq!(b.verdict(103), Verdict::Wait(at(131)));
    b.load(125, Some((record("d", 4, 3, 1), 7)));
    b.load(126, None);
    assert_eq!(b.verdict(126), Verdict::Wait(at(136)));
}

#[test]
fn a_vanished_record_of_ones_own_does_not_hide_that_of_another() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, None);
    b.load(102, Some((Record { ttl: Some(3 * TTL), ..record("b", 2, 2, 1) }, 2)));
    b.load(103, None);
    assert_eq!(b.verdict(103), Verdict::Wait(at(111)));
    assert_eq!(b.verdict(111), FREE);
}

#[test]
fn a_vanished_record_that_comes_back_speaks_for_itself() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, None);
    b.load(105, Some((record("a", 1, 1, 2), 7)));
    assert_eq!(b.verdict(105), Verdict::Wait(at(115)));
    b.load(106, None);
    b.load(107, Some((released(1, 3), 8)));
    assert_eq!(b.verdict(107), write(8));
}

/// A store that counts epochs anew can issue one twice.
#[test]
fn a_vanished_record_is_not_settled_by_another_holder_of_its_epoch() {
    let brief = |who, start| Record { ttl: Some(TTL / 5), ..record(who, start, 1, 2) };
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, None);
    b.load(102, Some((brief("c", 3), 7)));
    assert_eq!(b.verdict(102), Verdict::Wait(at(111)));
    b.load(103, Some((brief("a", 1), 8)));
    assert_eq!(b.verdict(103), Verdict::Wait(at(105)), "the same one speaks for itself");
}

#[test]
fn a_version_that_goes_back_starts_the_wait_anew_when_read_and_is_dropped_when_told() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 5), 5);
    assert!(!b.told(104, Some((record("a", 1, 1, 4), 4))));
    assert_eq!(b.0.last(&on()).unwrap().1, 5);
    assert_eq!(b.verdict(104), Verdict::Wait(at(110)));
    assert!(b.load(106, Some((record("a", 1, 1, 4), 4))));
    assert_eq!(b.verdict(106), Verdict::Wait(at(116)));
    assert_eq!(b.seen(106).proof, Proof::Record);
}

#[test]
fn the_same_version_with_another_content_starts_the_wait_anew() {
    for source in [Source::Load, Source::Watch, Source::Overtaken] {
        let mut b = Follower::seeing(100, record("a", 1, 1, 5), 5);
        assert!(b.0.saw(at(106), &on(), Some((record("c", 3, 2, 5), 5)), source), "{source:?}");
        assert_eq!(b.verdict(106), Verdict::Wait(at(116)), "{source:?}");
    }
}

#[test]
fn a_store_that_went_back_before_a_claim_does_not_free_it() {
    let mut b = Follower::seeing(100, released(1, 1), 1);
    b.load(101, Some((record("a", 1, 2, 2), 2)));
    // Rolled back: the record says released, but the leader of epoch 2 had its answer and believes.
    b.load(103, Some((released(1, 1), 1)));
    assert_eq!(b.verdict(103), Verdict::Wait(at(113)));
    assert_eq!(b.0.epoch(&on()), Epoch::new(2).unwrap());
    assert_eq!(b.verdict(113), write(1));
}

/// Found by the simulator: only what was held then was remembered, and a restored store issued the epoch of a released record again.
#[test]
fn the_highest_epoch_is_remembered_though_the_store_went_back_behind_it() {
    for later in [released(7, 2), record("a", 1, 7, 2)] {
        let mut b = Follower::seeing(100, later, 2);
        b.load(103, Some((released(1, 1), 1)));
        b.load(104, None);
        b.load(200, Some((released(3, 1), 1)));
        assert_eq!(b.0.epoch(&on()), Epoch::new(7).unwrap());
    }
}

#[test]
fn a_store_that_went_back_to_ones_own_record_does_not_free_it() {
    let mut b = Follower::seeing(100, record("b", 2, 1, 9), 1);
    b.load(101, Some((record("a", 1, 2, 1), 2)));
    b.load(103, Some((record("b", 2, 1, 9), 1)));
    assert_eq!(b.verdict(103), Verdict::Wait(at(113)));
    assert_eq!(b.verdict(113), write(1));
}

#[test]
fn after_a_reconnect_every_wait_starts_anew() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.0.restart(at(108));
    assert_eq!(b.verdict(108), Verdict::Wait(at(118)));
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, None);
    b.0.restart(at(108));
    assert_eq!(b.verdict(108), Verdict::Wait(at(118)));
}

#[test]
fn foreign_records_have_no_beat_so_every_difference_is_a_sign_of_life() {
    let mut b = Follower::seeing(100, foreign("x"), 1);
    assert_eq!(b.verdict(100), Verdict::Wait(at(110)));
    let again = Record { renewed: Some(Wall::from_unix_nanos(1)), ..foreign("x") };
    b.load(105, Some((again.clone(), 2)));
    assert_eq!(b.verdict(105), Verdict::Wait(at(115)));
    // Only the version moved: its writer is at work all the same.
    b.load(107, Some((again, 3)));
    assert_eq!(b.verdict(107), Verdict::Wait(at(117)));
    assert_eq!(b.verdict(117), write(3));
    assert_eq!(b.seen(107).epoch, None);
}

#[test]
fn a_foreign_record_with_our_id_is_not_ours() {
    let b = Follower::seeing(100, foreign("b"), 1);
    assert_eq!(b.verdict(100), Verdict::Wait(at(110)));
}

#[test]
fn a_broken_record_keeps_others_out_for_a_ttl_and_is_then_replaced() {
    let b = Follower::seeing(100, Record::unreadable(), 1);
    assert_eq!(b.verdict(109), Verdict::Wait(at(110)));
    assert_eq!(b.seen(100).holder, None);
    assert_eq!(b.verdict(110), write(1));
}

#[test]
fn a_reservation_keeps_all_but_one_out_for_its_span() {
    let reserved = Some(Reservation { candidate: id("c"), span: Duration::from_secs(1) });
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(103, Some((Record { reserved, ..released(1, 2) }, 2)));
    assert_eq!(b.verdict(103), Verdict::Wait(at(104)));
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
    assert_eq!(b.0.verdict(at(100), &on(), &later, false), Verdict::Wait(at(110)));
    let danger = Bid { danger_reclaim: true, ..later };
    assert_eq!(b.0.verdict(at(100), &on(), &danger, false), write(1));
}

#[test]
fn proof_of_death_frees_at_once_and_says_so() {
    let b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    let dead = b.0.verdict(at(100), &on(), &bid("b", 2), true);
    assert_eq!(dead, Verdict::Write { at: Some(1), after_crash: true });
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

#[test]
fn what_the_store_took_away_when_it_had_run_out_is_not_waited_for_once_more() {
    let away = |b: &mut Follower, seconds| b.0.saw(at(seconds), &on(), None, Source::TakenAway);
    // Gone at about the time when it may be taken over: no second wait.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(away(&mut b, 111));
    assert_eq!(b.verdict(111), FREE);
    assert_eq!(b.0.epoch(&on()), Epoch::new(1).unwrap());
    // Gone earlier than that: seen late, or taken away by somebody; the wait goes on.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(away(&mut b, 103));
    assert_eq!(b.verdict(103), Verdict::Wait(at(110)));
    assert_eq!(b.verdict(110), FREE);
    // A renewal that was seen counts.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(b.told(108, Some((record("a", 1, 1, 2), 2))));
    assert!(away(&mut b, 111));
    assert_eq!(b.verdict(111), Verdict::Wait(at(118)));
    // A connection that was away makes no difference to that.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.0.restart(at(105));
    assert!(away(&mut b, 112));
    assert_eq!(b.verdict(112), Verdict::Wait(at(115)));
    // Told as deleted first, and the mark gone since: deleted it was.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(b.told(104, None));
    away(&mut b, 111);
    assert_eq!(b.verdict(111), Verdict::Wait(at(121)));
}

fn millis(count: u64) -> Boot {
    Boot::from_nanos(count * 1_000_000)
}

impl Follower {
    /// `b` follows `a`, whose last sign of life it saw at 100 s.
    fn of_a() -> Follower {
        Follower::seeing(100, record("a", 1, 1, 1), 1)
    }

    fn told_at(&mut self, at: Boot, record: Record, version: u64) {
        self.0.saw(at, &on(), Some((record, version)), Source::Watch);
    }

    fn may_do_without_a_read(&self, at: Boot) -> bool {
        self.0.is_fresh_release(at, &on())
    }
}

#[test]
fn a_release_that_was_told_just_now_is_not_read_once_more() {
    let mut b = Follower::of_a();
    assert!(!b.may_do_without_a_read(millis(100_000)), "held");
    b.told_at(millis(103_000), released(1, 2), 2);
    assert!(b.may_do_without_a_read(millis(103_099)));
    assert!(!b.may_do_without_a_read(millis(103_100)), "not so new any more");
    b.told_at(millis(103_050), record("c", 3, 2, 3), 3);
    assert!(!b.may_do_without_a_read(millis(103_050)), "somebody was faster");
}

#[test]
fn a_release_is_read_again_where_there_is_any_doubt() {
    let told = |change: &dyn Fn(&mut Follower)| {
        let mut b = Follower::of_a();
        change(&mut b);
        b.may_do_without_a_read(millis(103_001))
    };
    let release = |b: &mut Follower| b.told_at(millis(103_000), released(1, 2), 2);
    assert!(told(&release));
    assert!(!told(&|b| assert!(b.load(103, Some((released(1, 2), 2))))), "it was read: nothing to spare");
    assert!(!told(&|b| b.told_at(millis(103_000), released(5, 2), 2)), "of a leadership that was not seen");
    assert!(!told(&|b| b.told_at(millis(103_000), Record { broken: true, ..released(1, 2) }, 2)));
    assert!(!told(&|b| {
        release(b);
        b.0.doubt();
    }));
    assert!(!told(&|b| {
        release(b);
        b.0.restart(millis(103_000));
    }));
    assert!(
        !told(&|b| {
            b.load(101, None);
            b.told_at(millis(102_000), record("c", 3, 2, 1), 2);
            b.told_at(millis(103_000), Record { holder: None, ..record("c", 3, 2, 2) }, 3);
        }),
        "another leader's record vanished before"
    );
    assert!(!told(&|b| {
        release(b);
        b.0.saw(millis(103_000), &on(), None, Source::Watch);
    }));
    // Released for good, but when? The process was stopped, and this lay unread for longer than the lease lasts.
    let mut b = Follower::of_a();
    b.told_at(millis(110_000), released(1, 2), 2);
    assert!(!b.may_do_without_a_read(millis(110_000)));
    let mut b = Follower::of_a();
    b.told_at(millis(109_950), released(1, 2), 2);
    assert!(b.may_do_without_a_read(millis(109_999)));
    assert!(!b.may_do_without_a_read(millis(110_000)));
}
