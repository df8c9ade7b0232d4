//! One question to another node, on a connection of its own.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::names::NodeName;
use crate::protocol::{AdminAnswer, AdminRequest, FormationAnswer, FormationRequest};

/// For an answer about a formation: a node that is up writes a line to its disk before it gives one.
pub(super) const FORMATION_LIMIT: Duration = Duration::from_secs(2);

/// Asks other nodes.
pub(super) trait Ask: Send + Sync + 'static {
    /// Asks the node at this address, which has to have this name if one is given.
    fn formation(
        &self,
        address: String,
        to: Option<NodeName>,
        request: FormationRequest,
    ) -> BoxFuture<'_, Result<FormationAnswer, AskFailure>>;

    /// Asks a node of this node's own cluster.
    fn admin(
        &self,
        address: String,
        request: AdminRequest,
        limit: Duration,
    ) -> BoxFuture<'_, Result<AdminAnswer, AskFailure>>;
}

/// A question without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AskFailure {
    pub(super) message: String,
    /// It never reached anybody.
    pub(super) is_unsent: bool,
}

impl fmt::Display for AskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
