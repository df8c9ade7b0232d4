//! Supervisor and guard killed or stopped: the command never outlives its leadership, nor the proof of it.
//!
//! Each runs with a PID namespace, where that is permitted, and as an ordinary user, without one.

#![cfg(target_os = "linux")]

mod stage;

use bellwether_deadman::boot_now;
use rustix::process::Signal;
use stage::{
    Freezer, Host, LONG, NOBODY, PROBE, Processes, Stage, kill, may_become_nobody, may_make_namespaces,
    parent, wait_for_end_of, wait_for_lock,
};
use std::process::Command;
use std::time::Duration;

/// As whoever runs the tests, and as nobody.
fn each_user(test: impl Fn(&[&str])) {
    test(&[]);
    if may_become_nobody() {
        let nobody = format!("user={NOBODY}");
        test(&[&nobody]);
    }
}

fn with<'a>(user: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [user, more].concat()
}

#[test]
fn the_supervisor_is_killed_and_the_proof_outlives_the_work() {
    each_user(|user| {
        for round in 0..10 {
            let stage = Stage::new();
            let proof = format!("proof={}", stage.proof());
            let manners: &[&str] = if round % 2 == 0 { &["deaf", "grandchild"] } else { &["deaf", "daemon"] };
            let mut host = stage.host(&with(user, &[&proof]), manners);
            let cast = host.running();
            assert!(stage.witnessed());
            kill(cast.host, Signal::KILL);
            wait_for_lock(&stage.proof());
            assert!(!stage.witnessed(), "the proof was free while the work still ran: {cast:?}");
            stage.expect_empty();
        }
    });
}

#[test]
fn the_guard_is_killed_and_the_supervisor_hears_of_it_when_the_tree_is_gone() {
    each_user(|user| {
        let stage = Stage::new();
        let proof = format!("proof={}", stage.proof());
        let mut host = stage.host(&with(user, &[&proof, "rounds=2", "ttl=5000"]), &["deaf", "daemon"]);
        let cast = host.running();
        kill(cast.guard, Signal::KILL);
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9) GuardDied"), "{ended}");
        // The next begins at once, with a new guard, and finds the lock free.
        let again = host.running();
        assert_ne!(again.guard, cast.guard);
        stage.expect_never_two();
        host.tell("kill");
        host.expect("released");
        stage.expect_empty();
    });
}

#[test]
fn supervisor_and_guard_are_killed_together() {
    each_user(|user| {
        let mut late = Vec::new();
        for _ in 0..11 {
            let stage = Stage::new();
            let proof = format!("proof={}", stage.proof());
            let mut host = stage.host(&with(user, &[&proof]), &["deaf", "daemon"]);
            let cast = host.running();
            kill(cast.guard, Signal::KILL);
            kill(cast.host, Signal::KILL);
            let free = wait_for_lock(&stage.proof());
            let gone = stage.wait_for_witness_gone();
            late.push(gone.since(free));
            stage.expect_empty();
        }
        // Each, on a machine that is not starved; the tests' may be.
        late.sort_unstable();
        assert!(late[5] < Duration::from_millis(20), "later than `settle` allows: {late:?}");
    });
}

#[test]
fn the_supervisor_is_stopped_past_its_deadline() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(&with(user, &["ttl=1000", "grace=100"]), &["deaf", "daemon"]);
        let cast = host.running();
        kill(cast.host, Signal::STOP);
        let stopped_at = boot_now();
        let gone = stage.wait_for_witness_gone();
        // A renewal may have come just before: the deadline is at most ttl − margin after the stop.
        let late = gone.since(stopped_at + Duration::from_millis(900));
        assert_eq!(late, Duration::ZERO, "{cast:?}");
        kill(cast.host, Signal::CONT);
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9)"), "{ended}");
        host.expect("released");
        stage.expect_empty();
    });
}

/// Found when the tests themselves were ended by it: where COMMAND was the only tie of the supervisor's process group, the kernel hung up
/// on the whole group when COMMAND was killed.
#[test]
fn a_supervisor_that_is_stopped_past_its_deadline_takes_no_script_around_it_along() {
    each_user(|user| {
        let stage = Stage::new();
        let script = ["--wait", "bash", "-c", "\"$@\"; exit 7", "bash", PROBE, "host"];
        let options = with(user, &["ttl=1000", "grace=100"]);
        let lock = stage.witness_lock();
        let command = ["--", "/proc/self/exe", "witness", &lock, "deaf"];
        let mut host = stage.spawn(Command::new("setsid").args(script).args(options).args(command));
        let supervisor = parent(host.running().guard);
        kill(supervisor, Signal::STOP);
        stage.wait_for_witness_gone();
        kill(supervisor, Signal::CONT);
        host.expect("ended");
        host.expect("released");
        assert_eq!(host.wait().code(), Some(7), "the script goes on");
    });
}

