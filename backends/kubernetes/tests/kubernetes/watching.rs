//! What followers are told, and what they ask for.

use std::time::Duration;

use bellwether_backend::Backend as _;
use bellwether_core::{Outcome, Signal};
use bellwether_kubernetes::from_url;
use bellwether_support::servers::kubernetes::{ADMIN, LIMITED};
use bellwether_support::{Actor, clock, election, until};

use crate::stage::{Namespace, TTL, rule};

#[tokio::test]
async fn followers_send_nothing_while_nothing_changes() {
    let namespace = Namespace::new().await;
    let leader = namespace.actor("a");
    let _grant = leader.lead().await;
    let mut followers = Vec::new();
    for id in ["b", "c", "d"] {
        let follower = namespace.actor(id);
        let mut news = follower.news();
        let _ = follower.denied().await;
        followers.push(tokio::spawn(async move {
            loop {
                news.count(Duration::from_secs(1)).await;
            }
        }));
    }
    until(|| async {
        let watches =
            namespace.requests().iter().filter(|request| *request == "watch leases reports").count();
        if watches == 3 { Ok(()) } else { Err(format!("{watches} watches")) }
    })
    .await;
    let before = namespace.requests();
    tokio::time::sleep(TTL).await;
    assert_eq!(namespace.requests(), before);
    followers.iter().for_each(|task| task.abort());
}

#[tokio::test]
async fn a_release_is_told_and_taken_with_a_single_write() {
    let namespace = Namespace::new().await;
    let (leader, follower) = (namespace.actor("a"), namespace.actor("b"));
    let grant = leader.lead().await;
    let mut news = follower.news();
    let _ = follower.denied().await;
    // Told only of what is new: the first renewal shows that the watch is open.
    leader.keep(&grant).await;
    news.until_seen(|seen| seen.holder.is_some()).await;
    let before = namespace.requests().len();
    leader.let_go(&grant).await;
    news.until_seen(|seen| seen.holder.is_none()).await;
    assert!(matches!(follower.claim().await, Outcome::Done(_)));
    let asked = |namespace: &Namespace| -> Vec<String> {
        namespace
            .requests()
            .split_off(before)
            .into_iter()
            .filter(|one| one.ends_with("leases reports"))
            .collect()
    };
    let expected = ["update leases reports", "update leases reports"];
    until(|| async {
        let asked = asked(&namespace);
        if asked.len() >= 2 { Ok(()) } else { Err(format!("{asked:?}")) }
    })
    .await;
    assert_eq!(asked(&namespace), expected, "a release and a claim");
}

/// Were the end of a watch taken for an outage, every one of them would put the wait for a dead leader back to its beginning.
#[tokio::test]
async fn a_watch_that_the_server_ends_is_no_outage() {
    let namespace = Namespace::new().await;
    let leader = namespace.actor("a");
    let grant = leader.lead().await;
    let url = format!("{}&watch=1s", namespace.url_of(ADMIN));
    let follower = Actor::new(from_url(&url, clock()).expect("a URL"), "b", TTL);
    let mut news = follower.news();
    let _ = follower.denied().await;
    let watches = || namespace.requests().iter().filter(|request| *request == "watch leases reports").count();
    // Three watches, one after the other, while the leader renews: nothing but its renewals is told.
    let mut heard = Vec::new();
    while watches() < 3 {
        leader.keep(&grant).await;
        heard.push(news.until(|_| true).await);
    }
    let outages = heard.iter().filter(|signal| !matches!(signal, Signal::Changed(_))).count();
    assert_eq!(outages, 0, "{heard:?}");
}

/// So many would share a watch of the namespace, which this user may not have.
#[tokio::test]
async fn many_elections_are_watched_one_by_one_where_the_namespace_may_not_be_watched() {
    let namespace = Namespace::new().await;
    let names = ["reports", "e1", "e2", "e3", "e4", "e5"];
    let user = LIMITED[0];
    namespace.permit(user, vec![rule(&["create"], &[]), rule(&["get", "update", "watch"], &names)]).await;
    let follower = namespace.actor_of(user, "b");
    let mut news = follower.news();
    names[1..].iter().for_each(|name| follower.backend.follow(&election(name)));
    let leader = Actor { on: election("e5"), ..namespace.actor("a") };
    let grant = leader.lead().await;
    let hearing = tokio::spawn(async move {
        news.until_seen(|seen| seen.holder.is_none() && seen.epoch == Some(grant.epoch)).await;
    });
    until(|| async {
        let asked = namespace.requests();
        let is_watched = |name: &&str| asked.contains(&format!("watch leases {name}"));
        let missing: Vec<&&str> = names.iter().filter(|name| !is_watched(name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("nobody watches {missing:?}")) }
    })
    .await;
    leader.let_go(&grant).await;
    hearing.await.expect("the release is told");
}
