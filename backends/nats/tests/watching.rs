//! News, and the silence in between.

mod support;

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{ElectionName, Signal};
use bellwether_deadman::boot_now;
use bellwether_support::election;
use bellwether_support::servers::nats::Server;
use support::{BUCKET, PATIENCE, TTL, actor, server_with_bucket};

/// What all clients have sent so far, by the server's own count.
async fn sent(server: &Server) -> u64 {
    let connections = server.monitored("/connz?subs=0").await;
    let all = connections["connections"].as_array().expect("a list of connections");
    all.iter().map(|connection| connection["in_msgs"].as_u64().expect("a number")).sum()
}

async fn consumers(server: &Server) -> u64 {
    let info = server.api("STREAM.INFO.KV_bellwether", serde_json::json!({})).await;
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
    let before = sent(&server).await;
    assert_eq!(news.count(Duration::from_secs(5)).await, 0, "nothing had changed");
    assert_eq!(sent(&server).await, before, "an idle follower has sent something");
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
        b.backend.follow(on, true);
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