#[test]
fn everybody_is_stopped_and_the_kernel_keeps_the_deadline() {
    each_user(|user| {
        let stage = Stage::new();
        // Without a namespace, only the command itself is tied to those that the kernel kills.
        let manners: &[&str] =
            if user.is_empty() && may_make_namespaces() { &["deaf", "daemon"] } else { &["deaf"] };
        let mut host = stage.host(&with(user, &["ttl=1000", "grace=100"]), manners);
        let cast = host.running();
        stop_all(&cast);
        let stopped_at = boot_now();
        let gone = stage.wait_for_witness_gone();
        let late = gone.since(stopped_at + Duration::from_millis(900));
        assert_eq!(late, Duration::ZERO, "{cast:?}");
        kill(cast.host, Signal::CONT);
        host.expect("ended");
        host.expect("released");
        stage.expect_empty();
    });
}

fn stop_all(cast: &Processes) {
    for pid in [cast.host, cast.guard, cast.init, cast.command] {
        kill(pid, Signal::STOP);
    }
}

#[test]
fn the_guard_alone_is_stopped() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(&with(user, &["ttl=1000", "grace=100"]), &["deaf"]);
        let cast = host.running();
        kill(cast.guard, Signal::STOP);
        // It hears of no renewal, so the kernel kills it, and the command with it, while the leadership goes on.
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9) GuardDied"), "{ended}");
        assert!(!stage.witnessed());
        host.expect("released");
        stage.expect_empty();
    });
}

#[test]
fn guard_and_supervisor_are_stopped_and_no_daemon_outlives_the_deadline() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(&with(user, &["ttl=1000", "grace=100"]), &["deaf", "daemon"]);
        let cast = host.running();
        kill(cast.host, Signal::STOP);
        kill(cast.guard, Signal::STOP);
        let stopped_at = boot_now();
        let gone = stage.wait_for_witness_gone();
        assert_eq!(gone.since(stopped_at + Duration::from_millis(900)), Duration::ZERO, "{cast:?}");
        kill(cast.host, Signal::CONT);
        host.expect("ended");
        host.expect("released");
        stage.expect_empty();
    });
}

/// As on a machine that is so busy that they get no processor in time.
#[test]
fn a_guard_that_comes_too_late_still_leaves_no_daemon_behind() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(&with(user, &["ttl=1000", "grace=100"]), &["deaf", "daemon"]);
        let cast = host.running();
        for pid in [cast.host, cast.guard, cast.init] {
            kill(pid, Signal::STOP);
        }
        wait_for_end_of(cast.init);
        kill(cast.guard, Signal::CONT);
        stage.wait_for_witness_gone();
        kill(cast.host, Signal::CONT);
        host.expect("ended");
        host.expect("released");
        stage.expect_empty();
    });
}

#[test]
fn a_guard_that_was_stopped_before_it_was_needed_is_replaced() {
    let stage = Stage::new();
    let mut host = stage.host(&["ttl=600", "grace=50", "rounds=2", "pause"], &["exit"]);
    let idle: i32 = host.expect("idle").parse().unwrap();
    kill(idle, Signal::STOP);
    host.tell("go on");
    // Not for want of renewals, which go on meanwhile: what was left when the command was ordered is over.
    let failed = host.expect("failed");
    assert!(failed.contains("guard"), "{failed}");
    assert!(host.expect("ended").starts_with("Code(0) ByItself"));
    host.expect("released");
    stage.expect_empty();
}

#[test]
fn a_command_that_makes_daemons_all_the_time_does_not_get_away() {
    each_user(|user| {
        let stage = Stage::new();
        let script = "echo witness; while :; do (setsid sleep 60 &) ; done";
        let mut host = stage.host_of(&with(user, &["grace=50"]), &["/bin/sh", "-c", script]);
        let cast = host.running();
        kill(cast.host, Signal::KILL);
        stage.expect_empty();
    });
}

