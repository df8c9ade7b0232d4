//! The transition table, row by row: state, input, next state, events.
//!
//! An error while acquiring emits `error`, not `lost`, since nothing was held. Coming back from Reconnecting emits `resumed`, since
//! it is a new leadership under a new epoch. A single failed renewal changes no state: the deadline decides.

use super::script::{Kind, Script, held_by, held_by_me, ms, released};
use crate::{AtMost, Fixed, Input, Options, Signal};

struct Row {
    from: &'static str,
    input: &'static str,
    to: &'static str,
    heard: &'static str,
    settings: fn(&mut Options),
}

fn plain(_: &mut Options) {}
fn graceful(options: &mut Options) {
    options.reconnect_grace = Some(ms(4_000));
}
fn once(options: &mut Options) {
    options.auto_reacquire = false;
}
fn graceful_once(options: &mut Options) {
    graceful(options);
    once(options);
}
fn gives_up(options: &mut Options) {
    options.strategy = std::sync::Arc::new(AtMost { attempts: 1, then: Fixed(ms(50)) });
}

const fn row(
    from: &'static str,
    input: &'static str,
    to: &'static str,
    heard: &'static str,
    settings: fn(&mut Options),
) -> Row {
    Row { from, input, to, heard, settings }
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    row("stopped", "Start", "stopped→follower", "", plain),
    row("follower", "AcquireAttempt", "follower→acquiring", "", plain),
    row("follower", "StopRequested", "follower→stopped", "stopped", plain),
    row("acquiring", "AcquireSucceeded", "acquiring→leader", "acquired e5", plain),
    row("acquiring", "AcquireFailed", "acquiring→follower", "acquire_failed b", plain),
    // Emits `error`, not `lost`: nothing was held. The first error is the claim's, the second that of the look.
    row("acquiring", "DbError", "acquiring→follower", "error unavailable, error unavailable", plain),
    // Footnote 1 does not reach here: `auto_reacquire` is about what follows a leadership, and there was none.
    row("acquiring", "DbError", "acquiring→follower", "error unavailable, error unavailable", once),
    // Section 4.5: a strategy that says "no more" stops.
    row("acquiring", "DbError", "acquiring→stopped", "error unavailable, error gave_up, stopped", gives_up),
    row("acquiring", "StopRequested", "acquiring→stopped", "stopped", plain),
    row("leader", "HealthOk", "", "", plain),
    row("leader", "DbError", "leader→reconnecting", "suspended e5 connection", graceful),
    // Footnote 3: no grace. Footnote 1: not again.
    row("leader", "DbError", "leader→follower", "lost e5 connection", plain),
    row("leader", "DbError", "leader→stopped", "lost e5 connection, stopped", once),
    row("leader", "HealthFailed", "leader→reconnecting", "danger e5, suspended e5 deadline", graceful),
    row("leader", "HealthFailed", "leader→follower", "danger e5, lost e5 deadline", plain),
    row("leader", "HealthFailed", "leader→stopped", "danger e5, lost e5 deadline, stopped", once),
    row("leader", "StopRequested", "leader→releasing", "", plain),
    row("leader", "ReleaseRequested", "leader→releasing", "", plain),
    // Emits `resumed`, under a new epoch.
    row("reconnecting", "ReacquireSucceeded", "reconnecting→leader", "resumed e6", graceful),
    row("reconnecting", "ReacquireFailed", "reconnecting→follower", "acquire_failed b, lost e5 connection", graceful),
    row("reconnecting", "ReacquireFailed", "reconnecting→stopped", "acquire_failed b, lost e5 connection, stopped", graceful_once),
    row("reconnecting", "GraceExpired", "reconnecting→follower", "lost e5 connection", graceful),
    row("reconnecting", "GraceExpired", "reconnecting→stopped", "lost e5 connection, stopped", graceful_once),
    row("reconnecting", "StopRequested", "reconnecting→stopped", "stopped", graceful),
    row("releasing by stop", "ReleaseSucceeded", "releasing→stopped", "released e5, stopped", plain),
    // Footnote 2: after a step-down it stands again, if that is wanted.
    row("releasing by step_down", "ReleaseSucceeded", "releasing→follower", "released e5", plain),
    row("releasing by step_down", "ReleaseSucceeded", "releasing→stopped", "released e5, stopped", once),
    row("releasing by stop", "ReleaseFailed", "releasing→stopped", "error unavailable, released e5 unconfirmed, stopped", plain),
    row("releasing by step_down", "ReleaseFailed", "releasing→follower", "error unavailable, released e5 unconfirmed", plain),
    row("releasing by step_down", "ReleaseFailed", "releasing→stopped", "error unavailable, released e5 unconfirmed, stopped", once),
    row("releasing by stop", "DbError", "releasing→stopped", "error timed_out, released e5 unconfirmed, stopped", plain),
];

#[test]
fn every_row_of_the_transition_table() {
    for Row { from, input, to, heard, settings } in TABLE {
        let mut script = setup(from, *settings);
        let begins = script.state();
        assert!(from.starts_with(begins), "{from}: the setup ends in {begins}");
        script.told();
        apply(&mut script, from, input);
        let told = script.told();
        let states: Vec<_> = told.split(", ").filter_map(|line| line.strip_prefix("state ")).collect();
        let first = states.first().copied().unwrap_or("");
        assert_eq!(first, *to, "{from}, {input}: {told}");
        assert_eq!(events(&told), *heard, "{from}, {input}");
    }
}

