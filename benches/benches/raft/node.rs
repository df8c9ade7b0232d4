//! One node in a process of its own: this program, started again.

use std::path::Path;
use std::sync::Arc;

use bellwether_cluster::transport::Security;
use bellwether_cluster::{Cluster, Config, NodeName, NodeParts, Openraft, Peer, Profile, StaticResolver};
use bellwether_support::Child;

use crate::machine::Map;

const READY: &str = "ready";

/// Starts the node of this number among nodes at these addresses, and waits for nothing.
pub(crate) fn start(directory: &Path, number: usize, profile: Profile, addresses: &[String]) -> Child {
    let profile = match profile {
        Profile::Default => "default",
        Profile::Fast => "fast",
    };
    let role = format!("{}\n{number}\n{profile}\n{}", directory.display(), addresses.join(","));
    Child::start("bench", &role)
}

/// Until it knows a leader, is a member and has caught up.
pub(crate) fn wait_until_ready(child: &mut Child) {
    child.wait_for(READY);
}

/// In that process.
pub(crate) async fn run_until_killed(told: &str) {
    let [directory, number, profile, addresses] = told.split('\n').collect::<Vec<_>>()[..] else {
        panic!("not a role of this benchmark: {told}")
    };
    let number: usize = number.parse().expect("a number");
    let addresses: Vec<&str> = addresses.split(',').collect();
    let mut config = Config::new(name(number), addresses[number], directory, addresses.len());
    config.profile = profile.parse().expect("a profile");
    let peers = addresses.iter().enumerate().map(|(number, address)| Peer::new(name(number), *address));
    let parts = NodeParts {
        resolver: Arc::new(StaticResolver::new(peers.collect::<Vec<_>>())),
        security: Security::LoopbackOnly,
        engines: Arc::new(Openraft),
        machine: Box::new(|| Box::new(Map::default())),
        ledger: None,
        service: None,
    };
    let (cluster, _) = Cluster::start(config, parts).await.expect("a node");
    println!("{READY}");
    let error = cluster.stopped().await;
    panic!("the node stopped: {error}");
}

pub(crate) fn name(number: usize) -> NodeName {
    NodeName::new(format!("n-{number}")).expect("a name")
}
