//! Signals: passed on, or a reason to leave.

use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_tests::{Candidate, until_blocking};
use rustix::process::Signal;

use crate::{WAIT, command, has_said, plain, run, words};

#[test]
fn int_and_term_are_passed_on_as_they_are_and_end_with_a_release_and_0() {
    for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM")] {
        let stage = plain();
        // The time is for the command to say its words, on a slow machine too.
        let script = format!("for s in INT TERM; do trap \"say $s; exit 3\" $s; done{WAIT}");
        let mut candidate = run(&stage, &["--ttl", "60s", "--stop-timeout", "20s"], &script);
        assert_eq!(words(&mut candidate), "ready");
        candidate.signal(signal);
        assert_eq!(words(&mut candidate), name);
        assert_eq!(candidate.expect("child_exited").number("code"), Some(3));
        assert_eq!(candidate.ended().code, Some(0), "{name}");
        assert!(has_said(&candidate, "released"));
        assert!(stage.emptied().is_empty());
    }
}

#[test]
fn kill_follows_after_the_stop_timeout() {
    let stage = plain();
    let mut candidate =
        run(&stage, &["--ttl", "20s", "--stop-timeout", "400ms"], &format!("trap 'say TERM' TERM{WAIT}"));
    assert_eq!(words(&mut candidate), "ready");
    let asked = candidate.signal(Signal::TERM);
    assert_eq!(words(&mut candidate), "TERM");
    let exited = candidate.expect("child_exited");
    assert_eq!(exited.number("code"), Some(137));
    let after = exited.boot().since(asked);
    assert!(after >= Duration::from_millis(400), "{after:?}: the time was not given");
    assert!(after < Duration::from_secs(10), "{after:?}: far more than that");
    assert_eq!(candidate.ended().code, Some(0));
}

#[test]
fn a_second_one_kills_at_once() {
    let stage = plain();
    let script = format!("trap 'say INT' INT; trap '' TERM{WAIT}");
    let mut candidate = run(&stage, &["--ttl", "90s", "--stop-timeout", "60s"], &script);
    assert_eq!(words(&mut candidate), "ready");
    candidate.signal(Signal::INT);
    assert_eq!(words(&mut candidate), "INT");
    let second = candidate.signal(Signal::TERM);
    assert_eq!(candidate.expect("child_exited").number("code"), Some(137));
    assert_eq!(candidate.ended().code, Some(0));
    assert!(boot_now().since(second) < Duration::from_secs(20), "it waited for the stop time-out");
    assert!(stage.emptied().is_empty());
}

#[test]
fn hup_quit_usr1_usr2_and_winch_are_passed_on_and_end_nothing() {
    let stage = plain();
    let script = format!("for s in HUP QUIT USR1 USR2 WINCH; do trap \"say $s\" $s; done{WAIT}");
    let mut candidate = run(&stage, &[], &script);
    assert_eq!(words(&mut candidate), "ready");
    for (signal, name) in [
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::WINCH, "WINCH"),
    ] {
        candidate.signal(signal);
        assert_eq!(words(&mut candidate), name);
    }
    assert!(candidate.leads());
}

#[test]
fn one_that_ends_the_command_is_the_command_s_own_end() {
    let stage = plain();
    let mut candidate = run(&stage, &[], &WAIT[1..]);
    assert_eq!(words(&mut candidate), "ready");
    candidate.signal(Signal::HUP);
    assert_eq!(candidate.ended().code, Some(128 + 1));
}

#[test]
fn without_a_command_running_the_four_leave_and_the_rest_is_ignored() {
    let stage = plain();
    let mut leader = run(&stage, &["--ttl", "60s"], &WAIT[1..]);
    leader.expect("said");
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        let mut follower = Candidate::start(command(&stage, "b", &["--ttl", "60s"], "say ran"));
        follower.joined();
        for ignored in [Signal::USR1, Signal::USR2, Signal::WINCH] {
            follower.signal(ignored);
        }
        follower.signal(signal);
        assert_eq!(follower.ended().code, Some(0), "{signal:?}");
        assert!(!has_said(&follower, "said"), "it ran");
    }
}

#[test]
fn one_that_comes_while_the_command_is_prepared_is_heard() {
    for (signal, ran) in [(Signal::USR1, true), (Signal::TERM, false)] {
        let stage = plain();
        let mut candidate = run(&stage, &[], "say ran; exit 0");
        let of_it = candidate.pid().cast_signed();
        let guard = || stage.alive().into_iter().find(|process| process.parent == of_it).ok_or("no guard");
        let guard = until_blocking(guard);
        // So that what is prepared with it takes longer.
        guard.signal(Signal::STOP);
        candidate.signal(signal);
        guard.signal(Signal::CONT);
        let ended = candidate.ended();
        assert_eq!(ended.code, Some(0), "{signal:?}: {}", ended.stderr);
        assert!(has_said(&candidate, "said") || !ran, "{signal:?}: {}", ended.stderr);
        assert!(stage.emptied().is_empty());
    }
}
