//! `bellwether pause`: whoever leads goes on, nobody follows before the pause ends, and nothing but its end or `unpause` ends it.

use std::path::Path;
use std::time::Duration;

use bellwether_support::clock;
use bellwether_tests::{Candidate, json, until_blocking};
use rustix::process::Signal;
use serde_json::Value;

use crate::{leader, on, temporary};

fn follower(directory: &Path, id: &str) -> Candidate {
    let mut candidate = Candidate::on_file(directory, "job", id, &["--ttl", "2s"]);
    candidate.joined();
    candidate
}

fn pause(directory: &Path, span: &str) -> Value {
    let paused = on(directory, &["--id", "ops", "pause", "job", "--for", span, "-o", "json"]);
    assert_eq!(paused.status.code(), Some(0), "{paused:?}");
    json(&paused)
}

fn status(directory: &Path) -> Value {
    json(&on(directory, &["status", "job", "-o", "json"]))
}

fn until_status(directory: &Path, holds: impl Fn(&Value) -> bool) {
    until_blocking(|| {
        let seen = status(directory);
        if holds(&seen) { Ok(()) } else { Err(seen) }
    });
}

#[test]
fn after_a_kill_nobody_leads_before_the_pause_ends_and_then_somebody_does() {
    let directory = temporary();
    let mut first = leader(directory.path(), "a", &["--ttl", "2s"]);
    let mut second = follower(directory.path(), "b");
    let span = Duration::from_secs(12);
    let from = clock().boot();
    let told = pause(directory.path(), "12s");
    assert_eq!(status(directory.path())["paused_by"].as_str(), Some("ops"));
    assert_eq!((told["leader"].as_str(), told["paused_ms"].as_u64()), (Some("a"), Some(12_000)), "{told}");
    first.signal(Signal::KILL);
    first.ended();
    // Its death is proven, and its ttl passes: neither is a way in.
    second.expect("acquired");
    let waited = clock().boot().since(from);
    assert!(waited >= span, "b led after {waited:?}");
    assert_eq!(status(directory.path())["paused_ms"], Value::Null);
}

#[test]
fn a_leader_goes_on_and_an_unpause_lets_a_waiting_candidate_in_at_once() {
    let directory = temporary();
    let mut first = leader(directory.path(), "a", &["--ttl", "2s"]);
    let mut second = follower(directory.path(), "b");
    pause(directory.path(), "10m");
    let renewed = status(directory.path())["renewed"].clone();
    until_status(directory.path(), |seen| {
        let left = seen["paused_ms"].as_u64();
        assert_eq!(seen["holder"].as_str(), Some("a"), "{seen}");
        seen["renewed"] != renewed && left.is_some_and(|left| left < 599_000)
    });
    let refused = on(directory.path(), &["step-down", "job", "--to", "b"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    assert!(
        said.contains("b cannot take over: job is paused for another 9m") && said.contains("by ops"),
        "{said}"
    );
    let down = on(directory.path(), &["step-down", "job"]);
    assert_eq!(down.status.code(), Some(0), "{down:?}");
    let said = String::from_utf8_lossy(&down.stdout).into_owned();
    assert!(said.starts_with("a released the leadership, and nobody leads job: it is paused for"), "{said}");
    assert_eq!(first.expect("lost").text("reason"), Some("admin"));
    let kept_out = on(directory.path(), &["--id", "c", "run", "job", "-n", "-q", "--", "true"]);
    let said = String::from_utf8_lossy(&kept_out.stderr);
    assert_eq!(kept_out.status.code(), Some(75), "{kept_out:?}");
    assert!(said.contains("not run: job is paused for another 9m"), "{said}");
    let before = clock().boot();
    let ended = on(directory.path(), &["unpause", "job"]);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "job is no longer paused\n", "{ended:?}");
    // The one that stepped down may come first, or the other.
    until_status(directory.path(), |seen| seen["holder"].is_string());
    assert!(
        clock().boot().since(before) < Duration::from_secs(60),
        "nobody waited for a look of once a minute"
    );
    second.signal(Signal::KILL);
    second.ended();
}

#[test]
fn a_restart_of_every_candidate_does_not_end_it() {
    let directory = temporary();
    assert_eq!(pause(directory.path(), "10m")["leader"], Value::Null);
    for _ in 0..2 {
        let mut candidate = Candidate::on_file(directory.path(), "job", "a", &["--ttl", "2s"]);
        candidate.expect("acquire_failed");
        assert_eq!(status(directory.path())["paused_by"].as_str(), Some("ops"));
        candidate.signal(Signal::TERM);
        assert_eq!(candidate.ended().code, Some(0));
    }
    let table = on(directory.path(), &["status", "job"]);
    let said = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(said.contains("released, paused") && said.contains("paused for another 9m"), "{said}");
    let acquired = on(directory.path(), &["acquire", "job", "-q"]);
    assert_eq!(acquired.status.code(), Some(75), "{acquired:?}");
    assert_eq!(on(directory.path(), &["unpause", "job"]).status.code(), Some(0));
    assert_eq!(on(directory.path(), &["acquire", "job", "-q"]).status.code(), Some(0));
    let nothing = on(directory.path(), &["unpause", "job", "-o", "json"]);
    assert_eq!((nothing.status.code(), &json(&nothing)["was_paused_ms"]), (Some(0), &Value::Null));
}

#[test]
fn a_pause_that_makes_no_sense_is_refused_with_the_bound() {
    let directory = temporary();
    for (span, sentence) in
        [("25h", "a pause lasts 24h0m0s at most"), ("0s", "longer than 0s"), ("soon", "not a duration")]
    {
        let refused = on(directory.path(), &["pause", "job", "--for", span]);
        assert_eq!(refused.status.code(), Some(64), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(sentence), "{refused:?}");
    }
    assert_eq!(status(directory.path())["paused_ms"], Value::Null, "nothing was written");
    assert_eq!(on(directory.path(), &["pause", "job"]).status.code(), Some(64), "for how long?");
}
