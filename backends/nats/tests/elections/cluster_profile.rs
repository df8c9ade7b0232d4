//! Buckets, keys, cooldowns and epochs of the profile `cluster`, on real servers.

use std::time::Duration;

use crate::support::foreign::Foreign;
use crate::support::{CLUSTER, PATIENCE, TTL, actor, cluster};
use bellwether_backend::{Backend, Discarded};
use bellwether_core::{Epoch, ErrorKind, Outcome, ReleaseOptions, StoreError};
use bellwether_deadman::boot_now;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::{Value, json};

fn refused<T: std::fmt::Debug>(outcome: Outcome<T>) -> StoreError {
    match outcome {
        Outcome::Refused(error) => error,
        other => panic!("was to be refused: {other:?}"),
    }
}

async fn config(server: &Server) -> Value {
    server.api(&format!("STREAM.INFO.KV_{CLUSTER}"), json!({})).await["config"].clone()
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap()
}

#[tokio::test]
async fn a_bucket_is_made_to_keep_records_for_two_ttls_by_a_claim_and_never_by_a_look() {
    for version in [Version::Current, Version::Old] {
        let server = Server::start(version).await;
        let ours = actor(&cluster(&server), "ours");
        assert_eq!(ours.seen().await.holder, None);
        assert!(config(&server).await.is_null(), "a look made a bucket");
        let _ = ours.lead().await;
        let made = config(&server).await;
        assert_eq!(made["max_age"].as_u64(), Some(nanos(2 * TTL)), "{made}");
        assert_eq!(
            (made["max_msgs_per_subject"].as_i64(), made["storage"].as_str()),
            (Some(1), Some("file"))
        );
        assert_eq!(server.keys(CLUSTER).await, ["lease"]);
    }
}

#[tokio::test]
async fn a_bucket_that_forgets_before_two_ttls_is_refused_with_what_to_change() {
    let server = Server::start(Version::Current).await;
    let age = nanos(2 * TTL - Duration::from_millis(1));
    server.bucket(CLUSTER, json!({ "max_age": age, "duplicate_window": age })).await;
    let error = refused(actor(&cluster(&server), "ours").claim().await);
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("set its max age to 0 or to at least 4s"), "{error}");
    assert_eq!(server.last_sequence(CLUSTER).await, 0, "something was written");
    for age in [0, nanos(2 * TTL), nanos(90 * TTL)] {
        server.remove_bucket(CLUSTER).await;
        let window = if age == 0 { 1_000_000_000 } else { age };
        server.bucket(CLUSTER, json!({ "max_age": age, "duplicate_window": window })).await;
        let _ = actor(&cluster(&server), "ours").lead().await;
    }
}

#[tokio::test]
async fn an_id_that_is_no_part_of_a_subject_is_refused_before_anything_is_made() {
    let server = Server::start(Version::Current).await;
    for id in ["host.example", "a b", "a*", ">", "nœud"] {
        let error = refused(actor(&cluster(&server), id).claim().await);
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("letters, digits, - and _"), "{error}");
    }
    assert!(config(&server).await.is_null(), "a bucket was made");
}

