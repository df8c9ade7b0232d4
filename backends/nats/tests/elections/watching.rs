//! News, and the silence in between.

use std::time::Duration;

use crate::support::{BUCKET, PATIENCE, TTL, actor, server_with_bucket};
use bellwether_backend::Backend;
use bellwether_core::{ElectionName, ErrorKind, Outcome, Signal, StoreError};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, ElectionBuilder};
use bellwether_nats::from_url;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{clock, election, until};
use serde_json::json;

async fn consumers(server: &Server) -> u64 {
    let info = server.api("STREAM.INFO.KV_bellwether", json!({})).await;
    info["state"]["consumer_count"].as_u64().expect("a number")
}

#[tokio::test]
async fn followers_send_nothing_while_nothing_changes() {
    let server = server_with_bucket().await;
    let (a, b) = (actor(&server.url(), "a"), actor(&server.url(), "b"));
    let grant = a.lead().await;
    b.denied().await;
    let mut news = b.news();
    let grant = a.keep(&grant).await;
    news.until_seen(|seen| seen.holder.is_some()).await;
    // Whatever the beginning still asks for.
    news.count(Duration::from_millis(500)).await;
    let before = server.messages_sent().await;
    assert_eq!(news.count(Duration::from_secs(5)).await, 0, "nothing had changed");
    assert_eq!(server.messages_sent().await, before, "an idle follower has sent something");
    a.let_go(&grant).await;
    news.until_seen(|seen| seen.holder.is_none()).await;
}

#[tokio::test]
async fn many_elections_of_a_process_are_one_consumer() {
    let server = server_with_bucket().await;
    let mut a = actor(&server.url(), "a");
    let b = actor(&server.url(), "b");
    let names: Vec<ElectionName> = (0..200).map(|n| election(&format!("e{n}"))).collect();
    for on in &names {
        b.backend.follow(on);
    }
    let mut news = b.news();
    for on in &names {
        a.on = on.clone();
        let _ = a.lead().await;
    }
    for _ in &names {
        news.until_seen(|seen| seen.holder.is_some()).await;
    }
    assert_eq!(consumers(&server).await, 1);
}

#[tokio::test]
async fn a_thousand_looks_change_no_revision() {
    let server = server_with_bucket().await;
    let a = actor(&server.url(), "a");
    let _ = a.lead().await;
    let before = server.last_sequence(BUCKET).await;
    let watcher = actor(&server.url(), "w");
    for _ in 0..1_000 {
        assert!(watcher.seen().await.holder.is_some());
    }
    watcher.backend.history(&watcher.on).await.unwrap();
    assert_eq!(watcher.backend.elections().await.unwrap(), std::slice::from_ref(&watcher.on));
    assert_eq!(server.last_sequence(BUCKET).await, before);
}

