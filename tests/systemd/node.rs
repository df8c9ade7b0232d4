//! A node of a Raft cluster: ready once it has a leader, and a watchdog that hears of its engine.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bellwether_tests::notify::ServiceManager;
use bellwether_tests::{OutputLines, StoppedThreads, bellwether};
use rustix::process::Signal;

use crate::{pings, temporary};

const LIMIT: Duration = Duration::from_millis(400);

fn node(manager: &ServiceManager, directory: &Path, peers: &[&str]) -> OutputLines {
    let mut command = Command::new(bellwether());
    command.args(["node", "-o", "json", "--name", "a-0", "--bind", "127.0.0.1:0"]).args(peers);
    command.arg("--data-dir").arg(directory.join("data"));
    manager.tell(&mut command, Some(LIMIT));
    OutputLines::run(command)
}

#[test]
fn a_node_is_ready_when_it_follows_a_leader_and_its_pings_end_when_it_is_stuck() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    let mut node = node(&manager, directory.path(), &["--expect", "1"]);
    let heard = manager.until(|one| one.says("READY=1"));
    assert!(heard.last().is_some_and(|one| one.field("STATUS") == Some("a-0: leads the cluster (term 1)")));
    assert!(pings(&manager.during(Duration::from_secs(2))) >= 3);
    let stuck = StoppedThreads::named(node.pid(), "tokio-rt-worker");
    manager.during(LIMIT);
    assert_eq!(pings(&manager.during(Duration::from_secs(2))), 0, "{} threads are stopped", stuck.count);
    drop(stuck);
    manager.until(|one| one.says("WATCHDOG=1"));
    node.signal(Signal::TERM);
    manager.until(|one| one.says("STOPPING=1"));
    assert_eq!(node.exit_code(), Some(0));
}

#[test]
fn a_node_that_waits_for_the_others_is_not_ready_says_for_whom_and_puts_its_start_off() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    // Nobody listens there.
    let peers = ["--peers", "a-0=127.0.0.1:1,b-0=127.0.0.1:2,c-0=127.0.0.1:3", "--advertise", "127.0.0.1:1"];
    let mut node = node(&manager, directory.path(), &peers);
    let heard = manager.status("these have not consented to form a cluster: b-0");
    assert!(heard.field("STATUS").is_some_and(|now| now.starts_with("a-0: not ready: ")), "{heard:?}");
    let mut put_off = 0;
    let heard = manager.until(|one| {
        put_off += usize::from(one.field("EXTEND_TIMEOUT_USEC").is_some());
        put_off == 3
    });
    assert!(!heard.iter().any(|one| one.says("READY=1")), "{heard:?}");
    node.signal(Signal::TERM);
    manager.until(|one| one.says("STOPPING=1"));
    assert_eq!(node.exit_code(), Some(0));
}
