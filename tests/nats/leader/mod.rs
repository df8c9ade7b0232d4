//! The command in the NATS profile `leader`: its timing and its rules, on a bucket and a key that others use too.

#[cfg(target_os = "linux")]
mod partition;

use std::process::Output;

use bellwether_support::servers::nats::{Server, Version};
use bellwether_tests::{Candidate, OutputLines, bellwether, command, json, on, until_blocking};
use rustix::process::Signal;
use serde_json::{Value, json};

const BUCKET: &str = "leaders";
const KEY: &str = "leaders/control";

fn candidate(url: &str, id: &str, more: &[&str]) -> Candidate {
    let mut command = command(url, &["--id", id, "run", KEY, "--events"]);
    command.args(more);
    Candidate::start(command)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn server() -> (Server, String) {
    // Built before the server's clock runs, on which records run out.
    bellwether();
    let server = Server::start(Version::Current).await;
    let age = 10_000_000_000_u64;
    server.bucket(BUCKET, json!({ "max_age": age, "duplicate_window": age })).await;
    let url = format!("{}?profile=leader&bucket={BUCKET}", server.url());
    (server, url)
}

#[test]
fn the_profile_s_own_timing_and_its_rules_hold() {
    let url = "nats://127.0.0.1?profile=leader&bucket=b";
    let explained = json(&on(url, &["explain", "-o", "json"]));
    let timing = ["ttl_ms", "renew_ms"].map(|field| explained[field].as_f64().expect("a number"));
    assert_eq!(timing, [10_000.0, 1_000.0]);
    for (arguments, sentence) in [
        (&["--renew", "5s"][..], "a third of the ttl"),
        (&["--validate-every", "500ms"], "at least the renew interval"),
        (&["--disconnect-grace", "1s"], "at least two renew intervals"),
        (&["--preempt"], "priority above 0"),
        (&["--failed-renewals", "0"], "at least 1"),
    ] {
        let said = on(url, &[&["run", KEY], arguments].concat());
        assert_eq!(said.status.code(), Some(64), "{said:?}");
        assert!(stderr(&said).contains(sentence), "{said:?}");
    }
    for (url, sentence) in [
        ("nats://127.0.0.1?profile=leader", "bucket=NAME"),
        ("nats://127.0.0.1?profile=leader&bucket=", "letters"),
    ] {
        let said = on(url, &["run", KEY]);
        assert_eq!(said.status.code(), Some(64), "{said:?}");
        assert!(stderr(&said).contains(sentence), "{said:?}");
    }
    assert_eq!(on(url, &["--id", "", "run", KEY]).status.code(), Some(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_are_looked_at_and_asked_to_hand_over() {
    let (server, url) = server().await;
    assert_eq!(on(&url, &["status", KEY]).status.code(), Some(1), "nobody has ever led");
    let mut watch = OutputLines::run(command(&url, &["watch", KEY, "-o", "json"]));
    let mut first = candidate(
        &url,
        "a",
        &["--validate-every", "1s", "--disconnect-grace", "3s", "--failed-renewals", "5"],
    );
    first.expect("acquired");
    watch.until(|line| line.contains(r#""a""#));
    drop(watch);
    let shown = json(&on(&url, &["status", KEY, "-o", "json"]));
    assert_eq!((shown["holder"].as_str(), shown["ttl_ms"].as_u64()), (Some("a"), Some(10_000)), "{shown}");
    let listed = on(&url, &["status"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains(KEY), "{listed:?}");
    let mut second = candidate(&url, "b", &[]);
    second.joined();
    let asked = on(&url, &["step-down", KEY, "--to", "a"]);
    assert_eq!(asked.status.code(), Some(64), "{asked:?}");
    assert!(stderr(&asked).contains("a leads leaders/control already"), "{asked:?}");
    let asked = on(&url, &["step-down", KEY, "--to", "b", "-o", "json"]);
    assert_eq!((asked.status.code(), json(&asked)["to"].as_str()), (Some(0), Some("b")), "{asked:?}");
    second.expect("acquired");
    first.kill();
    second.signal(Signal::TERM);
    assert_eq!(second.ended().code, Some(0));
    let shown = on(&url, &["status", KEY, "-o", "json"]);
    assert_eq!(shown.status.code(), Some(1), "the key is deleted: {shown:?}");
    assert_eq!(server.keys(BUCKET).await, [KEY], "no key is added to the user's bucket");
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_of_another_program_who_takes_over_is_a_successor() {
    let (server, url) = server().await;
    let mut first = candidate(&url, "a", &["--cooldown", "10m"]);
    first.expect("acquired");
    let mut asked = OutputLines::run(command(&url, &["step-down", KEY, "-o", "json"]));
    first.expect("lost");
    server.put(BUCKET, KEY, Some(br#"{"id":"go-1","token":"t","priority":3}"#)).await;
    let answer: Value = serde_json::from_str(&asked.line()).expect("JSON");
    assert_eq!((answer["from"].as_str(), answer["to"].as_str()), (Some("a"), Some("go-1")), "{answer}");
    assert!(answer["to_epoch"].is_null(), "{answer}");
}

/// The history as a machine reads it, once it has this many entries.
fn history(url: &str, count: usize) -> Vec<Value> {
    until_blocking(|| {
        let told = on(url, &["history", KEY, "-o", "json"]);
        assert_eq!(told.status.code(), Some(0), "{told:?}");
        let past = json(&told).as_array().expect("an array").clone();
        if past.len() >= count { Ok(past) } else { Err(format!("not {count} entries: {past:?}")) }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn past_leaderships_are_told_also_of_one_that_was_killed() {
    let (server, url) = server().await;
    let url = format!("{url}&create=yes");
    let short = ["--ttl", "2s", "--renew", "500ms"];
    let mut first = candidate(&url, "a", &short);
    first.expect("acquired");
    first.signal(Signal::TERM);
    assert_eq!(first.ended().code, Some(0));
    let mut second = candidate(&url, "b", &short);
    second.expect("acquired");
    history(&url, 2);
    second.kill();
    let mut third = candidate(&url, "c", &short);
    third.expect("acquired");
    let past = history(&url, 3);
    let told: Vec<_> = past.iter().map(|one| (one["id"].as_str(), one["ended"].as_str())).collect();
    assert_eq!(told, [(Some("a"), Some("released")), (Some("b"), None), (Some("c"), None)], "{past:?}");
    let table = on(&url, &["history", KEY]);
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(table.lines().count() == 4 && table.contains("released"), "{table}");
    assert_eq!(server.keys(BUCKET).await, [KEY], "no key is added to the user's bucket");
    third.kill();
    let before = server.revisions().await;
    for looking in [&["history", KEY][..], &["status", KEY], &["status"], &["doctor", "--no-write"]] {
        on(&url, looking);
    }
    assert_eq!(server.revisions().await, before, "looking changed something");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_bucket_for_notes_it_is_said_once_and_candidates_go_on() {
    let (server, url) = server().await;
    let past = on(&url, &["history", KEY]);
    assert_eq!(past.status.code(), Some(78), "{past:?}");
    for part in ["past leaderships", "no bucket bellwether", "nats kv add bellwether", "create=yes"] {
        assert!(stderr(&past).contains(part), "{past:?}");
    }
    let mut first = candidate(&url, "a", &["--cooldown", "100ms"]);
    first.expect("acquired");
    // Twice it begins to lead, and twice it ends.
    let asked = on(&url, &["step-down", KEY]);
    assert_eq!(asked.status.code(), Some(75), "nobody else competes: {asked:?}");
    first.expect("acquired");
    first.signal(Signal::TERM);
    let ended = first.ended();
    assert_eq!(ended.code, Some(0));
    let warnings: Vec<&str> =
        ended.stderr.lines().filter(|line| line.contains("past leaderships are not kept")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("create=yes"), "{}", ended.stderr);
    assert!(first.said.iter().all(|line| line.event() != "error"), "{:?}", first.said);
    let doctor = on(&url, &["doctor", "--no-write"]);
    assert_eq!(doctor.status.code(), Some(0), "{doctor:?}");
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("no bucket bellwether for notes"), "{doctor:?}");
    assert_eq!(server.revisions().await.into_keys().collect::<Vec<_>>(), [BUCKET]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_released_is_held_until_it_runs_out_and_log_lines_say_whose_they_are() {
    let (_server, url) = server().await;
    let mut first = candidate(&url, "a", &["--no-release-on-stop", "--log", "json"]);
    let acquired = first.expect("acquired");
    first.signal(Signal::TERM);
    let ended = first.ended();
    assert_eq!(ended.code, Some(0));
    assert_eq!(json(&on(&url, &["status", KEY, "-o", "json"]))["holder"], "a");
    assert_eq!(on(&url, &["run", KEY, "--wait", "300ms"]).status.code(), Some(75));
    let lines: Vec<Value> = ended.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let line = lines.iter().find(|line| line.to_string().contains("acquired")).expect("a line about it");
    let line = line.to_string();
    for part in [KEY, "incarnation", "attempt", &acquired.epoch().expect("an epoch").to_string()] {
        assert!(line.contains(part), "{part} is missing: {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_leader_is_shown_and_cannot_be_asked_and_a_missing_bucket_is_refused() {
    let (server, url) = server().await;
    server.put(BUCKET, KEY, Some(br#"{"id":"go-1","token":"t","priority":3,"meta":{"hostname":"h"}}"#)).await;
    let before = server.last_sequence(BUCKET).await;
    let shown = json(&on(&url, &["status", KEY, "-o", "json"]));
    assert_eq!((shown["holder"].as_str(), shown["epoch"].is_null()), (Some("go-1"), true), "{shown}");
    let asked = on(&url, &["step-down", KEY]);
    assert_eq!(asked.status.code(), Some(69), "{asked:?}");
    assert!(stderr(&asked).contains("cannot be asked"), "{asked:?}");
    assert_eq!(server.last_sequence(BUCKET).await, before, "nobody has written");
    let missing = on(&format!("{}?profile=leader&bucket=none", server.url()), &["run", KEY]);
    assert_eq!(missing.status.code(), Some(78), "{missing:?}");
    let short = on(&url, &["run", KEY, "--ttl", "30s"]);
    assert_eq!(short.status.code(), Some(78), "{short:?}");
    assert!(stderr(&short).contains("max age"), "{short:?}");
}
