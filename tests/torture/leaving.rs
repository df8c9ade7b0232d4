//! However torture ends, nothing that it started is left.

use std::process::Stdio;

use bellwether_deadman::random_bits;
use bellwether_tests::{Process, exit_of, json, until_blocking};
use rustix::process::{Pid, Signal, kill_process};

use crate::long;

/// Torture under way, with a variable by which all that came of it is found. It is signalled once two candidates have ended or stopped.
fn signalled(signal: Signal) -> (tempfile::TempDir, std::process::Output) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (name, value) = ("BELLWETHER_TEST_MARK", format!("{:032x}", random_bits()));
    let mark = format!("{name}={value}");
    let mut command = long(directory.path());
    command.args(["--faults", "freeze,kill"]).env(name, value);
    let mut torture = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // Supervisors, a guard, its init or command: all that there is of a leader and its followers.
    until_blocking(|| {
        let all = Process::all_with(&mark);
        let works = all.iter().any(|process| process.epoch.is_some());
        (all.len() > 5 && works).then_some(()).ok_or_else(|| format!("only {all:?}"))
    });
    let stopped = directory.path().join("run/witness/refused");
    until_blocking(|| stopped.exists().then_some(()).ok_or("no leader was struck"));
    kill_process(Pid::from_child(&torture), signal).expect("our own child");
    let status = exit_of(&mut torture);
    until_blocking(|| {
        let left = Process::all_with(&mark);
        left.is_empty().then_some(()).ok_or_else(|| format!("left behind: {left:?}"))
    });
    let output = torture.wait_with_output().expect("our own child");
    assert_eq!(output.status, status);
    (directory, output)
}

#[test]
fn one_that_is_killed_takes_everything_along() {
    let (_directory, output) = signalled(Signal::KILL);
    assert_eq!(output.status.code(), None);
}

#[test]
fn one_that_is_interrupted_says_what_it_has_seen() {
    let (directory, output) = signalled(Signal::INT);
    let report = json(&output);
    assert_eq!((output.status.code(), &report["interrupted"]), (Some(0), &true.into()), "{report:#}");
    assert_eq!(report["verdict"], "clean", "{report:#}");
    // The same lines are there for whoever wants to judge them again.
    let events = directory.path().join("run/events");
    let mut audit = std::process::Command::new(bellwether_tests::bellwether());
    audit.args(["audit", "-o", "json"]);
    audit.args(std::fs::read_dir(events).expect("files of events").flatten().map(|entry| entry.path()));
    let judged = bellwether_tests::run_to_end(audit);
    assert_eq!(judged.status.code(), Some(0), "{judged:?}");
}
