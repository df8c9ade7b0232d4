//! Releasing: the work stops, then the release is written; nothing is written past the deadline.

use super::script::{Kind, Script, boot, held_by, held_by_me, id, ms, released};
use crate::{Input, Options, Seen, Signal};

fn process(options: &mut Options) {
    options.timing.work_grace = ms(1_000);
}

#[test]
fn nothing_is_released_before_the_work_has_ended() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::StepDown { to: None }).at(13_499);
    assert_eq!(script.calls(Kind::Release), 0);
    script.work_ended(5);
    assert_eq!(script.calls(Kind::Release), 1);
}

#[test]
fn once_told_to_stop_a_renewal_that_succeeds_changes_nothing() {
    let mut script = Script::leading(|_| {});
    script.at(5_000).feed(Input::StepDown { to: None }).told();
    script.granted_to(2, 5);
    assert_eq!((script.state(), script.told().as_str()), ("releasing", ""));
    script.at(13_500);
    assert_eq!(script.heard(), "lost e5 deadline", "and the old deadline stands");
    script.granted_to(2, 5);
    assert_eq!((script.state(), script.told().as_str()), ("follower", ""));
}

#[test]
fn work_that_does_not_end_by_the_deadline_is_lost_and_nothing_is_written() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::Stop).at(13_500);
    assert_eq!(script.heard(), "lost e5 deadline, stopped");
    script.at(20_000).work_ended(5);
    assert_eq!(script.calls(Kind::Release), 0);
    assert!(script.core.is_quiet());
}

/// Found on real processes: of two candidates that hand over to each other, the second used to wait for its retry interval.
#[test]
fn a_candidate_that_handed_over_is_ready_as_soon_as_it_is_taken() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::StepDown { to: None }).work_ended(5).released();
    script.changed(released(5));
    assert_eq!(script.wakes(), Some(3_000), "nobody else has come yet");
    script.at(1_100).changed(held_by("b", 6)).told();
    script.at(1_200).changed(released(6));
    assert_eq!(script.told(), "leader nobody, claim#3 above e6, state follower→acquiring");

    for epoch in [4, 5] {
        let mut script = Script::leading(|_| {});
        script.at(1_000).feed(Input::StepDown { to: None }).work_ended(5).released();
        script.changed(held_by("b", epoch)).changed(released(5));
        assert_eq!(script.wakes(), Some(3_000), "old news of who led before");
    }
}

#[test]
fn a_candidate_that_stops_and_starts_again_competes_at_once() {
    for cooldown in [None, Some(ms(60_000))] {
        let mut script = Script::leading(|options| options.cooldown = cooldown);
        script.at(1_000).feed(Input::Stop).work_ended(5).released().told();
        script.feed(Input::Start);
        assert_eq!(script.state(), "acquiring", "{cooldown:?}");
    }
}

/// Found on real processes: where the record was kept for somebody who never came, the one that had released was back as soon as
/// the others.
#[test]
fn a_candidate_that_handed_over_for_somebody_named_lets_the_others_go_first() {
    let mut script = Script::leading(|options| options.timing.retry = Some(ms(500)));
    script.at(1_000).feed(Input::StepDown { to: Some(id("typo")) }).work_ended(5).released();
    let kept = Seen { reserved_for: Some(id("typo")), free_at: Some(boot(2_000)), ..released(5) };
    script.changed(kept);
    assert_eq!(script.wakes(), Some(3_000), "the others may come from 2000 on");
}

#[test]
fn where_stopping_releases_nothing_the_work_still_ends_first() {
    let mut script = Script::leading(|options| options.release_on_stop = false);
    script.at(1_000).feed(Input::Stop);
    assert_eq!(script.state(), "releasing");
    script.work_ended(5);
    assert_eq!((script.calls(Kind::Release), script.state()), (0, "stopped"));
    assert!(script.core.is_quiet());
    // Found on a real server: late news of its own claim had it released after all.
    script.changed(held_by_me(5));
    assert_eq!(script.calls(Kind::Release), 0, "it is left to run out");

    let mut script = Script::leading(|options| options.release_on_stop = false);
    script.at(1_000).feed(Input::StepDown { to: None }).work_ended(5);
    assert_eq!(script.calls(Kind::Release), 1, "stepping down is another matter");
}

