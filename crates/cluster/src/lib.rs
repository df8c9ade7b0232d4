//! Form a Raft cluster safely, and run state machines on it.
//!
//! The trouble with clusters is less Raft than what comes before it: a seed that lost its disk and forms a second cluster, a node that
//! comes back under its old id and votes twice, addresses that change, a shutdown that alters the membership. This crate owns all that:
//!
//! - [`formation`] decides whether a node proposes a cluster, waits to be invited, joins one, or goes on. Pure, and explored exhaustively.
//! - [`NodeId`] and [`ClusterId`] tell nodes and clusters apart; [`NodeName`] is only a label.
//! - [`Resolver`] finds the peers, and [`BootstrapLedger`] remembers that a cluster was formed even when all disks are lost.
//! - [`RaftAdapter`] is what a Raft engine has to offer, and [`PeerLink`] what it gets.
//! - `OpenraftEngine` is one, with its storage (feature `openraft`).
//! - [`StateMachine`] is what runs on the cluster.
//! - [`ClientService`] is what the clients of a cluster talk to.
//! - [`transport`] connects nodes with each other and clients with nodes.

mod adapter;
mod admin;
mod client_url;
mod config;
mod directory;
#[cfg(feature = "openraft")]
mod engine;
mod error;
pub mod formation;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod ledger;
mod member;
mod names;
mod node;
mod peer;
mod protocol;
#[cfg(feature = "openraft")]
mod recovery;
mod resolver;
mod state_machine;
pub mod transport;

pub use adapter::{Applied, Lane, PeerLink, RaftAdapter, RaftFailure, RaftStatus, Unreached};
pub use admin::AdminClient;
pub use client_url::{ClientConfig, DEFAULT_PORT};
pub use config::{BootstrapConfig, Config, Profile, SeedStrategy};
pub use directory::{DataDirectory, Identity};
#[cfg(feature = "openraft")]
pub use engine::{EngineOptions, Openraft, OpenraftEngine, Recovery, recover};
pub use error::{ClusterError, ErrorKind};
pub use ledger::{BootstrapLedger, Recording, parse_formed, print_formed};
pub use member::{Configuration, Member, Role};
pub use names::{ClusterId, InvalidId, InvalidName, NodeId, NodeName};
pub use node::{
    ClientService, Cluster, ClusterMetrics, Engines, NodeParts, NodeProbe, Opening, ServiceNode, StartMode,
    StartResult,
};
pub use peer::{NoOrdinal, Peer, extract_ordinal, is_lowest_ordinal};
pub use protocol::{ClusterView, MemberView, Named, NodeView};
#[cfg(feature = "openraft")]
pub use recovery::{Recovered, Survivor};
#[cfg(feature = "dns")]
pub use resolver::{DnsConfig, DnsResolver};
#[cfg(feature = "kubernetes-any-version")]
pub use resolver::{KubernetesAccess, KubernetesConfig, KubernetesResolver, PeerPort, PeerSource};
pub use resolver::{ResolveError, Resolver, StaticResolver};
pub use state_machine::{At, CorruptSnapshot, StateMachine};
