//! Elections with tables: what fences, what is kept, and who may.

use std::time::Duration;

use bellwether_backend::{Backend, HISTORY_MAX, Past};
use bellwether_core::{Epoch, ErrorKind, Grant, Outcome, Proof, Wall};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Store};
use bellwether_postgres::{Config, DEFAULT_SCHEMA, FENCED, Postgres, Schema, from_url, init};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, clock, election};
use tokio_postgres::{Client, Error};

const TTL: Duration = Duration::from_secs(1);

/// A server with tables for these roles.
async fn with_tables(roles: &[&str]) -> Server {
    let server = Server::start(TTL).await;
    for role in roles {
        server.admin().await.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    }
    make(&server, DEFAULT_SCHEMA, roles).await;
    server
}

async fn make(server: &Server, schema: &str, roles: &[&str]) {
    let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
    let schema = Schema::new(schema).unwrap();
    init(&Config::from_url(&server.url()).unwrap(), &schema, &roles).await.unwrap();
}

fn actor(server: &Server, id: &str) -> Actor<Postgres> {
    on(&format!("{}?schema={DEFAULT_SCHEMA}", server.url()), id)
}

fn on(url: &str, id: &str) -> Actor<Postgres> {
    Actor::new(from_url(url, clock()).unwrap(), id, TTL)
}

async fn fence(client: &Client, name: &str, grant: &Grant) -> Result<(), Error> {
    let epoch = i64::try_from(grant.epoch.get()).unwrap();
    client.query("SELECT bellwether.fence($1, $2)", &[&name, &epoch]).await.map(drop)
}

/// The SQLSTATE that it failed with.
fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.unwrap_err().code().expect("the server's word").code().to_owned()
}

