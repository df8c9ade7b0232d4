//! The flags of `bellwether node`, `members` and `recover`.

use std::path::PathBuf;
use std::time::Duration;

use bellwether::ElectionName;
use bellwether::cluster::{ClusterId, Named, NodeName, Profile, SeedStrategy, StaticResolver};
use clap::{Args as ClapArgs, Subcommand};

#[cfg(feature = "http")]
use super::NodeHttpFlags;
use super::{duration, election, interval_from};

/// Run a node of a Raft cluster, until interrupted.
///
/// All nodes of a cluster have the same flags; only --name differs, and in Kubernetes it is the pod's. A node with an empty data
/// directory forms a cluster with the others, or joins theirs: to form one, all nodes of --expect have to be up once. From then on a node
/// goes on from its data directory, whatever the flags say, and a majority is enough.
///
/// On TERM or INT it hands its leadership over and exits with 0; it stays a member, and is expected back. A second signal ends it
/// at once. Leaving for good is `bellwether members remove`: the removed node exits with 76.
///
/// With -o json, it prints a line of JSON when it is ready, when the leader changes, and when it ends.
#[derive(Debug, ClapArgs)]
pub(crate) struct Node {
    /// This node's name: stable, and different from that of every other node. Default: $POD_NAME, or the host's name.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<NodeName>,

    /// Where this node keeps its log, its snapshots and its identity. Default: bellwether/node/NAME in $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Where to listen. Default: this node's own address in --peers, else 127.0.0.1:7117. Beyond loopback, a secret or certificates are
    /// required.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) bind: Option<String>,

    /// Where others reach this node, such as $(POD_NAME).SERVICE:7117 in a StatefulSet. Default: its own address in --peers, else that
    /// of --bind.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<String>,

    /// For how long a new member has to keep up with the log before it votes.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) promote_after: Duration,

    /// How fast a failed leader of the cluster is replaced: default (after 0.75 to 0.9 s of silence), or fast (150 to 180 ms, for
    /// nodes that are close together and never starved).
    #[arg(long, value_name = "PROFILE", value_parser = profile, default_value = "default")]
    pub(crate) profile: Profile,

    // Last: their headings count for everything after them.
    #[command(flatten)]
    pub(crate) peers: PeerFlags,

    #[command(flatten)]
    pub(crate) forming: FormingFlags,

    #[command(flatten)]
    pub(crate) security: SecurityFlags,

    #[cfg(feature = "http")]
    #[command(flatten)]
    pub(crate) http: NodeHttpFlags,
}

/// Who the other nodes are: one of these.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Peers")]
pub(crate) struct PeerFlags {
    /// All nodes by their names and addresses, this one included.
    #[arg(long, value_name = "NAME=HOST:PORT,…", value_parser = peers)]
    pub(crate) peers: Option<StaticResolver>,

    /// Find the nodes by the SRV records of a headless Service, or of any other name. The port is named raft, unless the name begins
    /// with another, as _PORT._tcp.SERVICE.
    #[arg(long, value_name = "SERVICE", conflicts_with = "peers")]
    pub(crate) peers_dns: Option<String>,

    /// Find the nodes in Kubernetes: by the name of their Service, or by a label selector such as app=db. They listen on the port named
    /// raft, unless another name or number follows a colon.
    #[cfg(feature = "kubernetes")]
    #[arg(long, value_name = "SERVICE|SELECTOR[:PORT]", conflicts_with_all = ["peers", "peers_dns"])]
    pub(crate) peers_kubernetes: Option<String>,
}

/// How a cluster is formed, once.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Forming a cluster")]
pub(crate) struct FormingFlags {
    /// How many nodes form the cluster. Default: as many as --peers has, else 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) expect: Option<u32>,

    /// Which node proposes the cluster: expect (the first by ordinal or name), lowest-ordinal (the same, and every name must end with
    /// an ordinal), or explicit:NAME. There is never more than one cluster, whatever is chosen here.
    #[arg(long, value_name = "STRATEGY", value_parser = seed, default_value = "expect")]
    pub(crate) seed: SeedStrategy,

    /// Give up, with exit code 69, if this node is not ready within this time. 0 waits forever.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero, default_value = "0")]
    pub(crate) join_timeout: Duration,

    /// The longest pause between attempts to form or join a cluster.
    #[arg(long, value_name = "DURATION", value_parser = retry, default_value = "2s")]
    pub(crate) join_retry: Duration,

    #[command(flatten)]
    pub(crate) ledger: LedgerFlags,

    /// Give up the cluster of this id, with everything that it held, and form another. Stop all its nodes first: a node refuses while
    /// a peer says that the cluster runs. Only a data directory of that cluster is archived, so the flag may stay.
    #[arg(long, value_name = "CLUSTER", value_parser = cluster_id)]
    pub(crate) force_new_cluster: Option<ClusterId>,
}

