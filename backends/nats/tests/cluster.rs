//! Three servers, and the loss of the one that leads the bucket's stream.

mod support;

use std::time::Duration;

use bellwether_core::{Outcome, Signal};
use bellwether_deadman::boot_now;
use bellwether_nats::{Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, clock};
use serde_json::json;
use support::{BUCKET, PATIENCE};

const TTL: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_millis(500);

fn actor(servers: &[Server], id: &str) -> Actor<Nats> {
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let url = format!("nats://{}?create=yes&replicas=3", hosts.join(","));
    Actor::new(from_url(&url, clock()).unwrap(), id, TTL)
}

/// The server that leads the stream, by its place in the list.
async fn stream_leader(servers: &[Server], asked: usize) -> usize {
    let info = servers[asked].api(&format!("STREAM.INFO.KV_{BUCKET}"), json!({})).await;
    let leader = info["cluster"]["leader"].as_str().unwrap_or_else(|| panic!("no leader: {info}")).to_owned();
    leader.strip_prefix('n').and_then(|number| number.parse().ok()).expect("a name of ours")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_survives_the_loss_of_the_stream_s_leader() {
    let mut servers = Server::cluster(Version::Current, 3).await;
    let (a, b) = (actor(&servers, "a"), actor(&servers, "b"));
    let (mut grant, _) = a.lead_within(PATIENCE).await;
    let mut news = b.news();
    b.denied().await;
    let lost = stream_leader(&servers, 0).await;
    servers[lost].down("KILL");
    // Longer than a ttl, so that a leadership which only ran on would have ended.
    let by = boot_now() + TTL + Duration::from_secs(1);
    let mut longest = Duration::ZERO;
    while boot_now() < by {
        match a.renew(&grant).await {
            Outcome::Held(renewed) => {
                longest = longest.max(renewed.counted_from.since(grant.counted_from));
                grant = renewed;
            }
            Outcome::Unknown(_) => {}
            other => panic!("a transient error ended a leadership: {other:?}"),
        }
        assert!(boot_now().since(grant.counted_from) < TTL, "no renewal for a whole ttl");
        tokio::time::sleep(RENEWAL).await;
    }
    println!("longest time without a renewal: {longest:?}");
    let seen = b.denied().await;
    assert_eq!(seen.leader(), Some(&a.bid.who.id));
    // The follower hears again, by whichever server.
    a.let_go(&grant).await;
    news.until(|signal| matches!(signal, Signal::Changed(seen) if seen.holder.is_none())).await;
    let next = b.lead().await;
    assert!(next.epoch > grant.epoch);
}
