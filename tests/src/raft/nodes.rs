//! The nodes of one cluster, and everything that they ever said of it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use bellwether_cluster::NodeView;
use bellwether_support::netns::Network;
use bellwether_support::servers::own_address;
use serde_json::Value;

use super::client::url;
use super::{Client, Seat};
use crate::{Candidate, Ended, EventLine, json, run_to_end, until_blocking};

/// The first port; where nodes share an address, each has the next.
const PORT: u16 = 7117;

/// What all nodes of all tests have: they join again and vote soon, since tests wait for it.
const FLAGS: [&str; 4] = ["--join-retry", "200ms", "--promote-after", "200ms"];

/// The nodes of a cluster. Those that run are killed when this is dropped.
pub struct Nodes {
    /// One for each node, in their order; `n0` is the seed.
    pub seats: Vec<Seat>,
    /// Their network, where they have one of their own.
    pub network: Option<Network>,
    /// Flags of all nodes besides the usual.
    pub flags: Vec<String>,
    /// The service whose SRV records name the nodes, instead of a list.
    pub peers_dns: Option<String>,
    secret: Option<PathBuf>,
    /// How many form the cluster.
    initial: usize,
    /// Every cluster id that any node has named.
    clusters: BTreeSet<String>,
    directory: tempfile::TempDir,
}

impl Nodes {
    /// Seats for so many, on an address of the loopback that nobody else has.
    pub fn new(count: usize) -> Nodes {
        let mut nodes = Nodes::without_seats(count);
        let host = own_address();
        for number in 0..count {
            nodes.add_seat(format!("{host}:{}", PORT + number as u16));
        }
        nodes
    }

    /// Seats on a network of their own; `None`, said aloud, where this is not root.
    pub fn in_network(count: usize) -> Option<Nodes> {
        let mut network = Network::new()?;
        let mut nodes = Nodes::without_seats(count);
        nodes.use_secret();
        for _ in 0..count {
            let host = network.node();
            let address = format!("{}:{PORT}", host.address);
            nodes.add_seat(address).host = Some(host);
        }
        nodes.network = Some(network);
        Some(nodes)
    }

