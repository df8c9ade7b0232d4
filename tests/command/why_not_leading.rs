//! A candidate that gives up says why it does not lead.

use std::path::Path;
use std::process::{Command, Output};

use bellwether_tests::{bellwether, run_to_end, until_blocking};
use rustix::process::Signal;

use crate::{leader, on, temporary};

#[track_caller]
fn gave_up(output: &Output, code: i32, sentence: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(
        said.lines().last().is_some_and(|line| line.contains(sentence)),
        "{said:?} does not say {sentence:?}"
    );
}

fn run(directory: &Path, options: &[&str]) -> Output {
    on(directory, &[&["--id", "a", "run", "job", "-q"], options, &["--", "true"]].concat())
}

#[test]
fn an_unhealthy_candidate_names_its_health_command() {
    let (empty, directory) = (temporary(), temporary());
    let _leader = leader(directory.path(), "b", &["--ttl", "30s"]);
    for (directory, patience) in [(&directory, &["--wait", "5s"][..]), (&empty, &["-n"])] {
        let output = run(directory.path(), &[&["--health-cmd", "no-such-command"], patience].concat());
        gave_up(&output, 75, "not run: unhealthy: `no-such-command` ended with code 127");
    }
    let slow = run(directory.path(), &["--health-cmd", "sleep 1000", "--wait", "500ms", "-E", "9"]);
    gave_up(&slow, 9, "unhealthy: `sleep 1000` has not ended yet");
    let healthy = run(directory.path(), &["--health-cmd", "true", "-n"]);
    gave_up(&healthy, 75, "not run: b leads job");
}

#[test]
fn a_candidate_in_cooldown_says_until_when() {
    let directory = temporary();
    let cooldown = ["--cooldown", "10m"];
    let mut candidate = leader(directory.path(), "a", &cooldown);
    assert_eq!(on(directory.path(), &["step-down", "job"]).status.code(), Some(75), "nobody else competes");
    candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
    for patience in [&["--wait", "5s"][..], &["-n"]] {
        let output = run(directory.path(), &[&cooldown, patience].concat());
        gave_up(&output, 75, "not run: a stepped down and is in cooldown until 2");
    }
}

/// The URL of a server that is not there: a path of a socket that nobody listens on.
fn nowhere(directory: &Path) -> String {
    format!("postgres:///db?host={}", directory.display())
}

#[test]
fn to_acquire_is_one_attempt_also_where_the_store_is_out_of_reach() {
    let directory = temporary();
    let mut command = Command::new(bellwether());
    command.args(["--backend", &nowhere(directory.path()), "acquire", "job", "-q"]);
    gave_up(&run_to_end(command), 69, "the store could not be reached: postgres: ");
}

#[test]
fn who_is_interrupted_before_the_store_answered_says_so() {
    let directory = temporary();
    // Accepts connections, and says nothing.
    let _silent =
        std::os::unix::net::UnixListener::bind(directory.path().join(".s.PGSQL.5432")).expect("a socket");
    let mut command = Command::new(bellwether());
    command.args(["--backend", &nowhere(directory.path()), "acquire", "job", "--ttl", "10m", "-q"]);
    let mut candidate = bellwether_tests::Candidate::start(command);
    let status = format!("/proc/{}/status", candidate.pid());
    // The bit of TERM, among the signals that are caught.
    let listens = |line: &str| {
        let caught = line.strip_prefix("SigCgt:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        caught.is_some_and(|set| set & 1 << 14 != 0)
    };
    until_blocking(|| {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        text.lines().any(listens).then_some(()).ok_or("it does not listen to signals")
    });
    candidate.signal(Signal::TERM);
    let ended = candidate.ended();
    assert_eq!(ended.code, Some(69), "{}", ended.stderr);
    assert!(ended.stderr.contains("the store could not be reached: "), "{}", ended.stderr);
}