fn setup(from: &str, settings: fn(&mut Options)) -> Script {
    match from {
        "stopped" => Script::with(settings),
        "follower" => {
            let mut script = Script::acquiring(settings);
            script.denied_by("b");
            script
        }
        "acquiring" => Script::acquiring(settings),
        "leader" => Script::leading(settings),
        "reconnecting" => {
            let mut script = Script::leading(settings);
            script.at(1_000).signal(Signal::Gone);
            script
        }
        "releasing by stop" => releasing(settings, Input::Stop),
        "releasing by step_down" => releasing(settings, Input::StepDown { to: None }),
        other => panic!("no such state: {other}"),
    }
}

fn releasing(settings: fn(&mut Options), by: Input) -> Script {
    let mut script = Script::leading(settings);
    script.at(1_000).feed(by).work_ended(5);
    script
}

fn apply(script: &mut Script, from: &str, input: &str) {
    match (from, input) {
        (_, "Start") => script.feed(Input::Start),
        (_, "StopRequested") => script.feed(Input::Stop),
        (_, "ReleaseRequested") => script.feed(Input::StepDown { to: None }),
        ("follower", "AcquireAttempt") => script.at(2_000),
        ("acquiring", "AcquireSucceeded") => script.granted(5),
        ("acquiring", "AcquireFailed") => script.denied_by("b"),
        // The claim's outcome is unknown, and so is the look's that follows; a strategy may give up at that.
        ("acquiring", "DbError") => script.unknown().unknown(),
        ("leader", "HealthOk") => script.at(5_000).granted(5),
        ("leader", "DbError") => script.signal(Signal::Gone),
        // Renewals that hang: nothing is confirmed, and the time runs out.
        ("leader", "HealthFailed") => {
            script.pause_until(9_300).feed(Input::Timeout).pause_until(13_500).feed(Input::Timeout)
        }
        ("reconnecting", "ReacquireSucceeded") => script.work_ended(5).granted(6),
        ("reconnecting", "ReacquireFailed") => script.work_ended(5).denied_by("b"),
        ("reconnecting", "GraceExpired") => script.at(5_000),
        ("releasing by stop" | "releasing by step_down", "ReleaseSucceeded") => script.released(),
        ("releasing by stop" | "releasing by step_down", "ReleaseFailed") => script.unknown(),
        ("releasing by stop", "DbError") => script.at(4_000),
        other => panic!("no such row: {other:?}"),
    };
}

/// As `heard`, of what was already taken.
fn events(told: &str) -> String {
    let words = ["acquire", "released", "resumed", "suspended", "lost", "danger", "error", "stopped"];
    let outside = |line: &&str| words.iter().any(|word| line.starts_with(word));
    told.split(", ").filter(outside).collect::<Vec<_>>().join(", ")
}

#[test]
fn start_opens_nothing_twice_and_tries_at_once() {
    let mut script = Script::new();
    script.feed(Input::Start);
    assert_eq!(script.told(), "state stopped→follower, claim#1, state follower→acquiring");
    script.feed(Input::Start).feed(Input::Start);
    assert_eq!(script.told(), "");
}

#[test]
fn stop_twice_releases_once() {
    let mut script = Script::leading(plain);
    script.feed(Input::Stop).feed(Input::Stop).work_ended(5).feed(Input::Stop).released().feed(Input::Stop);
    assert_eq!(
        script.told(),
        "end_work e5 by 13500 chosen, state leader→releasing, release#2 e5, released e5, leader nobody, \
         state releasing→stopped, stopped"
    );
    assert!(script.core.is_quiet());
}

#[test]
fn stop_while_stepping_down_stops_afterwards() {
    let mut script = Script::leading(plain);
    script.feed(Input::StepDown { to: None }).feed(Input::Stop).work_ended(5).released();
    assert_eq!(script.heard(), "released e5, stopped");
}

#[test]
fn an_error_while_reconnecting_is_tried_again_until_the_grace_ends() {
    let mut script = Script::leading(graceful);
    script.at(1_000).signal(Signal::Gone).work_ended(5).unknown().looked(released(5));
    assert_eq!(script.state(), "reconnecting");
    script.told();
    script.at(1_050).granted(6);
    assert_eq!(script.heard(), "resumed e6");
}

#[test]
fn giving_up_while_reconnecting_is_a_loss() {
    let mut script = Script::leading(|options| {
        graceful(options);
        gives_up(options);
    });
    script.at(1_000).signal(Signal::Gone).work_ended(5).unknown().looked(released(5));
    assert_eq!(
        script.heard(),
        "suspended e5 connection, error unavailable, lost e5 connection, error gave_up, stopped"
    );
}

/// The grace is for what is in doubt. Somebody else's record is not.
#[test]
fn a_certain_loss_is_no_suspension() {
    let mut script = Script::leading(graceful);
    script.at(5_000).denied_by("b");
    assert_eq!(script.heard(), "lost e5 conflict");
    let mut script = Script::leading(graceful);
    script.feed(Input::Validate).looked(released(5));
    assert_eq!(script.heard(), "lost e5 validation");
}

#[test]
fn what_the_watch_shows_while_reconnecting_is_acted_on_at_once() {
    let waiting = || {
        let mut script = Script::leading(graceful);
        script.at(1_000).signal(Signal::Gone).work_ended(5).unknown().unknown();
        assert_eq!((script.state(), script.calls(Kind::Claim)), ("reconnecting", 2));
        assert!(script.waits() > Some(0));
        script.told();
        script
    };
    for free in [held_by_me(5), released(5)] {
        let mut script = waiting();
        script.changed(free.clone());
        assert_eq!((script.state(), script.calls(Kind::Claim)), ("reconnecting", 3), "{free:?}");
    }
    let mut script = waiting();
    script.changed(held_by("b", 6));
    assert_eq!(script.heard(), "lost e5 connection");
}
