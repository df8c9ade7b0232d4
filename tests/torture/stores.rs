//! Nobody leads beside another on any store, whatever happens to candidates and to their connections.

use std::time::Duration;

use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::servers::postgres;
use bellwether_tests::raft::Nodes;
use bellwether_tests::torture::survives;

const NETWORK: [&str; 3] = ["cut", "reset", "delay"];

#[test]
fn on_a_directory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let report = survives(&format!("file:{}", directory.path().join("store").display()), &NETWORK);
    // A write that arrives late is part of every run, so that fencing is seen to be needed and to work.
    assert!(report["fencing"]["unchecked_late"].as_u64() > Some(0), "{report:#}");
    assert!(report["fencing"]["refused"].as_u64() > Some(0), "{report:#}");
}

#[tokio::test]
async fn on_postgresql() {
    let server = postgres::Server::start(Duration::from_secs(1)).await;
    let url = server.url();
    run(move || survives(&url, &[])).await;
}

#[tokio::test]
async fn on_nats() {
    on_profile("bucket=elections", 200).await;
}

#[tokio::test]
async fn on_nats_in_the_profile_cluster() {
    on_profile("profile=cluster", 400).await;
}

#[tokio::test]
async fn on_nats_in_the_profile_leader() {
    on_profile("profile=leader&bucket=team", 200).await;
}

async fn on_profile(profile: &str, ping: u64) {
    let server = Server::start(Version::Current).await;
    let url = format!("{}?{profile}&create=yes&ping={ping}ms", server.url());
    run(move || survives(&url, &[])).await;
}

#[test]
fn on_a_raft_cluster() {
    let mut nodes = Nodes::new(3);
    nodes.form();
    survives(&nodes.url(0), &[]);
}

/// On a thread that may wait.
async fn run<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) {
    if let Err(panicked) = tokio::task::spawn_blocking(act).await {
        std::panic::resume_unwind(panicked.into_panic());
    }
}
