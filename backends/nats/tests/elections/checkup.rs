//! What `doctor` is told about servers and buckets.

use crate::support::{BUCKET, actor, server_with_bucket};
use bellwether_backend::{Backend, Discarded, Finding, Grade, Probing};
use bellwether_core::ErrorKind;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;

fn finding<'a>(findings: &'a [Finding], what: &str) -> &'a Finding {
    findings.iter().find(|finding| finding.what == what).unwrap_or_else(|| panic!("no {what}: {findings:?}"))
}

#[tokio::test]
async fn a_single_server_is_fit_and_its_one_replica_is_warned_of() {
    let server = server_with_bucket().await;
    let before = server.last_sequence(BUCKET).await;
    for probing in [Probing::Look, Probing::Write] {
        let findings = actor(&server.url(), "a").backend.checkup(probing).await;
        for (what, mark) in [
            ("server", Grade::Good),
            ("bucket", Grade::Good),
            ("durability", Grade::Warning),
            ("watchers", Grade::Good),
            ("reading", Grade::Good),
        ] {
            assert_eq!(finding(&findings, what).grade, mark, "{findings:?}");
        }
        assert_eq!(findings.iter().any(|finding| finding.what == "watching"), probing == Probing::Write);
    }
    assert_eq!(server.last_sequence(BUCKET).await, before);
}

#[tokio::test]
async fn debians_server_is_warned_of() {
    let server = Server::start(Version::Old).await;
    server.bucket(BUCKET, json!({ "max_msgs_per_subject": 5 })).await;
    let findings = actor(&server.url(), "a").backend.checkup(Probing::Write).await;
    assert_eq!(finding(&findings, "server").grade, Grade::Warning, "{findings:?}");
    assert_eq!(finding(&findings, "bucket").grade, Grade::Warning, "{findings:?}");
    assert_eq!(finding(&findings, "watching").grade, Grade::Good, "{findings:?}");
}

#[tokio::test]
async fn what_stands_in_the_way_is_bad_with_the_kind_that_a_candidate_would_meet() {
    let server = Server::start(Version::Current).await;
    let missing = actor(&server.url(), "a").backend.checkup(Probing::Look).await;
    assert_eq!(finding(&missing, "bucket").grade, Grade::Bad(ErrorKind::Misconfigured), "{missing:?}");
    let made_later = actor(&format!("{}?create", server.url()), "a").backend.checkup(Probing::Look).await;
    assert_eq!(finding(&made_later, "bucket").grade, Grade::Good, "{made_later:?}");
    let nowhere = actor("nats://127.0.0.1:1", "a").backend.checkup(Probing::Look).await;
    assert_eq!(finding(&nowhere, "server").grade, Grade::Bad(ErrorKind::Unavailable), "{nowhere:?}");
}

#[tokio::test]
async fn the_bucket_for_notes_is_named_and_what_is_wrong_with_it_is_never_bad() {
    let config = r#"authorization { users = [
        { user: all, password: secret },
        { user: some, password: secret, permissions: { publish: { deny: "$JS.API.STREAM.INFO.KV_past" } } },
    ] }
    no_auth_user: all"#;
    let server = Server::start_with(Version::Current, config).await;
    server.bucket("b", json!({})).await;
    server.bucket("aging", crate::support::aged(crate::support::TTL)).await;
    server.bucket("memory", json!({ "storage": "memory" })).await;
    server.bucket("past", json!({})).await;
    let place = |user: &str, query: &str| format!("nats://{user}:secret@127.0.0.1:{}?{query}", server.port());
    let before = server.revisions().await;
    for profile in ["profile=cluster", "profile=leader&bucket=b"] {
        for (user, query, mark, part) in [
            ("all", "", Grade::Warning, "no bucket bellwether for notes"),
            ("all", "create=yes", Grade::Good, "bellwether for past leaderships is not there yet"),
            ("all", "notes=past", Grade::Good, "past, which is there"),
            ("all", "notes=aging", Grade::Warning, "max age to 0"),
            ("all", "notes=memory", Grade::Warning, "no notes can be kept in the bucket memory"),
            ("all", "notes=memory&create=yes", Grade::Warning, "file storage"),
            ("some", "notes=past", Grade::Warning, "KV_past: give it that permission"),
        ] {
            let url = place(user, &format!("{profile}&{query}"));
            let findings = actor(&url, "a").backend.checkup(Probing::Write).await;
            let notes = finding(&findings, "notes");
            assert_eq!(notes.grade, mark, "{url}: {notes:?}");
            assert!(notes.sentence.contains(part), "{url}: {notes:?}");
        }
    }
    assert_eq!(server.revisions().await, before);
}

#[tokio::test]
async fn an_election_that_was_made_to_measure_leaves_nothing_behind() {
    let server = server_with_bucket().await;
    let a = actor(&server.url(), "a");
    let grant = a.lead().await;
    let held = a.backend.danger_discard(&a.on).await.unwrap();
    assert!(matches!(&held, Discarded::Remains(what) if what.contains("held")), "{held:?}");
    a.let_go(&grant).await;
    assert_eq!(a.backend.danger_discard(&a.on).await.unwrap(), Discarded::Gone);
    let info = server.api("STREAM.INFO.KV_bellwether", json!({})).await;
    assert_eq!(info["state"]["messages"], 0, "{info}");
    assert!(a.lead().await.epoch > grant.epoch);
}
