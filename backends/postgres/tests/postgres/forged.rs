//! Any role that may connect can send any notice and take any lock: that neither deposes a leader nor spoils an epoch, and
//! keeps nobody out for longer than the lock itself is held.

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{CandidateId, Outcome, ReleaseOptions, Signal, Timing};
use bellwether_deadman::boot_now;
use bellwether_postgres::{Config, DEFAULT_SCHEMA, Keys, Schema, init};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Child, election, role};
use tokio_postgres::{Client, NoTls};

use crate::support::diary::Diary;
use crate::support::{LOG_QUESTIONS, actor, questions};

const TTL: Duration = Duration::from_secs(3);
const HIGHEST_EPOCH: u64 = (1 << 53) - 1;

/// A role that may connect and nothing else.
async fn stranger(server: &Server) -> Client {
    let made = "DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$";
    server.admin().await.batch_execute(made).await.unwrap();
    let url = format!("postgres://stranger@127.0.0.1:{}/postgres", server.port);
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn keys() -> Keys {
    Keys::of(&election("reports"))
}

/// Sends a notice about the election `reports`.
async fn forge(stranger: &Client, kind: &str, rest: &str) {
    forge_together(stranger, &[(kind, rest)]).await;
}

/// Sends several, which arrive together.
async fn forge_together(stranger: &Client, notices: &[(&str, &str)]) {
    let Keys(one, two) = keys();
    let notify = |(kind, rest): &(&str, &str)| {
        let payload = format!("{kind} {one} {two} {rest}");
        format!("NOTIFY bellwether, '{}'", payload.trim_end())
    };
    let sql = notices.iter().map(notify).collect::<Vec<_>>().join("; ");
    stranger.batch_execute(&sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_claim_deposes_nobody_and_raises_no_floor() {
    let server = Server::start(TTL).await;
    init(&Config::from_url(&server.url()).unwrap(), &Schema::new(DEFAULT_SCHEMA).unwrap(), &[])
        .await
        .unwrap();
    let stranger = stranger(&server).await;
    let pid: i32 = stranger.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    for url in [server.url(), format!("{}?schema={DEFAULT_SCHEMA}", server.url())] {
        let mut a = Diary::start(&url, "a", TTL, |builder| builder).await;
        a.until("acquired").await;
        let mut b = Diary::start(&url, "b", TTL, |builder| builder).await;
        b.until("acquire_failed").await;
        for process in [1, pid] {
            forge(&stranger, "claim", &format!("{process} evil {HIGHEST_EPOCH}")).await;
        }
        // What is sent later is heard later; and a request that names the epoch is obeyed, whoever sends it.
        let epoch = a.election.epoch().expect("a leads");
        forge(&stranger, "ask", &format!("{epoch} step-down b")).await;
        assert_eq!(a.until("lost").await.last().unwrap(), "lost admin");
        b.until("acquired").await;
        let next = b.election.epoch().expect("b leads");
        assert!(next > epoch && next.get() < HIGHEST_EPOCH >> 2, "{next}");
        b.election.stop().await.unwrap();
        a.until("acquired").await;
        a.election.stop().await.unwrap();
    }
    let written = server.number("SELECT max(epoch) FROM bellwether.elections").await;
    assert!(written < (HIGHEST_EPOCH >> 2) as i64, "{written}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_that_the_server_has_not_issued_is_nobody_s_whoever_has_the_lock() {
    let server = Server::start(TTL).await;
    let stranger = stranger(&server).await;
    let a = actor(&server.url(), "a", TTL);
    // The mark of an epoch of this server, to be copied.
    let grant = a.lead().await;
    let mark: i64 = server
        .number("SELECT classid::int8 << 32 | objid::int8 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1")
        .await;
    a.let_go(&grant).await;
    let Keys(one, two) = keys();
    let highest = mark | ((1 << 40) - 1);
    let sql = format!("SELECT pg_advisory_lock({one}, {two}), pg_advisory_lock({highest})");
    stranger.batch_execute(&sql).await.unwrap();
    assert_eq!(a.denied().await.epoch, None);
    assert_eq!(a.seen().await.epoch, None);
    let mut b = Diary::start(&server.url(), "b", TTL, |builder| builder).await;
    b.until("acquire_failed").await;
    drop(stranger);
    b.until("acquired").await;
    let next = b.election.epoch().expect("b leads");
    assert!(next > grant.epoch && next.get() < grant.epoch.get() + 1_000, "{next} after {}", grant.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_reservations_keep_nobody_out() {
    let server = Server::start(TTL).await;
    let stranger = stranger(&server).await;
    let b = actor(&server.url(), "b", TTL);
    // Whoever leads is still seen to lead.
    let a = actor(&server.url(), "a", TTL);
    let grant = a.lead().await;
    let mut news = b.news();
    b.denied().await;
    forge(&stranger, "reserve", "9007199254740991 nobody").await;
    forge(&stranger, "claim", "1 evil 1").await;
    news.until(|signal| matches!(signal, Signal::Changed(_))).await;
    let seen = b.denied().await;
    assert_eq!(seen.holder.map(|holder| holder.id), Some(a.bid.who.id.clone()), "what the server shows");
    a.let_go(&grant).await;
    // Again and again, for as long as it takes; and as if it had been used each time.
    let forging = async {
        loop {
            let notices = [("claim", "1 nobody 1"), ("reserve", "9007199254740991 nobody")];
            forge_together(&stranger, &notices).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        (grant, _) = b.lead_within(10 * TTL) => b.let_go(&grant).await,
        () = forging => unreachable!("it never ends"),
    }
    // A leader's own reservation still counts, for as long as any may.
    let grant = a.lead_within(10 * TTL).await.0;
    b.denied().await;
    let from = boot_now();
    let how = ReleaseOptions { reserve_for: Some(CandidateId::new("named").unwrap()), cooldown: None };
    let released = a.backend.release(&a.on, &grant, &how).await;
    assert!(matches!(released, Outcome::Done(())), "{released:?}");
    let (_, at) = b.lead_within(10 * TTL).await;
    assert!(at.since(from) >= Timing::reservation(TTL), "{:?}", at.since(from));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_had_the_lock_keeps_nobody_out_afterwards_by_the_ttl_that_it_named() {
    let server = Server::start(TTL).await;
    let stranger = stranger(&server).await;
    // All that a leader shows.
    let (Keys(one, two), Keys(three, four)) = (keys(), keys().presence());
    let second = i32::from_be_bytes(*b"BWLB");
    let leads = format!(
        "SET application_name = 'bellwether/x lock 99999999999999ms'; SELECT pg_try_advisory_lock({one}, {two}), \
         pg_try_advisory_lock_shared({three}, {four}), pg_try_advisory_lock_shared({second}, pg_backend_pid())"
    );
    stranger.batch_execute(&leads).await.unwrap();
    let b = actor(&server.url(), "b", TTL);
    b.denied().await;
    drop(stranger);
    b.lead_within(10 * TTL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_release_does_not_hide_a_crash() {
    if let Some(url) = role() {
        let a = actor(&url, "a", TTL);
        a.lead_within(2 * TTL).await;
        println!("leading");
        return std::future::pending().await;
    }
    let server = Server::start(TTL).await;
    let stranger = stranger(&server).await;
    let mut leader = Child::start("forged::a_forged_release_does_not_hide_a_crash", &server.url());
    leader.wait_for("leading");
    let b = actor(&server.url(), "b", TTL);
    let mut news = b.news();
    b.denied().await;
    forge(&stranger, "release", "").await;
    news.until(|signal| matches!(signal, Signal::Changed(_))).await;
    leader.kill();
    let (grant, _) = b.lead_within(2 * TTL).await;
    assert!(grant.after_crash, "nobody let go, whatever a stranger said");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_notices_is_a_trickle_of_questions() {
    const NOTICES: usize = 2_000;
    let server = Server::start_with(TTL, None, &[LOG_QUESTIONS]).await;
    let stranger = stranger(&server).await;
    let mut a = Diary::start(&server.url(), "a", TTL, |builder| builder).await;
    a.until("acquired").await;
    let mut b = Diary::start(&server.url(), "b", TTL, |builder| builder).await;
    b.until("acquire_failed").await;
    let before = questions(&server);
    for _ in 0..NOTICES {
        forge(&stranger, "release", "").await;
    }
    // What comes last is heard last.
    let epoch = a.election.epoch().expect("a leads");
    forge(&stranger, "ask", &format!("{epoch} step-down b")).await;
    assert_eq!(a.until("lost").await.last().unwrap(), "lost admin");
    b.until("acquired").await;
    let asked = questions(&server) - before;
    println!("{asked} questions because of {NOTICES} notices");
    assert!(asked < NOTICES / 4, "{asked} questions because of {NOTICES} notices");
}
