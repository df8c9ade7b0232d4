//! The command on a PostgreSQL server: making the tables, asking a leader to go, and who cannot be asked.

use bellwether_support::servers::postgres::Server;
use bellwether_tests::{Candidate, command, json, on, run_to_end};
use serde_json::Value;

use super::TTL;

fn candidate(url: &str, id: &str) -> Candidate {
    Candidate::start(command(url, &["--id", id, "run", "job", "--events", "--ttl", "3s"]))
}

/// Steps down from a to c, past b, and returns the answer.
fn hand_over(url: &str) -> Value {
    let mut first = candidate(url, "a");
    first.expect("acquired");
    let (mut second, mut third) = (candidate(url, "b"), candidate(url, "c/\u{1F411}"));
    second.joined();
    third.joined();
    let asked = on(url, &["step-down", "job", "--to", "c/\u{1F411}", "-o", "json"]);
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    assert_eq!(first.expect("lost").text("reason"), Some("admin"));
    third.expect("acquired");
    // Whoever has not yet heard that it leads may take its release for an old one.
    for other in [&mut first, &mut second] {
        while other.expect("leader_changed").text("leader") != Some("c/\u{1F411}") {}
    }
    let again = on(url, &["step-down", "job"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let said = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(said.contains("handed over to") && said.contains("nobody led for"), "{said}");
    json(&asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_asked_to_go_and_the_gap_is_told() {
    let server = Server::start(TTL).await;
    let (plain, tables) = (server.url(), format!("{}?schema=bellwether", server.url()));
    let refused = on(&tables, &["status", "job"]);
    assert_eq!(refused.status.code(), Some(78), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("bellwether postgres init"), "{refused:?}");
    for _ in 0..2 {
        let made = on(&plain, &["postgres", "init"]);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
    }
    for url in [&plain, &tables] {
        let answer = hand_over(url);
        assert_eq!(
            (answer["from"].as_str(), answer["to"].as_str()),
            (Some("a"), Some("c/\u{1F411}")),
            "{answer}"
        );
        assert!(answer["to_epoch"].as_u64() > answer["from_epoch"].as_u64(), "{answer}");
        assert!(answer["gap_ms"].as_f64().is_some(), "{answer}");
        let nobody = on(url, &["step-down", "other"]);
        assert_eq!(nobody.status.code(), Some(75), "{nobody:?}");
    }
    // What only tables can tell.
    let past = json(&on(&tables, &["history", "job", "-o", "json"]));
    assert_eq!(past[0]["id"].as_str(), Some("a"), "{past}");
    let all = json(&on(&tables, &["status", "-o", "json"]));
    assert_eq!(all[0]["election"].as_str(), Some("job"), "{all}");
    assert_eq!(on(&plain, &["status"]).status.code(), Some(64));
}

/// pgleaderlock's own command line, as its documentation has it.
#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_a_lock_name_the_election_too() {
    let server = Server::start(TTL).await;
    let lock = ["--key1", "1234", "--key2", "-5678"];
    let typed = |command: &[&str]| {
        let mut typed = std::process::Command::new(bellwether_tests::bellwether());
        typed.args(command).args(["--dsn", &server.url()]).args(lock);
        typed
    };
    let run = ["run", "--health-interval", "1.0", "--retry-base", "1.0", "--retry-max", "30.0", "--ttl=3s"];
    let mut leader = Candidate::start(typed(&[&run[..], &["--id", "a", "--events"]].concat()));
    assert_eq!(leader.expect("acquired").text("election"), Some("1234:-5678"));
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1234 AND objid::int8 = 4294961618";
    let held: i64 = server.admin().await.query_one(held, &[]).await.expect("an answer").get(0);
    assert!(held > 0, "the lock of these keys is not held");
    let status = json(&run_to_end(typed(&["status", "-o", "json"])));
    assert_eq!((status["election"].as_str(), status["holder"].as_str()), (Some("1234:-5678"), Some("a")));
    // Who gives the same lock a name competes all the same.
    let named = run_to_end(typed(&["run", "job", "-n", "--ttl", "3s"]));
    assert_eq!(named.status.code(), Some(75), "{named:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_somebody_else_s_cannot_be_asked_for() {
    let server = Server::start(TTL).await;
    let url = format!("{}?key1=7&key2=-9", server.url());
    let foreign = server.admin().await;
    foreign.batch_execute("SELECT pg_advisory_lock(7, -9)").await.expect("the lock is free");
    let asked = on(&url, &["step-down", "job"]);
    assert_eq!(asked.status.code(), Some(69), "{asked:?}");
    assert!(String::from_utf8_lossy(&asked.stderr).contains("not Bellwether's"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sql_can_be_printed_and_run_by_whoever_may() {
    let printed = on("memory:", &["postgres", "init", "--print", "--schema", "Team-7", "--grant", "app"]);
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    let sql = String::from_utf8(printed.stdout).expect("text");
    let nowhere = on("memory:", &["postgres", "init"]);
    assert_eq!(nowhere.status.code(), Some(64), "{nowhere:?}");
    let bad = on("memory:", &["postgres", "init", "--print", "--schema", "a\"b"]);
    assert_eq!(bad.status.code(), Some(64), "{bad:?}");
    let server = Server::start(TTL).await;
    let admin = server.admin().await;
    admin.batch_execute("CREATE ROLE app LOGIN").await.expect("an administrator may");
    let app = format!("postgres://app@127.0.0.1:{}/postgres", server.port);
    let forbidden = on(&app, &["postgres", "init", "--schema", "Team-7"]);
    assert_eq!(forbidden.status.code(), Some(77), "{forbidden:?}");
    for _ in 0..2 {
        admin.batch_execute(&sql).await.expect("what is printed can be run");
    }
    let led = on(&format!("{app}?schema=Team-7"), &["acquire", "job", "--ttl", "3s"]);
    assert_eq!(led.status.code(), Some(0), "{led:?}");
}
