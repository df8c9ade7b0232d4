//! Rules 1, 2, 6, 7 and 10: the deadline, epochs, two starts of one id, and conflicts.

use super::script::{Kind, Script, boot, e, grant, held_by, held_by_me, id, ms, released};
use crate::{Input, Proof, Seen, Signal};

// Rule 1: the deadline.

#[test]
fn the_deadline_counts_from_the_request_not_from_the_answer() {
    let mut script = Script::acquiring(|_| {});
    script.at(2_900).granted(5);
    assert_eq!(script.leads(), Some((5, 13_500)));
    script.at(5_000).told();
    script.at(7_900).granted(5);
    assert_eq!(script.told(), "believe e5 until 18500");
}

#[test]
fn a_late_renewal_of_an_earlier_call_extends_only_from_when_that_was_sent() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).at(10_000);
    assert_eq!(script.calls(Kind::Renew), 2);
    script.told();
    script.at(11_000).granted_to(2, 5);
    assert_eq!(script.told(), "believe e5 until 18500");
    script.at(12_000).granted_to(3, 5);
    assert_eq!(script.told(), "believe e5 until 23500");
}

#[test]
fn answers_out_of_order_never_shorten_belief() {
    let mut script = Script::leading(|_| {});
    script.at(10_000).granted_to(3, 5).granted_to(2, 5);
    assert_eq!(script.leads(), Some((5, 23_500)));
}

#[test]
fn a_renewal_answered_after_the_deadline_finds_no_leadership() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).told();
    script.pause_until(13_500).granted_to(2, 5);
    assert_eq!(
        script.told(),
        "end_work e5 by 13500 deadline, lost e5 deadline, leader nobody, state leader→follower"
    );
}

#[test]
fn a_paused_leader_wakes_to_find_its_leadership_over() {
    let mut script = Script::leading(|_| {});
    script.pause_until(3_600_000).feed(Input::Health(true));
    assert_eq!(script.heard(), "lost e5 deadline");
    assert_eq!(script.calls(Kind::Renew), 0, "no renewal leaves for a leadership that is over");
}

#[test]
fn a_grant_that_took_too_long_to_come_is_given_back() {
    let mut script = Script::acquiring(|_| {});
    script.pause_until(13_500).granted_to(1, 5);
    assert!(script.told().contains("release#3 e5"), "the look (#2) was for the time-out");
    assert_ne!(script.state(), "leader");
}

#[test]
fn a_store_that_grants_less_than_was_asked_is_believed_for_less() {
    let mut script = Script::acquiring(|_| {});
    let short = crate::Grant { ttl: ms(8_000), ..script.grant_for(1, 5) };
    script.answer(1, crate::Outcome::Done(short));
    assert_eq!(script.leads(), Some((5, 6_500)));
}

#[test]
fn the_reconnect_grace_does_not_keep_the_old_leadership() {
    let mut script = Script::leading(|options| options.reconnect_grace = Some(ms(60_000)));
    script.at(5_000).signal(Signal::Gone);
    assert_eq!(script.leads(), None);
    assert!(script.told().contains("end_work e5 by 5000 connection"));
    script.granted_to(2, 5);
    assert_eq!((script.leads(), script.told().as_str()), (None, ""));
}

#[test]
fn the_clock_going_back_is_ignored() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).granted(5).told();
    script.pause_until(10).feed(Input::Timeout).feed(Input::Validate);
    assert_eq!((script.told().as_str(), script.wakes()), ("look#3", Some(8_000)));
    script.looked(held_by_me(5));
    assert_eq!((script.leads(), script.wakes()), (Some((5, 18_500)), Some(10_000)));
}

#[test]
fn danger_is_told_once_per_lapse_half_way_to_the_end() {
    let mut script = Script::leading(|_| {});
    script.at(9_249);
    assert_eq!(script.heard(), "error timed_out");
    script.at(9_250);
    assert_eq!(script.heard(), "danger e5");
    script.at(10_500);
    assert_eq!(script.heard(), "");
    // Confirmed from 10000 on: the next is due at 15000, the end at 23500, and so danger at 19250.
    script.granted(5).at(19_249);
    assert!(!script.heard().contains("danger"));
    script.at(19_250);
    assert!(script.heard().contains("danger e5"));
}

#[test]
fn the_late_error_of_an_earlier_renewal_is_no_second_failure() {
    let mut script = Script::leading(|options| options.failed_renewals = Some(2));
    // #2 hangs and counts as failed; #3 is under way when #2 fails for good.
    script.at(10_000).told();
    script.answer(2, crate::Outcome::Unknown(super::script::away()));
    assert_eq!((script.told().as_str(), script.leads()), ("", Some((5, 13_500))));
    script.granted_to(3, 5);
    assert_eq!(script.leads(), Some((5, 23_500)));
}

// Rule 2: a leadership answers for itself.

#[test]
fn the_leadership_is_told_with_its_deadline_for_the_caller_to_compare() {
    let mut script = Script::leading(|_| {});
    // Nobody drives the machine: it does not know what time it is, but its answer is still right.
    script.pause_until(20_000);
    let (epoch, deadline) = script.core.leadership().unwrap();
    assert_eq!(epoch, e(5));
    assert!(deadline < boot(20_000));
}

// Rule 6: epochs.

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
    script.at(1_000).signal(Signal::Gone).work_ended(5).denied(released(5)).told();
    let again = |epoch| Signal::Granted(grant(epoch, boot(1_000)));
    script.signal(again(5));
    assert_eq!(script.leads(), None, "{}", script.told());
    script.feed(Input::Stop).signal(again(8)).feed(Input::Start).denied(released(8)).told();
    script.signal(again(8));
    assert_eq!(script.leads(), None, "{}", script.told());
    script.signal(again(9));
    assert_eq!(script.leads(), Some((9, 14_500)));
}

// Rule 7: two processes with one id.

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

// Rule 10: a conflict means look.

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
fn a_look_that_is_older_than_the_leadership_does_not_name_another_leader() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().granted_to(1, 5).told();
    script.looked_at(2, held_by("b", 4));
    assert_eq!(script.told(), "");
    assert_eq!(script.core.leader(), Some(&id("a")));
}

#[test]
fn a_look_that_nobody_waits_for_still_ends_a_leadership_that_it_shows_overtaken() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().granted_to(1, 5).told();
    script.looked_at(2, held_by("b", 6));
    assert_eq!(script.heard(), "lost e5 conflict");
    assert_eq!(script.core.leader(), Some(&id("b")));
}
