//! The command as scripts use it: exit codes, output, signals.

mod audit;
mod bad_input;
mod doctor;
mod help;
mod log;
mod mistakes;
mod node;
mod pause;
mod secrets;
mod step_down;
mod top;
mod unread;
mod why_not_leading;

use std::path::Path;
use std::process::{Command, Output};

use bellwether_tests::{Candidate, OutputLines, bellwether, json, run_to_end, until_blocking};
use rustix::process::Signal;
use serde_json::Value;

fn on(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.display())).args(arguments);
    run_to_end(command)
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn leader(directory: &Path, id: &str, more: &[&str]) -> Candidate {
    let mut candidate = Candidate::on_file(directory, "job", id, more);
    candidate.expect("acquired");
    candidate
}

#[test]
fn acquire_prints_the_epoch_and_lets_go() {
    let directory = temporary();
    let first = on(directory.path(), &["acquire", "job", "-o", "json"]);
    assert_eq!(first.status.code(), Some(0));
    let second = on(directory.path(), &["acquire", "job", "-o", "json"]);
    assert!(json(&second)["epoch"].as_u64() > json(&first)["epoch"].as_u64());
    let plain = on(directory.path(), &["acquire", "job"]);
    assert!(String::from_utf8_lossy(&plain.stdout).trim().parse::<u64>().is_ok(), "{plain:?}");
    assert_eq!(on(directory.path(), &["status", "job"]).status.code(), Some(1), "let go");
}

#[test]
fn who_does_not_wait_gives_up_at_once_when_somebody_lives() {
    let directory = temporary();
    let _leader = leader(directory.path(), "a", &["--ttl", "30s"]);
    assert_eq!(on(directory.path(), &["acquire", "job", "--ttl", "30s"]).status.code(), Some(75));
    assert_eq!(on(directory.path(), &["run", "job", "-n", "--ttl", "30s"]).status.code(), Some(75));
    assert_eq!(on(directory.path(), &["run", "job", "-n", "-E", "9", "--ttl", "30s"]).status.code(), Some(9));
    assert_eq!(on(directory.path(), &["run", "job", "--wait", "200ms"]).status.code(), Some(75));
}

#[test]
fn who_does_not_wait_takes_over_from_the_dead() {
    let directory = temporary();
    let mut leader = leader(directory.path(), "a", &["--ttl", "30s"]);
    leader.kill();
    assert_eq!(on(directory.path(), &["acquire", "job", "--ttl", "30s"]).status.code(), Some(0));
}

