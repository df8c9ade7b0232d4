//! A server that stops, crashes and comes back, and credentials that are replaced meanwhile. Each test has its own server.

use std::time::Duration;

use bellwether_core::{ErrorKind, Outcome, Signal};
use bellwether_deadman::boot_now;
use bellwether_kubernetes::{Kubernetes, from_url};
use bellwether_support::servers::kubernetes::{ADMIN, Server};
use bellwether_support::{Actor, clock, until};

const TTL: Duration = Duration::from_secs(30);

fn actor(server: &Server, id: &str) -> Actor<Kubernetes> {
    let url = format!("kubernetes://default?kubeconfig={}", server.kubeconfig(ADMIN).display());
    Actor::new(from_url(&url, clock()).expect("a URL"), id, TTL)
}

/// The next watch begins at a version that the new server does not remember, and everything is read again.
#[tokio::test]
async fn a_leader_goes_on_and_followers_hear_again_after_a_crash_of_the_server() {
    let mut server = Server::start().await;
    let (leader, follower) = (actor(&server, "a"), actor(&server, "b"));
    let grant = leader.lead().await;
    let mut news = follower.news();
    let _ = follower.denied().await;
    leader.keep(&grant).await;
    news.until_seen(|seen| seen.holder.is_some()).await;
    server.down("KILL");
    news.until(|signal| matches!(signal, Signal::Doubt)).await;
    server.up().await;
    news.until(|signal| matches!(signal, Signal::Restored)).await;
    until(|| async {
        match leader.renew(&grant).await {
            Outcome::Done(_) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let _ = follower.denied().await;
    leader.let_go(&grant).await;
    news.until_seen(|seen| seen.holder.is_none()).await;
    assert!(follower.lead().await.epoch > grant.epoch);
}

#[tokio::test]
async fn a_server_that_stops_answering_leaves_the_outcome_unknown_in_time() {
    let server = Server::start().await;
    let leader = actor(&server, "a");
    let grant = leader.lead().await;
    let stopped = server.pause();
    let before = boot_now();
    match leader.renew(&grant).await {
        Outcome::Unknown(error) => assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(boot_now().since(before) < TTL / 2, "a call has a bound, whatever the server does");
    drop(stopped);
    until(|| async {
        match leader.renew(&grant).await {
            Outcome::Done(_) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The client would read the file again after a minute; a refusal makes it do so at once.
#[tokio::test]
async fn a_token_that_is_replaced_on_disk_is_used_at_once() {
    let server = Server::start().await;
    let file = server.kubeconfig(ADMIN);
    let good = std::fs::read_to_string(&file).expect("the kubeconfig");
    let actor = {
        let url = format!("kubernetes://default?kubeconfig={}", file.display());
        Actor::new(from_url(&url, clock()).expect("a URL"), "a", TTL)
    };
    std::fs::write(&file, good.replace("token-of-admin", "an-old-token")).expect("writable");
    match actor.claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            assert!(
                error.to_string().contains("check the token") && !error.to_string().contains("an-old-token"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    std::fs::write(&file, good).expect("writable");
    let grant = actor.lead().await;
    actor.keep(&grant).await;
}
