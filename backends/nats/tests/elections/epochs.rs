//! Epochs rise through everything that can happen to a bucket, its servers and its leaders.

use crate::support::{BUCKET, PATIENCE, TTL, actor};
use bellwether_core::{Epoch, Outcome};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{crash, lead_until_killed, role};
use serde_json::json;

const TEST: &str = "epochs::epochs_rise_through_everything_that_can_happen_to_one_bucket";

async fn up(server: &Server, last: &mut Epoch, what: &str) {
    // A candidate that knows nothing but what the store knows.
    let (grant, _) = actor(&server.url(), "fresh").lead_within(PATIENCE).await;
    assert!(grant.epoch > *last, "{what}: {:?} followed {last:?}", grant.epoch);
    assert!(grant.epoch <= Epoch::MAX);
    *last = grant.epoch;
}

#[tokio::test]
async fn epochs_rise_through_everything_that_can_happen_to_one_bucket() {
    if let Some(role) = role() {
        return lead_until_killed(&role, |url| actor(url, "child").backend).await;
    }
    tokio::join!(everything_happens(Version::Current), everything_happens(Version::Old));
}

async fn everything_happens(version: Version) {
    let mut server = Server::start(version).await;
    server.bucket(BUCKET, json!({})).await;
    let mut last = Epoch::ZERO;
    up(&server, &mut last, "at first").await;
    up(&server, &mut last, "expiry").await;
    let (stepping, _) = actor(&server.url(), "down").lead_within(PATIENCE).await;
    assert!(stepping.epoch > last, "expiry again");
    last = stepping.epoch;
    // By a stranger to the grant's connection, as after a restart with the same id.
    let a = actor(&server.url(), "down");
    a.let_go(&stepping).await;
    up(&server, &mut last, "a step-down").await;
    let child = actor(&server.url(), "child");
    crash(TEST, &server.url(), &child.on, &child.bid.who, TTL).await;
    let crashed = child.seen().await.epoch.expect("a record");
    assert!(crashed > last, "a crash: {crashed:?} followed {last:?}");
    last = crashed;
    up(&server, &mut last, "a crash").await;
    server.put(BUCKET, "election.reports", None).await;
    up(&server, &mut last, "deletion of the key").await;
    let purged = server.api("STREAM.PURGE.KV_bellwether", json!({})).await;
    assert_eq!(purged["success"], true, "{purged}");
    up(&server, &mut last, "purge of the stream").await;
    server.remove_bucket(BUCKET).await;
    server.bucket(BUCKET, json!({})).await;
    up(&server, &mut last, "the bucket made anew").await;
    server.put(BUCKET, "election.reports", None).await;
    server.remove_bucket(BUCKET).await;
    server.bucket(BUCKET, json!({})).await;
    up(&server, &mut last, "key and bucket deleted").await;
    server.down("TERM");
    tokio::time::sleep(TTL).await;
    server.up().await;
    up(&server, &mut last, "an outage as long as the ttl").await;
    server.down("KILL");
    server.up().await;
    up(&server, &mut last, "kill -9 of the server").await;
    server.put(BUCKET, "election.reports", Some(b"not a record")).await;
    up(&server, &mut last, "a record that makes no sense").await;
}

#[tokio::test]
async fn a_leader_that_renews_in_a_new_life_of_the_bucket_is_denied() {
    let server = crate::support::server_with_bucket().await;
    let (a, b) = (actor(&server.url(), "a"), actor(&server.url(), "b"));
    let mut grant = a.lead().await;
    grant = a.keep(&grant).await;
    server.remove_bucket(BUCKET).await;
    server.bucket(BUCKET, json!({})).await;
    let second = b.lead().await;
    assert!(second.epoch > grant.epoch);
    let renewal = a.renew(&grant).await;
    assert!(matches!(renewal, Outcome::Denied(_)), "{renewal:?}");
    b.keep(&second).await;
}
