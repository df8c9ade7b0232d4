//! The half that runs in every node of a cluster: answers clients, keeps the time of sessions while its node leads, and tells followers
//! of changes.
//!
//! ```text
//!  requests ─▶ serve ─▶ leads? ─ yes ─▶ propose, keepalive, read (rounds: one majority round trip for all who wait)
//!                         └ no ──▶ forward to the leader, once
//!  engine ─▶ applied: the state ─▶ watch: followers
//!                         └──────▶ leading: the keepalive table, expiries, ends of reservations and cooldowns
//! ```
//!
//! What holds, and why:
//!
//! - **A keepalive is acknowledged only after a round trip to a majority that began after it arrived**, so no other leader can have begun
//!   to count its session's ttl before it arrived. A claim counts as one: its own commit is the round trip.
//! - **From when an expiry is proposed, its session's keepalives are not acknowledged**, until it is applied or certainly dropped.
//! - **Nobody outside decides what the Raft leader's clock decides**: clients, operators and the program around the node propose through
//!   `admit` in `serve.rs`, which refuses expiries and the ends of reservations and cooldowns.
//! - **A request is passed on at most once**, with the number that its client gave it.
//! - A connection that ends proves nothing, and ends nothing but the futures that answer it.

mod applied;
mod leading;
mod rounds;
mod serve;
mod watch;

use std::sync::Arc;

use bellwether_cluster::transport::PartSender;
use bellwether_cluster::{ClientService, RaftFailure, ServiceNode, StateMachine};
use bellwether_core::Clock;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch as watch_channel};

use self::applied::{Applied, SharedMachine};
use self::rounds::Rounds;
use crate::protocol::{decode, encode};

/// Followers at a time: more than a listener has connections, since a client has a second stream for a moment when it asks for
/// something else.
const FOLLOWERS_MAX: usize = 2_048;

/// The election service of one node. Clones are the same service.
#[derive(Clone)]
pub struct ElectionService(Arc<Service>);

struct Service {
    clock: Arc<dyn Clock>,
    applied: Arc<Applied>,
    rounds: Rounds,
    /// The term in which this node keeps the time of sessions.
    began: watch_channel::Sender<Option<u64>>,
    followers: Semaphore,
}

impl ElectionService {
    /// A service with an empty state, for a node that is about to start.
    pub fn new(clock: Arc<dyn Clock>) -> ElectionService {
        let applied = Arc::new(Applied::new(Arc::clone(&clock)));
        ElectionService(Arc::new(Service {
            rounds: Rounds::new(Arc::clone(&applied)),
            applied,
            clock,
            began: watch_channel::Sender::new(None),
            followers: Semaphore::new(FOLLOWERS_MAX),
        }))
    }

    /// The state machine for the engine of the node, in the state that it begins with. The last one that was made is the one that counts.
    pub fn machine(&self) -> Box<dyn StateMachine> {
        self.0.applied.reset();
        Box::new(SharedMachine(Arc::clone(&self.0.applied)))
    }
}

impl ClientService for ElectionService {
    fn run(&self, node: ServiceNode) -> BoxFuture<'static, ()> {
        let service = self.clone();
        Box::pin(async move { service.lead_whenever_elected(&node).await })
    }

    fn propose(
        &self,
        node: ServiceNode,
        command: Vec<u8>,
    ) -> BoxFuture<'static, Result<bellwether_cluster::Applied, RaftFailure>> {
        let service = self.clone();
        Box::pin(async move { service.propose_for_operator(&node, command).await })
    }

    fn serve(&self, node: ServiceNode, request: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        let service = self.clone();
        Box::pin(async move { Ok(encode(&service.answer(&node, decode(&request)?).await)) })
    }

    fn stream(
        &self,
        _: ServiceNode,
        request: Vec<u8>,
        parts: PartSender,
    ) -> BoxFuture<'static, Result<(), String>> {
        let service = Arc::clone(&self.0);
        Box::pin(async move {
            let wanted = decode(&request)?;
            let _place = service.followers.try_acquire().map_err(|_| "this node has too many followers")?;
            watch::watch(&service.applied, &*service.clock, wanted, &parts).await
        })
    }
}

#[cfg(test)]
mod tests;
