//! Clients that fall silent.

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{Outcome, Signal};
use bellwether_support::clock;
use futures_util::StreamExt;

use crate::stage::{Stage, bid, claim, election, lead, until};

const TTL: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_leader_is_replaced_after_its_ttl_and_whoever_waits_is_told() {
    let stage = Stage::start().await;
    let (a, b, on) = (stage.client(), stage.client(), election("silent"));
    let (first, second) = (bid("a", TTL), bid("b", TTL));
    let grant = lead(&a, &on, &first).await;
    let mut news = b.signals();
    b.follow(&on);
    assert!(matches!(claim(&b, &on, &second).await, Outcome::Denied(_)));
    // A closed connection proves nothing: the work may go on.
    drop(a);
    let free = async {
        while let Some(notice) = news.next().await {
            if matches!(&notice.signal, Signal::Changed(seen) if seen.leader().is_none()) {
                return;
            }
        }
        panic!("the stream of news ended");
    };
    tokio::time::timeout(crate::stage::PATIENCE, free).await.expect("news");
    assert!(clock().boot() >= grant.counted_from + TTL, "it was replaced too early");
    assert!(lead(&b, &on, &second).await.epoch > grant.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leadership_that_nobody_renews_ends_although_its_session_is_kept_alive() {
    let stage = Stage::start().await;
    let (a, b) = (stage.client(), stage.client());
    let (held, waited_for) = (election("held"), election("waited-for"));
    let (silent, waiting) = (bid("silent", TTL), bid("waiting", TTL));
    let _blocking = lead(&b, &waited_for, &bid("b", Duration::from_secs(60))).await;
    let grant = lead(&a, &held, &silent).await;
    // Somebody else in the same process waits, so the session of both is kept alive.
    assert!(matches!(claim(&a, &waited_for, &waiting).await, Outcome::Denied(_)));
    let next = lead(&b, &held, &bid("b", TTL)).await;
    assert!(next.epoch > grant.epoch);
    assert!(clock().boot() >= grant.counted_from + TTL, "it ended too early");
    assert!(matches!(a.renew(&held, &grant, clock().boot()).await, Outcome::Denied(_)));
    let queue = b.followers(&waited_for).await.unwrap().unwrap();
    assert_eq!(queue.to_string(), "waiting", "whoever waits is still in the queue");
    a.retire(&waited_for, &waiting.who);
    until("the queue is left", || async { b.followers(&waited_for).await.unwrap().unwrap().ids.is_empty() })
        .await;
}