/// The record, outside the cluster, that it was formed.
#[derive(Debug, ClapArgs)]
pub(crate) struct LedgerFlags {
    /// Record that the cluster was formed on the store of this URL: file, Kubernetes, NATS or PostgreSQL with tables. With it, even nodes
    /// that all lost their disks form no second cluster, and the first node needs no others to begin.
    #[arg(long, value_name = "URL")]
    pub(crate) ledger: Option<String>,

    /// The name of the record. Clusters that share a store have names of their own.
    #[arg(long, value_name = "NAME", value_parser = election, default_value = "bellwether")]
    pub(crate) ledger_name: ElectionName,
}

/// What nodes show to each other; the same on all nodes.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Security")]
pub(crate) struct SecurityFlags {
    /// A secret that all nodes and clients know, of at least 16 bytes. Nothing is encrypted: use certificates where others can read along.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tls_ca", "tls_cert", "tls_key"])]
    pub(crate) secret_file: Option<PathBuf>,

    /// Certificates of the authority that nodes and clients have theirs from (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,

    /// This node's certificate, for its host or its name (PEM). Renewed files count from the next connection.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The key of --tls-cert (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Let a node go on alone whose cluster has lost a majority for good. Offline: no process uses its data directory.
///
/// The node becomes the only voter of a new cluster, with everything that its own log has. What only the lost nodes had is lost. Do this on ONE
/// node, the one whose log is longest; then move the data directories of all others away, and start them: they join. Without --yes, it
/// only says what it would do, and exits with 64. It can be run again after a crash.
#[derive(Debug, ClapArgs)]
pub(crate) struct Recover {
    /// The node's name, to find its data directory by. Default: $POD_NAME, or the host's name.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<NodeName>,

    /// The node's data directory. Default: that of `bellwether node` with this name.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Where others reach the node. Default: where they did before.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<String>,

    /// Do it.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) ledger: LedgerFlags,
}

/// Show and change the members of a Raft cluster, through any of its nodes: --backend raft://HOST:PORT[,HOST:PORT]…
///
/// A cluster that asks for a secret or certificates has them as parameters of the URL: ?secret-file=FILE, or
/// ?tls-ca=FILE&tls-cert=FILE&tls-key=FILE.
#[derive(Debug, Subcommand)]
pub(crate) enum MembersCommand {
    /// Show the members as the leader sees them, after a majority has confirmed that it leads. Changes nothing.
    List,
    /// Ask each node of the URL for itself: whether it is ready, whom it follows, how far it is. Exits with 1 if one is not ready.
    Nodes,
    /// Ask a node that is in no cluster to join this one. It votes when it has caught up.
    Add {
        /// Where the node is reached.
        #[arg(value_name = "HOST:PORT")]
        address: String,
    },
    /// Make a voter of a member that does not vote yet, now instead of when it has kept up for a while.
    Promote {
        /// The member, by its name or its node id.
        #[arg(value_name = "NAME", value_parser = named)]
        member: Named,
    },
    /// Remove a member for good. Its process ends with exit code 76, and its data stays in its directory.
    Remove {
        /// The member, by its name or its node id.
        #[arg(value_name = "NAME", value_parser = named)]
        member: Named,
    },
    /// Hand the leadership of the cluster to another voter.
    Transfer {
        /// The voter. Default: the one that has most of the log.
        #[arg(value_name = "NAME", value_parser = named)]
        member: Option<Named>,
    },
}

/// At a shorter interval, nodes do nothing but ask each other.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);

fn retry(text: &str) -> Result<Duration, String> {
    interval_from(SHORTEST_RETRY, text)
}

fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

fn name(text: &str) -> Result<NodeName, String> {
    text.parse().map_err(|error: bellwether::cluster::InvalidName| error.to_string())
}

fn named(text: &str) -> Result<Named, String> {
    text.parse().map_err(|error: bellwether::cluster::InvalidName| error.to_string())
}

fn cluster_id(text: &str) -> Result<ClusterId, String> {
    text.parse().map_err(|error: bellwether::cluster::InvalidId| error.to_string())
}

fn peers(text: &str) -> Result<StaticResolver, String> {
    text.parse().map_err(|error: bellwether::cluster::ClusterError| error.to_string())
}

fn seed(text: &str) -> Result<SeedStrategy, String> {
    text.parse().map_err(|error: bellwether::cluster::ClusterError| error.to_string())
}

fn profile(text: &str) -> Result<Profile, String> {
    text.parse().map_err(|error: bellwether::cluster::ClusterError| error.to_string())
}
