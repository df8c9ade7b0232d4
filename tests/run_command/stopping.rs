//! A command that needs longer to stop than its lease lasts: the lease is renewed meanwhile, and nobody else leads.

use bellwether_tests::{Candidate, run_to_end};
use rustix::process::Signal;

use crate::shortage::guard_of;
use crate::{WAIT, command, has_said, plain, ready_after, run, words};

/// Takes longer than two leases to stop, and says when it is done. A lease of two seconds survives a busy machine.
const SLOW: &str = "trap 'say stopping; sleep 5; say finished; exit 0' TERM";

fn follower(stage: &bellwether_tests::Stage) -> Candidate {
    let mut follower = Candidate::start(command(stage, "b", &["--ttl", "2s"], "say ready; sleep 1000"));
    follower.joined();
    follower
}

#[test]
fn a_command_that_is_asked_to_stop_may_finish_before_anybody_else_leads() {
    for how in ["a signal", "a request"] {
        let stage = plain();
        let mut leader = run(&stage, &["--ttl", "2s"], &format!("{SLOW}{WAIT}"));
        let led = ready_after(&mut leader, None);
        let mut follower = follower(&stage);
        if how == "a signal" {
            leader.signal(Signal::TERM);
        } else {
            let mut asking = stage.bellwether("operator");
            asking.args(["step-down", "job"]);
            run_to_end(asking);
        }
        assert_eq!(words(&mut leader), "stopping", "{how}");
        assert_eq!(words(&mut leader), "finished", "{how}: it was not let finish");
        let exited = leader.expect("child_exited");
        assert_eq!(exited.number("code"), Some(0), "{how}");
        let next = follower.expect("acquired");
        assert!(next.boot() > exited.boot(), "{how}: {next:?} before {exited:?}");
        assert!(next.epoch() > led.epoch(), "{how}");
        if how == "a signal" {
            assert_eq!(leader.ended().code, Some(0));
            assert!(has_said(&leader, "released"));
        } else {
            let lost = leader.expect("lost");
            assert_eq!(lost.text("reason"), Some("admin"));
        }
    }
}

#[test]
fn a_guard_that_is_killed_ends_the_leadership_and_the_log_says_so() {
    let stage = plain();
    let mut leader = run(&stage, &["--ttl", "60s"], &WAIT[1..]);
    let first = ready_after(&mut leader, None);
    // Whoever loses its guard before that has failed to start, and stays out for a while.
    leader.heard("child_started");
    guard_of(&stage, &leader).signal(Signal::KILL);
    let second = ready_after(&mut leader, first.epoch());
    assert!(second.epoch() > first.epoch());
    leader.signal(Signal::TERM);
    let log = leader.ended().stderr;
    assert!(log.contains("job: the guard of the command died, and the command was killed"), "{log}");
}

/// The one that was asked first has longer, and so is the last to be killed.
#[test]
fn the_stop_timeout_ends_a_command_that_does_not_stop() {
    let script = format!("trap 'say stopping' TERM{WAIT}");
    let asked = |stop_timeout: &str| {
        let stage = plain();
        let mut leader = run(&stage, &["--ttl", "60s", "--stop-timeout", stop_timeout], &script);
        ready_after(&mut leader, None);
        let mut asking = stage.bellwether("operator");
        asking.args(["step-down", "job"]);
        let asking = asking.stdout(std::process::Stdio::null()).spawn().expect("the command starts");
        assert_eq!(words(&mut leader), "stopping");
        (stage, leader, asking)
    };
    let (_long_stage, mut long, long_asking) = asked("1h");
    let (_short_stage, mut short, short_asking) = asked("300ms");
    assert_eq!(short.expect("child_exited").number("code"), Some(137));
    long.drain();
    assert!(!has_said(&long, "child_exited"), "{:?}", long.said);
    for mut asking in [long_asking, short_asking] {
        let _ = asking.kill();
        let _ = asking.wait();
    }
}
