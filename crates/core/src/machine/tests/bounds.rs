//! Everything is bounded: calls, validations, releases, events, and how closely renewals come together.

use super::script::{Kind, Script, held_by, held_by_me, id, ms, released};
use crate::{
    AtMost, Boot, CALLS_MAX, CoreEvent, Fixed, Input, Options, Output, Proof, Seen, Signal, StateName,
};

#[test]
fn a_store_that_never_answers_gets_no_more_calls() {
    let mut script = Script::acquiring(|_| {});
    script.at(10_000_000);
    assert_eq!(script.core.calls_unanswered(), CALLS_MAX);
    script.told();
    // It does not fall silent over it: what it waits for is said again and again, and no faster than the back-off allows.
    script.at(10_100_000);
    let told = script.heard();
    let said = told.matches("error unavailable").count();
    assert!((5..100).contains(&said), "{told}");
    assert_eq!(script.core.calls_unanswered(), CALLS_MAX);
    script.answer(1, crate::Outcome::Denied(released(4)));
    assert_eq!(script.calls(Kind::Claim) + script.calls(Kind::Observe), CALLS_MAX + 1, "room for one more");
}

#[test]
fn validations_that_get_no_answer_neither_pile_up_nor_keep_renewals_back() {
    for every in [None, Some(ms(5_000))] {
        let mut script = Script::leading(|options| options.validation = every);
        for second in 1..500 {
            script.at(second * 1_000).feed(Input::Validate);
            let renewals = script.sent.iter().filter(|(_, sent)| sent.kind == Kind::Renew);
            let last = renewals.map(|(call, _)| *call).next_back();
            last.into_iter().for_each(|call| _ = script.granted_to(call, 5));
            assert!(script.core.calls_unanswered() <= CALLS_MAX);
        }
        assert_eq!(script.state(), "leader");
    }
}

#[test]
fn a_record_in_our_name_shown_again_and_again_is_not_released_without_end() {
    let mut script = Script::new();
    for _ in 0..1_000 {
        script.changed(held_by_me(5));
    }
    assert!(script.core.calls_unanswered() <= CALLS_MAX);
}

#[test]
fn a_leader_is_told_of_only_when_it_changes() {
    let mut script = Script::acquiring(|_| {});
    script.denied_by("b").changed(held_by("b", 9)).changed(held_by("b", 10)).changed(released(10));
    let told = script.told();
    assert_eq!(told.matches("leader ").count(), 2, "{told}");
    assert_eq!((script.core.leader(), script.core.leader_proof()), (None, Some(Proof::Released)));
    let dead = Seen { proof: Proof::Dead, ..held_by("b", 11) };
    script.granted(11).changed(dead);
    assert_eq!(script.core.leader(), Some(&id("a")));
}

#[test]
fn a_candidate_makes_no_observation_that_would_be_one_call_too_many() {
    let mut script = Script::acquiring(|options| {
        options.priority = 7;
        options.preempt = true;
    });
    script.denied(Seen { priority: Some(1), ..held_by("b", 4) });
    assert_eq!(script.calls(Kind::Request), 1, "an odd number of calls before claims and looks alternate");
    script.at(10_000_000);
    assert_eq!((script.core.calls_unanswered(), script.state()), (CALLS_MAX, "follower"));
}

/// Fifteen claims and looks hang, the sixteenth is granted: there is one place left.
fn leading_with_one_place_left(change: impl FnOnce(&mut Options)) -> Script {
    let mut script = Script::acquiring(change);
    while script.core.calls_unanswered() < CALLS_MAX {
        script.next();
    }
    let claims = script.sent.iter().filter(|(_, sent)| sent.kind == Kind::Claim);
    let last_claim = claims.map(|(call, _)| *call).next_back().unwrap();
    script.granted_to(last_claim, 5);
    assert_eq!((script.state(), script.core.calls_unanswered()), ("leader", CALLS_MAX - 1));
    script.told();
    script
}

#[test]
fn a_leader_with_too_many_open_calls_waits_for_an_answer_before_it_renews_again() {
    let mut script = leading_with_one_place_left(|_| {});
    while script.state() == "leader" {
        script.next();
        assert!(script.core.calls_unanswered() <= CALLS_MAX);
    }
    assert_eq!(script.calls(Kind::Renew), 1);
    assert_eq!(script.heard(), "error timed_out, danger e5, lost e5 deadline");
}

