//! The deadline: it counts from the request, nothing but a renewal moves it, and nothing outlives it.

use super::script::{Kind, Script, boot, e, held_by_me, ms};
use crate::{Input, Signal};

// the deadline.

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
    assert_eq!((script.told().as_str(), script.wakes()), ("observe#3", Some(8_000)));
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

// a leadership answers for itself.

#[test]
fn the_leadership_is_told_with_its_deadline_for_the_caller_to_compare() {
    let mut script = Script::leading(|_| {});
    // Nobody drives the machine: it does not know what time it is, but its answer is still right.
    script.pause_until(20_000);
    let (epoch, deadline) = script.core.leadership().unwrap();
    assert_eq!(epoch, e(5));
    assert!(deadline < boot(20_000));
}
