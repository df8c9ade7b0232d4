//! A record that was seen and is gone: its holder may still believe.

use super::*;

#[test]
fn seen_and_vanished_counts_for_a_whole_ttl_from_when_it_was_noticed() {
    // The leader may have renewed at 103, and the renewal vanished with the record before anybody saw it.
    let mut b = Follower::seeing(100, record("a", 1, 7, 1), 1);
    assert!(b.load(104, None));
    assert!(!b.load(108, None));
    assert_eq!(b.verdict(108), ClaimVerdict::Wait(at(114)));
    let seen = b.seen(108);
    assert_eq!((seen.leader(), seen.epoch, seen.free_at), (None, Epoch::new(7), Some(at(114))));
    assert_eq!(seen.ttl, Some(TTL));
    assert_eq!(b.0.epoch(&on()), Epoch::new(7).unwrap());
    assert_eq!(b.verdict(114), FREE);
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
    assert_eq!(b.verdict(102), ClaimVerdict::Wait(at(131)));
    b.load(103, Some((released(2, 2), 6)));
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(131)));
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
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(131)));
    b.load(125, Some((record("d", 4, 3, 1), 7)));
    b.load(126, None);
    assert_eq!(b.verdict(126), ClaimVerdict::Wait(at(136)));
}

#[test]
fn a_vanished_record_of_ones_own_does_not_hide_that_of_another() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, None);
    b.load(102, Some((Record { ttl: Some(3 * TTL), ..record("b", 2, 2, 1) }, 2)));
    b.load(103, None);
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(111)));
    assert_eq!(b.verdict(111), FREE);
}

#[test]
fn a_vanished_record_that_comes_back_speaks_for_itself() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(101, None);
    b.load(105, Some((record("a", 1, 1, 2), 7)));
    assert_eq!(b.verdict(105), ClaimVerdict::Wait(at(115)));
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
    assert_eq!(b.verdict(102), ClaimVerdict::Wait(at(111)));
    b.load(103, Some((brief("a", 1), 8)));
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(105)), "the same one speaks for itself");
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
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(110)));
    assert_eq!(b.verdict(110), FREE);
    // A renewal that was seen counts.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(b.told(108, Some((record("a", 1, 1, 2), 2))));
    assert!(away(&mut b, 111));
    assert_eq!(b.verdict(111), ClaimVerdict::Wait(at(118)));
    // A connection that was away makes no difference to that.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.0.restart(at(105));
    assert!(away(&mut b, 112));
    assert_eq!(b.verdict(112), ClaimVerdict::Wait(at(115)));
    // Told as deleted first, and the mark gone since: deleted it was.
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    assert!(b.told(104, None));
    away(&mut b, 111);
    assert_eq!(b.verdict(111), ClaimVerdict::Wait(at(121)));
}
