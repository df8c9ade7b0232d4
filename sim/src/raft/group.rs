//! The cluster: a log that is right, and leaders that may be wrong about themselves.

use std::collections::{BTreeMap, VecDeque};

use bellwether_cluster::At;
use bellwether_raft::command::SessionId;
use bellwether_raft::keepalive::{Keepalives, Ticket};
use bellwether_raft::state::{Applied, State};

use super::client::Return;
use crate::clock::Machine;
use crate::time::Nanos;

/// Three nodes, of which one leads.
pub(super) struct Group {
    pub(super) nodes: Vec<RaftNode>,
    /// The newest term, and who leads in it.
    pub(super) term: u64,
    pub(super) leader: usize,
    pub(super) state: State,
    index: u64,
    /// Appended by the leader, and not committed.
    pending: VecDeque<Pending>,
    appended: u64,
}

/// One node.
pub(super) struct RaftNode {
    pub(super) machine: Machine,
    pub(super) table: Keepalives,
    /// The term in which it believes that it leads.
    pub(super) leads: Option<u64>,
    /// What it has applied, if that is not everything.
    pub(super) stale: Option<State>,
    /// Who waits for which keepalive, and of which session it is.
    pub(super) tickets: BTreeMap<Ticket, (SessionId, Return)>,
    pub(super) round_planned: bool,
    pub(super) timer_at: Nanos,
}

struct Pending {
    number: u64,
    term: u64,
    bytes: Vec<u8>,
    to: Option<Return>,
}

/// An entry that was applied.
pub(super) struct Committed {
    pub(super) applied: Applied,
    pub(super) to: Option<Return>,
}

impl Group {
    pub(super) fn new(machines: Vec<Machine>) -> Group {
        let node = |machine| RaftNode {
            machine,
            table: Keepalives::new(),
            leads: None,
            stale: None,
            tickets: BTreeMap::new(),
            round_planned: false,
            timer_at: Nanos::MAX,
        };
        let nodes = machines.into_iter().map(node).collect();
        let (state, pending) = (State::new(), VecDeque::new());
        Group { nodes, term: 0, leader: 0, state, index: 0, pending, appended: 0 }
    }

    /// Whether this node is the one whose commands are committed.
    pub(super) fn is_leader(&self, node: usize) -> bool {
        self.leader == node && self.nodes[node].leads == Some(self.term)
    }

    /// What a node has applied.
    pub(super) fn state_of(&self, node: usize) -> &State {
        self.nodes[node].stale.as_ref().unwrap_or(&self.state)
    }

    /// A node that leads appends a command. The number of the entry; `None` where it will never be committed.
    pub(super) fn append(&mut self, node: usize, bytes: Vec<u8>, to: Option<Return>) -> Option<u64> {
        if !self.is_leader(node) {
            return None;
        }
        self.appended += 1;
        self.pending.push_back(Pending { number: self.appended, term: self.term, bytes, to });
        Some(self.appended)
    }

    /// A majority has everything up to that entry.
    pub(super) fn commit(&mut self, number: u64, now: Nanos) -> Vec<Committed> {
        let mut all = Vec::new();
        while self.pending.front().is_some_and(|pending| pending.number <= number)
            && let Some(pending) = self.pending.pop_front()
        {
            all.push(self.apply(pending, now));
        }
        all
    }

    /// Another term begins. Of what was not committed, the first `survive` entries are in the new leader's log, and so are committed before
    /// anything else; the rest is gone for good.
    pub(super) fn elect(&mut self, leader: usize, survive: usize, now: Nanos) -> Vec<Committed> {
        let old = self.leader;
        if old != leader && self.nodes[old].leads.is_some() {
            self.nodes[old].stale = Some(self.state.clone());
        }
        let survivors: Vec<Pending> = self.pending.drain(..).take(survive).collect();
        self.term += 1;
        self.leader = leader;
        let node = &mut self.nodes[leader];
        node.table.lost_leadership();
        node.tickets.clear();
        (node.leads, node.stale) = (Some(self.term), None);
        survivors.into_iter().map(|pending| self.apply(pending, now)).collect()
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    fn apply(&mut self, pending: Pending, now: Nanos) -> Committed {
        self.index += 1;
        let at = At { index: self.index, term: pending.term, generation: 0 };
        let applied = self.state.step(at, &pending.bytes);
        let node = &mut self.nodes[self.leader];
        if node.table.term() == Some(self.term) {
            node.table.applied(node.machine.boot(now), &applied.changes);
        }
        // Whoever proposed it in an older term cannot know what became of it.
        Committed { applied, to: pending.to.filter(|_| pending.term == self.term) }
    }
}
