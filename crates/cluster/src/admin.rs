//! What operators ask of a cluster, from outside.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_deadman::boot_now;

use crate::error::{ClusterError, ErrorKind};
use crate::protocol::{
    AdminAnswer, AdminCommand, AdminRequest, ClusterView, FailureKind, Named, NodeView, decode, encode,
};
use crate::transport::{Connection, Dialler, Hello, Intended, Purpose, Security};

/// For one node to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// For the nodes to agree on a leader: an election, and another that comes to nothing.
const LEADER_LIMIT: Duration = Duration::from_secs(10);
/// Between two rounds of asking: short beside an election.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks the nodes at some addresses, one after the other, until one answers. Keeps its connections for the next request.
pub struct AdminClient {
    dialler: Dialler,
    addresses: Vec<String>,
    connections: Mutex<HashMap<String, Connection>>,
}

impl AdminClient {
    /// Connects with the first request.
    ///
    /// # Errors
    /// When a certificate or its key cannot be read.
    pub fn new(
        addresses: impl IntoIterator<Item = String>,
        security: Security,
    ) -> Result<AdminClient, ClusterError> {
        Ok(AdminClient {
            dialler: Dialler::new(security)?,
            addresses: addresses.into_iter().collect(),
            connections: Mutex::default(),
        })
    }

    /// The members, as the leader sees them after a majority has confirmed it.
    ///
    /// # Errors
    /// When no node answers, or none leads.
    pub async fn members(&self) -> Result<ClusterView, ClusterError> {
        match self.ask(AdminCommand::Members).await? {
            AdminAnswer::Members(view) => Ok(view),
            _ => Err(senseless()),
        }
    }

    /// Asks the node at that address, which is in no cluster, to join this one.
    ///
    /// # Errors
    /// When it cannot be reached, or is in a cluster.
    pub async fn add(&self, address: String) -> Result<String, ClusterError> {
        self.done(AdminCommand::Add(address)).await
    }

    /// Makes a voter of a learner now.
    ///
    /// # Errors
    /// When it votes already.
    pub async fn promote(&self, member: Named) -> Result<String, ClusterError> {
        self.done(AdminCommand::Promote(member)).await
    }

    /// Removes a member.
    ///
    /// # Errors
    /// When the cluster would stop without it.
    pub async fn remove(&self, member: Named) -> Result<String, ClusterError> {
        self.done(AdminCommand::Remove(member)).await
    }

    /// Hands the leadership of the cluster over.
    ///
    /// # Errors
    /// When the new leader did not take over.
    pub async fn transfer(&self, to: Option<Named>) -> Result<String, ClusterError> {
        self.done(AdminCommand::Transfer(to)).await
    }

    /// A command for the state machine, unless the service of the nodes ([`ClientService`](crate::ClientService)) refuses it.
    ///
    /// # Errors
    /// As [`Cluster::propose`](crate::Cluster::propose).
    pub async fn propose(&self, command: Vec<u8>) -> Result<(u64, Vec<u8>), ClusterError> {
        match self.ask(AdminCommand::Propose(command)).await? {
            AdminAnswer::Applied { index, answer } => Ok((index, answer)),
            _ => Err(senseless()),
        }
    }

    /// What each node says of itself, in the order of the addresses.
    pub async fn nodes(&self) -> Vec<(String, Result<NodeView, ClusterError>)> {
        let mut views = Vec::new();
        for address in &self.addresses {
            let view = match self.ask_one(address, &AdminCommand::Node).await {
                Ok(AdminAnswer::Node(view)) => Ok(view),
                Ok(_) => Err(senseless()),
                Err(error) => Err(error),
            };
            views.push((address.clone(), view));
        }
        views
    }

    async fn done(&self, what: AdminCommand) -> Result<String, ClusterError> {
        match self.ask(what).await? {
            AdminAnswer::Done(sentence) => Ok(sentence),
            _ => Err(senseless()),
        }
    }

    /// Asks again what certainly was not done, until there is a leader.
    async fn ask(&self, what: AdminCommand) -> Result<AdminAnswer, ClusterError> {
        let begin = boot_now();
        loop {
            let mut last = ClusterError::invalid("no address of a node was given");
            for address in &self.addresses {
                match self.ask_one(address, &what).await {
                    // Of several answers, the one counts that may soon be another: there may be a leader soon, and one node of several
                    // may be down, or be set up wrongly.
                    Err(error) if hope(error.kind()).is_some() => {
                        if hope(error.kind()) > hope(last.kind()) {
                            last = error;
                        }
                    }
                    answer => return answer,
                }
            }
            if last.kind() != ErrorKind::NotLeader || boot_now().since(begin) > LEADER_LIMIT {
                return Err(last);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask_one(&self, address: &str, what: &AdminCommand) -> Result<AdminAnswer, ClusterError> {
        let request = encode(&AdminRequest { what: what.clone(), is_forwarded: false });
        let connection = self.connection(address).await?;
        let answer = match connection.call(request.clone(), ANSWER_LIMIT).await {
            // It closed since the last request, and nobody has seen this one.
            Err(error) if error.is_certainly_not_sent() && !connection.is_open() => {
                self.connection(address).await?.call(request, ANSWER_LIMIT).await
            }
            answer => answer,
        };
        let answer = answer.map_err(|error| {
            let kind =
                if error.is_certainly_not_sent() { ErrorKind::SeedUnavailable } else { ErrorKind::Unknown };
            ClusterError::new(kind, error.to_string())
        })?;
        match decode(&answer).map_err(|error| ClusterError::new(ErrorKind::Unknown, error))? {
            AdminAnswer::Failed { kind, message } => Err(error_of(kind, message)),
            answer => Ok(answer),
        }
    }

    /// The open connection to that address, or a new one.
    async fn connection(&self, address: &str) -> Result<Connection, ClusterError> {
        let open = self.connections().get(address).filter(|connection| connection.is_open()).cloned();
        if let Some(open) = open {
            return Ok(open);
        }
        let hello = Hello { purpose: Purpose::Admin, cluster: None, from: None, intended: Intended::Anyone };
        let dialled = self.dialler.connect(address, &hello).await;
        let connection = dialled.map_err(|error| {
            let kind = if error.cause.is_distrust() {
                ErrorKind::PermissionDenied
            } else {
                ErrorKind::SeedUnavailable
            };
            ClusterError::new(kind, error.to_string())
        })?;
        self.connections().insert(address.to_owned(), connection.clone());
        Ok(connection)
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<String, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How soon another node, or the same one, may answer better than by this error, which certainly did nothing; `None` where it counts.
fn hope(kind: ErrorKind) -> Option<u8> {
    match kind {
        ErrorKind::NotLeader => Some(2),
        ErrorKind::SeedUnavailable => Some(1),
        ErrorKind::PermissionDenied => Some(0),
        _ => None,
    }
}

/// What a failure means to whoever asked.
pub(crate) fn error_of(kind: FailureKind, message: String) -> ClusterError {
    let kind = match kind {
        FailureKind::NotLeader => ErrorKind::NotLeader,
        FailureKind::Unknown => ErrorKind::Unknown,
        FailureKind::Refused => ErrorKind::Refused,
        FailureKind::Stopped => ErrorKind::Stopped,
    };
    ClusterError::new(kind, message)
}

pub(crate) fn senseless() -> ClusterError {
    ClusterError::new(ErrorKind::Unknown, "the answer makes no sense: the nodes may run different versions")
}
