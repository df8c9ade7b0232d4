//! The flags of the NATS-specific commands.

use std::time::Duration;

use bellwether::{CandidateId, ElectionName};
use clap::{Args as ClapArgs, Subcommand};

use super::{candidate, duration, election};

#[derive(Debug, Subcommand)]
pub(crate) enum NatsCommand {
    Health(NatsHealth),
}

/// Ask a node for its health (profile=cluster).
///
/// Every `bellwether run` with profile=cluster, and every node of go-cluster, answers for itself on
/// cluster.<ELECTION>.health.<NODE>: its role, whom it takes for the leader, and for how long it has been up. An answer shows that
/// the node is there; it proves no leadership.
#[derive(Debug, ClapArgs)]
pub(crate) struct NatsHealth {
    /// The election, which go-cluster calls the cluster's id.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) election: ElectionName,

    /// The id of the node. Default: the leader.
    #[arg(value_name = "NODE", value_parser = candidate)]
    pub(crate) node: Option<CandidateId>,

    /// How long to wait for the answer.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) timeout: Duration,
}