#[test]
fn init_is_killed() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(user, &["deaf", "daemon"]);
        let cast = host.running();
        kill(cast.init, Signal::KILL);
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9) ByItself"), "{ended}");
        assert!(!stage.witnessed());
        host.expect("released");
        stage.expect_empty();
    });
}

#[test]
fn guard_and_init_are_killed_and_the_supervisor_sweeps() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(user, &["deaf", "daemon"]);
        let cast = host.running();
        lose_guard_and_init(&cast);
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9) GuardDied"), "{ended}");
        assert!(!stage.witnessed(), "{cast:?}");
        host.expect("released");
        stage.expect_empty();
    });
}

/// Whatever it did to hide: its environment says nothing, and its parents are gone.
#[test]
fn guard_and_init_are_killed_and_nothing_is_released_beside_a_daemon_without_an_environment() {
    each_user(|user| {
        let stage = Stage::new();
        let lock = stage.witness_lock();
        // Without anything but what the test knows it by.
        let command = ["/usr/bin/env", "-i", stage.mark(), PROBE, "witness", &lock, "deaf", "daemon"];
        let mut host = stage.host_of(&with(user, &["sweep"]), &command);
        let cast = host.running();
        lose_guard_and_init(&cast);
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9) GuardDied"), "{ended}");
        assert!(!stage.witnessed(), "{cast:?}");
        host.expect("released");
    });
}

/// A hook, say.
#[test]
fn guard_and_init_are_killed_and_what_runs_beside_the_command_is_left_alone() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(&with(user, &["beside=1000", "sweep"]), &["deaf", "daemon"]);
        let beside: i32 = host.expect("beside").parse().unwrap();
        let cast = host.running();
        lose_guard_and_init(&cast);
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9) GuardDied"), "{ended}");
        assert!(!stage.witnessed(), "{cast:?}");
        assert!(stage.alive().iter().any(|(pid, _)| *pid == beside), "{beside} was killed");
        host.expect("released");
        kill(beside, Signal::KILL);
        stage.expect_empty();
    });
}

/// A frozen process is not killed before it is thawed. Nobody may lead meanwhile by a word of ours.
#[test]
fn guard_and_init_are_killed_and_nothing_is_released_beside_a_frozen_process() {
    let Some(freezer) = Freezer::new() else { return };
    let stage = Stage::new();
    let mut host = stage.host(&["sweep", "ttl=3000"], &["deaf", "daemon"]);
    let cast = host.running();
    let (daemon, _) =
        stage.alive().into_iter().find(|(pid, _)| parent(*pid) == cast.init && *pid != cast.command).unwrap();
    freezer.freeze(daemon);
    lose_guard_and_init(&cast);
    let ended = host.expect("ended");
    assert!(ended.starts_with(&format!("Signal(9) Unkillable(Survivor {{ pid: {daemon}")), "{ended}");
    assert!(stage.witnessed(), "{cast:?}");
    drop(freezer);
    host.expect("released");
    stage.expect_empty();
}

/// Both before either can act.
fn lose_guard_and_init(cast: &Processes) {
    kill(cast.guard, Signal::STOP);
    kill(cast.init, Signal::STOP);
    kill(cast.init, Signal::KILL);
    kill(cast.guard, Signal::KILL);
}

/// Nobody is left who would kill the command for want of renewals, and it is long until the deadline.
#[test]
fn guard_is_killed_while_init_is_stopped_and_the_leadership_ends_at_once() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host = stage.host(&with(user, &["ttl=120000"]), &["deaf", "daemon"]);
        let cast = host.running();
        kill(cast.init, Signal::STOP);
        kill(cast.guard, Signal::KILL);
        let ended = host.expect("ended");
        assert!(ended.starts_with("Signal(9) GuardDied"), "{ended}");
        assert!(!stage.witnessed(), "{cast:?}");
        host.expect("released");
        stage.expect_empty();
    });
}

#[test]
fn renewals_keep_a_command_alive_for_many_times_the_ttl() {
    each_user(|user| {
        let stage = Stage::new();
        let mut host: Host = stage.host(&with(user, &["ttl=500", "grace=50"]), &[]);
        host.running();
        let until = boot_now() + Duration::from_secs(2);
        assert!(until.since(boot_now()) < LONG);
        while boot_now() < until {
            assert!(stage.witnessed());
            std::thread::sleep(Duration::from_millis(50));
        }
        host.tell("term");
        assert!(host.expect("ended").starts_with("Signal(15) Asked"));
        stage.expect_empty();
    });
}
