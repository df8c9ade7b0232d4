//! The followers of an election, as `status` and `step-down` list them.

use bellwether_support::servers::postgres::Server;
use bellwether_tests::{Candidate, command, json, on, until_blocking};
use rustix::process::Signal;

use super::TTL;

fn candidate(url: &str, election: &str, id: &str) -> Candidate {
    let mut candidate =
        Candidate::start(command(url, &["--id", id, "run", election, "--events", "--ttl", "3s"]));
    candidate.joined();
    candidate
}

/// Waits until `status` lists these and no others.
fn until_listed(url: &str, election: &str, ids: &[&str]) {
    until_blocking(|| {
        let status = json(&on(url, &["status", election, "-o", "json"]));
        let so = status["followers"] == serde_json::json!(ids) && status["followers_complete"] == true;
        if so { Ok(()) } else { Err(format!("not {ids:?}: {status}")) }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn status_lists_the_followers_and_step_down_those_who_could_have_taken_over() {
    let server = Server::start(TTL).await;
    let url = &server.url();
    let a = candidate(url, "job", "a");
    let (b, c) = (candidate(url, "job", "b"), candidate(url, "job", "c"));
    let _others = (candidate(url, "other", "x"), candidate(url, "other", "y"));
    until_listed(url, "job", &["b", "c"]);
    until_listed(url, "other", &["y"]);
    until_listed(url, "nothing", &[]);
    let shown = on(url, &["status", "job"]);
    let said = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(said.lines().any(|line| line == "followers: b, c"), "{said}");
    let alone = on(url, &["status", "nothing"]);
    assert!(String::from_utf8_lossy(&alone.stdout).contains("followers: none"), "{alone:?}");
    // Somebody else takes over, so that it is said who could have been meant.
    let asked = on(url, &["step-down", "job", "--to", "typo"]);
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(75), "{asked:?}");
    assert!(said.contains("typo did not take over") && said.contains("the followers were b, c"), "{said}");
    let status = json(&on(url, &["status", "job", "-o", "json"]));
    let (mut killed, mut stopped, before, after) = match status["holder"].as_str() {
        Some("b") => (c, a, ["a", "c"], ["a"]),
        Some("c") => (b, a, ["a", "b"], ["a"]),
        // Nobody else was quick enough.
        _ => (b, c, ["b", "c"], ["c"]),
    };
    until_listed(url, "job", &before);
    killed.kill();
    until_listed(url, "job", &after);
    // Its connections stay, but it asks nothing any more.
    stopped.signal(Signal::STOP);
    until_listed(url, "job", &[]);
}

#[test]
fn a_store_that_does_not_know_says_so() {
    let shown = on("memory:", &["status", "job", "-o", "json"]);
    let status = json(&shown);
    assert!(status["followers"].is_null() && status.get("followers").is_some(), "{status}");
    let shown = on("memory:", &["status", "job"]);
    assert!(!String::from_utf8_lossy(&shown.stdout).contains("followers"), "{shown:?}");
}
