//! A candidate on a leaf node, in an election that is held in the hub's JetStream domain.

use crate::support::{BUCKET, PATIENCE, actor};
use bellwether_backend::Backend;
use bellwether_support::election;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;

#[tokio::test]
async fn candidates_on_hub_and_leaf_hand_over_to_each_other() {
    for version in [Version::Current, Version::Old] {
        let [hub, leaf] = Server::hub_and_leaf(version).await;
        hub.bucket(BUCKET, json!({})).await;
        let here = actor(&hub.url(), "hub");
        let there = actor(&format!("{}?domain=hub", leaf.url()), "leaf");
        let (mut here_hears, mut there_hears) = (here.news(), there.news());
        // Creating, replacing and releasing through the leaf node, each at the revision that was read.
        let grant = there.lead().await;
        here_hears.until_seen(|seen| seen.epoch == Some(grant.epoch) && seen.holder.is_some()).await;
        here.denied().await;
        let grant = there.keep(&grant).await;
        there.let_go(&grant).await;
        let (next, _) = here.lead_within(PATIENCE).await;
        assert!(next.epoch > grant.epoch, "{next:?} followed {grant:?}");
        // And the watch through it.
        there_hears.until_seen(|seen| seen.epoch == Some(next.epoch) && seen.holder.is_some()).await;
        there.denied().await;
        here.let_go(&next).await;
        there_hears.until_seen(|seen| seen.epoch == Some(next.epoch) && seen.holder.is_none()).await;
        let (last, _) = there.lead_within(PATIENCE).await;
        assert!(last.epoch > next.epoch, "{last:?} followed {next:?}");
        let info = hub.api("STREAM.INFO.KV_bellwether", json!({})).await;
        assert_eq!(info["state"]["consumer_count"], 2, "a watch was opened anew: {info}");
    }
}

#[tokio::test]
async fn a_domain_may_be_named_to_the_server_that_has_it_and_a_bucket_is_made_in_it() {
    let [hub, leaf] = Server::hub_and_leaf(Version::Current).await;
    let there = actor(&format!("{}?domain=hub&create=yes", leaf.url()), "leaf");
    let grant = there.lead().await;
    let here = actor(&format!("{}?domain=hub", hub.url()), "hub");
    here.denied().await;
    there.let_go(&grant).await;
    let (next, _) = here.lead_within(PATIENCE).await;
    assert!(next.epoch > grant.epoch);
    assert_eq!(here.backend.elections().await.unwrap(), [election("reports")]);
    let in_leaf = leaf.api("STREAM.INFO.KV_bellwether", json!({})).await;
    assert_eq!(in_leaf["error"]["err_code"], 10059, "the bucket was made in the wrong domain: {in_leaf}");
}