#[test]
fn status_tells_what_the_record_says_and_whether_it_is_held() {
    let directory = temporary();
    let nobody = on(directory.path(), &["status", "job", "-o", "json"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(json(&nobody)["holder"].is_null() && json(&nobody)["epoch"].is_null());
    let mut leader = leader(directory.path(), "a", &["--ttl", "2s", "--priority", "4"]);
    let epoch = leader.heard("acquired").epoch();
    let held = on(directory.path(), &["status", "job", "-o", "json"]);
    assert_eq!(held.status.code(), Some(0));
    let record = json(&held);
    assert_eq!((record["holder"].as_str(), record["ttl_ms"].as_u64()), (Some("a"), Some(2_000)));
    assert_eq!((record["epoch"].as_u64(), record["priority"].as_i64()), (epoch, Some(4)));
    let all = json(&on(directory.path(), &["status", "-o", "json"]));
    assert_eq!(all[0]["election"].as_str(), Some("job"));
    let confirmed = json(&on(directory.path(), &["status", "job", "--confirm", "-o", "json"]));
    assert_eq!(confirmed["proof"].as_str(), Some("alive"));
}

#[test]
fn each_of_the_four_signals_leaves_with_a_release() {
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        let directory = temporary();
        let mut candidate = leader(directory.path(), "a", &["--ttl", "30s"]);
        candidate.signal(signal);
        candidate.expect("released");
        assert_eq!(candidate.ended().code, Some(0), "{signal:?}");
    }
}

#[test]
fn a_reader_that_goes_away_does_not_touch_the_leadership() {
    let directory = temporary();
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.path().display()));
    command.args(["--id", "a", "run", "job", "--ttl", "1s", "--events"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut child = command.stdout(writer).stderr(std::process::Stdio::null()).spawn().expect("it starts");
    drop(command);
    drop(reader);
    let status = || json(&on(directory.path(), &["status", "job", "-o", "json"]));
    // Several times: what it says of each goes nowhere.
    let mut last = None;
    for _ in 0..5 {
        last = until_blocking(|| {
            let renewed = status()["renewed"].as_str().map(str::to_owned);
            if renewed > last { Ok(renewed) } else { Err("it does not renew") }
        });
    }
    assert_eq!(status()["holder"].as_str(), Some("a"));
    child.kill().expect("our own child");
    child.wait().expect("our own child");
}

#[test]
fn watch_prints_changes_and_explain_the_bounds() {
    let directory = temporary();
    let mut watch = Command::new(bellwether());
    watch.arg("--backend").arg(format!("file:{}", directory.path().display()));
    watch.args(["watch", "job", "-o", "json"]);
    let mut watching = OutputLines::run(watch);
    let mut next = || -> Value { serde_json::from_str(&watching.line()).expect("JSON") };
    assert!(next()["holder"].is_null());
    let mut leader = leader(directory.path(), "a", &["--ttl", "10s"]);
    while next()["holder"].as_str() != Some("a") {}
    leader.signal(Signal::TERM);
    while !next()["holder"].is_null() {}
    let explained = json(&run_to_end({
        let mut command = Command::new(bellwether());
        command.args(["explain", "--ttl", "10s", "-o", "json"]);
        command
    }));
    let ms = |field: &str| explained[field].as_f64().expect("a number");
    assert!(ms("renew_ms") < ms("stop_ms") && ms("stop_ms") <= ms("deadline_ms"));
    assert!(ms("deadline_ms") < ms("takeover_ms") && ms("takeover_ms") < ms("failover_ms"));
}

#[test]
fn watch_without_a_name_follows_those_that_come() {
    let directory = temporary();
    let mut watch = Command::new(bellwether());
    watch.arg("--backend").arg(format!("file:{}", directory.path().display())).arg("watch");
    let mut watching = OutputLines::run(watch);
    let _leader = leader(directory.path(), "a", &["--ttl", "10s"]);
    watching.until(|line| line.contains("job: a leads"));
    let mut other = Candidate::on_file(directory.path(), "other", "b", &["--ttl", "10s"]);
    other.expect("acquired");
    watching.until(|line| line.contains("other: b leads"));
}

#[test]
fn settings_come_from_flags_then_environment_then_file() {
    let directory = temporary();
    let file = directory.path().join("settings.toml");
    std::fs::write(&file, "ttl = \"9s\"\nid = \"from-file\"\n[explain]\nrenew = \"2s\"\n").expect("a file");
    let explained = |more: &[&str]| {
        let mut command = Command::new(bellwether());
        command.arg("--config").arg(&file).args(["explain", "-o", "json"]).args(more);
        json(&run_to_end(command))
    };
    let (plain, flagged) = (explained(&[]), explained(&["--ttl", "12s"]));
    assert_eq!((plain["ttl_ms"].as_f64(), plain["renew_ms"].as_f64()), (Some(9_000.0), Some(2_000.0)));
    assert_eq!(flagged["ttl_ms"].as_f64(), Some(12_000.0));
    std::fs::write(&file, "tll = \"9s\"\n").expect("a file");
    let mut command = Command::new(bellwether());
    command.arg("--config").arg(&file).arg("explain");
    let refused = run_to_end(command);
    assert_eq!(refused.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("tll"), "{refused:?}");
}

#[test]
fn status_changes_no_byte_of_the_store() {
    let changed = bellwether_tests::untouched_by_status(100);
    assert!(changed.is_empty(), "{changed:?}");
}
