//! Three nodes in three processes, on one disk.

use std::net::TcpListener;
use std::time::Duration;

use bellwether_cluster::transport::Security;
use bellwether_cluster::{AdminClient, Profile};
use bellwether_support::{Child, Scratch, until};

use crate::node::{self, Runs};

pub(crate) const NODES: usize = 3;
/// As rows name it; the page has its version.
pub(crate) const ETCD: &str = "etcd, three members, its defaults";

pub(crate) struct Trio {
    // Before the directory, which the processes write to.
    children: Vec<Option<Child>>,
    scratch: Scratch,
    addresses: Vec<String>,
    profile: Profile,
    runs: Runs,
}

impl Trio {
    /// Starts three nodes from nothing, and returns when all are ready.
    pub(crate) fn form(profile: Profile) -> Trio {
        Trio::form_with(profile, Runs::Map)
    }

    /// The same with the election service.
    pub(crate) fn with_elections() -> Trio {
        Trio::form_with(Profile::Default, Runs::Elections)
    }

    fn form_with(profile: Profile, runs: Runs) -> Trio {
        let held: Vec<TcpListener> =
            (0..NODES).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses = held.iter().map(|port| port.local_addr().expect("an address").to_string()).collect();
        drop(held);
        let mut trio = Trio {
            children: (0..NODES).map(|_| None).collect(),
            scratch: Scratch::new(),
            addresses,
            profile,
            runs,
        };
        (0..NODES).for_each(|number| trio.start(number));
        (0..NODES).for_each(|number| trio.wait_until_ready(number));
        trio
    }

    /// Starts a node that is down, from where it was, and waits for nothing.
    pub(crate) fn start(&mut self, number: usize) {
        let directory = self.scratch.path().join(node::name(number).to_string());
        let what = (self.profile, self.runs);
        self.children[number] = Some(node::start(&directory, number, what, &self.addresses));
    }

    pub(crate) fn wait_until_ready(&mut self, number: usize) {
        node::wait_until_ready(self.children[number].as_mut().expect("the node is up"));
    }

    /// With kill −9.
    pub(crate) fn kill(&mut self, number: usize) {
        self.children[number].take().expect("the node is up").kill();
    }

    pub(crate) fn pid(&self, number: usize) -> u32 {
        self.children[number].as_ref().expect("the node is up").id()
    }

    /// For clients of elections, which stay with the first node that they reach: that of this number.
    pub(crate) fn url_from(&self, number: usize) -> String {
        let turned = |step: usize| self.addresses[(number + step) % NODES].as_str();
        format!("raft://{}", (0..NODES).map(turned).collect::<Vec<_>>().join(","))
    }

    /// A client of one node.
    pub(crate) fn client(&self, number: usize) -> AdminClient {
        client([self.addresses[number].clone()])
    }

    /// A client of all nodes but this one.
    pub(crate) fn client_without(&self, number: usize) -> AdminClient {
        client(
            self.addresses.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, at)| at.clone()),
        )
    }

    /// The node that all nodes take for the leader. Waits until there is one.
    pub(crate) async fn leader(&self) -> usize {
        let client = client(self.addresses.clone());
        until(|| async {
            let views = client.nodes().await;
            let leaders: Vec<_> = views
                .iter()
                .map(|(_, view)| view.as_ref().ok().and_then(|view| view.leader.clone()))
                .collect();
            let agreed = leaders.windows(2).all(|pair| pair[0] == pair[1]);
            let first = leaders[0].as_ref().filter(|_| agreed);
            first
                .and_then(|leader| (0..NODES).find(|number| node::name(*number) == *leader))
                .ok_or_else(|| format!("no leader that all agree on: {leaders:?}"))
        })
        .await
    }

    /// Until all have applied the same.
    pub(crate) async fn until_equal(&self) {
        let client = client(self.addresses.clone());
        until(|| async {
            let views = client.nodes().await;
            let states: Vec<_> = views
                .iter()
                .map(|(_, view)| view.as_ref().ok().map(|view| (view.hashed_index, view.state_hash)))
                .collect();
            let is_equal = states.windows(2).all(|pair| pair[0] == pair[1] && pair[0].is_some());
            is_equal.then_some(()).ok_or_else(|| format!("the nodes differ: {states:?}"))
        })
        .await;
    }
}

fn client(addresses: impl IntoIterator<Item = String>) -> AdminClient {
    AdminClient::new(addresses, Security::LoopbackOnly).expect("a client")
}

/// The times of a measure of etcd's client.
pub(crate) fn times(measured: &serde_json::Value) -> Vec<Duration> {
    let all = measured["nanos"].as_array().expect("a list of times");
    all.iter().map(|nanos| Duration::from_nanos(nanos.as_u64().expect("nanoseconds"))).collect()
}
