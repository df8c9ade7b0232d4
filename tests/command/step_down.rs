//! `bellwether step-down`: only a takeover by the named candidate, or by any other where none is named, counts as success, and
//! nobody waits for a timer.

use std::time::Duration;

use bellwether_backend::Lease;
use bellwether_core::Signal;
use bellwether_file::FileRegister;
use bellwether_support::{Actor, clock};
use bellwether_tests::{Candidate, json};

use crate::{leader, on, temporary};

/// So long that a candidate which waits for a timer instead of for news fails the test.
const SLOW: [&str; 4] = ["--ttl", "200s", "--retry", "150s"];

#[test]
fn the_named_candidate_takes_over_and_the_gap_is_told() {
    let directory = temporary();
    let mut first = leader(directory.path(), "a", &["--ttl", "10s"]);
    let mut second = Candidate::on_file(directory.path(), "job", "b", &["--ttl", "10s"]);
    let mut third = Candidate::on_file(directory.path(), "job", "c", &["--ttl", "10s"]);
    second.joined();
    third.joined();
    let asked = on(directory.path(), &["step-down", "job", "--to", "c", "-o", "json"]);
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    let answer = json(&asked);
    assert_eq!((answer["from"].as_str(), answer["to"].as_str()), (Some("a"), Some("c")));
    assert_eq!(first.expect("lost").text("reason"), Some("admin"));
    third.expect("acquired");
    let past = json(&on(directory.path(), &["history", "job", "-o", "json"]));
    assert_eq!(past[0]["id"].as_str(), Some("a"), "{past}");
    let nobody = on(directory.path(), &["step-down", "other"]);
    assert_eq!(nobody.status.code(), Some(75), "{nobody:?}");
}

#[test]
fn a_step_down_for_later_is_kept_by_the_leader_itself() {
    let directory = temporary();
    let mut first = leader(directory.path(), "a", &["--ttl", "10s"]);
    let mut second = Candidate::on_file(directory.path(), "job", "b", &["--ttl", "10s"]);
    second.joined();
    let later = ["step-down", "job", "--to", "b", "--in", "1s", "-o", "json"];
    let before = clock().boot();
    let asked = on(directory.path(), &later);
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    let answer = json(&asked);
    assert_eq!((answer["from"].as_str(), answer["in_ms"].as_u64()), (Some("a"), Some(1_000)), "{answer}");
    assert_eq!(first.expect("lost").text("reason"), Some("admin"));
    second.expect("acquired");
    assert!(clock().boot().since(before) >= Duration::from_secs(1), "it was too early");
    let never = on(directory.path(), &["step-down", "job", "--in", "200h"]);
    assert_eq!(never.status.code(), Some(64), "{never:?}");
    assert!(String::from_utf8_lossy(&never.stderr).contains("--in is at most 168h0m0s"), "{never:?}");
    let nobody = on(directory.path(), &["step-down", "other", "--in", "1s"]);
    assert_eq!(nobody.status.code(), Some(75), "{nobody:?}");
}

#[test]
fn somebody_else_than_the_one_named_is_no_success() {
    let directory = temporary();
    let _first = leader(directory.path(), "a", &["--ttl", "3s"]);
    let mut second = Candidate::on_file(directory.path(), "job", "b", &["--ttl", "3s"]);
    second.joined();
    let asked = on(directory.path(), &["step-down", "job", "--to", "typo", "-o", "json"]);
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(75), "{asked:?}");
    assert!(said.contains("typo did not take over: b leads job now"), "{said}");
    assert_eq!(json(&asked)["to"].as_str(), Some("b"));
}

#[test]
fn where_nobody_else_competes_that_is_said() {
    let directory = temporary();
    let _only = leader(directory.path(), "a", &["--ttl", "3s"]);
    let asked = on(directory.path(), &["step-down", "job"]);
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(75), "{asked:?}");
    assert!(said.contains("no other candidate took over: a leads job again"), "{said}");
    assert!(asked.stdout.is_empty(), "{asked:?}");
}

#[test]
fn nor_is_it_a_success_when_nobody_leads_afterwards() {
    let directory = temporary();
    let mut only = leader(directory.path(), "a", &["--ttl", "3s", "--once"]);
    let asked = on(directory.path(), &["step-down", "job"]);
    assert_eq!(asked.status.code(), Some(75), "{asked:?}");
    let said = String::from_utf8_lossy(&asked.stderr);
    assert!(
        said.contains("no other candidate took over: a released the leadership, and nobody leads job"),
        "{said}"
    );
    assert_eq!(only.ended().code, Some(76));
}

/// The one that handed over is ready again as soon as the other leads, and does not wait for its retry interval.
#[test]
fn two_candidates_hand_over_to_each_other_by_news_alone() {
    let directory = temporary();
    let _first = leader(directory.path(), "a", &SLOW);
    let mut second = Candidate::on_file(directory.path(), "job", "b", &SLOW);
    second.joined();
    for (from, to) in [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")] {
        let asked = on(directory.path(), &["step-down", "job", "-o", "json"]);
        assert_eq!(asked.status.code(), Some(0), "{asked:?}");
        let answer = json(&asked);
        assert_eq!((answer["from"].as_str(), answer["to"].as_str()), (Some(from), Some(to)), "{answer}");
    }
}

/// A store tells a leader of a request once. Whoever missed it, and goes on, is asked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_missed_the_request_is_asked_again() {
    let directory = temporary();
    let store = Lease::new(FileRegister::new(directory.path(), clock()).expect("a directory"), clock());
    let deaf = Actor::new(store, "a", Duration::from_secs(2));
    let grant = deaf.lead().await;
    let mut news = deaf.news();
    let path = directory.path().to_owned();
    let asking = tokio::task::spawn_blocking(move || on(&path, &["step-down", "reports"]));
    let is_request = |signal: &Signal| matches!(signal, Signal::Requested(_));
    let asked_twice = async {
        news.until(is_request).await;
        news.until(is_request).await;
    };
    let goes_on = async {
        loop {
            deaf.keep(&grant).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        () = asked_twice => {}
        () = goes_on => unreachable!("it goes on until it is asked a second time"),
    }
    deaf.let_go(&grant).await;
    let asked = asking.await.expect("the command ended");
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(75), "{asked:?}");
    assert!(said.contains("a released the leadership"), "{said}");
}
