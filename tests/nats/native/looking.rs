//! Looking: what is seen, and that nothing is changed by it.

use bellwether_support::servers::nats::Version;
use bellwether_tests::{OutputLines, command, json, on, unwritten_by_status};
use rustix::process::Signal;
use serde_json::Value;

use super::{BUCKET, candidate, said, server};

#[tokio::test(flavor = "multi_thread")]
async fn the_record_is_shown_as_it_is() {
    let (_server, url) = server(Version::Current).await;
    let empty = on(&url, &["status", "job"]);
    assert_eq!(empty.status.code(), Some(1), "{empty:?}");
    let mut leader = candidate(&url, "a", &[]);
    let acquired = leader.expect("acquired");
    let output = on(&url, &["status", "job", "--confirm", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let seen = json(&output);
    assert_eq!((seen["election"].as_str(), seen["holder"].as_str()), (Some("job"), Some("a")), "{seen}");
    assert_eq!(seen["epoch"].as_u64(), acquired.epoch(), "{seen}");
    let all = json(&on(&url, &["status", "-o", "json"]));
    assert_eq!(all[0]["election"].as_str(), Some("job"), "{all}");
}

/// Reads on until this one leads.
fn until_led_by(watch: &mut OutputLines, holder: Option<&str>) {
    watch.until(|line| {
        let seen: Value = serde_json::from_str(line).expect("an object");
        assert_eq!(seen["election"].as_str(), Some("job"), "{line}");
        seen["holder"].as_str() == holder
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_of_every_leader_and_writes_nothing() {
    let (server, url) = server(Version::Current).await;
    // Makes the bucket, which a watch does not.
    assert_eq!(on(&url, &["acquire", "job", "--ttl", "1s"]).status.code(), Some(0));
    let before = server.last_sequence(BUCKET).await;
    let mut watch = OutputLines::run(command(&url, &["watch", "job", "-o", "json"]));
    until_led_by(&mut watch, None);
    assert_eq!(server.last_sequence(BUCKET).await, before, "a watch wrote something");
    let mut leader = candidate(&url, "a", &[]);
    leader.expect("acquired");
    until_led_by(&mut watch, Some("a"));
    leader.signal(Signal::TERM);
    assert_eq!(leader.ended().code, Some(0));
    until_led_by(&mut watch, None);
}

#[test]
fn status_changes_no_revision_of_the_bucket() {
    let (before, after) = unwritten_by_status(60);
    assert_eq!(before, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_examines_a_server_and_leaves_nothing_behind() {
    let (server, url) = server(Version::Current).await;
    assert_eq!(on(&url, &["acquire", "job", "--ttl", "1s"]).status.code(), Some(0));
    let before = server.last_sequence(BUCKET).await;
    let looked = on(&url, &["doctor", "--no-write", "-o", "json"]);
    assert_eq!(looked.status.code(), Some(0), "{}", said(&looked));
    assert_eq!(server.last_sequence(BUCKET).await, before, "only looked");
    let output = on(&url, &["doctor", "--ttl", "2s", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report = json(&output);
    let verdict = |what: &str| {
        let all = report["findings"].as_array().expect("an array");
        let one = all.iter().find(|one| one["what"] == what);
        one.and_then(|one| one["verdict"].as_str()).unwrap_or_else(|| panic!("no {what} in {report:#}"))
    };
    for what in ["server", "bucket", "watchers", "reading", "watching", "election"] {
        assert_eq!(verdict(what), "good", "{what} in {report:#}");
    }
    assert_eq!(verdict("durability"), "warning", "{report:#}");
    assert!(report["renew_latency"]["p50_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{report:#}");
    let left = json(&on(&url, &["status", "-o", "json"]));
    let names: Vec<&str> = left.as_array().expect("a list").iter().filter_map(name).collect();
    assert_eq!(names, ["job"], "{left}");
}

fn name(election: &Value) -> Option<&str> {
    election["election"].as_str()
}
