//! Followers hear of what matters, at once, and make no noise meanwhile.

mod support;

use std::fs;
use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::Proof;
use bellwether_deadman::boot_now;
use support::Scratch;
use support::candidate::{Actor, election};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_release_is_heard_of_and_the_next_leads_in_milliseconds() {
    let scratch = Scratch::new();
    let (a, b) = (Actor::new(scratch.path(), "a", LONG), Actor::new(scratch.path(), "b", LONG));
    let mut news = b.news();
    let (mut handovers, mut claims, mut renewals) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..20 {
        let start = boot_now();
        let mut grant = a.lead().await;
        claims.push(boot_now().since(start));
        news.until(|seen| seen.is_held_by(&a.bid.who)).await;
        for _ in 0..5 {
            let start = boot_now();
            grant = a.keep(&grant).await;
            renewals.push(boot_now().since(start));
        }
        let start = boot_now();
        let (_, next) = tokio::join!(a.let_go(&grant), async {
            news.until(|seen| seen.proof == Proof::Released).await;
            let grant = b.lead().await;
            handovers.push(boot_now().since(start));
            grant
        });
        b.let_go(&next).await;
    }
    for (what, took) in [("claim", &mut claims), ("renewal", &mut renewals), ("handover", &mut handovers)] {
        took.sort();
        println!("{what}: median {:?}, longest {:?}", took[took.len() / 2], took.last().unwrap());
    }
    assert!(handovers[10] < Duration::from_millis(100), "{handovers:?}");
}

#[tokio::test]
async fn a_directory_removed_moved_away_or_made_anew_leaves_nobody_deaf() {
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let follower = Actor::new(&store, "follower", LONG);
    let mut news = follower.news();
    for (round, how) in ["removed", "moved", "store moved", "store removed"].into_iter().enumerate() {
        let leader = Actor::new(&store, "leader", LONG);
        leader.lead().await;
        news.until(|seen| seen.is_held_by(&leader.bid.who)).await;
        match how {
            "removed" => fs::remove_dir_all(store.join("reports")).unwrap(),
            "moved" => fs::rename(store.join("reports"), scratch.path().join("aside")).unwrap(),
            "store moved" => fs::rename(&store, scratch.path().join("old")).unwrap(),
            _ => fs::remove_dir_all(&store).unwrap(),
        }
        if how == "store moved" {
            // Nothing happened to the directory that is watched, so only the next look, which the timer brings, can tell.
            assert_eq!(follower.seen().await.proof, Proof::Absent, "{round}");
        } else {
            news.until(|seen| seen.proof == Proof::Absent).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_told_while_nothing_happens_nor_of_what_is_not_followed() {
    let scratch = Scratch::new();
    let (a, b) = (Actor::new(scratch.path(), "a", LONG), Actor::new(scratch.path(), "b", LONG));
    let grant = a.lead().await;
    let mut news = b.news();
    news.until(|seen| seen.is_held_by(&a.bid.who)).await;
    let mut other = Actor::new(scratch.path(), "c", LONG);
    other.on = election("other");
    other.lead().await;
    news.count(Duration::from_millis(50)).await;
    assert_eq!(news.count(Duration::from_millis(700)).await, 0);
    a.keep(&grant).await;
    assert_eq!(news.count(Duration::from_millis(100)).await, 1, "one renewal, one look");
    b.file.follow(&b.on, false);
    a.keep(&grant).await;
    assert_eq!(news.count(Duration::from_millis(100)).await, 0);
}
