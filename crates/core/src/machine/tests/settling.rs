//! A lead taken on evidence of a crash: the last of the old work may still be dying, so wait 20 ms.

use super::script::{Kind, Script, e, held_by, held_by_me, id, ms};
use crate::{Ask, Input, Request, Signal};

fn settling() -> Script {
    let mut script = Script::acquiring(|_| {});
    script.at(100).granted_after_crash(5);
    assert_eq!((script.state(), script.told().as_str()), ("acquiring", ""));
    script
}

#[test]
fn after_a_crash_the_lead_begins_when_the_old_work_has_surely_gone() {
    let mut script = settling();
    script.at(119);
    assert_eq!(script.state(), "acquiring");
    script.at(120);
    assert_eq!(script.heard(), "acquired e5");
    assert_eq!(script.leads(), Some((5, 13_500)), "and it still counts from the request");
}

#[test]
fn without_a_settle_time_it_begins_at_once() {
    let mut script = Script::acquiring(|options| options.settle = ms(0));
    script.granted_after_crash(5);
    assert_eq!(script.state(), "leader");
}

#[test]
fn stop_while_settling_gives_the_grant_back() {
    let mut script = settling();
    script.feed(Input::Stop);
    assert_eq!(script.told(), "release#2 e5, state acquiring→stopped, stopped");
    script.released().at(1_000);
    assert_eq!(script.told(), "");
    assert!(script.core.is_quiet());
}

/// There is no leadership yet that one could step down from.
#[test]
fn step_down_while_settling_changes_nothing() {
    let mut script = settling();
    script.feed(Input::StepDown { to: None }).at(120);
    assert_eq!(script.heard(), "acquired e5");
}

fn asked(epoch: u64, what: Ask) -> Signal {
    Signal::Requested(Request { epoch: e(epoch), what })
}

/// Found on real processes: the store tells of a request once, and a candidate that settled did not hear it.
#[test]
fn a_request_that_comes_while_settling_is_obeyed_at_the_promotion() {
    for (what, reason, to) in [
        (Ask::StepDown { to: None }, "admin", ""),
        (Ask::StepDown { to: Some(id("c")) }, "admin", " to c"),
        (Ask::Preempt { by: id("c"), priority: 1 }, "preempted", " to c"),
    ] {
        let mut script = settling();
        script.signal(asked(5, what));
        assert_eq!(script.told(), "", "there is nothing to end yet");
        script.at(120);
        let told = script.told();
        assert!(told.contains("acquired e5"), "{told}");
        assert!(told.ends_with(&format!("end_work e5 by 13500 {reason}, state leader→releasing")), "{told}");
        script.work_ended(5);
        assert_eq!(script.told(), format!("release#2 e5{to}"));
    }
}

#[test]
fn of_several_requests_while_settling_the_first_that_counts_is_obeyed() {
    let mut script = settling();
    script.signal(asked(4, Ask::StepDown { to: Some(id("x")) }));
    script.signal(asked(5, Ask::Preempt { by: id("y"), priority: 0 }));
    script.signal(asked(5, Ask::Preempt { by: id("c"), priority: 1 }));
    script.signal(asked(5, Ask::StepDown { to: Some(id("d")) }));
    script.at(120).work_ended(5);
    assert!(script.told().ends_with("release#2 e5 to c"));
}

#[test]
fn a_request_for_later_that_comes_while_settling_counts_from_the_promotion_and_gives_way_to_the_next() {
    let later = || Ask::StepDownLater { to: None, after: ms(1_000) };
    let mut script = settling();
    script.signal(asked(5, later())).at(120);
    assert_eq!(script.heard(), "acquired e5");
    script.at(1_119);
    assert_eq!(script.leads(), Some((5, 13_500)));
    script.at(1_120);
    assert!(script.told().contains("end_work e5 by 13500 admin"));
    let mut script = settling();
    script.signal(asked(5, later())).signal(asked(5, Ask::StepDown { to: None })).signal(asked(5, later()));
    script.at(120);
    assert!(script.told().contains("end_work e5 by 13500 admin"), "one to end at once is not put off");
}

#[test]
fn a_request_for_another_epoch_than_the_settling_one_changes_nothing() {
    for epoch in [4, 6] {
        let mut script = settling();
        script.signal(asked(epoch, Ask::StepDown { to: None })).at(1_000);
        assert_eq!(script.heard(), "acquired e5");
        assert_eq!(script.leads(), Some((5, 13_500)));
    }
}

