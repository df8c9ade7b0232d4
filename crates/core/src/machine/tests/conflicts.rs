//! Epochs, two starts of one id, and conflicts: who another is, and who this candidate is.

use super::script::{Kind, Script, held_by, held_by_me, id, released};
use crate::{Input, Proof, Seen, Signal};

// epochs.

#[test]
fn the_bid_carries_the_highest_epoch_ever_seen() {
    let mut script = Script::new();
    script.changed(held_by("b", 41)).feed(Input::Start);
    assert!(script.told().contains("claim#1 above e41"));
    script.denied(Seen { holder: None, proof: Proof::Released, ..held_by("b", 7) }).next();
    assert!(script.told().contains("claim#2 above e41"), "a lower number does not lower it");
}

#[test]
fn a_grant_that_is_not_above_the_floor_is_given_back() {
    for stale in [3, 4] {
        let mut script = Script::new();
        script.changed(released(4)).feed(Input::Start).told();
        script.granted(stale);
        assert_eq!(script.told(), format!("release#2 e{stale}, error unavailable, state acquiring→follower"));
    }
}

#[test]
fn a_grant_that_others_have_overtaken_is_given_back() {
    let mut script = Script::acquiring(|_| {});
    script.changed(held_by("b", 9)).told();
    script.granted(5);
    assert_eq!(script.told(), "release#2 e5, error unavailable, state acquiring→follower");
}

#[test]
fn a_watch_that_shows_the_grant_before_the_answer_does_no_harm() {
    let mut script = Script::acquiring(|_| {});
    script.changed(held_by_me(5)).granted(5);
    assert_eq!(script.leads(), Some((5, 13_500)));
}

#[test]
fn an_epoch_once_led_or_given_back_is_never_led_again() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).signal(Signal::Gone).work_ended(5).granted(5);
    assert_eq!(script.leads(), None, "{}", script.told());
    // The answer to an earlier claim comes while the next one is under way.
    let mut script = Script::acquiring(|_| {});
    script.unknown().looked(released(4)).at(50).granted_to(1, 8).told();
    script.granted_to(3, 8);
    assert_eq!(script.leads(), None, "{}", script.told());
}

// two processes with one id.

#[test]
fn another_start_of_the_same_id_is_somebody_else() {
    let mut script = Script::acquiring(|_| {});
    script.denied(held_by("a", 7));
    assert_eq!(script.told(), "leader a, acquire_failed a, state acquiring→follower");
    assert_eq!(script.wakes(), Some(2_000), "it waits as for anybody");
    let mut script = Script::leading(|_| {});
    script.at(5_000).denied(held_by("a", 5));
    assert_eq!(script.heard(), "lost e5 conflict");
}

#[test]
fn a_foreign_record_with_our_id_is_not_ours() {
    let foreign = Seen { holder: Some(crate::Holder { id: id("a"), incarnation: None }), ..held_by("a", 5) };
    let mut script = Script::leading(|_| {});
    script.at(5_000).denied(foreign.clone());
    assert_eq!(script.heard(), "lost e5 conflict");
    let mut script = Script::acquiring(|_| {});
    script.unknown().looked(foreign);
    assert_eq!(script.calls(Kind::Claim), 1, "and not claimed again");
}

// a conflict means look.

#[test]
fn a_conflict_that_is_ourselves_keeps_leading() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).denied(held_by_me(5));
    assert_eq!((script.leads(), script.wakes()), (Some((5, 13_500)), Some(7_000)));
    script.at(7_000).granted(5);
    assert_eq!(script.leads(), Some((5, 20_500)));
}

#[test]
fn a_late_conflict_that_is_ourselves_is_no_failure() {
    let mut script = Script::leading(|options| options.failed_renewals = Some(2));
    script.at(10_000).told();
    script.answer(2, crate::Outcome::Denied(held_by_me(5)));
    assert_eq!((script.leads(), script.told().as_str()), (Some((5, 13_500)), ""));
    script.at(10_100).granted_to(3, 5);
    assert_eq!(script.leads(), Some((5, 23_500)));
}

#[test]
fn a_conflict_with_another_holder_a_later_epoch_or_no_record_is_a_loss_at_once() {
    for seen in [held_by("b", 6), held_by("b", 5), held_by_me(6), released(5), Seen::nothing()] {
        let mut script = Script::leading(|_| {});
        script.at(5_000).denied(seen.clone());
        let told = script.told();
        assert!(told.contains("end_work e5 by 5000 conflict"), "{seen:?}: {told}");
        assert!(told.contains("lost e5 conflict"), "{seen:?}: {told}");
    }
}

#[test]
fn a_watch_that_shows_a_later_epoch_is_a_loss_at_once() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).changed(held_by("b", 6));
    assert_eq!(script.heard(), "lost e5 conflict");
}

/// A watch may be late: it does not decide, a compare-and-set does, now.
#[test]
fn a_watch_that_shows_no_record_or_an_older_one_makes_it_renew_at_once() {
    for seen in [Seen::nothing(), released(4), held_by("b", 4)] {
        let mut script = Script::leading(|_| {});
        script.at(1_000).changed(seen);
        assert_eq!(script.told(), "renew#2 e5");
        assert_eq!(script.core.leader(), Some(&id("a")), "old news does not make another the leader");
    }
}

#[test]
fn an_observation_that_is_older_than_the_leadership_does_not_name_another_leader() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().granted_to(1, 5).told();
    script.looked_at(2, held_by("b", 4));
    assert_eq!(script.told(), "");
    assert_eq!(script.core.leader(), Some(&id("a")));
}

#[test]
fn an_observation_that_nobody_waits_for_still_ends_a_leadership_that_it_shows_overtaken() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().granted_to(1, 5).told();
    script.looked_at(2, held_by("b", 6));
    assert_eq!(script.heard(), "lost e5 conflict");
    assert_eq!(script.core.leader(), Some(&id("b")));
}
