//! Ways to a server, and what each role and server is fit for.

use std::time::Duration;

use bellwether_backend::{Backend, Grade};
use bellwether_core::{CandidateId, ErrorKind, Outcome, Signal};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Store};
use bellwether_postgres::from_url;
use bellwether_support::servers::postgres::Server;
use bellwether_support::{PATIENCE, clock, election};

use crate::support::actor;

const TTL: Duration = Duration::from_secs(1);
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'bellwether%'";

async fn sql(server: &Server, text: &str) {
    server.admin().await.batch_execute(text).await.unwrap();
}

/// As that role, which has no password.
fn by(server: &Server, role: &str) -> String {
    format!("postgres://{role}@127.0.0.1:{}/postgres", server.port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_told_without_saying_it_and_the_right_one_lets_in() {
    let server = Server::start(TTL).await;
    sql(
        &server,
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE secret LOGIN PASSWORD 'open sesame'",
    )
    .await;
    server.write(
        "data/pg_hba.conf",
        "local all all trust\nhost all secret 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n",
    );
    server.set("log_connections", "on").await;
    let url = |password: &str| format!("postgres://secret{password}@127.0.0.1:{}/postgres", server.port);
    match actor(&url(":close%20sesame"), "a", TTL).claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            assert!(!format!("{error} {error:?}").contains("sesame"), "{error}");
            let own_words = "password authentication failed for user \"secret\"";
            assert!(error.to_string().contains(own_words), "{error}");
        }
        other => panic!("{other:?}"),
    }
    match actor(&url(""), "a", TTL).claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            assert!(error.to_string().contains("PGPASSWORD"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    actor(&url(":open%20sesame"), "a", TTL).lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_s_own_words_are_told_whatever_it_says() {
    let server = Server::start(Duration::ZERO).await;
    sql(&server, "CREATE ROLE few LOGIN CONNECTION LIMIT 0").await;
    sql(&server, "CREATE DATABASE closed ALLOW_CONNECTIONS false").await;
    for (url, words) in [
        (by(&server, "few"), "too many connections for role \"few\" (SQLSTATE 53300)"),
        (
            format!("postgres://postgres@127.0.0.1:{}/closed", server.port),
            "\"closed\" is not currently accepting connections",
        ),
    ] {
        let outcome = actor(&url, "a", TTL).claim().await;
        let Outcome::Unknown(error) = &outcome else { panic!("{outcome:?}") };
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_of_this_machine_and_the_network_meet_in_one_election() {
    let server = Server::start(TTL).await;
    let socket =
        format!("host={} port={} user=postgres dbname=postgres", server.dir().display(), server.port);
    let encoded = server.dir().display().to_string().replace('/', "%2F");
    let in_url = format!("postgres://postgres@{encoded}:{}/postgres", server.port);
    for (number, url) in [socket, in_url].into_iter().enumerate() {
        let (a, b) = (actor(&url, "a", TTL), actor(&server.url(), "b", TTL));
        let grant = a.lead().await;
        assert_eq!(b.denied().await.leader(), Some(&a.bid.who.id), "{number}");
        a.let_go(&grant).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_primary_is_found_among_several_hosts() {
    let server = Server::start(TTL).await;
    let replica = server.replica().await;
    // Nobody listens on the first, the second is a standby.
    let url = format!(
        "postgres://postgres@127.0.0.1:1,127.0.0.1:{},127.0.0.1:{}/postgres",
        replica.port, server.port
    );
    let candidate = actor(&url, "a", TTL);
    candidate.lead().await;
    assert_eq!(server.number(SESSIONS).await, 2);
    assert_eq!(replica.number(SESSIONS).await, 0);
    let findings = candidate.backend.checkup(bellwether_backend::Probing::Look).await;
    let replicas = findings.iter().find(|one| one.what == "replicas").unwrap();
    assert!(replicas.grade == Grade::Warning && replicas.sentence.starts_with("1 connected, asynchronous"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_a_promotion_left_running_is_not_taken() {
    let server = Server::start(TTL).await;
    let mut replica = server.replica().await;
    let url = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", server.port, replica.port);
    replica.admin().await.execute("SELECT pg_promote()", &[]).await.unwrap();
    let candidate = actor(&url, "a", TTL);
    let (grant, _) = candidate.lead_within(PATIENCE).await;
    assert_eq!(grant.epoch.get() >> 40, 2, "{:?}", grant.epoch);
    assert_eq!(server.number(SESSIONS).await, 0, "the first of the URL is the old one");
    // With the new one gone it knows still that the other is old.
    let mut news = candidate.news();
    replica.down("INT");
    news.until(|signal| matches!(signal, Signal::Gone)).await;
    let outcome = candidate.claim().await;
    let Outcome::Unknown(error) = &outcome else { panic!("{outcome:?}") };
    replica.up().await;
    let (again, _) = candidate.lead_within(PATIENCE).await;
    assert!(again.epoch > grant.epoch, "{:?} after {:?} and {error}", again.epoch, grant.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explicit_keys_are_the_lock_that_others_see() {
    let server = Server::start(TTL).await;
    let url = format!("{}?key1=-5&key2=7", server.url());
    let (a, b) = (actor(&url, "a", TTL), actor(&url, "b", TTL));
    a.lead().await;
    assert_eq!(b.denied().await.leader(), Some(&a.bid.who.id));
    let seen = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid::int8 = 4294967291 \
                AND objid::int8 = 7 AND objsubid = 2 AND mode = 'ExclusiveLock' AND granted";
    assert_eq!(server.number(seen).await, 1);
    let foreign = server.admin().await.query_one("SELECT pg_try_advisory_lock(-5, 7)", &[]).await.unwrap();
    assert!(!foreign.get::<_, bool>(0), "who uses the lock by hand is kept out too");
    // The one pair of keys is one election's.
    let mut c = actor(&url, "c", TTL);
    c.denied().await;
    c.on = election("other");
    assert!(matches!(c.claim().await, Outcome::Refused(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_watching_a_follower_has_two_sessions_and_is_handed_over_to_all_the_same() {
    const ALL: &str = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let server = Server::start(2 * TTL).await;
    let count = async |wanted: i64| server.until(ALL, |number| number == wanted).await;
    for (more, sessions) in [("", 5), ("?watch=off", 4)] {
        let url = format!("{}{more}", server.url());
        let candidate = async |id: &str| {
            let store = Store::from(from_url(&url, clock()).unwrap());
            let builder = Election::builder("reports").backend(store).id(id).ttl(2 * TTL);
            builder.retry_interval(TTL / 4).start().await.unwrap()
        };
        let a = candidate("a").await;
        let first = a.wait_for_leadership().await.unwrap();
        let b = candidate("b").await;
        b.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "a")).await.unwrap();
        count(sessions).await;
        // Several retries: it stays so.
        tokio::time::sleep(TTL).await;
        count(sessions).await;
        a.stop().await.unwrap();
        let second = b.wait_for_leadership().await.unwrap();
        assert!(second.epoch() > first.epoch());
        b.stop().await.unwrap();
        drop((a, b));
        count(0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_earlier_start_of_an_id_is_ended_only_by_who_may() {
    let server = Server::start(TTL).await;
    sql(&server, "CREATE ROLE plain LOGIN").await;
    let first = actor(&server.url(), "a", TTL);
    first.lead().await;
    let mut again = actor(&by(&server, "plain"), "a", TTL);
    again.bid.danger_reclaim = true;
    match again.claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            assert!(error.to_string().contains("GRANT pg_signal_backend"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // Somebody else's is not touched by who may.
    let mut other = actor(&server.url(), "b", TTL);
    other.bid.danger_reclaim = true;
    assert_eq!(other.denied().await.leader(), Some(&CandidateId::new("a").unwrap()));
    let mut own = actor(&server.url(), "a", TTL);
    own.bid.danger_reclaim = true;
    own.lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_may_not_date_promotions_leads_and_one_without_rights_is_told_the_grant() {
    let server = Server::start(TTL).await;
    let revoke = "CREATE ROLE plain LOGIN; \
                  REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_control_checkpoint() FROM PUBLIC";
    sql(&server, revoke).await;
    let plain = actor(&by(&server, "plain"), "a", TTL);
    let grant = plain.lead().await;
    let findings = plain.backend.checkup(bellwether_backend::Probing::Look).await;
    assert!(!findings.iter().any(|one| matches!(one.grade, Grade::Bad(_))), "{findings:?}");
    let permission = findings.iter().find(|one| one.what == "permission").unwrap();
    assert_eq!(permission.grade, Grade::Warning, "{}", permission.sentence);
    assert!(permission.sentence.contains("pg_control_checkpoint() TO plain"), "{}", permission.sentence);
    plain.let_go(&grant).await;

    // Its arguments differ from one major to the next.
    let revoke = "DO $$ BEGIN EXECUTE (SELECT string_agg('REVOKE EXECUTE ON FUNCTION ' || oid::regprocedure || ' FROM PUBLIC', ';') \
                  FROM pg_proc WHERE proname = 'pg_logical_emit_message'); END $$";
    sql(&server, revoke).await;
    let outcome = actor(&by(&server, "plain"), "a", TTL).claim().await;
    let denied = |error: &bellwether_core::StoreError| error.kind() == ErrorKind::PermissionDenied;
    assert!(matches!(&outcome, Outcome::Refused(error) if denied(error)), "{outcome:?}");
    let findings = plain.backend.checkup(bellwether_backend::Probing::Look).await;
    let permission = findings.iter().find(|one| one.what == "permission").unwrap();
    assert_eq!(permission.grade, Grade::Bad(ErrorKind::PermissionDenied), "{}", permission.sentence);
    let needed = "GRANT EXECUTE ON FUNCTION pg_logical_emit_message(boolean,text,text";
    assert!(permission.sentence.contains(needed), "{}", permission.sentence);
    sql(&server, permission.sentence.split_once("run: ").unwrap().1).await;
    actor(&by(&server, "plain"), "a", TTL).lead_within(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_database_puts_in_front_of_the_server_s_own_functions_is_not_called() {
    let server = Server::start(TTL).await;
    sql(
        &server,
        "CREATE SCHEMA shadow; \
         CREATE FUNCTION shadow.pg_try_advisory_lock(int4, int4) RETURNS boolean LANGUAGE sql AS 'SELECT true'; \
         ALTER DATABASE postgres SET search_path = shadow, pg_catalog, public",
    )
    .await;
    let (a, b) = (actor(&server.url(), "a", TTL), actor(&server.url(), "b", TTL));
    let grant = a.lead().await;
    b.denied().await;
    a.let_go(&grant).await;
    b.lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_small_lock_table_takes_few_elections() {
    let mut server = Server::start(Duration::ZERO).await;
    sql(&server, "ALTER SYSTEM SET max_locks_per_transaction = 10").await;
    server.down("INT");
    // The command line that starts it has room for 300 connections.
    server.up().await;
    let most = 10 * 300 / 4 / 3;
    let mut candidate = actor(&server.url(), "a", Duration::from_millis(200));
    candidate.lead_within(Duration::from_secs(5)).await;
    for number in 1..most {
        candidate.on = election(&format!("job-{number}"));
        candidate.lead().await;
    }
    candidate.on = election("one too many");
    let refused = |outcome: &Outcome<_>| match outcome {
        Outcome::Refused(error) => error.to_string().contains("max_locks_per_transaction"),
        _ => false,
    };
    let outcome = candidate.claim().await;
    assert!(refused(&outcome), "{outcome:?}");
    // The same, all at once, by another process.
    let other = actor(&server.url(), "b", Duration::from_secs(10));
    other.backend.connect().await.unwrap();
    let claims = (0..2 * most).map(|number| {
        let (backend, on) = (&other.backend, election(&format!("other-{number}")));
        let bid = bellwether_core::Bid { sent: boot_now(), ..other.bid.clone() };
        async move { backend.claim(&on, &bid).await }
    });
    let outcomes = futures_util::future::join_all(claims).await;
    let mine = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity s USING (pid) \
         WHERE s.application_name LIKE 'bellwether/b lock %' AND l.objsubid = 2 AND l.mode = 'ExclusiveLock'";
    // Its own key, by which others hear of its end, is one of them.
    assert_eq!(server.number(mine).await - 1, i64::try_from(most).unwrap(), "no more and no fewer");
    assert_eq!(outcomes.iter().filter(|outcome| refused(outcome)).count(), most);
}
