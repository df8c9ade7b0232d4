//! A node that cannot start COMMAND: it does not keep others from leading, and says what it lacks.

use std::process::Command;

use bellwether_tests::{Candidate, Process, Stage, run_to_end, until_blocking};
use rustix::process::Signal;

use crate::{WAIT, command, has_said, plain, ready_after, run, words};

const FILES: &str = "Too many open files (os error 24); raise the limit on open files (ulimit -n)";
const PROCESSES: &str =
    "Resource temporarily unavailable (os error 11); raise the limit on processes (ulimit -u";

/// `bellwether run` with less of something; as a user whom nobody else is, where the user's own processes count.
fn with_less(stage: &Stage, of: &str, user: Option<u32>) -> Command {
    let inner = command(stage, "poor", &["--ttl", "1s"], "say ran on the poor node");
    let mut limited = Command::new("prlimit");
    limited.arg(of);
    if let Some(user) = user {
        limited.args(["setpriv", &format!("--reuid={user}"), "--clear-groups"]);
    }
    limited.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    limited
}

/// Whoever else competes gets to lead, and the poor node ends with a sentence.
fn expect_turned_away(of: &str, user: Option<u32>, because: &str) {
    let stage = plain();
    let mut poor = Candidate::start(with_less(&stage, of, user));
    let mut healthy = run(&stage, &["--ttl", "1s"], "say ran; exit 0");
    assert_eq!(words(&mut healthy), "ran", "{of}");
    assert_eq!(healthy.ended().code, Some(0), "{of}");
    let ended = poor.ended();
    assert!(!has_said(&poor, "acquired"), "{of}: it led, and could not run anything: {}", ended.stderr);
    assert_eq!(ended.code, Some(126), "{of}: {ended:?}");
    assert!(ended.stderr.contains(because), "{of}: {}", ended.stderr);
}

#[test]
fn a_node_without_kernel_timers_does_not_compete_and_says_why() {
    expect_turned_away("--sigpending=0:0", None, "raise the limit on pending signals (ulimit -i)");
}

#[test]
fn a_node_without_descriptors_does_not_compete_and_says_why() {
    // Too few for a runtime in several ways, then for a guard, then for a container of the command.
    for most in [4, 6, 7, 8, 10, 12] {
        expect_turned_away(&format!("--nofile={most}:{most}"), None, FILES);
    }
}

#[test]
fn a_look_without_descriptors_says_why() {
    let stage = plain();
    let status = stage.bellwether("a");
    let mut limited = Command::new("prlimit");
    limited.arg("--nofile=6:6").arg(status.get_program()).args(status.get_args()).args(["status", "job"]);
    let output = run_to_end(limited);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(FILES), "{output:?}");
}

#[test]
fn a_node_without_processes_does_not_compete_and_says_why() {
    // A number that no other test has: the kernel counts all processes of a user.
    let user = 700_000 + std::process::id();
    // Too few for the threads of a runtime, then for a guard, then for a container of the command.
    for most in [2, 3, 5] {
        expect_turned_away(&format!("--nproc={most}:{most}"), Some(user), PROCESSES);
    }
}

#[test]
fn a_candidate_whose_start_fails_stays_out_until_a_rehearsal_succeeds() {
    let stage = plain();
    let script = &WAIT[1..];
    let mut first = run(&stage, &["--ttl", "1s"], script);
    assert_eq!(words(&mut first), "ready");
    let mut poor = Candidate::start(command(&stage, "poor", &["--ttl", "1s"], script));
    poor.joined();
    // What was there at the rehearsal is gone when it is needed.
    let guard = guard_of(&stage, &poor);
    limit_descriptors(&guard, "5:1024");
    first.signal(Signal::TERM);
    assert_eq!(first.ended().code, Some(0));
    poor.expect("acquired");
    poor.expect("released");
    let mut healthy = Candidate::start(command(&stage, "healthy", &["--ttl", "1s"], script));
    let led = ready_after(&mut healthy, None);
    assert!(!has_said(&poor, "said"), "it ran: {:?}", poor.said);
    healthy.signal(Signal::TERM);
    assert_eq!(healthy.ended().code, Some(0));
    // Its guard has been replaced by one without the limit.
    assert!(ready_after(&mut poor, led.epoch()).epoch() > led.epoch());
    poor.signal(Signal::TERM);
    let ended = poor.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("stays out of the election"), "{}", ended.stderr);
    assert!(ended.stderr.contains("oo many open files"), "{}", ended.stderr);
}

pub(crate) fn guard_of(stage: &Stage, candidate: &Candidate) -> Process {
    let guard = || {
        let of_it = |process: &Process| process.parent == candidate.pid().cast_signed();
        stage.alive().into_iter().find(|process| of_it(process) && process.name == "bellw-guard")
    };
    until_blocking(|| guard().ok_or("no guard"))
}

fn limit_descriptors(process: &Process, most: &str) {
    let mut limit = Command::new("prlimit");
    limit.args(["--pid", &process.pid.to_string(), &format!("--nofile={most}")]);
    assert!(limit.status().is_ok_and(|status| status.success()), "{limit:?}");
}
