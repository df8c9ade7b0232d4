//! What `doctor` is told about servers and buckets.

mod support;

use bellwether_backend::{Backend, Discarded, Finding, Mark, Probing};
use bellwether_core::ErrorKind;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;
use support::{BUCKET, actor, server_with_bucket};

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
            ("server", Mark::Good),
            ("bucket", Mark::Good),
            ("durability", Mark::Warning),
            ("watchers", Mark::Good),
            ("reading", Mark::Good),
        ] {
            assert_eq!(finding(&findings, what).verdict, mark, "{findings:?}");
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
    assert_eq!(finding(&findings, "server").verdict, Mark::Warning, "{findings:?}");
    assert_eq!(finding(&findings, "bucket").verdict, Mark::Warning, "{findings:?}");
    assert_eq!(finding(&findings, "watching").verdict, Mark::Good, "{findings:?}");
}

#[tokio::test]
async fn what_stands_in_the_way_is_bad_with_the_kind_that_a_candidate_would_meet() {
    let server = Server::start(Version::Current).await;
    let missing = actor(&server.url(), "a").backend.checkup(Probing::Look).await;
    assert_eq!(finding(&missing, "bucket").verdict, Mark::Bad(ErrorKind::Misconfigured), "{missing:?}");
    let made_later = actor(&format!("{}?create", server.url()), "a").backend.checkup(Probing::Look).await;
    assert_eq!(finding(&made_later, "bucket").verdict, Mark::Good, "{made_later:?}");
    let nowhere = actor("nats://127.0.0.1:1", "a").backend.checkup(Probing::Look).await;
    assert_eq!(finding(&nowhere, "server").verdict, Mark::Bad(ErrorKind::Unavailable), "{nowhere:?}");
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
