//! Quorum round trips: one for everybody who came before it began, and the next when it has ended.
//!
//! Keepalives and reads share them. What a round means for the keepalives in it is the table's business
//! ([`Keepalives::confirmed`](crate::keepalive::Keepalives::confirmed)).

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::lock;
use bellwether_cluster::{RaftFailure, ServiceNode};
use tokio::sync::oneshot;

use super::applied::Applied;
use crate::keepalive::Ticket;

/// For one round trip. A leader without a majority gets none, and must not keep clients that could ask another node.
const ROUND_LIMIT: Duration = Duration::from_secs(1);
/// Those who wait for the next round. More than this many come only from clients that do not wait for answers.
const WAITING_MAX: usize = 65_536;

/// The round trips of one node.
#[derive(Clone)]
pub(super) struct Rounds {
    applied: Arc<Applied>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    for_next: Vec<Waiter>,
    is_running: bool,
}

/// Who waits for a round: a keepalive with its ticket, or a read without one.
struct Waiter {
    ticket: Option<Ticket>,
    answer: oneshot::Sender<Result<Confirmed, RaftFailure>>,
}

/// A majority has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Confirmed {
    /// Whether the keepalive is to be acknowledged; of a read, false.
    pub(super) is_acknowledged: bool,
}

impl Rounds {
    pub(super) fn new(applied: Arc<Applied>) -> Rounds {
        Rounds { applied, waiting: Arc::default() }
    }

    /// Returns when a majority has confirmed that this node leads, in a round trip that began after this call. Everything acknowledged
    /// before the call is in the state machine then.
    pub(super) async fn confirm(
        &self,
        node: &ServiceNode,
        ticket: Option<Ticket>,
    ) -> Result<Confirmed, RaftFailure> {
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.for_next.len() >= WAITING_MAX {
                return Err(RaftFailure::Refused("too many requests wait for the cluster".to_owned()));
            }
            waiting.for_next.push(Waiter { ticket, answer });
            if !waiting.is_running {
                waiting.is_running = true;
                // In a task of its own: whoever asked first may be gone before the others have their answer.
                tokio::spawn(self.clone().run(node.clone()));
            }
        }
        answered.await.unwrap_or_else(|_| Err(RaftFailure::Unknown("the node is stopping".to_owned())))
    }

    async fn run(self, node: ServiceNode) {
        loop {
            let these = {
                let mut waiting = lock(&self.waiting);
                let these = std::mem::take(&mut waiting.for_next);
                if these.is_empty() {
                    waiting.is_running = false;
                    return;
                }
                these
            };
            let outcome = self.round(&node).await;
            for Waiter { ticket, answer } in these {
                let confirmed = outcome.as_ref().map(|acknowledged| Confirmed {
                    is_acknowledged: ticket.is_some_and(|ticket| acknowledged.contains(&ticket)),
                });
                // Who has gone needs no answer.
                let _ = answer.send(confirmed.map_err(RaftFailure::clone));
            }
        }
    }

    /// One round trip. The keepalives that are acknowledged by it.
    async fn round(&self, node: &ServiceNode) -> Result<HashSet<Ticket>, RaftFailure> {
        let round = self.applied.inside().keepalives.begin_round();
        let outcome = match tokio::time::timeout(ROUND_LIMIT, node.confirm_leadership()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RaftFailure::NotLeader(None)),
        };
        let term = node.status().map(|status| status.borrow().term);
        let Some(round) = round else { return outcome.map(|_| HashSet::new()) };
        let keepalives = &mut self.applied.inside().keepalives;
        match (outcome, term) {
            (Ok(_), Some(term)) => Ok(keepalives.confirmed(round, term).into_iter().collect()),
            (Ok(_), None) => {
                keepalives.failed(round);
                Err(RaftFailure::NotLeader(None))
            }
            (Err(failure), _) => {
                keepalives.failed(round);
                Err(failure)
            }
        }
    }
}