#[test]
fn renewals_that_are_spread_come_earlier_after_a_claim_and_after_a_failure_and_never_later() {
    let mut script = Script::acquiring(|_| {});
    script.core.jitter_renewals();
    script.granted(5);
    let first = script.waits().expect("a renewal is due");
    assert!((625..5_000).contains(&first), "{first}");
    script.at(first + 1).granted(5);
    // Counted from the instant of the call, which lies within the millisecond before.
    assert_eq!(script.waits(), Some(4_999), "from then on at the interval, each at its own place");
    script.at(first + 1 + 5_000).unknown();
    assert_eq!(script.waits(), Some(2_000), "a retry is not spread");
    script.next().granted(5);
    let after = script.waits().expect("a renewal is due");
    assert!((625..5_000).contains(&after) && after != first, "{after}");
    let spread: Vec<u64> = (0..200)
        .map(|_| {
            script.at(script.wakes().unwrap() + 1).unknown();
            script.at(script.wakes().unwrap() + 1).granted(5);
            script.waits().expect("a renewal is due")
        })
        .collect();
    let (least, most) = (spread.iter().min().unwrap(), spread.iter().max().unwrap());
    assert!((624..800).contains(least) && (4_700..=5_000).contains(most), "{least}..{most}");
}

#[test]
fn a_renewal_answered_too_late_to_be_spread_is_spread_the_next_time() {
    for (answered, again) in [(2_500, false), (2_600, true)] {
        let mut script = Script::acquiring(|_| {});
        script.core.jitter_renewals();
        script.at(answered).granted(5);
        script.at(script.wakes().unwrap() + 1).granted(5);
        assert_eq!(script.waits() < Some(4_999), again, "answered at {answered}: {:?}", script.waits());
    }
}

#[test]
fn a_leader_whose_work_stops_makes_no_call_too_many() {
    let mut script = leading_with_one_place_left(|options| options.stop_timeout = ms(10_000));
    script.feed(Input::StepDown { to: None });
    while script.state() == "releasing" {
        script.next();
        assert!(script.core.calls_unanswered() <= CALLS_MAX);
    }
    assert_eq!(script.calls(Kind::Renew), 1);
}

#[test]
fn events_say_to_which_attempt_they_belong() {
    let mut script = Script::with(|_| {});
    let mut attempts = Vec::new();
    for input in [Input::Start, Input::Stop, Input::Start, Input::Stop] {
        script.core.handle(Boot::default(), input);
        while let Some(output) = script.core.poll_output() {
            if let Output::Event { attempt, what, .. } = output
                && matches!(what, CoreEvent::StateChanged { to: StateName::Acquiring, .. })
            {
                attempts.push(attempt);
            }
        }
    }
    assert_eq!(attempts, [1, 2]);
}

#[test]
fn the_answer_that_allows_another_call_ends_the_back_off_of_a_follower_and_of_a_suspended_leader() {
    for suspended in [false, true] {
        let mut script = leading_with_one_place_left(|options| {
            options.reconnect_grace = suspended.then_some(ms(60_000));
            options.strategy = std::sync::Arc::new(Fixed(ms(30_000)));
        });
        // One more claim takes the last place and gets no answer.
        script.signal(Signal::Gone).work_ended(5).next();
        assert_eq!((script.core.calls_unanswered(), script.waits()), (CALLS_MAX, Some(30_000)));
        let claims = script.calls(Kind::Claim);
        script.answer(1, crate::Outcome::Denied(released(4)));
        assert_eq!(script.calls(Kind::Claim), claims + 1, "suspended: {suspended}");
    }
}

/// The record in its name stays until it runs out: no place is left for the call that would release it.
#[test]
fn a_candidate_that_gives_up_makes_no_call_too_many() {
    let mut script = Script::acquiring(|options| {
        options.strategy = std::sync::Arc::new(AtMost { attempts: 4, then: Fixed(ms(1_000)) });
    });
    while script.core.calls_unanswered() < CALLS_MAX - 2 {
        script.next();
        if script.state() == "follower" {
            // The store is alive: the row of errors is over.
            script.changed(held_by("b", 4));
        }
    }
    while script.state() != "follower" {
        script.next();
    }
    script.changed(held_by_me(5));
    while script.state() != "stopped" {
        script.next();
    }
    assert_eq!((script.core.calls_unanswered(), script.calls(Kind::Release)), (CALLS_MAX, 0));
}
