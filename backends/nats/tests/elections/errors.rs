//! What the server says no to, what it says nothing to, and what a candidate makes of it.

use std::time::Duration;

use crate::support::{BUCKET, PATIENCE, TTL, actor, server_with_bucket};
use bellwether_backend::Backend;
use bellwether_core::{Bid, ErrorKind, Outcome, StoreError};
use bellwether_deadman::boot_now;
use bellwether_support::election;
use bellwether_support::servers::nats::{Server, Version};
use futures_util::future::join_all;
use serde_json::json;

/// Users `all`, who may do anything, and `some`, who may only publish to these subjects.
fn users(may_publish: &str) -> String {
    format!(
        r#"authorization {{ users = [
            {{ user: all, password: secret }},
            {{ user: some, password: secret, permissions: {{ publish: [{may_publish}], subscribe: "_INBOX.>" }} }},
        ] }}
        no_auth_user: all"#
    )
}

fn refused<T: std::fmt::Debug>(outcome: Outcome<T>) -> StoreError {
    match outcome {
        Outcome::Refused(error) => error,
        other => panic!("was to be refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_missing_bucket_is_refused_with_the_way_to_make_it() {
    let server = Server::start(Version::Current).await;
    let start = boot_now();
    let error = refused(actor(&server.url(), "a").claim().await);
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("create=yes") && error.to_string().contains("nats kv add"), "{error}");
    assert!(boot_now().since(start) < Duration::from_secs(4), "at once, and not by a time-out");
}

#[tokio::test]
async fn a_bucket_is_made_when_asked_for_by_a_claim_and_never_by_a_look() {
    for version in [Version::Current, Version::Old] {
        let server = Server::start(version).await;
        let url = format!("{}?create=yes", server.url());
        let watcher = actor(&url, "w");
        assert_eq!(watcher.seen().await.holder, None);
        assert_eq!(watcher.backend.elections().await.unwrap(), []);
        let info = server.api("STREAM.INFO.KV_bellwether", json!({})).await;
        assert_eq!(info["error"]["err_code"], 10059, "a look made a bucket: {info}");
        let grant = actor(&url, "a").lead().await;
        assert!(watcher.seen().await.holder.is_some());
        let info = server.api("STREAM.INFO.KV_bellwether", json!({})).await;
        assert_eq!(info["config"]["max_msgs_per_subject"], 1, "{info}");
        assert!(grant.epoch.get() > 1_700_000_000_000_000, "{grant:?}");
    }
}

#[tokio::test]
async fn many_elections_that_begin_together_make_one_bucket() {
    let server = Server::start(Version::Current).await;
    let a = actor(&format!("{}?create=yes", server.url()), "a");
    let claims = (0..300).map(|number| {
        let (a, bid) = (&a, Bid { sent: boot_now(), ..a.bid.clone() });
        async move { a.backend.claim(&election(&format!("job-{number}")), &bid).await }
    });
    for outcome in join_all(claims).await {
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_deleted_bucket_ends_a_leadership_at_once_and_is_not_made_again() {
    let server = Server::start(Version::Current).await;
    let [a, b] = ["a", "b"].map(|id| actor(&format!("{}?create=yes", server.url()), id));
    let grant = a.lead().await;
    b.denied().await;
    server.remove_bucket(BUCKET).await;
    let start = boot_now();
    // By a read, and by a write.
    assert_eq!(refused(b.claim().await).kind(), ErrorKind::Misconfigured);
    assert_eq!(refused(a.renew(&grant).await).kind(), ErrorKind::Misconfigured);
    assert_eq!(refused(a.claim().await).kind(), ErrorKind::Misconfigured);
    assert!(boot_now().since(start) < Duration::from_secs(4), "at once, and not by a time-out");
    let info = server.api("STREAM.INFO.KV_bellwether", json!({})).await;
    assert_eq!(info["error"]["err_code"], 10059, "{info}");
}

#[tokio::test]
async fn a_bucket_that_makes_elections_unsafe_is_refused() {
    let server = Server::start(Version::Current).await;
    for (bucket, settings, part) in [
        ("memory", json!({ "storage": "memory" }), "file storage"),
        (
            "forgetful",
            json!({ "max_age": 1_000_000_000_u64, "duplicate_window": 1_000_000_000_u64 }),
            "max age",
        ),
        ("full", json!({ "discard": "old", "max_bytes": 1000 }), "discard new"),
        ("once", json!({ "discard_new_per_subject": true }), "turn discard_new_per_subject off"),
    ] {
        server.bucket(bucket, settings).await;
        let url = format!("{}?bucket={bucket}", server.url());
        let error = refused(actor(&url, "a").claim().await);
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.to_string().contains(part), "{error}");
    }
    // As long as the ttl is long enough.
    let seconds = TTL.as_secs() * 1_000_000_000;
    server.bucket("patient", json!({ "max_age": seconds, "duplicate_window": seconds })).await;
    actor(&format!("{}?bucket=patient", server.url()), "a").lead().await;
}

#[tokio::test]
async fn a_server_without_jetstream_is_refused() {
    let server = Server::start_with(
        Version::Current,
        "accounts { X { users = [ { user: x, password: x } ] } }\nno_auth_user: x",
    )
    .await;
    let error = refused(actor(&server.url(), "a").claim().await);
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("JetStream"), "{error}");
}

#[tokio::test]
async fn a_bucket_that_can_never_be_made_is_refused_by_its_code() {
    let accounts = r#"
        few { jetstream { max_streams: 1 }, users: [ { user: few, password: x } ] }
        sized { jetstream { max_bytes_required: true }, users: [ { user: sized, password: x } ] }
        taken { jetstream: enabled, users: [ { user: taken, password: x } ] }"#;
    let config = format!("accounts {{ {accounts} }}\nno_auth_user: taken");
    let server = Server::start_with(Version::Current, &config).await;
    server.bucket("elsewhere", json!({ "subjects": ["$KV.bellwether.>"] })).await;
    actor(&format!("nats://few:x@127.0.0.1:{}?create=yes&bucket=first", server.port()), "a").lead().await;
    for (user, options, code) in [
        ("few", "", 10_027),
        ("sized", "", 10_113),
        ("taken", "", 10_065),
        ("taken", "&bucket=another&replicas=3", 10_074),
    ] {
        let url = format!("nats://{user}:x@127.0.0.1:{}?create=yes{options}", server.port());
        let error = refused(actor(&url, "a").claim().await);
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains(&format!("({code})")), "{error}");
    }
}

