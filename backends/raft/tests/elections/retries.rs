//! Answers that are lost on the way back, and requests that never arrive.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::stage::{Stage, bid, claim, client, election, lead, until};

/// What becomes of answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Requests pass, and answers do not.
    Swallows,
    /// Nothing passes: connections close as soon as they are made.
    Cut,
}

/// Passes connections on to a node. Whatever connection it swallowed from closes when the way is open again.
async fn proxy(to: String, way: watch::Receiver<Way>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((here, _)) = listener.accept().await {
            if *way.borrow() == Way::Cut {
                continue;
            }
            let there = TcpStream::connect(&to).await.expect("a node");
            tokio::spawn(pass_on(here, there, way.clone()));
        }
    });
    address
}

async fn pass_on(here: TcpStream, there: TcpStream, mut way: watch::Receiver<Way>) {
    let ((mut requests, mut back), (mut answers, mut on)) = (here.into_split(), there.into_split());
    let onward = tokio::io::copy(&mut requests, &mut on);
    let answering = async {
        let mut bytes = vec![0; 16 << 10];
        let mut has_swallowed = false;
        loop {
            tokio::select! {
                read = answers.read(&mut bytes) => {
                    let Ok(count) = read else { return };
                    let is_lost = *way.borrow() == Way::Swallows;
                    has_swallowed |= is_lost;
                    if count == 0 || (!is_lost && back.write_all(&bytes[..count]).await.is_err()) {
                        return;
                    }
                }
                changed = way.changed() => {
                    let now = *way.borrow();
                    if changed.is_err() || now == Way::Cut || (has_swallowed && now == Way::Open) {
                        return;
                    }
                }
            }
        }
    };
    tokio::select! {
        _ = onward => {}
        () = answering => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_was_lost_is_sent_again_under_its_number_and_granted_once() {
    let stage = Stage::start().await;
    let (set, way) = watch::channel(Way::Open);
    let address = proxy(stage.node(0).local_address().to_string(), way).await;
    let (a, b) = (client(&format!("raft://{address}")), stage.client());
    let ttl = Duration::from_secs(20);
    // The session is open before anything is lost.
    let before = lead(&a, &election("before"), &bid("a", ttl)).await;
    let (on, wanted) = (election("lost-answer"), bid("a", ttl));
    set.send_replace(Way::Swallows);
    let claiming = tokio::spawn({
        let (a, on, wanted) = (Arc::clone(&a), on.clone(), wanted.clone());
        async move { claim(&a, &on, &wanted).await }
    });
    until("the claim is applied", || async { b.observe(&on).await.unwrap().leader().is_some() }).await;
    let applied = b.observe(&on).await.unwrap().epoch;
    set.send_replace(Way::Open);
    match claiming.await.unwrap() {
        Outcome::Done(grant) => assert_eq!(Some(grant.epoch), applied, "it was granted twice"),
        other => panic!("{other:?}"),
    }
    assert!(applied > Some(before.epoch));
}

/// Others keep the session alive, so it does not end with it: the candidate would stay in the queue for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_left_while_the_cluster_was_not_reached_is_gone_when_it_is() {
    let stage = Stage::start().await;
    let (set, way) = watch::channel(Way::Open);
    let address = proxy(stage.node(0).local_address().to_string(), way).await;
    let (a, b) = (client(&format!("raft://{address}")), stage.client());
    let (left, kept) = (election("left"), election("kept"));
    for on in [&left, &kept] {
        lead(&b, on, &bid("b", Duration::from_secs(600))).await;
    }
    let ttl = Duration::from_secs(30);
    let (leaves, stays) = (bid("a", ttl), bid("a", ttl));
    for (on, bid) in [(&left, &leaves), (&kept, &stays)] {
        assert!(matches!(claim(&a, on, bid).await, Outcome::Denied(_)));
    }
    let followers = async |on| b.followers(on).await.unwrap().unwrap().ids.len();
    assert_eq!((followers(&left).await, followers(&kept).await), (1, 1));
    set.send_replace(Way::Cut);
    // The connection that there was is closed only when its task has run.
    until("nothing passes", || async { a.observe(&left).await.is_err() }).await;
    a.retire(&left, &leaves.who);
    // The first word of it has been given up by then: no call takes longer than 5 s.
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    assert_eq!(followers(&left).await, 1, "it got through");
    set.send_replace(Way::Open);
    until("the candidate has left the queue", || async { followers(&left).await == 0 }).await;
    assert_eq!(followers(&kept).await, 1, "the other one waits on, in the same session");
}
