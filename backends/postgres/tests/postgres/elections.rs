//! Whole elections on a real server: how long handover and failover take, and that many share one heartbeat.

use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_election::{Election, Store};
use bellwether_postgres::from_url;
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Child, clock, role};

use crate::support::{PARKED, actor};

const TTL: Duration = Duration::from_secs(3);

fn store(url: &str) -> Store {
    Store::from(from_url(url, clock()).unwrap())
}

async fn candidate(url: &str, id: &str) -> Election {
    Election::builder("reports").backend(store(url)).id(id).ttl(TTL).start().await.unwrap()
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_lead_is_handed_over_in_milliseconds() {
    let server = Server::start(TTL).await;
    let (mut handovers, mut epoch) = (Vec::new(), 0);
    for _ in 0..15 {
        let a = candidate(&server.url(), "a").await;
        let first = a.wait_for_leadership().await.unwrap();
        let b = candidate(&server.url(), "b").await;
        b.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "a")).await.unwrap();
        // Its third session is open, and does not compete with what is measured.
        server.until(PARKED, |parked| parked == 1).await;
        let released = boot_now();
        let leads = async {
            let second = b.wait_for_leadership().await.unwrap();
            (second, boot_now())
        };
        let (stopped, (second, at)) = tokio::join!(a.stop(), leads);
        stopped.unwrap();
        handovers.push(at.since(released));
        assert!(first.epoch().get() > epoch && second.epoch() > first.epoch());
        epoch = second.epoch().get();
        b.stop().await.unwrap();
    }
    let median = median(handovers);
    println!("handover, from stop() to the next leadership: {median:?}");
    assert!(median < Duration::from_millis(100), "{median:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_take_a_moment() {
    let server = Server::start(TTL).await;
    let (a, b) = (actor(&server.url(), "a", TTL), actor(&server.url(), "b", TTL));
    let (mut claims, mut denials, mut renewals, mut releases) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..100 {
        let start = boot_now();
        let grant = a.lead().await;
        let claimed = boot_now();
        b.denied().await;
        let denied = boot_now();
        a.keep(&grant).await;
        let renewed = boot_now();
        a.let_go(&grant).await;
        releases.push(boot_now().since(renewed));
        claims.push(claimed.since(start));
        denials.push(denied.since(claimed));
        renewals.push(renewed.since(denied));
    }
    for (what, all) in [("claim", claims), ("denial", denials), ("renewal", renewals), ("release", releases)]
    {
        println!("{what}, median: {:?}", median(all));
    }
}

/// From kill -9 to the next leadership, so many times.
async fn failovers(server: &Server, url: &str, name: &str, times: usize) -> Vec<Duration> {
    let watches = i64::from(!url.contains("watch=off"));
    let mut failovers = Vec::new();
    for _ in 0..times {
        let mut child = Child::start(name, url);
        child.wait_for("leading");
        let b = candidate(url, "b").await;
        b.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "a")).await.unwrap();
        server.until(PARKED, |parked| parked == watches).await;
        let killed = boot_now();
        child.kill();
        b.wait_for_leadership().await.unwrap();
        failovers.push(boot_now().since(killed));
        b.stop().await.unwrap();
    }
    failovers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_is_replaced_in_milliseconds() {
    const NAME: &str = "elections::a_killed_leader_is_replaced_in_milliseconds";
    if let Some(url) = role() {
        let a = candidate(&url, "a").await;
        let _leadership = a.wait_for_leadership().await.unwrap();
        println!("leading");
        return std::future::pending().await;
    }
    let server = Server::start(TTL).await;
    let watched = median(failovers(&server, &server.url(), NAME, 9).await);
    println!("failover, from kill -9 to the next leadership (20 ms of it settle): {watched:?}");
    assert!(watched < Duration::from_millis(300), "{watched:?}");
    // Without the parked session the next retry has to find out: every 2/15 of the ttl.
    let unwatched = median(failovers(&server, &format!("{}?watch=off", server.url()), NAME, 5).await);
    println!("the same with watch=off: {unwatched:?}");
    assert!(unwatched < TTL / 2, "{unwatched:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_elections_share_two_sessions_and_their_heartbeats() {
    const MANY: usize = 200;
    let server = Server::start_with(TTL, None, &["log_statement=all"]).await;
    let shared = store(&server.url());
    let mut all = Vec::new();
    let renew = TTL / 3;
    // At instants all over a renewal interval: each would renew at a different one.
    for number in 0..MANY {
        let election = Election::builder(format!("job-{number}")).backend(shared.clone()).id("a").ttl(TTL);
        all.push(election.start().await.unwrap());
        if number % (MANY / 10) == 0 {
            tokio::time::sleep(renew / 8).await;
        }
    }
    for election in &all {
        election.wait_for_leadership().await.unwrap();
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'bellwether%'";
    assert_eq!(server.number(sessions).await, 2);
    let epochs: Vec<_> = all.iter().map(|election| election.epoch()).collect();
    // By then they have fallen into step.
    tokio::time::sleep(2 * renew).await;
    let statements = || {
        let log = std::fs::read_to_string(server.dir().join("log")).unwrap();
        log.lines().filter(|line| line.contains("pg_is_in_recovery") && line.contains("array_agg")).count()
    };
    let (before, start) = (statements(), boot_now());
    tokio::time::sleep(2 * TTL).await;
    let intervals = boot_now().since(start).as_secs_f64() / renew.as_secs_f64();
    let each = (statements() - before) as f64 / intervals;
    println!("statements for each renewal interval of {MANY} elections: {each:.2}");
    assert!(each > 1.0, "nothing was renewed");
    assert!(
        each < 5.0,
        "{each:.2} statements for each interval: they do not share one heartbeat on each session"
    );
    assert!(all.iter().all(Election::is_leader), "a heartbeat for all must do");
    assert_eq!(
        epochs,
        all.iter().map(|election| election.epoch()).collect::<Vec<_>>(),
        "nobody lost it meanwhile"
    );
    for election in &all {
        election.stop().await.unwrap();
    }
    // All but what says whose second session it is.
    let present = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' \
                   AND classid::int8 <> 1113017410";
    assert_eq!(server.number(present).await, 0);
}