#[tokio::test]
async fn a_follower_hears_again_after_the_server_was_away() {
    let mut server = server_with_bucket().await;
    let (a, b) = (actor(&server.url(), "a"), actor(&server.url(), "b"));
    let _ = a.lead().await;
    let mut news = b.news();
    b.denied().await;
    server.down("KILL");
    news.until(|signal| matches!(signal, Signal::Doubt)).await;
    server.up().await;
    news.until(|signal| matches!(signal, Signal::Restored)).await;
    // Over the next leadership, heard without asking.
    let (second, _) = a.lead_within(PATIENCE).await;
    news.until_seen(|seen| seen.epoch == Some(second.epoch)).await;
    let start = boot_now();
    a.let_go(&second).await;
    news.until_seen(|seen| seen.holder.is_none()).await;
    assert!(boot_now().since(start) < Duration::from_secs(2));
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_noticed_and_the_wait_begins_anew() {
    let server = server_with_bucket().await;
    let a = actor(&server.url(), "a");
    let b = actor(&format!("{}?ping=100ms&timeout=200ms", server.url()), "b");
    let _ = a.lead().await;
    let mut news = b.news();
    let seen = news.until_seen(|seen| seen.holder.is_some()).await;
    server.stop();
    // Nothing is closed and nothing is said: only the pings tell.
    news.until(|signal| matches!(signal, Signal::Doubt)).await;
    let resumed = boot_now();
    server.resume();
    news.until(|signal| matches!(signal, Signal::Restored)).await;
    let (_, at) = b.lead_within(PATIENCE).await;
    assert!(Some(at) > seen.free_at);
    assert!(at.since(resumed) >= TTL, "what was seen before the silence was counted");
}

#[tokio::test]
async fn a_deletion_is_heard() {
    let server = server_with_bucket().await;
    let (a, b) = (actor(&server.url(), "a"), actor(&server.url(), "b"));
    let _ = a.lead().await;
    let mut news = b.news();
    news.until_seen(|seen| seen.holder.is_some()).await;
    server.put(BUCKET, "election.reports", None).await;
    news.until_seen(|seen| seen.holder.is_none()).await;
}

/// Waits until a candidate's status says why changes are not announced to it.
async fn unwatched(candidate: &Election) -> StoreError {
    until(|| async { candidate.status().unwatched.ok_or("the candidate says nothing of its watch") }).await
}

fn candidate(url: &str, id: &str) -> ElectionBuilder {
    Election::builder("reports").backend(from_url(url, clock()).unwrap()).id(id).ttl(TTL)
}

#[tokio::test]
async fn a_candidate_that_may_not_watch_says_so_while_another_leads() {
    let config = r#"authorization { users = [
        { user: all, password: x },
        { user: deaf, password: x, permissions: { publish: { deny: "$JS.API.CONSUMER.>" } } },
    ] }
    no_auth_user: all"#;
    let server = Server::start_with(Version::Current, config).await;
    server.bucket(BUCKET, json!({})).await;
    // So long that nobody who waits for its end takes over in this test.
    let long = 10 * PATIENCE;
    let leader = candidate(&server.url(), "a").ttl(long).start().await.unwrap();
    let leadership = leader.wait_for_leadership().await.unwrap();
    let deaf = candidate(&format!("nats://deaf:x@127.0.0.1:{}", server.port()), "b").ttl(long);
    let deaf = deaf.start().await.unwrap();
    let error = unwatched(&deaf).await;
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains("$JS.API.CONSUMER.CREATE.KV_bellwether"), "{error}");
    assert!(leader.status().unwatched.is_none());
    // It takes over all the same, only later: it looks.
    leader.stop().await.unwrap();
    let next =
        tokio::time::timeout(PATIENCE, deaf.wait_for_leadership()).await.expect("it takes over").unwrap();
    assert!(next.epoch() > leadership.epoch());
}

#[tokio::test]
async fn a_limit_of_consumers_is_named_and_forgotten_when_there_is_room() {
    let server = Server::start(Version::Current).await;
    server.bucket(BUCKET, json!({ "max_consumers": 1 })).await;
    let first = candidate(&server.url(), "a").start().await.unwrap();
    first.wait_for_leadership().await.unwrap();
    until(|| async { (consumers(&server).await == 1).then_some(()).ok_or("the first does not watch") }).await;
    let second = candidate(&server.url(), "b").start().await.unwrap();
    let error = unwatched(&second).await;
    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    assert!(
        error.to_string().contains("(10026)") && error.to_string().contains("raise its limit"),
        "{error}"
    );
    first.stop().await.unwrap();
    drop(first);
    until(|| async { second.status().unwatched.is_none().then_some(()).ok_or("still without a watch") })
        .await;
}

#[tokio::test]
async fn a_follower_that_may_not_write_is_refused_before_it_is_needed_and_writes_nothing() {
    let config = r#"authorization { users = [
        { user: all, password: x },
        { user: some, password: x, permissions: { publish: { deny: "$KV.>" } } },
    ] }
    no_auth_user: all"#;
    for version in [Version::Current, Version::Old] {
        let server = Server::start_with(version, config).await;
        server.bucket(BUCKET, json!({})).await;
        let a = actor(&server.url(), "a");
        let grant = a.lead().await;
        let before = server.last_sequence(BUCKET).await;
        let some = actor(&format!("nats://some:x@127.0.0.1:{}", server.port()), "b");
        match some.claim().await {
            Outcome::Refused(error) => {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                assert!(error.to_string().contains("$KV.bellwether.election.reports"), "{error}");
            }
            other => panic!("was to be refused: {other:?}"),
        }
        // Who may write is denied as ever, by as many as there are, and nothing is written to find out.
        for id in ["c", "d", "e"] {
            let other = actor(&server.url(), id);
            other.denied().await;
            other.denied().await;
        }
        assert_eq!(server.last_sequence(BUCKET).await, before, "finding out has written something");
        a.keep(&grant).await;
        // Looking is free to all.
        assert!(some.seen().await.holder.is_some());
    }
}
