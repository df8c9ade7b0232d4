//! What can be asked of a leader through the store, and what a follower asks.

use super::script::{Kind, Script, boot, e, held_by, id, ms, released};
use crate::{Ask, Holder, Input, Options, Outcome, Request, Seen, Signal};

fn important(options: &mut Options) {
    options.priority = 7;
    options.preempt = true;
}

fn led_with(priority: i32, epoch: u64) -> Seen {
    Seen { priority: Some(priority), ..held_by("b", epoch) }
}

fn ask(epoch: u64, what: Ask) -> Signal {
    Signal::Requested(Request { epoch: e(epoch), what })
}

#[test]
fn a_request_for_this_leadership_is_followed() {
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, Ask::StepDown { to: None }));
    assert_eq!(script.told(), "end_work e5 by 13500 admin, state leader→releasing");
    script.work_ended(5).released();
    assert_eq!(
        script.told(),
        "release#2 e5, lost e5 admin (released), leader nobody, state releasing→follower"
    );
}

#[test]
fn a_requested_release_that_is_not_confirmed_is_told_as_such() {
    let answers: [fn(&mut Script); 3] = [|s| _ = s.unknown(), |s| _ = s.denied_by("b"), |s| _ = s.at(4_000)];
    for answer in answers {
        let mut script = Script::leading(|_| {});
        script.signal(ask(5, Ask::StepDown { to: None })).work_ended(5);
        answer(&mut script);
        let heard = script.heard();
        assert!(heard.ends_with("lost e5 admin"), "{heard}");
    }
}

fn later(after: u64) -> Ask {
    Ask::StepDownLater { to: Some(id("c")), after: ms(after) }
}

#[test]
fn a_step_down_that_is_asked_for_later_comes_at_that_time_by_the_leader_s_own_clock() {
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, later(2_000)));
    assert_eq!((script.told().as_str(), script.wakes()), ("", Some(2_000)));
    script.at(1_999);
    assert_eq!(script.told(), "");
    script.at(2_000);
    assert_eq!(script.told(), "end_work e5 by 13500 admin, state leader→releasing");
    script.work_ended(5);
    assert_eq!(script.told(), "release#2 e5 to c");
}

#[test]
fn the_last_request_counts_and_one_to_end_at_once_does_so() {
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, later(2_000))).signal(ask(5, later(4_000)));
    script.at(3_999);
    assert_eq!(script.told(), "");
    script.signal(ask(5, Ask::StepDown { to: None }));
    assert_eq!(script.told(), "end_work e5 by 13500 admin, state leader→releasing");
}

#[test]
fn a_step_down_for_later_ends_with_the_leadership_that_it_was_meant_for() {
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, later(60_000))).told();
    script.feed(Input::StepDown { to: None }).work_ended(5).released().told();
    script.changed(released(6)).granted(7).told();
    assert_eq!(script.leads().map(|(epoch, _)| epoch), Some(7));
    script.signal(ask(5, later(10)));
    script.at(1_000);
    assert_eq!(script.leads().map(|(epoch, _)| epoch), Some(7), "{}", script.told());
}

#[test]
fn a_request_for_another_leadership_is_ignored() {
    let mut script = Script::leading(|_| {});
    for epoch in [4, 6] {
        script.signal(ask(epoch, Ask::StepDown { to: None }));
        script.signal(ask(epoch, Ask::Preempt { by: id("b"), priority: 99 }));
    }
    assert_eq!((script.leads(), script.told().as_str()), (Some((5, 13_500)), ""));
}

#[test]
fn a_request_to_a_candidate_that_does_not_lead_changes_nothing() {
    let mut script = Script::acquiring(|_| {});
    script.denied_by("b").told();
    script.signal(ask(9, Ask::StepDown { to: None }));
    assert_eq!(script.told(), "");
}

#[test]
fn a_hand_over_keeps_the_record_for_the_one_named() {
    let mut script = Script::leading(|options| options.cooldown = Some(ms(10_000)));
    script.feed(Input::StepDown { to: Some(id("c")) }).work_ended(5);
    assert!(script.told().ends_with("release#2 e5 to c cooldown 10000"));
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, Ask::StepDown { to: Some(id("c")) })).work_ended(5);
    assert!(script.told().ends_with("release#2 e5 to c"));
}

