//! Rules 4 and 5: an unknown claim is looked into, a late answer is read, and what is not led on is given back.

use super::script::{Kind, Script, boot, grant, held_by, held_by_me, ms, released};
use crate::{Input, Outcome, Seen, Signal};

#[test]
fn an_unknown_claim_is_followed_by_a_look() {
    let mut script = Script::acquiring(|_| {});
    script.unknown();
    assert_eq!(script.told(), "error unavailable, look#2");
    let mut script = Script::acquiring(|_| {});
    script.at(3_000);
    assert_eq!(script.told(), "error timed_out, look#2");
    assert_eq!(script.state(), "acquiring");
}

#[test]
fn a_look_that_shows_us_leads_to_another_claim_for_a_new_epoch() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().told();
    script.looked(held_by_me(5));
    assert_eq!(script.told(), "claim#3 above e5");
    script.granted(6);
    assert_eq!(script.leads(), Some((6, 13_500)));
}

#[test]
fn a_look_that_shows_another_leads_to_waiting() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().told();
    script.looked(held_by("b", 7));
    assert_eq!(script.told(), "leader b, error timed_out, state acquiring→follower");
    assert_eq!(script.wakes(), Some(2_000));
}

#[test]
fn the_claims_own_answer_may_come_before_that_of_the_look() {
    let mut script = Script::acquiring(|_| {});
    script.at(3_500).granted_to(1, 5);
    assert_eq!(script.leads(), Some((5, 13_500)));
    script.told();
    script.looked_at(2, held_by_me(5));
    assert_eq!(script.told(), "");
}

#[test]
fn a_record_in_our_name_that_cannot_be_claimed_is_not_claimed_for_ever() {
    let mut script = Script::acquiring(|_| {});
    for _ in 0..9 {
        if script.state() == "acquiring" {
            script.denied(held_by_me(5));
        }
    }
    assert_eq!((script.state(), script.calls(Kind::Claim)), ("follower", 3));
    assert!(script.waits().unwrap() > 0);
}

#[test]
fn a_late_claim_is_given_back_by_a_follower_and_when_stopped() {
    for stop in [false, true] {
        let mut script = Script::acquiring(|_| {});
        script.unknown().looked(held_by("b", 4));
        if stop {
            script.feed(Input::Stop);
        }
        script.told();
        script.at(100).granted_to(1, 5);
        assert_eq!(script.told(), "release#3 e5");
    }
}

#[test]
fn a_late_claim_of_an_older_epoch_is_given_back_while_leading() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().looked(held_by_me(5)).granted(6).told();
    script.granted_to(1, 5);
    assert_eq!(script.told(), "release#4 e5");
    assert_eq!(script.leads(), Some((6, 13_500)));
}

#[test]
fn stop_during_an_attempt_gives_the_late_grant_back_and_only_then_is_all_quiet() {
    let mut script = Script::acquiring(|_| {});
    script.feed(Input::Stop);
    assert_eq!(script.told(), "state acquiring→stopped, stopped");
    assert!(!script.core.is_quiet(), "the claim may still land");
    script.at(60_000).granted_to(1, 5);
    assert_eq!(script.told(), "release#2 e5");
    assert!(!script.core.is_quiet(), "the release may still fail");
    script.unknown();
    assert!(script.core.is_quiet(), "the record runs out by itself");
}

#[test]
fn a_record_that_names_us_is_not_released_under_work_that_has_not_ended() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).signal(Signal::Gone).told();
    script.changed(held_by_me(5));
    assert_eq!(script.told(), "");
}

#[test]
fn renew_and_release_name_the_exact_epoch_and_start() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).granted(5).feed(Input::Stop).work_ended(5);
    let told = script.told();
    assert!(told.contains("renew#2 e5") && told.contains("release#3 e5"), "{told}");
}

#[test]
fn a_late_answer_of_an_earlier_leadership_does_not_touch_the_next() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).signal(Signal::Gone).work_ended(5).granted(6).told();
    assert_eq!(script.leads(), Some((6, 18_500)));
    script.at(6_000).granted_to(2, 5);
    assert_eq!((script.leads(), script.told().as_str()), (Some((6, 18_500)), ""));
}
