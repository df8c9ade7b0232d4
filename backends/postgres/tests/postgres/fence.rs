//! `fence` fails closed: without an epoch, after a release, after a rollback to a savepoint, and against candidates without a lock.

use std::time::Duration;

use bellwether_backend::{Backend, Grade, Probing};
use bellwether_core::{Grant, Outcome};
use bellwether_deadman::boot_now;
use bellwether_postgres::{Config, DEFAULT_SCHEMA, FENCED, Postgres, Schema, from_url, init};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, Stopped, clock, until};
use tokio_postgres::{Client, Error};

use crate::support::{LOG_QUESTIONS, questions};

const TTL: Duration = Duration::from_secs(1);

async fn make(server: &Server) {
    let config = Config::from_url(&server.url()).unwrap();
    init(&config, &Schema::new(DEFAULT_SCHEMA).unwrap(), &[]).await.unwrap();
}

async fn with_tables() -> Server {
    let server = Server::start(TTL).await;
    make(&server).await;
    server
}

fn actor(server: &Server, id: &str, ttl: Duration) -> Actor<Postgres> {
    let url = format!("{}?schema={DEFAULT_SCHEMA}", server.url());
    Actor::new(from_url(&url, clock()).unwrap(), id, ttl)
}

async fn fence(client: &Client, grant: &Grant) -> Result<(), Error> {
    client.batch_execute(&format!("SELECT bellwether.fence('reports', {})", grant.epoch)).await
}