#[test]
fn a_leader_of_lower_priority_stops_its_work_and_then_hands_over() {
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, Ask::Preempt { by: id("c"), priority: 1 }));
    assert_eq!(script.told(), "end_work e5 by 13500 preempted, state leader→releasing");
    script.at(3_000).work_ended(5);
    assert_eq!(script.told(), "release#2 e5 to c");
    script.released();
    assert_eq!(script.heard(), "lost e5 preempted (released)");
    assert_eq!(script.wakes(), Some(5_000), "it is in no hurry to come back");
}

#[test]
fn who_handed_over_is_back_as_soon_as_another_has_led_however_late_it_hears_of_that() {
    // The news comes before the answer to the release.
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, Ask::StepDown { to: None })).work_ended(5);
    script.changed(held_by("b", 6)).released();
    assert!(script.told().contains("claim#3 above e6"), "nobody is left to go first");
    // That the other one led is never seen: it has released, too.
    let mut script = Script::leading(|_| {});
    script.signal(ask(5, Ask::StepDown { to: None })).work_ended(5).released().told();
    script.changed(released(5));
    assert!(!script.told().contains("claim#"), "its own release: the others go first");
    script.changed(released(6));
    assert!(script.told().contains("claim#3 above e6"), "b led under e6");
}

#[test]
fn a_leader_of_equal_or_higher_priority_stays() {
    let mut script = Script::leading(|options| options.priority = 7);
    for priority in [i32::MIN, 0, 6, 7] {
        script.signal(ask(5, Ask::Preempt { by: id("c"), priority }));
    }
    assert_eq!((script.leads(), script.told().as_str()), (Some((5, 13_500)), ""));
}

#[test]
fn a_follower_of_higher_priority_asks_each_leadership() {
    let mut script = Script::acquiring(important);
    script.denied(led_with(1, 4));
    assert!(script.told().ends_with("ask#2 e4 preempt by a 7"));
    script.feed(Input::Requested(crate::Call(2), Outcome::Done(())));
    script.changed(led_with(1, 4)).next().denied(led_with(1, 4));
    assert_eq!(script.calls(Kind::Request), 1);
    script.changed(led_with(1, 5));
    assert_eq!(script.calls(Kind::Request), 2, "another leadership, another question");
}

/// A leader that renews for as long as this test takes.
fn goes_on(epoch: u64) -> Seen {
    Seen { free_at: Some(boot(9_000_000)), ..led_with(1, epoch) }
}

/// Found on real processes: a request that was lost used to be the only one.
#[test]
fn while_the_same_leader_renews_it_is_asked_again_at_growing_pauses() {
    let mut script = Script::acquiring(important);
    script.denied(goes_on(4)).told();
    let mut asked_at = Vec::new();
    for second in 1..800 {
        script.at(second * 1_000).changed(goes_on(4));
        if script.told().contains("e4 preempt by a 7") {
            asked_at.push(second);
        }
    }
    assert_eq!(asked_at, [15, 45, 105, 225, 465, 705]);
    script.changed(goes_on(5));
    assert!(script.told().ends_with("e5 preempt by a 7"), "another leadership, another question");
    script.at(814_000).changed(goes_on(5)).at(815_000).changed(goes_on(5));
    assert_eq!(script.calls(Kind::Request), 9, "and it begins with the shortest pause");
}

#[test]
fn a_question_that_may_not_have_arrived_is_asked_again_soon() {
    let mut script = Script::acquiring(important);
    script.denied(goes_on(4)).unknown().changed(goes_on(4));
    assert_eq!(script.calls(Kind::Request), 1, "and not at once");
    script.at(2_000).changed(goes_on(4));
    assert_eq!(script.calls(Kind::Request), 2);
}

/// Found by the simulator: where no change is announced, it used to wait for its next look.
#[test]
fn a_question_that_finds_nobody_leading_is_followed_by_a_claim() {
    let mut script = Script::acquiring(important);
    script.denied(goes_on(4));
    assert!(script.told().ends_with("ask#2 e4 preempt by a 7"));
    script.at(100).denied(released(4)).at(100);
    assert_eq!(script.calls(Kind::Claim), 2, "{}", script.told());
}