#[test]
fn work_that_ends_at_the_very_deadline_is_too_late_to_release() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::Stop).pause_until(13_500).work_ended(5);
    assert_eq!((script.heard().as_str(), script.calls(Kind::Release)), ("lost e5 deadline, stopped", 0));
}

#[test]
fn no_candidate_competes_before_its_work_has_ended() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).signal(Signal::Gone).at(60_000);
    assert_eq!((script.state(), script.wakes(), script.calls(Kind::Claim)), ("follower", None, 1));
    assert!(!script.core.is_quiet());
    script.told();
    script.work_ended(4);
    assert_eq!(script.told(), "", "the end of other work is not the end of this");
    script.work_ended(5);
    assert_eq!(script.told(), "claim#2 above e5, state follower→acquiring");
}

#[test]
fn no_candidate_competes_before_its_work_has_ended_even_after_stop_and_start() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).signal(Signal::Gone).feed(Input::Stop).feed(Input::Start).at(60_000);
    assert_eq!((script.state(), script.calls(Kind::Claim)), ("follower", 1));
}

#[test]
fn a_suspended_leader_comes_back_only_after_the_work_has_ended() {
    let mut script = Script::leading(|options| options.reconnect_grace = Some(ms(4_000)));
    script.at(1_000).signal(Signal::Gone).at(4_999);
    assert_eq!((script.state(), script.calls(Kind::Claim)), ("reconnecting", 1));
    script.at(5_000);
    assert_eq!(script.heard(), "suspended e5 connection, lost e5 connection");
}

#[test]
fn work_in_a_process_is_told_to_stop_early_enough_to_be_killed_before_the_deadline() {
    let mut script = Script::leading(process);
    script.at(12_449);
    assert_eq!(script.state(), "leader");
    script.told();
    script.at(12_450);
    assert_eq!(script.told(), "end_work e5 by 13500 deadline, state leader→releasing");
    script.at(13_000).work_ended(5).released();
    assert_eq!(script.heard(), "lost e5 deadline (released)", "in time");
    assert_eq!(script.calls(Kind::Release), 1);
}

#[test]
fn a_renewal_moves_the_time_for_stopping_with_the_deadline() {
    let mut script = Script::leading(process);
    script.at(5_000).granted(5).at(17_449);
    assert_eq!(script.state(), "leader");
    script.told();
    script.at(17_450);
    assert_eq!(script.told(), "end_work e5 by 18500 deadline, state leader→releasing");
}

#[test]
fn a_reconnect_grace_leaves_the_work_the_time_it_was_promised() {
    let mut script = Script::leading(|options| {
        process(options);
        options.reconnect_grace = Some(ms(4_000));
    });
    script.at(12_449).told();
    script.at(12_450);
    assert!(script.told().starts_with("end_work e5 by 13500 deadline, state leader→reconnecting"));
}

#[test]
fn a_session_that_ends_while_releasing_takes_the_remaining_time_away() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::Stop).told();
    script.at(2_000).signal(Signal::Gone);
    assert!(script.told().starts_with("end_work e5 by 2000 connection, lost e5"));
    script.work_ended(5);
    assert_eq!((script.calls(Kind::Release), script.core.is_quiet()), (0, true));
}

#[test]
fn a_release_that_gets_no_answer_is_not_waited_for_longer_than_a_call() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::Stop).work_ended(5).at(4_000);
    assert_eq!(script.heard(), "error timed_out, released e5 unconfirmed, stopped");
    assert!(!script.core.is_quiet(), "the call is still out");
    script.at(9_000).released();
    assert!(script.core.is_quiet());
}

#[test]
fn a_release_that_finds_another_holder_is_not_confirmed() {
    let mut script = Script::leading(|_| {});
    script.at(1_000).feed(Input::Stop).work_ended(5).denied_by("b");
    assert_eq!(script.heard(), "released e5 unconfirmed, stopped");
}
