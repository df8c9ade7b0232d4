//! From one leader to the next: by release, by request, in turn.

use std::time::Duration;

use bellwether_backend::{Backend, Notices};
use bellwether_core::{Ask, Bid, Grant, Outcome, ReleaseOptions, Request, Signal};
use bellwether_raft::Raft;
use bellwether_support::clock;
use futures_util::StreamExt;

use crate::stage::{PATIENCE, Stage, bid, claim, election, lead};

const TTL: Duration = Duration::from_secs(20);

/// When it was told that the election is free.
async fn told_free(news: &mut Notices) -> bellwether_core::Boot {
    let free = async {
        while let Some(notice) = news.next().await {
            if matches!(&notice.signal, Signal::Changed(seen) if seen.leader().is_none()) {
                return clock().boot();
            }
        }
        panic!("the stream of news ended");
    };
    tokio::time::timeout(PATIENCE, free).await.expect("news of freedom")
}

async fn wait_behind(store: &Raft, on: &bellwether_core::ElectionName, bid: &Bid) -> Notices {
    let news = store.signals();
    store.follow(on);
    assert!(matches!(claim(store, on, bid).await, Outcome::Denied(_)));
    news
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_are_woken_by_priority_and_then_by_who_asked_first() {
    let stage = Stage::start().await;
    let (holder, on) = (stage.client(), election("in-turn"));
    let grant = lead(&holder, &on, &bid("holder", TTL)).await;
    let mut waiting = Vec::new();
    for (id, priority) in [("early", 0), ("late", 0), ("high", 5)] {
        // One node each: every node wakes its own.
        let store = crate::stage::client(&stage.url_of(&[waiting.len()]));
        let bid = Bid { priority, ..bid(id, TTL) };
        let news = wait_behind(&store, &on, &bid).await;
        waiting.push((id, store, news));
    }
    // The stream of a client is opened anew with its session; before that it counts as somebody who only looks.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let from = clock().boot();
    assert!(matches!(holder.release(&on, &grant, &ReleaseOptions::default()).await, Outcome::Done(())));
    let mut told = Vec::new();
    for (id, _store, mut news) in waiting {
        told.push(tokio::spawn(async move { (told_free(&mut news).await.since(from), id, _store) }));
    }
    let mut order = Vec::new();
    for one in told {
        let (after, id, store) = one.await.unwrap();
        order.push((after, id, store));
    }
    order.sort_by_key(|(after, ..)| *after);
    let ids: Vec<&str> = order.iter().map(|(_, id, _)| *id).collect();
    assert_eq!(ids, ["high", "early", "late"]);
    assert!(order[1].0 >= Duration::from_millis(50), "the second was told after {:?}", order[1].0);
    assert!(order[2].0 >= Duration::from_millis(100), "the third was told after {:?}", order[2].0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_asked_to_hand_over_lets_the_named_candidate_in() {
    let stage = Stage::start().await;
    let (a, b, c, on) = (stage.client(), stage.client(), stage.client(), election("named"));
    let mut asked = a.signals();
    a.follow(&on);
    let grant: Grant = lead(&a, &on, &bid("a", TTL)).await;
    let (named, other) = (bid("named", TTL), bid("other", TTL));
    // The other asked first, so it would be first in turn.
    let _others_news = wait_behind(&c, &on, &other).await;
    let mut news = wait_behind(&b, &on, &named).await;
    let request = Request { epoch: grant.epoch, what: Ask::StepDown { to: Some(named.who.id.clone()) } };
    assert!(matches!(c.request(&on, &request).await, Outcome::Done(())));
    let heard = async {
        while let Some(notice) = asked.next().await {
            if let Signal::Requested(request) = notice.signal {
                return request;
            }
        }
        panic!("the stream of news ended");
    };
    let heard = tokio::time::timeout(PATIENCE, heard).await.expect("the request");
    assert_eq!(heard, request);
    let Ask::StepDown { to } = heard.what else { panic!("another request") };
    let how = ReleaseOptions { reserve_for: to, cooldown: None };
    assert!(matches!(a.release(&on, &grant, &how).await, Outcome::Done(())));
    told_free(&mut news).await;
    assert!(matches!(claim(&c, &on, &other).await, Outcome::Denied(_)), "it is kept for the named candidate");
    let next = claim(&b, &on, &named).await;
    assert!(matches!(next, Outcome::Done(_)), "{next:?}");
}