#[tokio::test]
async fn a_domain_that_nobody_answers_for_is_named_and_may_come() {
    let server = Server::start(Version::Current).await;
    let nowhere = actor(&format!("{}?domain=nowhere", server.url()), "a").backend;
    let error = nowhere.observe(&election("reports")).await.expect_err("nobody has this domain");
    assert!(error.to_string().contains("the JetStream domain nowhere"), "{error}");
    assert!(error.is_retryable(), "a leaf node may be about to connect: {error}");
}

#[tokio::test]
async fn what_this_user_may_not_do_is_refused_at_once_by_its_subject() {
    let server =
        Server::start_with(Version::Current, &users(r#""$JS.API.STREAM.>", "$JS.API.CONSUMER.>""#)).await;
    server.bucket(BUCKET, json!({})).await;
    let url = format!("nats://some:secret@127.0.0.1:{}", server.port());
    let start = boot_now();
    let error = refused(actor(&url, "a").claim().await);
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("$KV.bellwether.election.reports"), "{error}");
    // Looking it may.
    assert_eq!(actor(&url, "b").seen().await.holder, None);
    assert!(boot_now().since(start) < Duration::from_secs(4), "at once, and not by a time-out");
    let wrong = format!("nats://some:wrong@127.0.0.1:{}", server.port());
    let error = refused(actor(&wrong, "a").claim().await);
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unknown_and_the_leadership_goes_on_when_it_is_back() {
    let mut server = server_with_bucket().await;
    let a = actor(&server.url(), "a");
    let grant = a.lead().await;
    server.down("KILL");
    let renewal = a.renew(&grant).await;
    assert!(matches!(renewal, Outcome::Unknown(_)), "{renewal:?}");
    server.up().await;
    let by = boot_now() + PATIENCE;
    // What was sent before may have arrived after: the record is still ours, and the conflict is adopted.
    while !matches!(a.renew(&grant).await, Outcome::Done(_)) {
        assert!(boot_now() < by, "the leadership did not go on");
    }
}

#[tokio::test]
async fn a_stopped_server_is_unknown_and_what_arrives_late_does_no_harm() {
    let server = server_with_bucket().await;
    let a = actor(&server.url(), "a");
    let grant = a.lead().await;
    server.stop();
    let renewal = a.renew(&grant).await;
    server.resume();
    assert!(matches!(renewal, Outcome::Unknown(_)), "{renewal:?}");
    // The late write has bumped the revision by now, or will; either way it is ours.
    let by = boot_now() + PATIENCE;
    while !matches!(a.renew(&grant).await, Outcome::Done(_)) {
        assert!(boot_now() < by, "the leader conflicts with itself");
    }
    a.keep(&grant).await;
    a.let_go(&grant).await;
}