#[tokio::test]
async fn what_makes_no_sense_keeps_others_out_for_a_ttl_and_nobody_for_good() {
    let server = Server::start(Version::Current).await;
    server.bucket(CLUSTER, json!({})).await;
    let huge = format!(r#"{{"node_id":"x","epoch":1,"more":"{}"}}"#, "x".repeat(500_000));
    let records = [
        "",
        "not json",
        "[1,2,3]",
        r#"{"node_id":null,"epoch":3}"#,
        r#"{"node_id":"x","epoch":-5,"expires_at":"2999-01-01T00:00:00Z"}"#,
        r#"{"node_id":"x","epoch":9007199254740991}"#,
        r#"{"node_id":"x","epoch":18446744073709551616,"expires_at":7}"#,
        r#"{"node_id":"x","epoch":4,"bellwether":{"holder":7,"incarnation":[]}}"#,
        &huge,
    ];
    let mut last = Epoch::ZERO;
    for record in records {
        let mut ours = actor(&cluster(&server), "ours");
        ours.bid.ttl = Duration::from_millis(300);
        server.put(CLUSTER, "lease", Some(record.as_bytes())).await;
        let start = boot_now();
        ours.denied().await;
        let (grant, now) = ours.lead_within(PATIENCE).await;
        assert!(now.since(start) >= ours.bid.ttl, "{record:.60}: in too early");
        assert!(grant.epoch > last && grant.epoch < Epoch::MAX, "{record:.60}: {grant:?} after {last:?}");
        ours.keep(&grant).await;
        last = grant.epoch;
    }
}

#[tokio::test]
async fn a_cooldown_is_stored_as_others_do_survives_a_restart_and_a_look_and_is_clipped() {
    let server = Server::start(Version::Current).await;
    let minute = Duration::from_secs(60);
    // Long enough to be there for as long as it counts.
    server.bucket(CLUSTER, json!({})).await;
    let ours = actor(&cluster(&server), "ours");
    let grant = ours.lead().await;
    let how = ReleaseOptions { reserve_for: None, cooldown: Some(minute) };
    assert!(matches!(ours.backend.release(&ours.on, &grant, &how).await, Outcome::Done(())));
    assert_eq!(server.keys(CLUSTER).await, ["cooldown-ours", "lease"]);
    let body = json!({ "last_by_subj": format!("$KV.{CLUSTER}.cooldown-ours") });
    let stored = server.api(&format!("STREAM.MSG.GET.KV_{CLUSTER}"), body).await;
    let data = stored["message"]["data"].as_str().expect("a value");
    let text = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
    let millis: i64 = String::from_utf8(text).unwrap().parse().expect("a decimal number");
    let now = bellwether_support::clock().wall().as_unix_nanos() / 1_000_000;
    assert!((now..=now + 60_000).contains(&millis), "{millis} is not within a minute of {now}");

    // Looks change nothing about it.
    let observer = actor(&cluster(&server), "ours");
    for _ in 0..10 {
        observer.seen().await;
    }
    let mut again = actor(&cluster(&server), "ours");
    again.bid.cooldown = Some(minute);
    let left = again.denied().await.cooldown.expect("it stays away after a restart");
    assert!(left > minute / 2 && left <= minute, "{left:?}");
    // Written by a clock an hour ahead: no longer than one cooldown.
    server.put(CLUSTER, "cooldown-ours", Some((millis + 3_600_000).to_string().as_bytes())).await;
    let mut short = actor(&cluster(&server), "ours");
    short.bid.cooldown = Some(Duration::from_secs(2));
    let left = short.denied().await.cooldown.expect("it stays away");
    assert!(left <= Duration::from_secs(2), "{left:?}");
    // What makes no sense is no cooldown, and others are not concerned.
    server.put(CLUSTER, "cooldown-ours", Some(b"soon")).await;
    let mut odd = actor(&cluster(&server), "ours");
    odd.bid.cooldown = Some(minute);
    let grant = odd.lead().await;
    odd.let_go(&grant).await;
    let mut other = actor(&cluster(&server), "other");
    other.bid.cooldown = Some(minute);
    let _ = other.lead().await;
}

async fn up(server: &Server, last: &mut Epoch, what: &str) {
    // A candidate that knows nothing but what the store knows.
    let mut fresh = actor(&cluster(server), "fresh");
    fresh.bid.ttl = Duration::from_millis(500);
    let (grant, _) = fresh.lead_within(PATIENCE).await;
    assert!(grant.epoch > *last, "{what}: {:?} followed {last:?}", grant.epoch);
    *last = grant.epoch;
}

#[tokio::test]
async fn epochs_rise_through_everything_that_can_happen() {
    for version in [Version::Current, Version::Old] {
        let mut server = Server::start(version).await;
        let mut last = Epoch::ZERO;
        up(&server, &mut last, "at first").await;
        up(&server, &mut last, "a crash, and a restart with the same id").await;
        let mut leader = actor(&cluster(&server), "leader");
        leader.bid.ttl = Duration::from_millis(500);
        let (grant, _) = leader.lead_within(PATIENCE).await;
        assert!(grant.epoch > last);
        last = grant.epoch;
        leader.let_go(&grant).await;
        up(&server, &mut last, "stepping down").await;
        server.put(CLUSTER, "lease", None).await;
        up(&server, &mut last, "deletion of the key").await;
        server.down("TERM");
        // Two ttls: by then the bucket has forgotten the record.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        server.up().await;
        up(&server, &mut last, "an outage longer than the bucket remembers").await;
        server.remove_bucket(CLUSTER).await;
        up(&server, &mut last, "the bucket made anew").await;
        server.put(CLUSTER, "lease", None).await;
        let foreign = Foreign::new(&server, CLUSTER, "theirs", Duration::from_millis(500)).await;
        server.api(&format!("STREAM.PURGE.KV_{CLUSTER}"), json!({})).await;
        let held = foreign.acquire().await.expect("nothing is there");
        assert_eq!(held.epoch, 1, "nodes of others begin to count anew");
        up(&server, &mut last, "a foreign node that began to count anew").await;
    }
}

#[tokio::test]
async fn an_election_that_was_made_to_measure_takes_its_bucket_along_and_nobody_elses() {
    let server = Server::start(Version::Current).await;
    let ours = actor(&cluster(&server), "ours");
    let grant = ours.lead().await;
    let held = ours.backend.danger_discard(&ours.on).await.unwrap();
    assert!(matches!(&held, Discarded::Remains(what) if what.contains("held")), "{held:?}");
    ours.let_go(&grant).await;
    // Another connection has not made the bucket.
    let other = actor(&cluster(&server), "other").backend.danger_discard(&ours.on).await.unwrap();
    assert!(matches!(&other, Discarded::Remains(what) if what.contains(CLUSTER)), "{other:?}");
    assert!(!config(&server).await.is_null());
    assert_eq!(ours.backend.danger_discard(&ours.on).await.unwrap(), Discarded::Gone);
    assert!(config(&server).await.is_null(), "the bucket is left behind");
}