#[test]
fn a_question_that_was_refused_is_not_asked_again() {
    let mut script = Script::acquiring(important);
    script.denied(goes_on(4)).refused().at(60_000).changed(goes_on(4));
    assert_eq!(script.calls(Kind::Request), 1);
    assert_eq!(script.state(), "follower", "and it is no reason to stop");
}

#[test]
fn the_late_answer_to_an_earlier_question_says_nothing_about_the_present_one() {
    let mut script = Script::acquiring(important);
    script.denied(goes_on(4)).changed(goes_on(5));
    assert_eq!(script.calls(Kind::Request), 2);
    script.answer(2, Outcome::Refused(super::script::forbidden()));
    script.at(15_000).changed(goes_on(5));
    assert_eq!(script.calls(Kind::Request), 3);
}

#[test]
fn a_leader_that_need_not_or_cannot_hand_over_is_not_asked() {
    let foreign = Seen { holder: Some(Holder { id: id("b"), incarnation: None }), ..led_with(1, 4) };
    let unknown_priority = held_by("b", 4);
    let no_leader = Seen { holder: None, priority: Some(1), ..released(4) };
    for seen in [led_with(7, 4), led_with(8, 4), foreign, unknown_priority, no_leader] {
        let mut script = Script::acquiring(important);
        script.denied(seen.clone()).changed(seen.clone());
        assert_eq!(script.calls(Kind::Request), 0, "{seen:?}");
    }
}

#[test]
fn priority_alone_does_not_ask() {
    let mut script = Script::acquiring(|options| options.priority = 7);
    script.denied(led_with(1, 4));
    assert_eq!(script.calls(Kind::Request), 0);
}

#[test]
fn an_unfit_candidate_does_not_ask() {
    let mut script = Script::acquiring(|options| {
        important(options);
        options.health_failures = Some(1);
    });
    script.feed(Input::Health(false)).denied(led_with(1, 4)).changed(led_with(1, 4));
    assert_eq!(script.calls(Kind::Request), 0);
    script.feed(Input::Health(true)).changed(led_with(1, 4));
    assert_eq!(script.calls(Kind::Request), 1);
}

#[test]
fn a_candidate_that_stays_away_does_not_ask() {
    let mut script = Script::acquiring(important);
    script.denied(Seen { cooldown: Some(ms(9_000)), ..led_with(1, 4) }).changed(led_with(1, 4));
    assert_eq!(script.calls(Kind::Request), 0);
}

/// Found by the simulator: on a store that announces nothing the asker slept through the moment for which the record
/// was kept for it; the old leader came back, was asked again, and so on for ever.
#[test]
fn a_candidate_that_asked_checks_twice_within_the_reservation_and_not_for_ever() {
    let mut script = Script::acquiring(important);
    script.denied(Seen { free_at: Some(boot(60_000)), ..led_with(1, 4) });
    assert_eq!(script.wakes(), Some(60_000), "before the request is written");
    script.feed(Input::Requested(crate::Call(2), Outcome::Done(())));
    let mut looks = 0;
    while script.wakes().is_some_and(|at| at < 60_000) {
        script.next().denied(Seen { free_at: Some(boot(60_000)), ..led_with(1, 4) });
        looks += 1;
    }
    assert_eq!(looks, 30, "every half second, for a ttl");
}

#[test]
fn a_record_that_is_kept_for_us_is_claimed_at_once() {
    let mut script = Script::acquiring(|_| {});
    script.denied_by("b");
    script.changed(Seen { reserved_for: Some(id("a")), free_at: Some(boot(1_000)), ..released(9) });
    assert_eq!(script.calls(Kind::Claim), 2);
    script.denied_by("b");
    script.changed(Seen { reserved_for: Some(id("c")), free_at: Some(boot(1_000)), ..released(9) });
    assert_eq!((script.calls(Kind::Claim), script.wakes()), (2, Some(1_000)));
}
