//! The testing matrix of the profile `leader`, row by row, on a real server. Rows about the network and about time are in
//! files of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::other::Other;
use crate::support::stage::{Judge, LEASE, candidate, leads, one_leads, soon};
use crate::support::{LEADERS, actor, leaders, server_for_leaders};
use bellwether_core::{ErrorKind, Reason};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Error, HealthCheck, HookError, Hooks, Leadership, What};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Child, role, until};

async fn server() -> (Server, String) {
    let server = server_for_leaders(Version::Current, LEASE).await;
    let url = leaders(server.port());
    (server, url)
}

/// What all clients have sent so far, by the server's own count.
async fn sent(server: &Server) -> u64 {
    let connections = server.monitored("/connz?subs=0&limit=1000").await;
    let all = connections["connections"].as_array().expect("a list of connections");
    all.iter().map(|connection| connection["in_msgs"].as_u64().expect("a number")).sum()
}

#[tokio::test]
async fn of_three_candidates_one_leads_and_the_others_follow_and_take_over() {
    let (_server, url) = server().await;
    let judge = Judge::default();
    let mut all = Vec::new();
    for id in ["a", "b", "c"] {
        all.push(judge.start(candidate(&url, id)).await);
    }
    while !all.is_empty() {
        let first = one_leads(&all).await;
        let leader = all.remove(first);
        for follower in &all {
            let follows = follower.wait_until(|status| status.leader.as_ref() == Some(leader.id()));
            soon(follows).await.expect("it takes part");
            assert!(!follower.is_leader());
        }
        soon(leader.stop()).await.expect("it stops");
    }
    assert_eq!(judge.verdict(), 3);
}