async fn work(server: &Server) -> Client {
    let client = server.admin().await;
    client.batch_execute("CREATE TABLE IF NOT EXISTS work (line text)").await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_transaction_is_refused_even_if_it_began_before_the_takeover() {
    let server = with_tables(&[]).await;
    let (a, b) = (actor(&server, "a"), actor(&server, "b"));
    let first = a.lead().await;
    let worker = work(&server).await;
    // One as it should be.
    worker.batch_execute("BEGIN").await.unwrap();
    fence(&worker, "reports", &first).await.unwrap();
    worker.batch_execute("INSERT INTO work VALUES ('good'); COMMIT").await.unwrap();
    // Begun under the old epoch, in each isolation, and fenced after the takeover.
    let mut begun = Vec::new();
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let worker = server.admin().await;
        worker.batch_execute(&format!("BEGIN ISOLATION LEVEL {isolation}")).await.unwrap();
        worker.batch_execute("INSERT INTO work VALUES ('stale')").await.unwrap();
        begun.push(worker);
    }
    a.let_go(&first).await;
    let second = b.lead().await;
    assert!(second.epoch > first.epoch);
    for worker in &begun {
        let code = code(fence(worker, "reports", &first).await);
        // A snapshot from before the takeover cannot even lock the row.
        assert!(code == FENCED || code == "40001", "{code}");
        worker.batch_execute("COMMIT").await.unwrap();
    }
    assert_eq!(server.number("SELECT count(*) FROM work").await, 1, "only what was fenced in time is there");
    fence(&worker, "reports", &second).await.unwrap();
    // Neither what was let go nor what never was.
    b.let_go(&second).await;
    assert_eq!(code(fence(&worker, "reports", &second).await), FENCED);
    assert_eq!(code(fence(&worker, "nothing", &second).await), FENCED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_leads_before_the_last_fenced_transaction_has_ended_and_no_new_one_gets_in() {
    let server = with_tables(&[]).await;
    let (a, b) = (actor(&server, "a"), actor(&server, "b"));
    let first = a.lead().await;
    let (open, late) = (work(&server).await, work(&server).await);
    open.batch_execute("BEGIN").await.unwrap();
    fence(&open, "reports", &first).await.unwrap();
    open.batch_execute("INSERT INTO work VALUES ('in time')").await.unwrap();
    a.let_go(&first).await;
    // A claim ends in bounded time, and is no lead.
    let asked = boot_now();
    for _ in 0..3 {
        b.denied().await;
    }
    assert!(boot_now().since(asked) < 5 * TTL, "a claim hangs on a user's transaction");
    // Not even by its own former leader, and not for want of a row: what is intended counts.
    assert_eq!(code(fence(&late, "reports", &first).await), FENCED);
    open.batch_execute("COMMIT").await.unwrap();
    let committed = boot_now();
    let (second, at) = b.lead_within(2 * TTL).await;
    assert!(at > committed && second.epoch > first.epoch);
    fence(&late, "reports", &second).await.unwrap();
    assert_eq!(server.number("SELECT count(*) FROM work").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_go_up_over_a_restart_a_crash_and_from_one_mode_to_the_other() {
    let mut server = with_tables(&[]).await;
    let mut last = Epoch::ZERO;
    for signal in ["INT", "QUIT"] {
        let with = actor(&server, "a");
        let (grant, _) = with.lead_within(4 * TTL).await;
        assert!(grant.epoch > last, "{:?} after {last:?}", grant.epoch);
        with.let_go(&grant).await;
        let without = on(&server.url(), "a");
        let (plain, _) = without.lead_within(4 * TTL).await;
        assert!(plain.epoch > grant.epoch, "{:?} after {:?}", plain.epoch, grant.epoch);
        without.let_go(&plain).await;
        last = plain.epoch;
        drop((with, without));
        server.down(signal);
        server.up().await;
    }
    // A row that is ahead of the server's counter, as after a restore: above it all the same.
    let far = last.get() + 1_000_000;
    server
        .admin()
        .await
        .batch_execute(&format!("UPDATE bellwether.elections SET epoch = {far}"))
        .await
        .unwrap();
    let (grant, _) = actor(&server, "a").lead_within(4 * TTL).await;
    assert_eq!(grant.epoch.get(), far + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_hundred_leaderships_are_kept_and_a_row_tells_of_its_leader() {
    let server = with_tables(&[]).await;
    let (mut a, b) = (actor(&server, "a"), actor(&server, "b"));
    a.bid.metadata.insert("zero".to_owned(), "\0 and \u{1F411} \"".to_owned());
    a.bid.priority = -4;
    let mut epochs = Vec::new();
    for _ in 0..HISTORY_MAX + 7 {
        let grant = a.lead().await;
        let mut past = Past {
            epoch: grant.epoch,
            id: a.bid.who.id.clone(),
            incarnation: Some(grant.incarnation),
            since: Wall::from_unix_nanos(1_700_000_000_000_000_000),
            until: None,
            ended: None,
        };
        a.backend.remember(&a.on, &past).await.unwrap();
        a.let_go(&grant).await;
        past.until = Some(past.since);
        past.ended = Some("released".to_owned());
        a.backend.remember(&a.on, &past).await.unwrap();
        epochs.push(grant.epoch);
    }
    let kept = b.backend.history(&b.on).await.unwrap();
    let kept: Vec<_> = kept.iter().map(|past| (past.epoch, past.ended.as_deref())).collect();
    let expected: Vec<_> = epochs[7..].iter().map(|epoch| (*epoch, Some("released"))).collect();
    assert_eq!(kept, expected);
    assert!(server.number("SELECT count(*) FROM bellwether.history").await <= HISTORY_MAX as i64 + 1);
    let grant = a.lead().await;
    let seen = b.seen().await;
    assert_eq!((seen.epoch, seen.priority, seen.proof), (Some(grant.epoch), Some(-4), Proof::Alive));
    assert_eq!(seen.metadata["zero"], "\u{fffd} and \u{1F411} \"");
    assert!(seen.acquired.is_some() && seen.is_held_by(&a.bid.who));
    // Heartbeats write nothing there.
    let writes =
        "SELECT sum(n_tup_upd + n_tup_ins)::int8 FROM pg_stat_user_tables WHERE schemaname = 'bellwether'";
    let settled = async || {
        // The statistics come a moment late: until two looks agree.
        let mut before = -1;
        for _ in 0..20 {
            let now = server.number(writes).await;
            if now == before {
                return now;
            }
            before = now;
            for _ in 0..7 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                a.keep(&grant).await;
            }
        }
        panic!("somebody goes on writing: {before} by now");
    };
    let before = settled().await;
    for _ in 0..50 {
        a.keep(&grant).await;
    }
    assert_eq!(settled().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_need_what_init_grants_and_a_worker_needs_no_more_than_the_schema() {
    let server = with_tables(&["candidate"]).await;
    let admin = server.admin().await;
    admin.batch_execute("CREATE ROLE stranger LOGIN; CREATE ROLE worker LOGIN").await.unwrap();
    admin.batch_execute("GRANT USAGE ON SCHEMA bellwether TO worker").await.unwrap();
    let url = |role: &str| format!("postgres://{role}@127.0.0.1:{}/postgres?schema=bellwether", server.port);
    let candidate = on(&url("candidate"), "a");
    let grant = candidate.lead().await;
    candidate.keep(&grant).await;
    for role in ["stranger", "worker"] {
        match on(&url(role), "b").claim().await {
            Outcome::Refused(error) => {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                assert!(error.to_string().contains("--grant"), "{error}");
            }
            other => panic!("{role}: {other:?}"),
        }
    }
    let sql = format!("SET ROLE worker; SELECT bellwether.fence('reports', {})", grant.epoch);
    server.admin().await.batch_execute(&sql).await.unwrap();
    let refused = server.admin().await.batch_execute(&sql.replace("worker", "stranger")).await;
    assert_eq!(code(refused), "42501");
    let forged = "SET ROLE worker; UPDATE bellwether.elections SET epoch = epoch + 1";
    assert_eq!(code(server.admin().await.batch_execute(forged).await), "42501");
    candidate.let_go(&grant).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_made_as_often_as_one_likes_and_missing_or_other_ones_are_refused() {
    let server = Server::start(TTL).await;
    let refused = async |url: &str, part: &str| match on(url, "a").claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        other => panic!("{other:?}"),
    };
    let url = format!("{}?schema=Team-7", server.url());
    refused(&url, "bellwether postgres init").await;
    // Also many at once.
    futures_util::future::join_all((0..6).map(|_| make(&server, "Team-7", &[]))).await;
    let mut a = on(&url, "a");
    a.on = election("it's \"odd\"; DROP SCHEMA \u{1F411} \\ %s $1");
    let grant = a.lead().await;
    make(&server, "Team-7", &[]).await;
    a.keep(&grant).await;
    assert_eq!(a.backend.elections().await.unwrap(), [a.on.clone()]);
    assert_eq!(a.seen().await.epoch, Some(grant.epoch));
    let epoch = i64::try_from(grant.epoch.get()).unwrap();
    let admin = server.admin().await;
    admin.query("SELECT \"Team-7\".fence($1, $2)", &[&a.on.as_str(), &epoch]).await.unwrap();
    admin.batch_execute("UPDATE \"Team-7\".version SET version = 2").await.unwrap();
    refused(&url, "version 2").await;
    let schema = Schema::new("Team-7").unwrap();
    let error = init(&Config::from_url(&server.url()).unwrap(), &schema, &[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn room_is_made_for_a_higher_priority() {
    let server = with_tables(&[]).await;
    let url = format!("{}?schema={DEFAULT_SCHEMA}", server.url());
    let candidate = async |id: &str, priority: i32| {
        let store = Store::from(from_url(&url, clock()).unwrap());
        let builder =
            Election::builder("reports").backend(store).id(id).ttl(TTL).priority(priority).preempt(true);
        builder.start().await.unwrap()
    };
    let low = candidate("low", 1).await;
    let first = low.wait_for_leadership().await.unwrap();
    let high = candidate("high", 2).await;
    let second = high.wait_for_leadership().await.unwrap();
    assert!(second.epoch() > first.epoch() && !low.is_leader());
    low.stop().await.unwrap();
    high.stop().await.unwrap();
}
