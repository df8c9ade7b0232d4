//! `bellwether node --http`: what a node says of itself before it is ready, then, and when it is stuck.

use std::path::Path;
use std::process::Command;

use bellwether_tests::http::HttpPlace;
use bellwether_tests::{OutputLines, StoppedThreads, bellwether};
use rustix::process::Signal;

use super::{temporary, until_status};

fn node(directory: &Path, name: &str, place: &HttpPlace, more: &[&str]) -> OutputLines {
    let mut command = Command::new(bellwether());
    command.args(["node", "-o", "json", "--name", name, "--http", &place.flag()]).args(more);
    command.arg("--data-dir").arg(directory.join(name));
    OutputLines::run(command)
}

/// The value of a sample, by all of its labels.
fn sample(place: &HttpPlace, labelled: &str) -> Option<u64> {
    let metrics = place.get("/metrics").body;
    let found = metrics.lines().find_map(|line| line.strip_prefix(labelled)?.strip_prefix(' '));
    found.map(|value| value.parse().expect("a number"))
}

#[test]
fn a_node_that_waits_for_others_lives_and_is_not_ready_and_three_of_them_are() {
    let directory = temporary();
    let ports: Vec<String> = (0..3).map(|_| HttpPlace::free_port().flag()).collect();
    let names = ["a-0", "b-0", "c-0"];
    let peers: Vec<String> = names.iter().zip(&ports).map(|(name, port)| format!("{name}={port}")).collect();
    let peers = peers.join(",");
    let place = |name: &str| HttpPlace::Unix(directory.path().join(format!("{name}.sock")));
    let begin = |name: &str| node(directory.path(), name, &place(name), &["--peers", &peers]);
    let first = place("a-0");
    let mut nodes = vec![begin("a-0")];
    until_status(&first, "/livez", 200);
    bellwether_tests::until_blocking(|| {
        let ready = first.get("/readyz");
        assert_eq!(ready.status, 503, "{ready:?}");
        let why = ready.json()["why"].as_str().unwrap_or_default().to_owned();
        if why.contains("b-0") && why.contains("c-0") { Ok(()) } else { Err(why) }
    });
    assert_eq!(sample(&first, "cluster_ready{node=\"a-0\"}"), Some(0));
    let phase = |name: &str, phase: &str| {
        sample(&place(name), &format!("cluster_formation_phase{{node=\"{name}\",phase=\"{phase}\"}}"))
    };
    assert_eq!(phase("a-0", "bound"), Some(0));
    assert!(sample(&first, "cluster_join_failures_total{node=\"a-0\"}") > Some(0));

    nodes.extend(["b-0", "c-0"].map(begin));
    for name in names {
        until_status(&place(name), "/readyz", 200);
        assert_eq!(phase(name, "bound"), Some(1));
        assert_eq!(sample(&place(name), &format!("cluster_voters{{node=\"{name}\"}}")), Some(3));
        assert_eq!(
            sample(&place(name), &format!("cluster_names_with_two_clusters{{node=\"{name}\"}}")),
            Some(0)
        );
    }
    // The leader alone knows how far the others are; who is stopped lags behind.
    let leads =
        |name: &str| sample(&place(name), &format!("cluster_is_leader{{node=\"{name}\"}}")) == Some(1);
    let leader = bellwether_tests::until_blocking(|| {
        let leads = names.iter().position(|name| leads(name));
        leads.ok_or("nobody leads")
    });
    let follower = (leader + 1) % 3;
    let lag = format!("cluster_peer_lag_entries{{node=\"{}\",peer=\"{}\"}}", names[leader], names[follower]);
    bellwether_tests::until_blocking(|| match sample(&place(names[leader]), &lag) {
        Some(0) => Ok(()),
        other => Err(format!("{lag}: {other:?}")),
    });
    nodes[follower].signal(Signal::STOP);
    let backend = format!("raft://{}", ports[leader]);
    let mut candidate = Command::new(bellwether());
    candidate.args(["--backend", &backend, "--id", "a", "run", "job", "--events"]);
    let mut candidate = bellwether_tests::Candidate::start(candidate);
    candidate.expect("acquired");
    bellwether_tests::until_blocking(|| match sample(&place(names[leader]), &lag) {
        Some(entries) if entries > 0 => Ok(()),
        other => Err(format!("{lag}: {other:?}")),
    });
    nodes[follower].signal(Signal::CONT);

    let unknown = first.get("/leader");
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("/livez, /readyz, /metrics"), "{unknown:?}");
    nodes[0].signal(Signal::TERM);
    assert_eq!(nodes[0].exit_code(), Some(0));
    assert!(!directory.path().join("a-0.sock").exists(), "its socket's file is removed");
}

#[test]
fn a_node_that_is_stuck_does_not_live() {
    let directory = temporary();
    let place = HttpPlace::socket_in(directory.path());
    let node = node(directory.path(), "a-0", &place, &["--expect", "1", "--bind", "127.0.0.1:0"]);
    until_status(&place, "/readyz", 200);
    assert_eq!(place.get("/livez").status, 200);
    let stuck = StoppedThreads::named(node.pid(), "tokio-rt-worker");
    assert_eq!(place.get("/livez").status, 503, "{} threads are stopped", stuck.count);
    drop(stuck);
    until_status(&place, "/livez", 200);
}
