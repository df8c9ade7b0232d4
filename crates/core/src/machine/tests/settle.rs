//! A lead taken on evidence of a crash: the last of the old work may still be dying, so wait 20 ms.

use super::script::{Kind, Script, boot, grant, held_by, ms};
use crate::{Grant, Input, Signal};

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

#[test]
fn a_lead_that_a_queue_grants_after_a_crash_settles_too() {
    for grace in [None, Some(ms(4_000))] {
        let mut script = Script::leading(|options| options.reconnect_grace = grace);
        script.signal(Signal::Gone).work_ended(5).unknown().looked(super::script::released(5));
        assert_eq!(script.calls(Kind::Claim), 2);
        script.told();
        script.at(10).signal(Signal::Granted(Grant { after_crash: true, ..grant(6, boot(10)) }));
        assert_eq!((script.leads(), script.wakes()), (None, Some(30)));
        script.at(30);
        assert_eq!(script.leads(), Some((6, 13_510)));
    }
}