    fn without_seats(initial: usize) -> Nodes {
        Nodes {
            seats: Vec::new(),
            network: None,
            flags: FLAGS.map(str::to_owned).to_vec(),
            peers_dns: None,
            secret: None,
            initial,
            clusters: BTreeSet::new(),
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// So many of the first ones form the cluster.
    pub fn forms_with(&mut self, count: usize) {
        self.initial = count;
    }

    /// One more seat, at this address.
    pub fn add_seat(&mut self, address: String) -> &mut Seat {
        let name = format!("n{}", self.seats.len());
        let directory = self.directory.path().join(&name);
        self.seats.push(Seat::new(name, address, directory));
        self.seats.last_mut().expect("it was added")
    }

    /// One more seat beside the first ones, on the loopback.
    pub fn add_seat_beside(&mut self) -> usize {
        let host = self.seats[0].address.rsplit_once(':').expect("an address has a port").0;
        let address = format!("{host}:{}", PORT + self.seats.len() as u16);
        self.add_seat(address);
        self.seats.len() - 1
    }

    /// From now on, nodes and clients have a secret.
    pub fn use_secret(&mut self) {
        self.secret = Some(self.write_secret("secret", "what nodes and clients know\n"));
    }

    /// A file with a secret.
    pub fn write_secret(&self, name: &str, secret: &str) -> PathBuf {
        let file = self.directory.path().join(name);
        std::fs::write(&file, secret).expect("our own directory");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("our own file");
        file
    }

    /// A directory for whatever else a test needs.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What `--peers` says: all that form the cluster.
    pub fn peers(&self) -> String {
        let named =
            self.seats[..self.initial].iter().map(|seat| format!("{}={}", seat.name, seat.advertised));
        named.collect::<Vec<_>>().join(",")
    }

    /// The command line of a node.
    pub fn node_command(&self, at: usize) -> std::process::Command {
        let seat = &self.seats[at];
        let mut command = seat.command();
        command.args(["-o", "json", "node", "--name", &seat.name, "--bind", &seat.address]);
        command.args(["--advertise", &seat.advertised]);
        match &self.peers_dns {
            None => command.args(["--peers", &self.peers()]),
            Some(service) => command.args(["--peers-dns", service]),
        };
        command.arg("--data-dir").arg(&seat.directory).args(&self.flags);
        if let Some(secret) = &self.secret {
            command.arg("--secret-file").arg(secret);
        }
        command
    }

    /// Starts a node.
    pub fn start(&mut self, at: usize) {
        let process = Candidate::start(self.node_command(at));
        self.seats[at].process = Some(process);
    }

    /// Starts these, and waits until all of them are ready.
    #[track_caller]
    pub fn start_ready(&mut self, which: impl IntoIterator<Item = usize> + Clone) {
        which.clone().into_iter().for_each(|at| self.start(at));
        for at in which {
            self.ready(at);
        }
    }

    /// Starts all, and waits until all are ready.
    #[track_caller]
    pub fn form(&mut self) {
        self.start_ready(0..self.seats.len());
    }

    /// Waits until a node is ready; notes which cluster it is in.
    #[track_caller]
    pub fn ready(&mut self, at: usize) -> EventLine {
        let line = self.seats[at].ready();
        self.note(line.text("cluster").expect("a node that is ready is in a cluster"));
        line
    }

    /// Asks a node to stop, which must end well.
    #[track_caller]
    pub fn stop(&mut self, at: usize) -> Ended {
        let ended = self.seats[at].terminate();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    /// A client that asks this node first, and then the others. Made on the thread that uses it, where the node runs.
    pub fn client(&self, first: usize) -> Client {
        Client::new(self.addresses(first), self.secret.as_deref())
    }

    /// What [`client`](Nodes::client) makes, to be made later on another thread; that one has to be where the node runs.
    pub fn client_maker(&self, first: usize) -> impl FnOnce() -> Client + Send + 'static {
        let addresses: Vec<String> = self.addresses(first).map(str::to_owned).collect();
        let secret = self.secret.clone();
        move || Client::new(addresses.iter().map(String::as_str), secret.as_deref())
    }

    /// Does this with a client that asks this node first, where the node runs.
    pub fn ask<T: Send>(&self, first: usize, act: impl FnOnce(&Client) -> T + Send) -> T {
        let make = self.client_maker(first);
        self.seats[first].inside(move || act(&make()))
    }

    /// The URL of all nodes, beginning with this one.
    pub fn url(&self, first: usize) -> String {
        url(&self.addresses(first).collect::<Vec<_>>(), self.secret.as_deref())
    }

    /// Runs a command to its end where this node runs, on the cluster.
    pub fn run(&self, at: usize, arguments: &[&str]) -> Output {
        let mut command = self.seats[at].command();
        command.args(["--backend", &self.url(at)]).args(arguments);
        run_to_end(command)
    }

    /// Runs `bellwether members …` where this node runs, on the cluster.
    pub fn members(&self, at: usize, arguments: &[&str]) -> Output {
        self.run(at, &[&["members"], arguments].concat())
    }

    /// The members, as soon as the leader can name them.
    #[track_caller]
    pub fn list(&mut self, at: usize) -> Value {
        let listed = until_blocking(|| {
            let output = self.members(at, &["list", "-o", "json"]);
            if output.status.success() { Ok(json(&output)) } else { Err(format!("{output:?}")) }
        });
        self.note(listed["cluster"].as_str().expect("a cluster has an id"));
        listed
    }

    /// Who leads, by the list of members that this node is asked for.
    #[track_caller]
    pub fn leader(&mut self, at: usize) -> usize {
        let listed = self.list(at);
        let members = listed["members"].as_array().expect("a list");
        let leader = members.iter().find(|member| member["leader"] == true).expect("somebody leads");
        self.seats.iter().position(|seat| leader["name"] == seat.name.as_str()).expect("one of ours")
    }

    /// Waits until the members are as many voters as that.
    #[track_caller]
    pub fn voters(&mut self, at: usize, count: usize) -> Value {
        until_blocking(|| {
            let listed = self.list(at);
            let members = listed["members"].as_array().expect("a list");
            let is_so = members.len() == count && members.iter().all(|member| member["role"] == "voter");
            if is_so { Ok(listed) } else { Err(format!("not {count} voters: {listed}")) }
        })
    }

    /// What a node says of itself, if it answers; notes which cluster it is in.
    pub fn view(&mut self, at: usize) -> Result<NodeView, String> {
        let view = self.look(at)?;
        if let Some(cluster) = view.cluster {
            self.note(&cluster.to_string());
        }
        Ok(view)
    }

    /// What a node says of itself, whichever cluster it is in.
    pub fn look(&self, at: usize) -> Result<NodeView, String> {
        let (address, secret) = (self.seats[at].address.clone(), self.secret.clone());
        let mut views = self.seats[at].inside(|| Client::new([address.as_str()], secret.as_deref()).views());
        views.pop().expect("one address").1.map_err(|error| error.to_string())
    }

    /// Waits until all nodes that run have applied the same entries, and checks that their states are equal, and that there has only
    /// ever been one cluster.
    #[track_caller]
    pub fn agree(&mut self) {
        let running: Vec<usize> = (0..self.seats.len()).filter(|at| self.seats[*at].runs()).collect();
        let views = until_blocking(|| {
            let views: Result<Vec<NodeView>, String> = running.iter().map(|at| self.view(*at)).collect();
            let views = views?;
            let is_same = |view: &NodeView| {
                let is_whole = view.hashed_index == view.applied_index;
                view.is_ready && is_whole && view.hashed_index == views[0].hashed_index
            };
            if views.iter().all(is_same) { Ok(views) } else { Err(format!("not at one entry: {views:?}")) }
        });
        let is_equal = |view: &NodeView| view.state_hash == views[0].state_hash;
        assert!(views.iter().all(is_equal), "the same entries, and different states: {views:?}");
        self.assert_one_cluster();
    }

    /// Checks that no node has ever named another cluster than the others.
    #[track_caller]
    pub fn assert_one_cluster(&self) {
        assert_eq!(self.clusters.len(), 1, "clusters that nodes have named: {:?}", self.clusters);
    }

    /// An operator has made another cluster of what is left of this one.
    pub fn recovered(&mut self) {
        self.clusters.clear();
    }

    /// The cluster, of which there is only one.
    #[track_caller]
    pub fn cluster(&self) -> &str {
        self.assert_one_cluster();
        self.clusters.first().expect("there is one")
    }

    fn note(&mut self, cluster: &str) {
        self.clusters.insert(cluster.to_owned());
    }

    /// All addresses, beginning with this node's.
    fn addresses(&self, first: usize) -> impl Iterator<Item = &str> {
        let turned = self.seats[first..].iter().chain(&self.seats[..first]);
        turned.map(|seat| seat.address.as_str())
    }
}

impl Drop for Nodes {
    /// A test that failed is explained by what the nodes said.
    fn drop(&mut self) {
        for seat in self.seats.iter_mut().filter(|_| std::thread::panicking()) {
            let Some(process) = &mut seat.process else { continue };
            process.kill();
            println!("# {} said\n{}", seat.name, process.ended().stderr);
        }
    }
}
