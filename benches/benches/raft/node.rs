//! One node in a process of its own: this program, started again.

use std::path::Path;
use std::sync::Arc;

use bellwether_cluster::transport::Security;
use bellwether_cluster::{
    ClientService, Cluster, Config, NodeName, NodeParts, Openraft, Peer, Profile, StateMachine,
    StaticResolver,
};
use bellwether_raft::ElectionService;
use bellwether_support::{Child, clock};

use crate::machine::Map;

const READY: &str = "ready";
/// The first line of its role.
pub(crate) const ROLE: &str = "node";

/// What the nodes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Keys and values.
    Map,
    /// The election service, as `bellwether node` has it.
    Elections,
}

/// Starts the node of this number among nodes at these addresses, and waits for nothing.
pub(crate) fn start(
    directory: &Path,
    number: usize,
    (profile, runs): (Profile, Runs),
    addresses: &[String],
) -> Child {
    let profile = match profile {
        Profile::Default => "default",
        Profile::Fast => "fast",
    };
    let (directory, addresses) = (directory.display(), addresses.join(","));
    Child::start("bench", &format!("{ROLE}\n{directory}\n{number}\n{profile}\n{runs:?}\n{addresses}"))
}

/// Until it knows a leader, is a member and has caught up.
pub(crate) fn wait_until_ready(child: &mut Child) {
    child.wait_for(READY);
}

/// In that process.
pub(crate) async fn run_until_killed(told: &str) {
    let [directory, number, profile, runs, addresses] = told.split('\n').collect::<Vec<_>>()[..] else {
        panic!("not a role of this benchmark: {told}")
    };
    let number: usize = number.parse().expect("a number");
    let addresses: Vec<&str> = addresses.split(',').collect();
    let mut config = Config::new(name(number), addresses[number], directory, addresses.len());
    config.profile = profile.parse().expect("a profile");
    let peers = addresses.iter().enumerate().map(|(number, address)| Peer::new(name(number), *address));
    let (machine, service) = what_runs(runs);
    let parts = NodeParts {
        resolver: Arc::new(StaticResolver::new(peers.collect::<Vec<_>>())),
        security: Security::LoopbackOnly,
        engines: Arc::new(Openraft),
        machine,
        ledger: None,
        service,
    };
    let (cluster, _) = Cluster::start(config, parts).await.expect("a node");
    println!("{READY}");
    let error = cluster.stopped().await;
    panic!("the node stopped: {error}");
}

type MakeMachine = Box<dyn Fn() -> Box<dyn StateMachine> + Send + Sync>;

fn what_runs(runs: &str) -> (MakeMachine, Option<Arc<dyn ClientService>>) {
    if runs == format!("{:?}", Runs::Map) {
        return (Box::new(|| Box::new(Map::default())), None);
    }
    let service = ElectionService::new(clock());
    let machines = service.clone();
    (Box::new(move || machines.machine()), Some(Arc::new(service)))
}

pub(crate) fn name(number: usize) -> NodeName {
    NodeName::new(format!("n-{number}")).expect("a name")
}