/// Others see the epoch as soon as the claim is written, and its answer takes its time.
#[test]
fn a_request_that_comes_before_the_answer_to_the_claim_is_obeyed_at_the_promotion() {
    for after_crash in [false, true] {
        let mut script = Script::acquiring(|_| {});
        script.signal(asked(5, Ask::StepDown { to: Some(id("c")) }));
        if after_crash {
            script.granted_after_crash(5)
        } else {
            script.granted(5)
        };
        script.at(20).work_ended(5);
        let told = script.told();
        assert!(told.contains("acquired e5") && told.ends_with("release#2 e5 to c"), "{told}");
    }
}

#[test]
fn a_request_while_settling_in_the_reconnect_grace_is_obeyed_at_the_promotion() {
    let mut script = Script::leading(|options| options.reconnect_grace = Some(ms(4_000)));
    script.signal(Signal::Gone).work_ended(5).granted_after_crash(6).told();
    script.signal(asked(6, Ask::StepDown { to: None })).at(20);
    let told = script.told();
    assert!(told.contains("resumed e6") && told.contains("end_work e6 by 13500 admin"), "{told}");
}

/// Found by the simulator's invariant on health: an unfit candidate led when its claim or its settling outlasted its health.
#[test]
fn a_candidate_that_falls_ill_before_the_lead_begins_gives_the_grant_back() {
    let mut script = Script::acquiring(|options| options.health_failures = Some(1));
    script.at(100).granted_after_crash(5).feed(Input::Health(false)).at(120);
    assert_eq!(script.told(), "release#2 e5, state acquiring→follower");
    script.released().at(60_000);
    assert_eq!(script.calls(Kind::Claim), 1);
    let mut script = Script::acquiring(|options| options.health_failures = Some(1));
    script.feed(Input::Health(false)).granted(5);
    assert_eq!(script.told(), "release#2 e5, state acquiring→follower");
}

/// Found by the simulator: who fell ill while it looked claimed once more.
#[test]
fn a_record_in_the_name_of_an_unfit_candidate_is_released_and_not_claimed_again() {
    let mut script = Script::acquiring(|options| options.health_failures = Some(1));
    script.feed(Input::Health(false)).unknown().looked(held_by_me(4));
    assert_eq!(script.told(), "error unavailable, observe#2, release#3 e4, state acquiring→follower");
    let mut script = Script::acquiring(|options| options.health_failures = Some(1));
    script.feed(Input::Health(false)).denied(held_by_me(4));
    assert_eq!(script.told(), "release#2 e4, state acquiring→follower");
}

/// Mostly there is nothing left to give back. But the news may be of an earlier session than the grant's, whose lock
/// would keep everybody out with nobody leading.
#[test]
fn a_session_that_ends_while_settling_takes_the_grant_with_it() {
    let mut script = settling();
    script.signal(Signal::Gone);
    assert_eq!(script.told(), "release#2 e5, error unavailable, state acquiring→follower");
    script.at(149);
    assert_eq!(script.told(), "");
}

#[test]
fn a_later_epoch_seen_while_settling_means_that_the_grant_is_worth_nothing() {
    let mut script = settling();
    script.changed(held_by("b", 7)).at(120);
    assert_eq!(script.leads(), None);
    assert!(script.told().contains("release#2 e5"));
}

#[test]
fn a_second_answer_while_settling_does_not_give_the_grant_back() {
    let mut script = settling();
    script.granted_to(1, 5);
    assert_eq!(script.told(), "");
    let mut script = Script::leading(|options| options.reconnect_grace = Some(ms(4_000)));
    script.signal(Signal::Gone).work_ended(5).granted_after_crash(6).told();
    script.granted_to(2, 6);
    assert_eq!(script.told(), "", "nor in the reconnect grace");
    script.at(20);
    assert_eq!(script.heard(), "resumed e6");
}

#[test]
fn a_late_claim_of_a_newer_epoch_while_settling_means_that_the_grant_is_worth_nothing() {
    let mut script = Script::acquiring(|_| {});
    script.unknown().looked(super::script::released(4)).at(50).granted_after_crash(5).told();
    script.granted_to(1, 6).at(70);
    assert_eq!(script.leads(), None);
    assert!(script.told().starts_with("release#4 e6, release#5 e5"));
}

#[test]
fn the_end_of_the_grace_while_settling_gives_the_grant_back() {
    let mut script = Script::leading(|options| options.reconnect_grace = Some(ms(1_000)));
    script.signal(Signal::Gone).work_ended(5).at(990).granted_after_crash(6).told();
    script.at(1_000);
    let told = script.told();
    assert!(told.starts_with("release#3 e6, lost e5 connection"), "{told}");
}