#[tokio::test]
async fn a_killed_leader_is_replaced() {
    if let Some(url) = role() {
        let election = candidate(&url, "killed").start().await.unwrap();
        let leadership = leads(&election).await;
        println!("leading {}", leadership.epoch());
        std::future::pending::<()>().await;
    }
    let (_server, url) = server().await;
    let judge = Judge::default();
    let mut child = Child::start("leader::matrix::a_killed_leader_is_replaced", &url);
    let follower = tokio::task::spawn_blocking(move || (child.wait_for("leading"), child));
    let (said, mut child) = soon(follower).await.expect("the child leads");
    let epoch: u64 = said.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("an epoch");
    let follower = judge.start(candidate(&url, "b")).await;
    let seen = follower.wait_until(|status| status.leader.is_some());
    assert_eq!(soon(seen).await.unwrap().leader.unwrap().as_str(), "killed");
    let killed = boot_now();
    child.kill();
    let leadership = leads(&follower).await;
    let took = boot_now().since(killed);
    assert!(leadership.epoch().get() > epoch);
    println!("replaced {took:?} after the kill, at a ttl of {LEASE:?}");
    // Not twice the ttl, although the server takes the record away at about the time when it may be replaced.
    assert!(took < LEASE + Duration::from_millis(2_500), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_followers_one_takes_over_quickly_and_the_server_stays_calm() {
    let (server, url) = server().await;
    let judge = Judge::default();
    let mut dead = actor(&url, "dead");
    dead.bid.ttl = LEASE;
    let grant = dead.lead().await;
    let mut all = Vec::new();
    for number in 0..100 {
        all.push(judge.start(candidate(&url, &format!("f{number}"))).await);
    }
    // Everybody has seen it alive, and counts from there.
    let grant = dead.keep(&grant).await;
    let (writes, before) = (server.last_sequence(LEADERS).await, sent(&server).await);
    let winner = one_leads(&all).await;
    let took = boot_now().since(grant.counted_from);
    assert!(took > LEASE - Duration::from_millis(1), "{took:?}: too early");
    let others = all.iter().enumerate().filter(|(at, _)| *at != winner);
    for (_, other) in others {
        soon(other.wait_until(|status| status.leader.as_ref() == Some(all[winner].id()))).await.unwrap();
    }
    let (writes, sent) = (server.last_sequence(LEADERS).await - writes, sent(&server).await - before);
    println!("one of a hundred led {took:?} after the last renewal; {writes} writes, {sent} messages in all");
    assert!(took < LEASE + Duration::from_secs(5), "{took:?}");
    assert_eq!(judge.count(|event| matches!(event.what, What::Acquired { .. })), 1);
    assert!(sent < 100 * 12, "{sent} messages: the herd tramples");
    assert_eq!(judge.verdict(), 1);
    let stopping = all.iter().map(Election::stop);
    for stopped in futures_util::future::join_all(stopping).await {
        stopped.expect("it stops");
    }
}

#[tokio::test]
async fn a_deleted_bucket_ends_everything_at_once_and_for_good() {
    let (server, url) = server().await;
    let judge = Judge::default();
    let a = judge.start(candidate(&url, "a")).await;
    let leadership = leads(&a).await;
    let b = judge.start(candidate(&url, "b")).await;
    server.remove_bucket(LEADERS).await;
    let start = boot_now();
    let (_, reason) = judge.lost("a").await;
    assert_eq!(reason, Reason::Refused);
    assert!(boot_now().since(start) < LEASE, "not by a time-out");
    soon(leadership.lost()).await;
    for (election, id) in [(&a, "a"), (&b, "b")] {
        judge.heard(id, |what| matches!(what, What::Stopped)).await;
        let error = soon(election.wait_for_leadership()).await.expect_err("it takes part no more");
        assert!(
            matches!(&error, Error::Backend(error) if error.kind() == ErrorKind::Misconfigured),
            "{error}"
        );
    }
    let quiet = sent(&server).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // What this very question sends is not counted: it comes over another port.
    assert_eq!(sent(&server).await, quiet, "somebody still tries");
    let error = candidate(&url, "c").start().await.err().expect("there is no bucket");
    assert!(error.to_string().contains("no bucket"), "{error}");
}

#[tokio::test]
async fn a_token_changed_by_hand_ends_the_leadership() {
    let (server, url) = server().await;
    let judge = Judge::default();
    let builder = candidate(&url, "a").validation_interval(LEASE / 10);
    let a = judge.start(builder).await;
    let first = leads(&a).await;
    assert!(soon(a.validate()).await.unwrap());
    soon(a.validate_or_step_down()).await.unwrap();
    assert!(soon(a.validate_within(LEASE)).await.unwrap());
    let hand = Other::new(&server, "hand").await;
    let mut record = hand.get().await.value.expect("a record");
    record["token"] = "00000000-0000-4000-8000-000000000000".into();
    hand.put(&record.to_string()).await;
    let (lost, reason) = judge.lost("a").await;
    assert!(matches!(reason, Reason::Conflict | Reason::Validation), "{reason:?}");
    assert!(!first.is_valid());
    // Whoever's token that is has the lead for a ttl; then it is taken over.
    let second = leads(&a).await;
    assert!(second.epoch() > first.epoch());
    let again =
        judge.heard("a", |what| matches!(what, What::Acquired { epoch, .. } if *epoch == second.epoch()));
    assert!(again.await.boot.since(lost.boot) > LEASE * 9 / 10);
    judge.verdict();
}

struct Reads(Arc<Other>, Arc<AtomicBool>);

impl Hooks for Reads {
    async fn on_lose_leadership(&self, _: Leadership) -> Result<(), HookError> {
        self.1.store(self.0.get().await.value.is_some(), Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn stopping_calls_the_hook_and_then_deletes_the_key() {
    let (server, url) = server().await;
    let judge = Judge::default();
    let other = Arc::new(Other::new(&server, "other").await);
    let there_in_hook = Arc::new(AtomicBool::new(false));
    let a =
        judge.start(candidate(&url, "a").hooks(Reads(Arc::clone(&other), Arc::clone(&there_in_hook)))).await;
    let first = leads(&a).await;
    let b = judge.start(candidate(&url, "b")).await;
    soon(b.wait_until(|status| status.leader.is_some())).await.unwrap();
    soon(b.stop()).await.unwrap();
    soon(a.stop_within(LEASE)).await.unwrap();
    assert!(there_in_hook.load(Ordering::SeqCst), "deleted before the hook had run");
    let left = other.get().await;
    assert!(left.value.is_none() && left.headers.contains("KV-Operation: DEL"), "{left:?}");
    let released = judge.heard("a", |what| matches!(what, What::Released { confirmed: true, .. })).await;
    assert!(released.boot < first.deadline() || first.deadline().as_nanos() == 0);
    // A candidate that was not there gets in at once, and knows the epoch by the mark alone.
    let start = boot_now();
    let c = judge.start(candidate(&url, "c")).await;
    let second = leads(&c).await;
    assert!(boot_now().since(start) < LEASE);
    assert_eq!(second.epoch().get(), first.epoch().get() + 1);
    judge.verdict();
}

#[tokio::test]
async fn stopping_without_release_leaves_the_key_until_it_runs_out() {
    let (server, url) = server().await;
    let judge = Judge::default();
    let a = judge.start(candidate(&url, "a").release_on_stop(false)).await;
    let first = leads(&a).await;
    let b = judge.start(candidate(&url, "b")).await;
    soon(b.wait_until(|status| status.leader.is_some())).await.unwrap();
    let end = first.deadline();
    soon(a.stop()).await.unwrap();
    assert!(!a.is_leader());
    assert!(
        Other::new(&server, "other").await.get().await.value.is_some(),
        "deleted although it was not to be"
    );
    let second = leads(&b).await;
    assert!(boot_now() > end && second.epoch() > first.epoch());
    judge.verdict();
}

#[tokio::test]
async fn an_unhealthy_leader_lets_go_and_does_not_stand_until_it_is_well() {
    let (_server, url) = server().await;
    let judge = Judge::default();
    let well = Arc::new(AtomicBool::new(true));
    let check = Arc::clone(&well);
    let builder = candidate(&url, "a").health(
        HealthCheck::every(Duration::from_millis(50)).timeout(LEASE).failures(2),
        move || {
            let well = check.load(Ordering::SeqCst);
            async move { well }
        },
    );
    let a = judge.start(builder).await;
    leads(&a).await;
    let b = judge.start(candidate(&url, "b")).await;
    well.store(false, Ordering::SeqCst);
    assert_eq!(judge.lost("a").await.1, Reason::Health);
    leads(&b).await;
    soon(b.stop()).await.unwrap();
    tokio::time::sleep(LEASE / 3).await;
    assert!(!a.is_leader(), "an unfit candidate stood");
    well.store(true, Ordering::SeqCst);
    leads(&a).await;
    assert_eq!(judge.verdict(), 3);
}

#[tokio::test]
async fn a_health_check_that_hangs_counts_as_failed() {
    let (_server, url) = server().await;
    let judge = Judge::default();
    let hangs = Arc::new(AtomicBool::new(false));
    let check = Arc::clone(&hangs);
    let builder = candidate(&url, "a").health(
        HealthCheck::every(Duration::from_millis(50)).timeout(Duration::from_millis(100)),
        move || {
            let hangs = check.load(Ordering::SeqCst);
            async move { if hangs { std::future::pending().await } else { true } }
        },
    );
    let a = judge.start(builder).await;
    leads(&a).await;
    hangs.store(true, Ordering::SeqCst);
    assert_eq!(judge.lost("a").await.1, Reason::Health);
}

#[tokio::test]
async fn a_higher_priority_is_handed_the_lead_only_if_it_asks_and_never_beside_the_other() {
    let (_server, url) = server().await;
    let judge = Judge::default();
    let low = judge.start(candidate(&url, "low").priority(1)).await;
    let first = leads(&low).await;
    let modest = judge.start(candidate(&url, "modest").priority(20)).await;
    soon(modest.wait_until(|status| status.leader.is_some())).await.unwrap();
    tokio::time::sleep(LEASE / 3).await;
    assert!(first.is_valid(), "nobody has asked");
    let high = judge.start(candidate(&url, "high").priority(10).preempt(true)).await;
    let second = leads(&high).await;
    assert_eq!(judge.lost("low").await.1, Reason::Preempted);
    assert!(second.epoch() > first.epoch());
    assert_eq!(judge.verdict(), 2, "the one that was handed over to leads, and nobody in between");
    let error = candidate(&url, "none")
        .priority(0)
        .preempt(true)
        .start()
        .await
        .err()
        .expect("priority 0 asks for nothing");
    assert!(error.to_string().contains("priority above 0"), "{error}");
}

#[tokio::test]
async fn roles_of_one_process_are_elections_of_their_own_on_one_connection() {
    let (server, url) = server().await;
    let store = |url: &str| {
        bellwether_election::Store::from(bellwether_nats::from_url(url, bellwether_support::clock()).unwrap())
    };
    let (one, two) = (store(&url), store(&url));
    let stand = |store: &bellwether_election::Store, role: &str, id: &str| {
        Election::builder(format!("leaders/{role}"))
            .backend(store.clone())
            .id(id)
            .options(crate::support::stage::options())
    };
    let mut led = Vec::new();
    for role in ["control", "report", "sweep"] {
        let first = stand(&one, role, "one").start().await.unwrap();
        leads(&first).await;
        led.push((first, stand(&two, role, "two").start().await.unwrap()));
    }
    soon(led[1].0.step_down()).await.unwrap();
    leads(&led[1].1).await;
    assert!(led[0].0.is_leader() && led[2].0.is_leader(), "one role's end is no other's");
    let status = led[0].0.status();
    assert!(
        status.last_success.is_some() && status.last_transition.is_some() && status.attempts >= 1,
        "{status:?}"
    );
    // One watch a process; the first of each, for fewer roles, are forgotten by the server after some seconds.
    until(|| async {
        let info = server.api(&format!("STREAM.INFO.KV_{LEADERS}"), serde_json::json!({})).await;
        if info["state"]["consumer_count"] == 2 { Ok(()) } else { Err(format!("not two watches: {info}")) }
    })
    .await;
    let listed = two.backend().elections().await.unwrap();
    assert_eq!(
        listed.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["leaders/control", "leaders/report", "leaders/sweep"]
    );
}
