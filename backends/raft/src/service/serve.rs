//! Requests of clients: here if this node leads, else at the leader, once.

use std::time::Duration;

use bellwether_cluster::transport::CallError;
use bellwether_cluster::{Applied, RaftFailure, ServiceNode};

use super::ElectionService;
use crate::command::Command;
use crate::protocol::{ClientRequest, Query, Question, Reply, decode, encode};

/// What a node that passes a request on leaves of the client's time, so that its own answer is in time too.
const FORWARD_LEAVES: Duration = Duration::from_millis(50);
/// For a node that was just elected to begin to lead, before an operator is sent elsewhere: more than a round trip to a majority.
const ADMIT_LIMIT: Duration = Duration::from_secs(1);
/// The longest that any request may take.
const LIMIT_MAX: Duration = Duration::from_secs(10);

impl ElectionService {
    /// Answers within the limit of the request.
    pub(super) async fn answer(&self, node: &ServiceNode, request: ClientRequest) -> Reply {
        let limit = request.limit().min(LIMIT_MAX);
        match tokio::time::timeout(limit, self.answer_in_time(node, request)).await {
            Ok(reply) => reply,
            Err(_) => Reply::Unknown { why: "the cluster did not confirm it in time".to_owned() },
        }
    }

    async fn answer_in_time(&self, node: &ServiceNode, request: ClientRequest) -> Reply {
        match &request.what {
            Question::Node => {
                let name = node.name().map(|name| name.to_string()).unwrap_or_default();
                return Reply::Node { name, version: env!("CARGO_PKG_VERSION").to_owned() };
            }
            Question::ReadHere(query) => {
                let age_millis = node.leader_heard().map(|ago| ago.as_millis() as u64);
                return Reply::ReadHere { finding: self.0.applied.find(query), age_millis };
            }
            _ => {}
        }
        let is_leader = node.status().is_some_and(|status| status.borrow().is_leader);
        match is_leader {
            true => self.answer_as_leader(node, request.what).await,
            false if request.is_forwarded => Reply::NotLeader { leader: node.leader_address() },
            false => forward(node, request).await,
        }
    }

    async fn answer_as_leader(&self, node: &ServiceNode, what: Question) -> Reply {
        match what {
            Question::Propose(command) => self.propose(node, command).await,
            Question::KeepAlive(session) => self.keep_alive(node, session).await,
            Question::Read(query) => self.read(node, &query).await,
            Question::Members => match node.members().await {
                Ok(view) => Reply::Members(view),
                Err(_) => Reply::NotLeader { leader: node.leader_address() },
            },
            Question::Node | Question::ReadHere(_) => {
                Reply::Refused { why: "it is answered before".to_owned() }
            }
        }
    }

    /// A read that includes everything acknowledged before it was asked for.
    async fn read(&self, node: &ServiceNode, query: &Query) -> Reply {
        match self.0.rounds.confirm(node, None).await {
            Ok(_) => Reply::Read(self.0.applied.find(query)),
            // Nothing is done by a read, so it can be asked again anywhere.
            Err(_) => Reply::NotLeader { leader: node.leader_address() },
        }
    }

    async fn propose(&self, node: &ServiceNode, bytes: Vec<u8>) -> Reply {
        match self.admit(node, &bytes).await {
            Ok(()) => applied(node, node.propose(bytes).await),
            Err(reply) => reply,
        }
    }

    /// The same for an operator, or for the program that this node runs in.
    pub(super) async fn propose_for_operator(
        &self,
        node: &ServiceNode,
        bytes: Vec<u8>,
    ) -> Result<Applied, RaftFailure> {
        let status = node.status().ok_or(RaftFailure::NotLeader(None))?.borrow().clone();
        if !status.is_leader {
            return Err(RaftFailure::NotLeader(status.leader));
        }
        match tokio::time::timeout(ADMIT_LIMIT, self.admit(node, &bytes)).await {
            Ok(Ok(())) => node.propose(bytes).await,
            Ok(Err(Reply::Refused { why })) => Err(RaftFailure::Refused(why)),
            Ok(Err(Reply::Unknown { why })) => Err(RaftFailure::Unknown(why)),
            // Nothing was appended.
            Ok(Err(_)) | Err(_) => Err(RaftFailure::NotLeader(None)),
        }
    }

    /// Whether a command may be appended for somebody outside; the reply if not. Everything that this node does not propose by itself comes
    /// through here.
    async fn admit(&self, node: &ServiceNode, bytes: &[u8]) -> Result<(), Reply> {
        let command = match Command::decode(bytes) {
            Ok(command) if command.is_for_clients() => command,
            Ok(_) => return Err(Reply::Refused { why: NOT_FOR_OTHERS.to_owned() }),
            Err(why) => return Err(Reply::Refused { why }),
        };
        let Some(session) = command.counts_as_keepalive() else { return Ok(()) };
        // It proves that the session is alive, from before it was proposed.
        match self.arrived(node, session).await {
            // Its own commit is the round trip that acknowledges it.
            Ok(ticket) => self.0.applied.inside().keepalives.forget(ticket),
            // Nothing is granted without a session: the state machine says so, too.
            Err(Reply::Ended) => {}
            Err(reply) => return Err(reply),
        }
        Ok(())
    }
}

const NOT_FOR_OTHERS: &str = "only the leader of the cluster decides that, by its own clock";

fn applied(node: &ServiceNode, proposed: Result<Applied, RaftFailure>) -> Reply {
    match proposed {
        Ok(applied) => Reply::Applied(applied.answer),
        Err(failure) => failed(node, failure),
    }
}

pub(super) fn failed(node: &ServiceNode, failure: RaftFailure) -> Reply {
    match failure {
        RaftFailure::NotLeader(_) => Reply::NotLeader { leader: node.leader_address() },
        RaftFailure::Unknown(why) => Reply::Unknown { why },
        // Another node may do better: this one is full, or stops.
        RaftFailure::Refused(_) | RaftFailure::Stopped(_) => Reply::NotLeader { leader: None },
    }
}

async fn forward(node: &ServiceNode, request: ClientRequest) -> Reply {
    let limit = request.limit().min(LIMIT_MAX).saturating_sub(FORWARD_LEAVES);
    let request = ClientRequest { is_forwarded: true, ..request };
    match node.forward(encode(&request), limit).await {
        Ok(answer) => decode(&answer).unwrap_or_else(|why| Reply::Unknown { why }),
        Err(CallError::NotSent(_) | CallError::Refused(_)) => Reply::NotLeader { leader: None },
        Err(CallError::Unknown(why)) => Reply::Unknown { why },
        Err(CallError::Failed(why)) => Reply::Refused { why },
    }
}
