//! Followers hear of what matters, at once, and make no noise meanwhile.

use std::fs;
use std::time::Duration;

use crate::support::actor;
use bellwether_backend::Backend;
use bellwether_core::Proof;
use bellwether_deadman::boot_now;
use bellwether_support::{Child, Scratch, election, role};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_release_is_heard_of_and_the_next_leads_in_milliseconds() {
    let scratch = Scratch::new();
    let (a, b) = (actor(scratch.path(), "a", LONG), actor(scratch.path(), "b", LONG));
    let mut news = b.news();
    let (mut handovers, mut claims, mut renewals) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_claims = Vec::new();
    for store in 0..20 {
        let fresh = actor(scratch.path().join(format!("fresh-{store}")), "a", LONG);
        let start = boot_now();
        fresh.lead().await;
        first_claims.push(boot_now().since(start));
    }
    for _ in 0..20 {
        let start = boot_now();
        let mut grant = a.lead().await;
        claims.push(boot_now().since(start));
        news.until_seen(|seen| seen.is_held_by(&a.bid.who)).await;
        for _ in 0..5 {
            let start = boot_now();
            grant = a.keep(&grant).await;
            renewals.push(boot_now().since(start));
        }
        let start = boot_now();
        let (_, next) = tokio::join!(a.let_go(&grant), async {
            news.until_seen(|seen| seen.proof == Proof::Released).await;
            let grant = b.lead().await;
            handovers.push(boot_now().since(start));
            grant
        });
        b.let_go(&next).await;
    }
    for (what, took) in [
        ("first claim in a new store", &mut first_claims),
        ("claim", &mut claims),
        ("renewal", &mut renewals),
        ("handover", &mut handovers),
    ] {
        took.sort();
        println!("{what}: median {:?}, longest {:?}", took[took.len() / 2], took.last().unwrap());
    }
    assert!(handovers[10] < Duration::from_millis(100), "{handovers:?}");
}

#[tokio::test]
async fn a_directory_removed_moved_away_or_made_anew_leaves_nobody_deaf() {
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let follower = actor(&store, "follower", LONG);
    let mut news = follower.news();
    for (round, how) in ["removed", "moved", "store moved", "store removed"].into_iter().enumerate() {
        let leader = actor(&store, "leader", LONG);
        leader.lead().await;
        news.until_seen(|seen| seen.is_held_by(&leader.bid.who)).await;
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
            news.until_seen(|seen| seen.proof == Proof::Absent).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_told_while_nothing_happens_nor_of_what_is_not_followed() {
    let scratch = Scratch::new();
    let (a, b) = (actor(scratch.path(), "a", LONG), actor(scratch.path(), "b", LONG));
    let grant = a.lead().await;
    let mut news = b.news();
    news.until_seen(|seen| seen.is_held_by(&a.bid.who)).await;
    let mut other = actor(scratch.path(), "c", LONG);
    other.on = election("other");
    other.lead().await;
    news.count(Duration::from_millis(50)).await;
    assert_eq!(news.count(Duration::from_millis(700)).await, 0);
    a.keep(&grant).await;
    assert_eq!(news.count(Duration::from_millis(100)).await, 1, "one renewal, one look");
    b.backend.unfollow(&b.on);
    a.keep(&grant).await;
    assert_eq!(news.count(Duration::from_millis(100)).await, 0);
}

/// How often any thread of the process went to sleep and was woken: a call that waits, or a timer, shows here.
fn wakes(process: &Child) -> u64 {
    let tasks = format!("/proc/{}/task", process.id());
    let statuses =
        fs::read_dir(tasks).unwrap().map(|task| fs::read_to_string(task.unwrap().path().join("status")));
    let of = |status: String| -> u64 {
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        counts.map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap()).sum()
    };
    statuses.map_while(Result::ok).map(of).sum()
}

#[tokio::test]
async fn an_idle_follower_sleeps() {
    if let Some(dir) = role() {
        let follower = actor(&dir, "follower", LONG);
        let mut news = follower.news();
        follower.denied().await;
        news.count(Duration::from_millis(300)).await;
        println!("following");
        news.count(LONG).await;
        return;
    }
    let scratch = Scratch::new();
    let leader = actor(scratch.path(), "leader", LONG);
    leader.lead().await;
    let mut follower = Child::start("news::an_idle_follower_sleeps", scratch.path().to_str().unwrap());
    follower.wait_for("following");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = wakes(&follower);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let woken = wakes(&follower) - before;
    println!("an idle follower was woken {woken} times in two seconds");
    assert!(woken <= 4, "woken {woken} times in two seconds");
}

#[test]
fn a_follower_whose_runtime_ended_hears_in_another_one() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scratch = Scratch::new();
    let (a, b) = (actor(scratch.path(), "a", LONG), actor(scratch.path(), "b", LONG));
    let leader = |seen: &bellwether_core::Seen| seen.is_held_by(&a.bid.who);
    let first = runtime();
    let grant = first.block_on(async {
        let mut news = b.news();
        let grant = a.lead().await;
        news.until_seen(leader).await;
        grant
    });
    drop(first);
    b.backend.change_runtime().unwrap();
    runtime().block_on(async {
        let mut news = b.news();
        news.until_seen(leader).await;
        a.let_go(&grant).await;
        news.until_seen(|seen| seen.proof == Proof::Released).await;
    });
}