/// The SQLSTATE that it failed with.
fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.unwrap_err().code().expect("the server's word").code().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_no_epoch_and_no_election() {
    let server = with_tables().await;
    let a = actor(&server, "a", TTL);
    let grant = a.lead().await;
    let worker = server.admin().await;
    for values in ["'reports', NULL".to_owned(), format!("NULL, {}", grant.epoch), "NULL, NULL".to_owned()] {
        let called = worker.batch_execute(&format!("SELECT bellwether.fence({values})")).await;
        assert_eq!(code(called), FENCED, "{values}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_that_was_let_go_is_refused_though_a_fenced_transaction_is_still_open() {
    let server = with_tables().await;
    let a = actor(&server, "a", TTL);
    let grant = a.lead().await;
    let (open, early, late) = (server.admin().await, server.admin().await, server.admin().await);
    open.batch_execute("BEGIN").await.unwrap();
    fence(&open, &grant).await.unwrap();
    // Its snapshot is from before the release.
    early.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    a.let_go(&grant).await;
    assert_eq!(code(fence(&late, &grant).await), FENCED);
    assert_eq!(code(fence(&early, &grant).await), FENCED);
    // Also while the next leader has the lock and cannot write the row yet.
    let b = actor(&server, "b", TTL);
    b.denied().await;
    assert_eq!(code(fence(&late, &grant).await), FENCED);
    // What was fenced in time is written in time: nobody leads before.
    open.batch_execute("COMMIT").await.unwrap();
    let (next, _) = b.lead_within(5 * TTL).await;
    fence(&late, &next).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_died_passes_no_fence() {
    let server = with_tables().await;
    let a = actor(&server, "a", TTL);
    let grant = a.lead().await;
    let worker = server.admin().await;
    fence(&worker, &grant).await.unwrap();
    let ended = "SELECT pg_terminate_backend(session) FROM bellwether.elections";
    worker.batch_execute(ended).await.unwrap();
    let refused = until(|| async {
        let passed = fence(&worker, &grant).await;
        passed.err().ok_or("the lock is still held")
    });
    assert_eq!(code::<()>(Err(refused.await)), FENCED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_requires_the_fence_takes_nothing_from_who_rolled_it_back() {
    let server = with_tables().await;
    let (a, b) = (actor(&server, "a", TTL), actor(&server, "b", TTL));
    let first = a.lead().await;
    let worker = server.admin().await;
    let table = "CREATE TABLE work (line text); CREATE CONSTRAINT TRIGGER fenced AFTER INSERT OR UPDATE OR DELETE ON work \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION bellwether.require_fence('reports')";
    worker.batch_execute(table).await.unwrap();
    let write = |line: &str| format!("INSERT INTO work VALUES ('{line}')");
    // As it should be, also with savepoints after the fence.
    worker.batch_execute("BEGIN").await.unwrap();
    fence(&worker, &first).await.unwrap();
    let kept = format!("{}; SAVEPOINT s; {}; ROLLBACK TO s; COMMIT", write("good"), write("undone"));
    worker.batch_execute(&kept).await.unwrap();
    // Unfenced, and fenced in the transaction before.
    assert_eq!(code(worker.batch_execute(&write("unfenced")).await), FENCED);
    // Fenced, undone, and committed into the next leadership.
    worker.batch_execute("BEGIN; SAVEPOINT s").await.unwrap();
    fence(&worker, &first).await.unwrap();
    worker.batch_execute(&format!("ROLLBACK TO s; {}", write("stale"))).await.unwrap();
    a.let_go(&first).await;
    let (second, _) = b.lead_within(5 * TTL).await;
    assert_eq!(code(worker.batch_execute("COMMIT").await), FENCED);
    // What somebody sets by hand is checked as well.
    let forged = format!(
        "BEGIN; SET LOCAL bellwether.fenced = '{{\"reports\": {}}}'; {}; COMMIT",
        first.epoch,
        write("forged")
    );
    let forger = server.admin().await;
    assert_eq!(code(forger.batch_execute(&forged).await), FENCED);
    // And the next leader writes.
    let worker = server.admin().await;
    worker.batch_execute("BEGIN").await.unwrap();
    fence(&worker, &second).await.unwrap();
    worker.batch_execute(&format!("{}; COMMIT", write("good"))).await.unwrap();
    assert_eq!(server.number("SELECT count(*) FROM work WHERE line = 'good'").await, 2);
    assert_eq!(server.number("SELECT count(*) FROM work").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_lost_its_lock_leaves_the_row_to_its_successor() {
    let server = with_tables().await;
    let (c, d) = (actor(&server, "c", TTL), actor(&server, "d", TTL));
    c.backend.connect().await.unwrap();
    // c gets the lock, and its session of the tables does not get to the row.
    let of_c = "SELECT pid::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether%record'";
    let stopped = Stopped::process(server.number(of_c).await);
    let claiming = tokio::spawn(async move { (c.claim().await, c) });
    let holder = "SELECT coalesce(max(pid), 0)::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether/c lock %ms'";
    server.until(holder, |pid| pid != 0).await;
    let pid = server.number(holder).await;
    server.admin().await.batch_execute(&format!("SELECT pg_terminate_backend({pid})")).await.unwrap();
    let (grant, _) = d.lead_within(5 * TTL).await;
    drop(stopped);
    let (outcome, _c) = claiming.await.unwrap();
    assert!(!matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let row = server.number("SELECT epoch FROM bellwether.elections").await;
    assert_eq!(row as u64, grant.epoch.get(), "the row is the leader's");
    let worker = server.admin().await;
    fence(&worker, &grant).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_fenced_transaction_asks_a_few_times_a_second() {
    const TTL: Duration = Duration::from_secs(3);
    let server = Server::start_with(TTL, None, &[LOG_QUESTIONS]).await;
    make(&server).await;
    let a = actor(&server, "a", TTL);
    let grant = a.lead().await;
    let open = server.admin().await;
    open.batch_execute("BEGIN").await.unwrap();
    fence(&open, &grant).await.unwrap();
    a.let_go(&grant).await;
    drop(a);
    let url = format!("{}?schema={DEFAULT_SCHEMA}", server.url());
    let store = bellwether_election::Store::from(from_url(&url, clock()).unwrap());
    let b = bellwether_election::Election::builder("reports")
        .backend(store)
        .id("b")
        .ttl(TTL)
        .start()
        .await
        .unwrap();
    let intended = "SELECT count(*) FROM bellwether.intents";
    server.until(intended, |count| count > 0).await;
    // Past the first tries, which are quick.
    tokio::time::sleep(TTL / 2).await;
    let (before, from) = (questions(&server), boot_now());
    tokio::time::sleep(2 * TTL).await;
    let each_second = (questions(&server) - before) as f64 / boot_now().since(from).as_secs_f64();
    println!("{each_second:.1} questions a second");
    assert!(each_second < 8.0, "{each_second:.1} questions a second");
    assert!(!b.is_leader());
    open.batch_execute("COMMIT").await.unwrap();
    b.wait_for_leadership().await.unwrap();
    b.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_an_older_version_are_upgraded_in_place_and_said_to_be_old_until_then() {
    let server = with_tables().await;
    let a = actor(&server, "a", TTL);
    let grant = a.lead().await;
    a.let_go(&grant).await;
    let older = "DROP FUNCTION bellwether.require_fence(); DROP FUNCTION bellwether.fence(text, int8); \
         CREATE FUNCTION bellwether.fence(election text, epoch int8) RETURNS void LANGUAGE sql STRICT AS ''";
    server.admin().await.batch_execute(older).await.unwrap();
    let found = async || {
        let findings = actor(&server, "b", TTL).backend.checkup(Probing::Look).await;
        findings.into_iter().find(|finding| finding.what == "tables").expect("a finding about the tables")
    };
    let old = found().await;
    assert!(old.grade == Grade::Warning && old.sentence.contains("postgres init"), "{old:?}");
    make(&server).await;
    assert_eq!(found().await.grade, Grade::Good);
    let worker = server.admin().await;
    assert_eq!(code(worker.batch_execute("SELECT bellwether.fence('reports', NULL)").await), FENCED);
    let (next, _) = actor(&server, "a", TTL).lead_within(5 * TTL).await;
    assert!(next.epoch > grant.epoch, "what was there is kept");
}
