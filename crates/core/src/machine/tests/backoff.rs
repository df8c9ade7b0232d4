//! Back-off: errors wait longer and longer, a denial is not an error, and a change ends every wait.

use super::script::{Kind, Script, held_by, ms, released};
use crate::{Boot, Breaker, Fixed, Input, Options, Seen, Signal};

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
fn at_most_one_attempt_is_under_way_while_the_store_is_silent() {
    let mut script = Script::acquiring(|_| {});
    script.at(60_000);
    let claims: Vec<_> = script.sent.values().filter(|sent| sent.kind == Kind::Claim).collect();
    assert!(claims.len() > 3, "{claims:?}");
    for pair in claims.windows(2) {
        assert!(pair[1].at.since(pair[0].at) >= ms(3_000), "{pair:?}");
    }
}

#[test]
fn at_most_one_attempt_is_under_way_when_the_reconnect_grace_ends() {
    let mut script = Script::leading(|options| options.reconnect_grace = Some(ms(1_000)));
    script.signal(Signal::Gone).work_ended(5);
    assert_eq!(script.calls(Kind::Claim), 2);
    script.at(1_000);
    assert_eq!((script.state(), script.calls(Kind::Claim)), ("acquiring", 2));
    script.told();
    script.granted(6);
    assert_eq!(script.heard(), "acquired e6");
}

/// 50 ms doubling up to 5 s, and 30 s from the tenth error in a row.
#[test]
fn errors_back_off_and_the_tenth_opens_the_breaker() {
    let mut script = Script::acquiring(|options| options.breaker = Some(Breaker::default()));
    let mut fails = || {
        script.unknown().unknown();
        let pause = script.waits().expect("it will try again");
        script.next();
        assert_eq!(script.state(), "acquiring");
        pause
    };
    let pauses: Vec<u64> = (0..11).map(|_| fails()).collect();
    assert_eq!(pauses, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 30_000, 30_000]);
    script.denied_by("b").next().unknown().unknown();
    assert_eq!(script.waits(), Some(50), "an answer from the store ends the row");
}

#[test]
fn jitter_moves_each_pause_by_a_tenth_at_most() {
    let mut script = Script::acquiring(|options| options.strategy = Options::default().strategy);
    let pauses: Vec<u64> = (0..40)
        .map(|_| {
            script.unknown().unknown();
            let pause = script.waits().unwrap();
            script.at(script.wakes().unwrap() + 1);
            pause
        })
        .skip(8)
        .collect();
    assert!(pauses.iter().all(|pause| (4_499..=5_501).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause != 5_000));
}

#[test]
fn a_grant_ends_the_row_of_errors() {
    let mut script = Script::acquiring(|_| {});
    for _ in 0..3 {
        script.unknown().unknown().next();
    }
    script.granted(5).signal(Signal::Gone).work_ended(5).unknown().unknown();
    assert_eq!(script.waits(), Some(50));
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
fn a_breaker_never_shortens_the_pause() {
    let mut script = Script::acquiring(|options| {
        options.breaker = Some(Breaker { failures: 1, open_for: ms(10) });
    });
    script.unknown().unknown();
    assert_eq!(script.waits(), Some(50));
}

#[test]
fn a_connection_that_is_back_ends_back_off_and_breaker() {
    let mut script = troubled(3);
    script.signal(Signal::Restored).unknown().unknown();
    assert_eq!(script.waits(), Some(50));
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
fn a_strategy_that_says_at_once_makes_no_hot_loop() {
    let mut script = Script::acquiring(|options| options.strategy = std::sync::Arc::new(Fixed(ms(0))));
    script.unknown().unknown();
    assert_eq!(script.waits(), Some(1));
}
