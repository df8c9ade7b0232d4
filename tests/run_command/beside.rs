//! What runs beside the command: health checks and hooks.

use std::fs;
use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_tests::until_blocking;
use rustix::process::Signal;
use serde_json::Value;

use crate::{WAIT, has_said, plain, ready_after, run, words};

#[test]
fn only_a_healthy_candidate_stands_and_an_unhealthy_leader_steps_down() {
    let stage = plain();
    let well = stage.path().join("well");
    let check = format!("test -e {}", well.display());
    let options = ["--ttl", "5s", "--health-cmd", &check, "--health-cmd-interval", "100ms"];
    let mut candidate = run(&stage, &options, &WAIT[1..]);
    assert!(candidate.wait("acquired", Duration::from_millis(700)).is_none(), "it stood");
    fs::write(&well, "").expect("our own directory");
    let first = ready_after(&mut candidate, None);
    fs::remove_file(&well).expect("our own file");
    let lost = candidate.expect("lost");
    assert_eq!(lost.text("reason"), Some("health"), "{lost:?}");
    let exited = candidate.heard("child_exited");
    assert!(exited.boot() <= lost.boot(), "let go before the command had ended");
    assert_eq!(exited.epoch(), first.epoch(), "the leadership is over, but this is about it");
    assert!(stage.orphans(None).is_empty());
    fs::write(&well, "").expect("our own directory");
    let second = ready_after(&mut candidate, first.epoch());
    assert!(second.epoch() > first.epoch());
    candidate.signal(Signal::TERM);
    let log = candidate.ended().stderr;
    let said = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!(said("unhealthy: the health command ended with code 1"), 2, "not at every check: {log}");
    assert_eq!(said("healthy again: the health command failed "), 2, "{log}");
}

#[test]
fn a_hook_gets_the_json_of_every_event_in_order() {
    let stage = plain();
    let heard = stage.path().join("heard");
    let hook = format!("cat >> {0}; echo >> {0}", heard.display());
    let mut candidate = run(&stage, &["--ttl", "5s", "--hook", &hook], &WAIT[1..]);
    assert_eq!(words(&mut candidate), "ready");
    let told = || fs::read_to_string(&heard).unwrap_or_default().contains("child_started");
    until_blocking(|| told().then_some(()).ok_or("the hook is not told of the command"));
    candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
    let heard = fs::read_to_string(&heard).expect("a file");
    let heard: Vec<Value> = heard
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let heard: Vec<_> =
        heard.iter().map(|event| (event["event"].as_str(), event["boot_ns"].as_u64())).collect();
    let said = candidate.said.iter().filter(|line| line.event() != "said");
    let said: Vec<_> = said.map(|line| (Some(line.event()), line.number("boot_ns"))).collect();
    assert_eq!(heard, said);
    assert!(heard.len() > 5, "{heard:?}");
}

#[test]
fn a_hook_that_hangs_delays_nothing_and_is_killed_with_its_group() {
    let stage = plain();
    let hook = "sleep 1000 & sleep 1000";
    let mut candidate = run(&stage, &["--ttl", "1s", "--hook", hook], &WAIT[1..]);
    assert_eq!(words(&mut candidate), "ready");
    // More than two leases later, it has renewed all the same.
    assert!(candidate.wait("lost", Duration::from_millis(2_500)).is_none(), "{:?}", candidate.said);
    assert!(!has_said(&candidate, "danger"), "{:?}", candidate.said);
    let asked = candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
    let took = boot_now().since(asked);
    assert!(took < Duration::from_secs(8), "{took:?}: held up by the hook");
    let left = stage.emptied();
    assert!(left.is_empty(), "left of the hook: {left:?}");
}

#[test]
fn a_health_check_that_is_under_way_at_the_end_goes_too() {
    let stage = plain();
    let began = stage.path().join("began");
    let check = format!("touch {}; sleep 1000 & sleep 1000", began.display());
    let options = ["--health-cmd", &check, "--health-cmd-interval", "300s"];
    let mut candidate = run(&stage, &options, "say ran");
    until_blocking(|| began.exists().then_some(()).ok_or("no health check begins"));
    candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
    assert!(!has_said(&candidate, "said"), "it ran");
    let left = stage.emptied();
    assert!(left.is_empty(), "left of the health check: {left:?}");
}

/// The events that a hook wrote down, one a line.
fn hooked(heard: &std::path::Path) -> Vec<String> {
    let text = fs::read_to_string(heard).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|event| Some(event["event"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn a_slow_hook_is_told_of_every_event_also_of_the_last_ones() {
    let stage = plain();
    let heard = stage.path().join("heard");
    let hook = format!("sleep 0.3; cat >> {0}; echo >> {0}", heard.display());
    let mut candidate = run(&stage, &["--hook", &hook], "true");
    assert_eq!(candidate.ended().code, Some(0));
    let said: Vec<String> = candidate.said.iter().map(|line| line.event().to_owned()).collect();
    assert_eq!(hooked(&heard), said);
    assert_eq!(said.last().map(String::as_str), Some("stopped"));
}

#[test]
fn a_hook_is_run_on_the_events_that_are_named() {
    let stage = plain();
    let heard = stage.path().join("heard");
    let hook = format!("cat >> {0}; echo >> {0}", heard.display());
    let mut candidate = run(&stage, &["--hook", &hook, "--hook-on", "acquired,released"], "true");
    assert_eq!(candidate.ended().code, Some(0));
    assert_eq!(hooked(&heard), ["acquired", "released"]);
    let mut wrong = run(&stage, &["--hook", &hook, "--hook-on", "aquired"], "true");
    assert_eq!(wrong.ended().code, Some(64), "no such event");
}

#[test]
fn events_that_cannot_be_written_are_told_of_once() {
    let stage = plain();
    let mut command = stage.bellwether("a");
    command.args(["run", "job", "--events=/dev/full", "--", "true"]);
    let output = bellwether_tests::run_to_end(command);
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.matches("--events cannot be written").count(), 1, "{stderr}");
}
