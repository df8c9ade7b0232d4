//! Elections on PostgreSQL, on servers of its own: against the raw statements in the same run, a thousand at once, and beside other makes.
//! With the name of a measure as an argument, that one alone.

mod beside;
mod raw;

use std::time::Duration;

use bellwether::{Election, Store, boot_now};
use bellwether_benches::peers::ours::Asked;
use bellwether_benches::{Hops, Stamped, Stamping, Stamps, cpu_time, judged, median, report, resident_bytes};
use bellwether_postgres::from_url;
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, Child, clock, role};
use futures_util::future::try_join_all;

use crate::raw::{RawClaims, RawPair};

const TTL: Duration = Duration::from_secs(3);
const MANY: usize = 1_000;
const CLAIMS: usize = 300;
const HANDOVERS: usize = 30;
const FAILOVERS: usize = 15;
const STEADY: Duration = Duration::from_secs(12);

/// The measures, in their order.
const ALL: [&str; 7] = ["memory", "steady", "acquire", "handover", "failovers", "beside", "growth"];

#[tokio::main]
async fn main() {
    if let Some(role) = role() {
        let (url, count) = role.split_once('\n').expect("a URL and a number");
        let all = lead(url, "a", count.parse().expect("a number")).await;
        println!("leading {} {}", all.len(), resident_bytes());
        return std::future::pending().await;
    }
    if let Some(asked) = Asked::of_arguments() {
        return asked.run(|url| Store::from(from_url(url, clock()).expect("a URL"))).await;
    }
    let server = Server::start(TTL).await;
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for name in if only.is_empty() { ALL.map(str::to_owned).to_vec() } else { only } {
        measure(&name, &server).await;
    }
}

async fn measure(name: &str, server: &Server) {
    match name {
        "memory" => memory(server),
        "steady" => steady().await,
        "acquire" => acquire(server).await,
        "handover" => handover(server).await,
        "failovers" => {
            for (count, rounds, limit) in [(1, FAILOVERS, 40), (MANY, 3, 100)] {
                let took = median(failovers(server, count, rounds).await);
                let what = format!("kill -9 to leading all of {count}, median of {rounds} (20 ms settle)");
                judged(&what, took, Duration::from_millis(limit));
            }
        }
        "beside" => beside::beside().await,
        "growth" => beside::growth().await,
        other => panic!("there is no measure `{other}`; there are: {}", ALL.join(", ")),
    }
}

/// Candidates in so many elections, on one store, without waiting for anything.
async fn stand(url: &str, id: &str, count: usize) -> Vec<Election> {
    stand_on(&Store::from(from_url(url, clock()).expect("a URL")), id, count).await
}

async fn stand_on(store: &Store, id: &str, count: usize) -> Vec<Election> {
    let start =
        |number| Election::builder(format!("job-{number}")).backend(store.clone()).id(id).ttl(TTL).start();
    try_join_all((0..count).map(start)).await.expect("a start")
}

async fn lead(url: &str, id: &str, count: usize) -> Vec<Election> {
    let all = stand(url, id, count).await;
    leading(&all).await;
    all
}

async fn leading(all: &[Election]) {
    for election in all {
        election.wait_for_leadership().await.expect("a leadership");
    }
}

/// Until they know the leader, and a moment more for the session that waits for its end.
async fn following(all: &[Election]) {
    for election in all {
        let led = election.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "a"));
        led.await.expect("a leader");
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// What an election takes, by two fresh processes that lead few and many.
fn memory(server: &Server) {
    let of = |count: usize| {
        let mut child = Child::start("bench", &format!("{}\n{count}", server.url()));
        let said = child.wait_for("leading");
        said.split(' ').nth(2).and_then(|bytes| bytes.trim().parse::<u64>().ok()).expect("a number of bytes")
    };
    let (few, many) = (of(1), of(MANY));
    let each = many.saturating_sub(few) as f64 / (MANY - 1) as f64 / 1_024.0;
    report(
        &format!("memory, each of {MANY}"),
        &format!("{each:.1} KiB"),
        &format!("a process with one: {:.1} MiB", few as f64 / 1_048_576.0),
    );
}

