//! A store that went back to an earlier state.

use super::*;

#[test]
fn a_version_that_goes_back_starts_the_wait_anew_when_read_and_is_dropped_when_told() {
    let mut b = Follower::seeing(100, record("a", 1, 1, 5), 5);
    assert!(!b.told(104, Some((record("a", 1, 1, 4), 4))));
    assert_eq!(b.0.last(&on()).unwrap().1, 5);
    assert_eq!(b.verdict(104), ClaimVerdict::Wait(at(110)));
    assert!(b.load(106, Some((record("a", 1, 1, 4), 4))));
    assert_eq!(b.verdict(106), ClaimVerdict::Wait(at(116)));
    assert_eq!(b.seen(106).proof, Proof::Record);
}

#[test]
fn the_same_version_with_another_content_starts_the_wait_anew() {
    for source in [Source::Load, Source::Watch, Source::Overtaken] {
        let mut b = Follower::seeing(100, record("a", 1, 1, 5), 5);
        assert!(b.0.saw(at(106), &on(), Some((record("c", 3, 2, 5), 5)), source), "{source:?}");
        assert_eq!(b.verdict(106), ClaimVerdict::Wait(at(116)), "{source:?}");
    }
}

#[test]
fn a_store_that_went_back_before_a_claim_does_not_free_it() {
    let mut b = Follower::seeing(100, released(1, 1), 1);
    b.load(101, Some((record("a", 1, 2, 2), 2)));
    // Rolled back: the record says released, but the leader of epoch 2 had its answer and believes.
    b.load(103, Some((released(1, 1), 1)));
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(113)));
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
    assert_eq!(b.verdict(103), ClaimVerdict::Wait(at(113)));
    assert_eq!(b.verdict(113), write(1));
}

#[test]
fn an_older_epoch_under_a_newer_version_is_a_store_that_went_back() {
    let mut b = Follower::seeing(0, record("a", 1, 5, 9), 7);
    // Rolled back behind epoch 5, and epoch 4 was released there: the leader of epoch 5 believes.
    b.load(3, Some((released(4, 8), 8)));
    assert_eq!(b.verdict(4), ClaimVerdict::Wait(at(13)));
    assert_eq!(b.verdict(13), write(8));
}

#[test]
fn the_release_of_an_epoch_that_was_issued_twice_settles_only_its_own_leadership() {
    let acquired = |nanos: i64, record| Record { acquired: Some(Wall::from_unix_nanos(nanos)), ..record };
    let mut b = Follower::seeing(0, acquired(1, record("a", 1, 5, 9)), 7);
    b.load(3, Some((released(4, 8), 6)));
    b.load(4, Some((acquired(2, released(5, 3)), 8)));
    assert_eq!(b.verdict(5), ClaimVerdict::Wait(at(13)), "another one's release");
    b.load(6, Some((acquired(1, released(5, 10)), 9)));
    assert_eq!(b.verdict(6), write(9));
}
