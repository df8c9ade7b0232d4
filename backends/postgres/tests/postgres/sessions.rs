//! What the sessions of a process look like to whoever runs the server: their names, its log, how often they ask; and that nothing
//! which is set for a role or a database ends them.

use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_election::{Election, Store};
use bellwether_postgres::{Config, from_config, from_url};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{clock, proxy_to, until};

use crate::support::PARKED;

const TTL: Duration = Duration::from_secs(2);

/// When the parked statement of a follower began, in microseconds.
const PARKED_SINCE: &str = "SELECT coalesce(max((extract(epoch FROM query_start) * 1000000)::int8), 0) FROM pg_stat_activity \
     WHERE application_name LIKE 'bellwether% watch'";

async fn candidate(url: &str, id: &str) -> Election {
    let store = Store::from(from_url(url, clock()).unwrap());
    Election::builder("reports").backend(store).id(id).ttl(TTL).start().await.unwrap()
}

/// A leader, and a follower that is parked on its end.
async fn leader_and_follower(server: &Server) -> (Election, Election) {
    let a = candidate(&server.url(), "a").await;
    a.wait_for_leadership().await.unwrap();
    let b = candidate(&server.url(), "b").await;
    server.until(PARKED, |parked| parked == 1).await;
    (a, b)
}

/// Until the follower has parked anew so many times.
async fn parks_again(server: &Server, times: usize) {
    for _ in 0..times {
        let since = server.number(PARKED_SINCE).await;
        server.until(PARKED_SINCE, |again| again > since).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_writes_nothing_into_the_server_s_log() {
    let server = Server::start_with(TTL, None, &["log_lock_waits=on"]).await;
    let before = server.log().len();
    let (a, b) = leader_and_follower(&server).await;
    parks_again(&server, 4).await;
    let log = server.log()[before..].to_owned();
    assert!(!["ERROR:", "FATAL:", "still waiting"].iter().any(|word| log.contains(word)), "{log}");
    // It is not asleep either.
    a.stop().await.unwrap();
    b.wait_for_leadership().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_says_what_it_is_and_whose() {
    let server = Server::start(TTL).await;
    let (_a, _b) = leader_and_follower(&server).await;
    let names = "SELECT string_agg(application_name, ', ' ORDER BY application_name COLLATE \"C\") FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name <> ''";
    let wanted = "bellwether/a lock 2000ms, bellwether/a presence, bellwether/b lock 2000ms, bellwether/b presence, \
         bellwether/b watch";
    until(|| async {
        let found: String = server.admin().await.query_one(names, &[]).await.unwrap().get(0);
        if found == wanted { Ok(()) } else { Err(found) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_time_out_of_a_role_or_a_database_ends_a_session() {
    const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'bellwether%'";
    const STARTED: &str =
        "SELECT coalesce(sum(pid), 0)::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether%'";
    let server = Server::start(TTL).await;
    let admin = server.admin().await;
    for name in [
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
        "transaction_timeout",
    ] {
        let known = format!("SELECT count(*) FROM pg_settings WHERE name = '{name}'");
        if server.number(&known).await == 1 {
            admin.batch_execute(&format!("ALTER DATABASE postgres SET {name} = '300ms'")).await.unwrap();
        }
    }
    admin
        .batch_execute("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
        .await
        .unwrap();
    let (a, b) = leader_and_follower(&server).await;
    server.until(SESSIONS, |sessions| sessions == 5).await;
    let before = server.number(STARTED).await;
    parks_again(&server, 4).await;
    assert_eq!(server.number(STARTED).await, before, "they are the same sessions");
    assert!(a.is_leader() && !b.is_leader());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_takes_few_round_trips() {
    let server = Server::start_with(Duration::ZERO, None, &["log_statement=all"]).await;
    let proxy = proxy_to(server.port).await;
    proxy.slow(Duration::from_millis(50));
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
    let backend = from_config(Config::from_url(&url).unwrap(), clock());
    let began = boot_now();
    backend.connect().await.unwrap();
    let (turns, took) = (proxy.turns(), boot_now().since(began));
    println!("two sessions were opened in {turns} round trips of 50 ms, together; it took {took:?}");
    // It was 70. On a busy machine what is sent at once may be read in two parts.
    assert!(turns <= 34, "{turns} round trips");
    // The proxy might be a pooler. Where the server sees our own ports, it is not looked for.
    let probes = || server.log().matches("BEGIN; SELECT").count();
    let through_proxy = probes();
    assert!(through_proxy > 0, "nobody looked for a pooler");
    from_config(Config::from_url(&server.url()).unwrap(), clock()).connect().await.unwrap();
    assert_eq!(probes(), through_proxy);
}
