//! The cluster loses its own leader while elections are held on it.

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::Outcome;
use bellwether_support::clock;

use crate::stage::{Stage, bid, claim, election, lead};

const TTL: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leadership_survives_the_loss_of_the_raft_leader() {
    let mut stage = Stage::start().await;
    let (a, b, on) = (stage.client(), stage.client(), election("survives"));
    let (first, second) = (bid("a", TTL), bid("b", TTL));
    let mut grant = lead(&a, &on, &first).await;
    assert!(matches!(claim(&b, &on, &second).await, Outcome::Denied(_)));
    let lost = stage.leader().await;
    let id = stage.node(lost).node_id();
    stage.kill(lost).await;
    // Renewed as a driver would, for two ttls: a keepalive that no new leader acknowledged would end it.
    let end = clock().boot() + 2 * TTL;
    while clock().boot() < end {
        tokio::time::sleep(TTL / 12).await;
        match a.renew(&on, &grant, clock().boot()).await {
            Outcome::Done(renewed) => grant = renewed,
            Outcome::Unknown(_) => {}
            other => panic!("the leadership ended: {other:?}"),
        }
        assert!(clock().boot() < grant.counted_from + TTL, "no keepalive was answered for a ttl");
        if let Outcome::Done(taken) = claim(&b, &on, &second).await {
            panic!("{taken:?} was granted while {grant:?} lasts");
        }
    }
    assert_ne!(stage.node(stage.leader().await).node_id(), id);
    assert!(matches!(a.release(&on, &grant, &Default::default()).await, Outcome::Done(())));
    assert!(lead(&b, &on, &second).await.epoch > grant.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_node_is_served_by_the_leader_wherever_that_is() {
    let stage = Stage::start().await;
    let leader = stage.leader().await;
    let follower = (leader + 1) % 3;
    let (a, on) = (crate::stage::client(&stage.url_of(&[follower])), election("forwarded"));
    let bid = bid("a", TTL);
    let grant = lead(&a, &on, &bid).await;
    let renewed = a.renew(&on, &grant, clock().boot()).await;
    assert!(matches!(renewed, Outcome::Done(_)), "{renewed:?}");
    assert_eq!(a.observe(&on).await.unwrap().epoch, Some(grant.epoch));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_renewed_and_nothing_is_granted() {
    let mut stage = Stage::start().await;
    let (a, b, on) = (stage.client(), stage.client(), election("alone"));
    let short = Duration::from_secs(2);
    let (first, second) = (bid("a", short), bid("b", short));
    let grant = lead(&a, &on, &first).await;
    let leader = stage.leader().await;
    stage.kill((leader + 1) % 3).await;
    stage.kill((leader + 2) % 3).await;
    let renewed = a.renew(&on, &grant, clock().boot()).await;
    assert!(matches!(renewed, Outcome::Unknown(_)), "one node of three confirmed it: {renewed:?}");
    let denied = claim(&b, &on, &second).await;
    assert!(matches!(denied, Outcome::Unknown(_)), "{denied:?}");
    stage.start_missing().await;
    let next = lead(&b, &on, &second).await;
    assert!(next.epoch > grant.epoch);
    assert!(clock().boot() >= grant.counted_from + short, "b was let in before the ttl was over");
}
