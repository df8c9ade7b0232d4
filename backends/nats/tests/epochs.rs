//! Epochs rise through everything that can happen to a bucket.

mod support;

use bellwether_core::{Epoch, Outcome};
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;
use support::{BUCKET, PATIENCE, actor};

async fn up(server: &Server, last: &mut Epoch, what: &str) {
    // A candidate that knows nothing but what the store knows.
    let (grant, _) = actor(&server.url(), "fresh").lead_within(PATIENCE).await;
    assert!(grant.epoch > *last, "{what}: {:?} followed {last:?}", grant.epoch);
    assert!(grant.epoch <= Epoch::MAX);
    *last = grant.epoch;
}

#[tokio::test]
async fn epochs_rise_through_deletion_of_key_and_bucket_and_an_outage() {
    for version in [Version::Current, Version::Old] {
        let mut server = Server::start(version).await;
        server.bucket(BUCKET, json!({})).await;
        let mut last = Epoch::ZERO;
        up(&server, &mut last, "at first").await;
        up(&server, &mut last, "expiry").await;
        server.put(BUCKET, "election.reports", None).await;
        up(&server, &mut last, "deletion of the key").await;
        let purged = server.api("STREAM.PURGE.KV_bellwether", json!({})).await;
        assert_eq!(purged["success"], true, "{purged}");
        up(&server, &mut last, "purge of the stream").await;
        server.remove_bucket(BUCKET).await;
        server.bucket(BUCKET, json!({})).await;
        up(&server, &mut last, "the bucket made anew").await;
        server.down("TERM");
        server.up().await;
        up(&server, &mut last, "an outage").await;
        server.put(BUCKET, "election.reports", Some(b"not a record")).await;
        up(&server, &mut last, "a record that makes no sense").await;
    }
}

#[tokio::test]
async fn a_leader_that_renews_in_a_new_life_of_the_bucket_is_denied() {
    let server = support::server_with_bucket().await;
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
