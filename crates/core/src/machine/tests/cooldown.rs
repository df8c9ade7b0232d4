//! Cooldown: a candidate that stepped down stays away for a while, and nothing shortens that.

use super::script::{Script, boot, e, held_by, held_by_me, ms, released};
use crate::{Ask, Input, Options, Request, Seen, Signal};

fn cooling(options: &mut Options) {
    options.cooldown = Some(ms(10_000));
}

fn stepped_down_at_1000() -> Script {
    let mut script = Script::leading(cooling);
    script.at(1_000).feed(Input::StepDown { to: None }).work_ended(5).released();
    script
}

#[test]
fn a_candidate_that_stepped_down_stays_away_for_the_cooldown_and_has_it_remembered() {
    let mut script = stepped_down_at_1000();
    assert_eq!(
        script.told(),
        "end_work e5 by 13500 chosen, state leader→releasing, release#2 e5 cooldown 10000, released e5, \
         leader nobody, state releasing→follower"
    );
    assert_eq!(script.core.in_cooldown(boot(1_000)), Some(boot(11_000)));
    script.at(10_999);
    assert_eq!(script.told(), "");
    script.at(11_000);
    assert_eq!(script.told(), "claim#3 above e5, state follower→acquiring");
    assert_eq!(script.core.in_cooldown(boot(11_000)), None);
}

#[test]
fn nothing_that_happens_cuts_the_cooldown_short() {
    let mut script = stepped_down_at_1000();
    script.told();
    script.at(2_000).changed(released(5)).changed(Seen::nothing()).signal(Signal::Restored);
    script.feed(Input::StepDown { to: None }).feed(Input::Stop).feed(Input::Start);
    assert_eq!(script.heard(), "stopped");
    assert_eq!(script.wakes(), Some(11_000));
}

#[test]
fn a_denial_that_tells_of_a_cooldown_makes_it_wait() {
    let mut script = Script::acquiring(cooling);
    script.denied(Seen { cooldown: Some(ms(7_000)), ..released(4) });
    assert_eq!((script.heard().as_str(), script.wakes()), ("acquire_failed", Some(7_000)));
    script.changed(released(4));
    assert_eq!(script.wakes(), Some(7_000), "a restart or a notice does not clear it");
}

#[test]
fn stopping_leaves_no_cooldown_in_the_store() {
    let mut script = Script::leading(cooling);
    script.feed(Input::Stop).work_ended(5);
    assert_eq!(script.told(), "end_work e5 by 13500 chosen, state leader→releasing, release#2 e5");
}

#[test]
fn stopping_in_the_middle_of_a_step_down_leaves_no_cooldown_either() {
    let mut script = Script::leading(cooling);
    script.feed(Input::StepDown { to: None }).feed(Input::Stop).work_ended(5);
    assert!(script.told().ends_with("release#2 e5"));
}

#[test]
fn asked_through_the_store_to_step_down_is_a_step_down() {
    let mut script = Script::leading(cooling);
    let request = Request { epoch: e(5), what: Ask::StepDown { to: None } };
    script.signal(Signal::Requested(request)).work_ended(5).released();
    assert!(script.told().contains("release#2 e5 cooldown 10000"));
    assert_eq!(script.wakes(), Some(10_000));
}

#[test]
fn without_a_cooldown_others_have_one_retry_interval_to_go_first() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::StepDown { to: None }).work_ended(5).released();
    assert!(script.told().contains("release#2 e5, "));
    assert_eq!(script.wakes(), Some(3_000));
}

#[test]
fn a_loss_is_not_a_step_down_and_earns_no_cooldown() {
    let mut script = Script::leading(cooling);
    script.at(5_000).denied(held_by("b", 6)).work_ended(5);
    assert_eq!(script.core.in_cooldown(boot(5_000)), None);
}

#[test]
fn an_epoch_that_moved_on_ends_the_leadership() {
    for seen in [held_by("b", 6), held_by("a", 6), held_by_me(6), released(6)] {
        let mut script = Script::leading(|_| {});
        script.at(5_000).denied(seen.clone());
        assert_eq!(script.heard(), "lost e5 conflict", "{seen:?}");
    }
}

#[test]
fn the_next_leadership_asks_for_an_epoch_above_every_one_seen() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).denied(held_by("b", 8)).work_ended(5);
    assert!(script.told().ends_with("claim#3 above e8, state follower→acquiring"));
    assert_eq!(script.core.highest_epoch(), e(8));
}

/// PRIMARY is Leader; everything else is PASSIVE, releasing included.
#[test]
fn only_a_leader_answers_for_a_leadership() {
    let mut script = Script::with(|options| options.reconnect_grace = Some(ms(4_000)));
    assert_eq!(script.leads(), None);
    script.feed(Input::Start);
    assert_eq!((script.state(), script.leads()), ("acquiring", None));
    script.granted(5);
    assert_eq!((script.state(), script.leads()), ("leader", Some((5, 13_500))));
    assert_eq!(script.core.leader().map(|id| id.as_str()), Some("a"));
    script.signal(Signal::Gone);
    assert_eq!((script.state(), script.leads()), ("reconnecting", None));
    script.work_ended(5).granted(6).feed(Input::StepDown { to: None });
    assert_eq!((script.state(), script.leads()), ("releasing", None));
    script.work_ended(6).released();
    assert_eq!((script.state(), script.leads()), ("follower", None));
    assert_eq!(script.core.leader(), None);
}
