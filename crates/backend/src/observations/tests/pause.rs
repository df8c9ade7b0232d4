//! A pause is one more wait for everybody, and no way to shorten another.

use bellwether_core::Pause;

use super::*;

/// What was paused at that wall-clock time, with that much left.
fn paused(seconds: u64, wall: i64, record: Record) -> Record {
    let at = Some(Wall::from_unix_nanos(wall * 1_000));
    Record { paused: Pause::new(Duration::from_secs(seconds), Some(id("ops")), at), ..record }
}

#[test]
fn nobody_is_let_in_before_it_ends_whatever_would_let_them_in_otherwise() {
    let b = Follower::seeing(100, paused(60, 1, released(1, 2)), 1);
    assert_eq!(
        (b.verdict(100), b.verdict(159), b.verdict(160)),
        (ClaimVerdict::Wait(at(160)), ClaimVerdict::Wait(at(160)), write(1))
    );
    let b = Follower::seeing(100, paused(60, 1, record("a", 1, 1, 1)), 1);
    assert_eq!(
        b.0.verdict(at(101), &on(), &bid("b", 2), true),
        ClaimVerdict::Wait(at(160)),
        "proof of death"
    );
    assert_eq!(b.verdict(120), ClaimVerdict::Wait(at(160)), "silence");
    let b = Follower::seeing(100, paused(60, 1, record("b", 2, 1, 1)), 1);
    assert_eq!(b.verdict(101), ClaimVerdict::Wait(at(160)), "its own record");
    let reclaims = Bid { danger_reclaim: true, ..bid("b", 99) };
    assert_eq!(b.0.verdict(at(101), &on(), &reclaims, false), ClaimVerdict::Wait(at(160)));
    let reserved = Some(Reservation { candidate: id("b"), span: Duration::from_secs(1) });
    let b = Follower::seeing(100, paused(60, 1, Record { reserved, ..released(1, 2) }), 1);
    assert_eq!((b.verdict(100), b.seen(100).reserved_for), (ClaimVerdict::Wait(at(160)), None));
}

#[test]
fn a_wait_that_is_longer_stays_as_it_is() {
    let b = Follower::seeing(100, paused(3, 1, record("a", 1, 1, 1)), 1);
    assert_eq!(
        (b.verdict(101), b.verdict(109), b.verdict(110)),
        (ClaimVerdict::Wait(at(110)), ClaimVerdict::Wait(at(110)), write(1))
    );
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(105, None);
    b.load(106, Some((paused(3, 1, released(2, 2)), 2)));
    assert_eq!(b.verdict(107), ClaimVerdict::Wait(at(115)), "a leadership that the store forgot");
}

#[test]
fn what_is_seen_of_a_leader_stays_as_it_is() {
    let b = Follower::seeing(100, paused(60, 1, record("a", 1, 1, 1)), 1);
    let seen = b.seen(105);
    assert_eq!(seen.free_at, Some(at(110)), "by then it has expired, paused or not");
    let paused = seen.paused.clone().unwrap();
    assert_eq!((paused.until, paused.left, paused.by), (at(160), Duration::from_secs(55), Some(id("ops"))));
    assert_eq!(seen.claimable_at(), Some(at(160)));
    assert_eq!(b.seen(160).paused, None);
}

#[test]
fn a_pause_is_no_sign_of_life() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.load(108, Some((paused(1, 1, record("a", 1, 1, 1)), 2)));
    assert_eq!(b.verdict(110), write(2));
}

#[test]
fn renewals_put_its_end_off_for_nobody_who_saw_it_begin() {
    let mut b = Follower::seeing(100, paused(60, 1, record("a", 1, 1, 1)), 1);
    b.load(130, Some((paused(60, 1, record("a", 1, 1, 2)), 2)));
    assert_eq!(b.seen(130).paused.unwrap().until, at(160));
    b.load(131, Some((paused(20, 1, record("a", 1, 1, 3)), 3)));
    assert_eq!(b.seen(131).paused.unwrap().until, at(151));
    b.load(132, Some((paused(90, 2, record("a", 1, 1, 3)), 4)));
    assert_eq!(b.seen(132).paused.unwrap().until, at(222), "another pause");
    b.0.restart(at(140));
    assert_eq!(b.seen(140).paused.unwrap().until, at(222), "nor does a connection that was away");
    b.load(141, Some((record("a", 1, 1, 3), 5)));
    assert_eq!(b.seen(141).paused, None, "it was ended");
}

#[test]
fn whoever_writes_the_record_again_writes_what_is_left() {
    let first = paused(60, 1, record("a", 1, 1, 1));
    let pause = first.paused.clone().unwrap();
    let mut b = Follower::seeing(100, first, 1);
    let left =
        |b: &Follower, seconds| b.0.left_of(at(seconds), &on(), &pause).map(|left| left.span().as_secs());
    assert_eq!((left(&b, 100), left(&b, 130), left(&b, 160)), (Some(60), Some(30), None));
    b.load(110, Some((paused(9, 2, record("a", 1, 1, 1)), 2)));
    assert_eq!(left(&b, 130), Some(60), "one that it knows nothing of is kept as it is");
}

#[test]
fn a_release_that_was_told_is_read_again_while_paused() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 1), 1);
    b.told(101, Some((paused(60, 1, released(1, 2)), 2)));
    assert!(!b.0.is_fresh_release(at(101), &on()), "it may have been ended since");
}

#[test]
fn whoever_removes_the_record_removes_the_pause() {
    let mut b = Follower::seeing(100, paused(60, 1, released(1, 2)), 1);
    b.load(101, None);
    assert_eq!((b.verdict(101), b.seen(101).paused), (FREE, None));
}
