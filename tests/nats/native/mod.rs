//! The command on NATS servers: every subcommand, exit codes, and what a killed leader leaves to its successor.

mod codes;
mod looking;

use std::process::Output;

use bellwether_support::servers::nats::{Server, Version};
use bellwether_tests::{Candidate, command, json, on, overlaps};
use rustix::process::Signal;

const BUCKET: &str = "bellwether";

fn candidate(url: &str, id: &str, more: &[&str]) -> Candidate {
    let mut command = command(url, &["--id", id, "run", "job", "--events", "--ttl", "2s"]);
    command.args(more);
    Candidate::start(command)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

/// A server, and a URL of it that has the bucket made.
async fn server(version: Version) -> (Server, String) {
    let server = Server::start(version).await;
    let url = format!("{}?create=yes", server.url());
    (server, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_asked_to_go_and_what_was_is_told() {
    for version in [Version::Current, Version::Old] {
        let (_server, url) = server(version).await;
        let mut first = candidate(&url, "a", &[]);
        let acquired = first.expect("acquired");
        let (mut second, mut third) = (candidate(&url, "b", &[]), candidate(&url, "c", &[]));
        second.joined();
        third.joined();
        let asked = on(&url, &["step-down", "job", "--to", "c", "-o", "json"]);
        assert_eq!(asked.status.code(), Some(0), "{asked:?}");
        let answer = json(&asked);
        assert_eq!((answer["from"].as_str(), answer["to"].as_str()), (Some("a"), Some("c")), "{answer}");
        assert!(answer["gap_ms"].as_f64().is_some(), "{answer}");
        assert_eq!(first.expect("lost").text("reason"), Some("admin"));
        assert!(third.expect("acquired").epoch() > acquired.epoch());
        third.signal(Signal::TERM);
        assert_eq!(third.ended().code, Some(0));
        // Whoever leads now, the one before is in the history, with how it ended.
        let past = json(&on(&url, &["history", "job", "-o", "json"]));
        assert_eq!(past[0]["id"].as_str(), Some("a"), "{past}");
        assert_eq!(past[0]["epoch"].as_u64(), acquired.epoch(), "{past}");
        assert!(past[0]["until"].is_string(), "{past}");
        first.drain();
        second.drain();
        let found = overlaps([&first, &second, &third]);
        assert!(found.is_empty(), "{found:?}");
        let nobody = on(&url, &["step-down", "other"]);
        assert_eq!(nobody.status.code(), Some(75), "{nobody:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_s_command_is_gone_before_the_next_one_starts() {
    let (_server, url) = server(Version::Current).await;
    let mut last = None;
    let mut leader = candidate(&url, "c0", &["--", "sleep", "1000"]);
    for round in 1..=3 {
        let acquired = leader.heard("acquired");
        assert!(acquired.epoch() > last, "{acquired:?} followed {last:?}");
        last = acquired.epoch();
        let child = leader.heard("child_started").number("pid").expect("a process");
        let mut follower = candidate(&url, &format!("c{round}"), &["--", "sleep", "1000"]);
        follower.joined();
        leader.kill();
        follower.expect("acquired");
        assert!(!std::path::Path::new(&format!("/proc/{child}")).exists(), "{child} is an orphan");
        let found = overlaps([&leader, &follower]);
        assert!(found.is_empty(), "{found:?}");
        leader = follower;
    }
    leader.signal(Signal::TERM);
    assert_eq!(leader.ended().code, Some(0));
}