/// An uncontended claim against the raw statement, in turn on the same server.
async fn acquire(server: &Server) {
    let raw = RawClaims::start(server).await;
    let actor = Actor::new(from_url(&server.url(), clock()).expect("a URL"), "a", TTL);
    let (mut claims, mut raws) = (Vec::new(), Vec::new());
    for _ in 0..CLAIMS {
        let start = boot_now();
        let grant = actor.lead().await;
        claims.push(boot_now().since(start));
        actor.let_go(&grant).await;
        raws.push(raw.claim().await);
    }
    let (claim, raw) = (median(claims), median(raws));
    report(&format!("acquire, uncontended, median of {CLAIMS}"), &format!("{claim:.1?}"), "");
    report("raw lock and flush, median", &format!("{raw:.1?}"), "");
    let ratio = claim.as_secs_f64() / raw.as_secs_f64();
    let verdict = if ratio <= 2.0 { "ok" } else { "MISSED" };
    report("acquire, ratio to the raw statement", &format!("{ratio:.2}"), &format!("at most 2: {verdict}"));
}

async fn handover(server: &Server) {
    let (mut hops, mut raw) = (Hops::default(), RawPair::start(server).await);
    for _ in 0..HANDOVERS {
        let a = stamping(server, "a").await;
        leading(std::slice::from_ref(&a.election)).await;
        let b = stamping(server, "b").await;
        following(std::slice::from_ref(&b.election)).await;
        hops.hand_over(&a, &b).await;
        b.election.stop().await.expect("a release");
        // In the same rhythm: a disk that has rested flushes slower.
        tokio::time::sleep(Duration::from_millis(300)).await;
        hops.note_raw(raw.handover().await);
    }
    hops.report("", Duration::from_millis(3));
}

/// A candidate of its own on a store of its own, whose calls are noted.
async fn stamping(server: &Server, id: &str) -> Stamping {
    let (inner, stamps) = (from_url(&server.url(), clock()).expect("a URL"), Stamps::default());
    let store = Store::from(Stamped { inner, stamps: stamps.clone() });
    let mut all = stand_on(&store, id, 1).await;
    Stamping { election: all.pop().expect("a candidate"), stamps }
}

async fn failovers(server: &Server, count: usize, rounds: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..rounds {
        let mut child = Child::start("bench", &format!("{}\n{count}", server.url()));
        child.wait_for("leading");
        let all = stand(&server.url(), "b", count).await;
        following(&all).await;
        let killed = boot_now();
        child.kill();
        leading(&all).await;
        took.push(boot_now().since(killed));
        try_join_all(all.iter().map(Election::stop)).await.expect("releases");
    }
    took
}

/// What a thousand elections cost while nothing happens, and how many statements that takes, by the server's own log.
async fn steady() {
    let server = Server::start_with(TTL, None, &["log_statement=all"]).await;
    let begin = boot_now();
    let all = lead(&server.url(), "a", MANY).await;
    report(&format!("start to leading all of {MANY}"), &format!("{:.1?}", boot_now().since(begin)), "");
    let statements = || {
        let log = std::fs::read_to_string(server.dir().join("log")).expect("the server's log");
        log.lines().filter(|line| line.contains("LOG:  execute") || line.contains("LOG:  statement")).count()
    };
    let (before, cpu, start) = (statements(), cpu_time(), boot_now());
    tokio::time::sleep(STEADY).await;
    let (span, cpu) = (boot_now().since(start), cpu_time().saturating_sub(cpu));
    let renew = all[0].settings().timing().renew();
    let each = (statements() - before) as f64 / (span.as_secs_f64() / renew.as_secs_f64());
    let verdict = if each <= 2.5 { "ok" } else { "MISSED" };
    report(
        &format!("statements per renew interval ({renew:?}), all {MANY} together"),
        &format!("{each:.1}"),
        &format!("one on each of two sessions: {verdict}"),
    );
    assert!(all.iter().all(Election::is_leader), "some were lost");
    let share = cpu.as_secs_f64() / span.as_secs_f64() * 100.0;
    report(&format!("processor, all, steady, ttl {TTL:?}"), &format!("{share:.2} %"), "of one core");
}
