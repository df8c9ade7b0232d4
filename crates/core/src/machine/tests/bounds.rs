//! Rule 12, and back-off: everything is bounded, a denial is not a failure, and a change ends every wait.

use super::script::{Kind, Script, held_by, id, ms, released};
use crate::{Boot, Breaker, CALLS_MAX, Input, Options, Proof, Seen, Signal};

fn breaking(options: &mut Options) {
    options.breaker = Some(Breaker { failures: 3, open_for: ms(30_000) });
}

fn troubled(errors: usize) -> Script {
    let mut script = Script::acquiring(breaking);
    for error in 0..errors {
        script.unknown().unknown();
        if error + 1 < errors {
            script.next();
        }
    }
    script
}

#[test]
fn a_denial_neither_grows_the_back_off_nor_feeds_the_breaker() {
    let mut script = Script::acquiring(breaking);
    for _ in 0..50 {
        script.denied_by("b");
        assert_eq!(script.waits(), Some(2_000));
        script.next();
    }
    script.unknown().unknown();
    assert_eq!(script.waits(), Some(50), "the first error is the first");
}

#[test]
fn a_denial_waits_until_what_is_in_the_way_ends() {
    let mut script = Script::acquiring(|_| {});
    script.denied(Seen { free_at: Some(Boot::default() + ms(7_300)), ..held_by("b", 4) });
    assert_eq!(script.wakes(), Some(7_300));
}

#[test]
fn a_store_that_denies_and_says_now_is_not_asked_in_a_loop() {
    for seen in [Seen::nothing(), released(4), Seen { free_at: Some(Boot::default()), ..held_by("b", 4) }] {
        let mut script = Script::acquiring(|_| {});
        script.denied(seen);
        assert_eq!(script.waits(), Some(5));
    }
}

#[test]
fn a_change_notice_ends_back_off_and_breaker() {
    let mut script = troubled(3);
    assert_eq!(script.waits(), Some(30_000));
    script.changed(released(4)).unknown().unknown();
    assert_eq!(script.waits(), Some(50), "tried at once, and counting from the start");
    script.next().unknown().unknown().changed(held_by("b", 9));
    assert_eq!(script.waits(), Some(2_000), "somebody leads: back to the retry interval");
}

#[test]
fn a_connection_that_is_back_ends_back_off_and_breaker() {
    let mut script = troubled(3);
    script.signal(Signal::Restored);
    assert_eq!(script.state(), "acquiring");
}

#[test]
fn stop_is_heard_during_back_off() {
    let mut script = troubled(3);
    script.told();
    script.feed(Input::Stop);
    assert_eq!(script.heard(), "stopped");
    assert!(script.core.is_quiet());
}

#[test]
fn the_millionth_attempt_waits_no_longer_than_the_twentieth() {
    let mut script = Script::acquiring(|_| {});
    for _ in 0..1_000_000 {
        script.unknown().unknown().next();
        script.told();
        script.sent = script.sent.split_off(&script.last());
    }
    script.unknown().unknown();
    assert_eq!(script.waits(), Some(5_000));
}

#[test]
fn a_store_that_swallows_everything_is_not_fed_for_ever() {
    let mut script = Script::acquiring(|_| {});
    script.at(10_000_000);
    assert_eq!((script.core.calls_unanswered(), script.wakes()), (CALLS_MAX, None));
    script.told();
    script.answer(1, crate::Outcome::Denied(released(4)));
    assert_eq!(script.calls(Kind::Claim) + script.calls(Kind::Look), CALLS_MAX + 1, "room for one more");
}

#[test]
fn a_leader_whose_store_swallows_validations_does_not_pile_them_up() {
    let mut script = Script::leading(|_| {});
    for second in 1..500 {
        script.at(second * 1_000).feed(Input::Validate);
        if script.sent[&script.last()].kind == Kind::Renew {
            script.granted(5);
        }
        assert!(script.core.calls_unanswered() <= CALLS_MAX);
    }
}

#[test]
fn a_record_in_our_name_shown_again_and_again_is_not_released_without_end() {
    let mut script = Script::new();
    for _ in 0..1_000 {
        script.changed(super::script::held_by_me(5));
    }
    assert!(script.core.calls_unanswered() <= CALLS_MAX);
}

#[test]
fn a_leader_is_told_of_only_when_it_changes() {
    let mut script = Script::acquiring(|_| {});
    script.denied_by("b").changed(held_by("b", 9)).changed(held_by("b", 10)).changed(released(10));
    let told = script.told();
    assert_eq!(told.matches("leader ").count(), 2, "{told}");
    assert_eq!(script.core.leader(), None);
    let dead = Seen { proof: Proof::Dead, ..held_by("b", 11) };
    script.granted(11).changed(dead);
    assert_eq!(script.core.leader(), Some(&id("a")));
}
