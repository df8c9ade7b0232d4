//! While this node leads the cluster: signs of life, and what the [`Keepalives`](crate::keepalive::Keepalives) table says is due.

use std::time::Duration;

use bellwether_cluster::{RaftFailure, RaftStatus, ServiceNode};
use tokio::sync::watch;

use super::ElectionService;
use super::serve::failed;
use crate::command::{Command, SessionId};
use crate::keepalive::{NotCounted, Ticket};
use crate::protocol::Reply;

/// Before a node that believes in its election asks the others again.
const CONFIRM_PAUSE: Duration = Duration::from_millis(20);
/// The table is looked at this often at the least.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl ElectionService {
    /// Leads in every term in which this node is elected, until it stops.
    pub(super) async fn lead_whenever_elected(&self, node: &ServiceNode) {
        let Some(mut status) = node.bound().await else { return };
        while let Some(RaftStatus { term, .. }) = wait_for(&mut status, |status| status.is_leader).await {
            tracing::debug!(term, "this node leads the cluster");
            let mut until = status.clone();
            tokio::select! {
                _ = wait_for(&mut until, |status| !status.is_leader || status.term != term) => {}
                () = self.lead(node, term) => {}
            }
            self.0.applied.inside().keepalives.lost_leadership();
            self.0.began.send_replace(None);
        }
    }

    async fn lead(&self, node: &ServiceNode, term: u64) {
        // The first entry of this term is in the state from here on, and with it everything that earlier leaders acknowledged or proposed
        // and that ever counts.
        while self.0.rounds.confirm(node, None).await.is_err() {
            tokio::time::sleep(CONFIRM_PAUSE).await;
        }
        {
            let mut inside = self.0.applied.inside();
            let inside = &mut *inside;
            inside.keepalives.became_leader(self.0.clock.boot(), term, &inside.state);
        }
        self.0.began.send_replace(Some(term));
        let mut changes = self.0.applied.changes();
        loop {
            changes.borrow_and_update();
            let pause = self.propose_due(node);
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Proposes what is due, and says when to look again.
    fn propose_due(&self, node: &ServiceNode) -> Duration {
        let now = self.0.clock.boot();
        let keepalives = &mut self.0.applied.inside().keepalives;
        for command in keepalives.poll_due(now) {
            let (service, node) = (self.clone(), node.clone());
            tokio::spawn(async move { service.propose_own(&node, command).await });
        }
        keepalives.poll_timeout().map_or(LOOK_INTERVAL, |at| at.since(now).min(LOOK_INTERVAL))
    }

    async fn propose_own(&self, node: &ServiceNode, command: Command) {
        match node.propose(command.encode()).await {
            // The table hears of it where it is applied. One that may still be applied is not dropped.
            Ok(_) | Err(RaftFailure::Unknown(_)) => {}
            Err(failure) => {
                tracing::debug!(%failure, "what is due was not proposed");
                self.0.applied.inside().keepalives.dropped(self.0.clock.boot(), &command);
            }
        }
    }

    /// Counts a sign of life of this session, from now on.
    pub(super) async fn arrived(&self, node: &ServiceNode, session: SessionId) -> Result<Ticket, Reply> {
        // A leader that was just elected is about to begin.
        let mut began = self.0.began.subscribe();
        wait_for(&mut began, Option::is_some).await;
        let counted = self.0.applied.inside().keepalives.arrived(self.0.clock.boot(), session);
        match counted {
            Ok(ticket) => Ok(ticket),
            Err(NotCounted::NotLeader | NotCounted::TooMany) => {
                Err(Reply::NotLeader { leader: node.leader_address() })
            }
            Err(NotCounted::Expiring) => {
                Err(Reply::Unknown { why: "the session may have expired just now".to_owned() })
            }
            // Another node may lead by now, and have opened it.
            Err(NotCounted::NoSuchSession) => Err(match self.0.rounds.confirm(node, None).await {
                Ok(_) => match self.0.applied.led_by(session) {
                    Some(_) => Reply::Unknown { why: "the session was opened just now".to_owned() },
                    None => Reply::Ended,
                },
                Err(failure) => failed(node, failure),
            }),
        }
    }

    pub(super) async fn keep_alive(&self, node: &ServiceNode, session: SessionId) -> Reply {
        let ticket = match self.arrived(node, session).await {
            Ok(ticket) => ticket,
            Err(reply) => return reply,
        };
        let confirmed = match self.0.rounds.confirm(node, Some(ticket)).await {
            Ok(confirmed) => confirmed,
            Err(failure) => return failed(node, failure),
        };
        match self.0.applied.led_by(session) {
            None => Reply::Ended,
            Some(led) if confirmed.is_acknowledged => Reply::Kept { led },
            Some(_) => Reply::Unknown { why: "the leader of the cluster changed meanwhile".to_owned() },
        }
    }
}

/// The value, once this holds; `None` when it never will. As the channel's own, without a lock that could be held for long.
async fn wait_for<T: Clone>(channel: &mut watch::Receiver<T>, holds: impl FnMut(&T) -> bool) -> Option<T> {
    channel.wait_for(holds).await.ok().map(|value| value.clone())
}
