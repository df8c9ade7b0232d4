//! What the nodes do: serve clients, ask a majority, keep the time, change their leader.

use bellwether_core::{ElectionName, Signal};
use bellwether_raft::command::Command;
use bellwether_raft::keepalive::{NotCounted, Round};
use bellwether_raft::state::Change;

use super::client::{Ask, Reply, Return};
use super::group::Committed;
use super::world::{Happening, RaftWorld, say};
use crate::faults::WorldFault;
use crate::key::ElectionKey;
use crate::time::Nanos;

impl RaftWorld {
    /// A message reaches a node: mostly the leader, sometimes one that only believes that it leads.
    pub(super) fn arrive(&mut self, from: Return, ask: Ask) {
        let stays = self.processes[from.0].talks_to.filter(|node| self.group.nodes[*node].leads.is_some());
        self.processes[from.0].talks_to = stays;
        let node = match (stays, self.rng.below(5)) {
            (Some(node), _) => node,
            // A client that finds another node than the leader is told which one leads, and asks that one.
            (None, 0) if !self.healing => self.rng.below(self.group.nodes.len() as u64) as usize,
            (None, _) => self.group.leader,
        };
        if self.group.nodes[node].leads.is_none() {
            self.reply(from, Reply::NotNow);
            return;
        }
        match ask {
            Ask::KeepAlive(session) => {
                if let Ok(Some(ticket)) = self.count(node, session, from) {
                    self.group.nodes[node].tickets.insert(ticket, (session, from));
                    if !std::mem::replace(&mut self.group.nodes[node].round_planned, true) {
                        let after = self.latency() / 4;
                        self.plan(after, Happening::BeginRound(node));
                    }
                }
            }
            Ask::Command(bytes) => {
                let session = Command::decode(&bytes).ok().and_then(|command| command.counts_as_keepalive());
                if let Some(session) = session {
                    match self.count(node, session, from) {
                        Ok(Some(ticket)) => self.group.nodes[node].table.forget(ticket),
                        Ok(None) | Err(()) => return,
                    }
                }
                self.append(node, bytes, Some(from));
            }
            Ask::Read(key) => {
                // Confirmed by a round that is not spelled out here.
                if self.group.is_leader(node) {
                    let view = self.group.state.view(&key.name());
                    self.reply(from, Reply::View(view));
                }
            }
        }
    }

    /// Counts a keepalive; an error where it does not count, with the answer on its way where there is one.
    fn count(
        &mut self,
        node: usize,
        session: bellwether_raft::command::SessionId,
        from: Return,
    ) -> Result<Option<bellwether_raft::keepalive::Ticket>, ()> {
        let now = self.group.nodes[node].machine.boot(self.now);
        match self.group.nodes[node].table.arrived(now, session) {
            Ok(ticket) => Ok(Some(ticket)),
            Err(NotCounted::NoSuchSession) => {
                // A node may have been told of fewer sessions than there are: a majority has to confirm that it leads.
                if self.group.is_leader(node) && self.group.state.session_ttl(session).is_none() {
                    self.reply(from, Reply::Ended);
                }
                Err(())
            }
            Err(NotCounted::NotLeader | NotCounted::Expiring | NotCounted::TooMany) => {
                self.reply(from, Reply::NotNow);
                Err(())
            }
        }
    }

    fn append(&mut self, node: usize, bytes: Vec<u8>, to: Option<Return>) {
        if let Some(number) = self.group.append(node, bytes, to) {
            let after = self.latency() + self.latency();
            self.plan(after, Happening::Commit(number));
        }
    }

    pub(super) fn commit(&mut self, number: u64) {
        let committed = self.group.commit(number, self.now);
        self.committed(committed);
    }

    fn committed(&mut self, all: Vec<Committed>) {
        for Committed { applied, to } in all {
            self.tally.commits += 1;
            say!(self, "applied: {:?} {:?}", applied.answer, applied.changes);
            if let Some(to) = to {
                self.reply(to, Reply::Answer(applied.answer));
            }
            for change in applied.changes {
                match change {
                    Change::Election(on) => self.announce(&on),
                    Change::Requested { on, epoch, ask } => {
                        let request = ask.request(epoch);
                        self.tell_all(&on, &Signal::Requested(request));
                    }
                    _ => {}
                }
            }
        }
        self.set_timer(self.group.leader);
    }

    fn announce(&mut self, on: &ElectionName) {
        let seen = self.group.state.view(on).seen();
        self.tell_all(on, &Signal::Changed(seen));
    }

    fn tell_all(&mut self, on: &ElectionName, signal: &Signal) {
        let key = ElectionKey::of(on);
        for process in 0..self.processes.len() {
            if self.processes[process].candidates.iter().all(|candidate| candidate.key != key) {
                continue;
            }
            if self.chance(self.options.net.news_lost) {
                self.tally.count(WorldFault::NewsLost);
                continue;
            }
            let (after, life) = (self.latency(), self.processes[process].life);
            self.plan(after, Happening::News(process, life, key, Box::new(signal.clone())));
        }
    }

    pub(super) fn begin_round(&mut self, node: usize) {
        self.group.nodes[node].round_planned = false;
        if let Some(round) = self.group.nodes[node].table.begin_round() {
            let after = self.latency();
            self.plan(after, Happening::Majority(node, round));
        }
    }

    pub(super) fn confirm(&mut self, node: usize, round: Round, confirmed: bool) {
        let kept = if confirmed {
            self.group.nodes[node].table.confirmed(round, round.term)
        } else {
            self.group.nodes[node].table.failed(round);
            Vec::new()
        };
        for ticket in kept {
            let Some((session, to)) = self.group.nodes[node].tickets.remove(&ticket) else { continue };
            let led = self.group.state_of(node).led_by(session);
            let reply = led.map_or(Reply::Ended, |led| {
                Reply::Kept(led.iter().map(|(on, epoch)| (ElectionKey::of(on), *epoch)).collect())
            });
            self.reply(to, reply);
        }
        self.set_timer(node);
    }

    /// Sets the node's timer to what its table wants.
    fn set_timer(&mut self, node: usize) {
        let (now, machine) = (self.now, &self.group.nodes[node].machine);
        let due = self.group.nodes[node].table.poll_timeout().map(|due| machine.when(due).max(now));
        let Some(at) = due.filter(|at| *at < self.group.nodes[node].timer_at) else { return };
        self.group.nodes[node].timer_at = at;
        self.plan(at - now, Happening::NodeTimer(node));
    }

    pub(super) fn node_timer(&mut self, node: usize) {
        if self.now < self.group.nodes[node].timer_at {
            return;
        }
        self.group.nodes[node].timer_at = Nanos::MAX;
        let now = self.group.nodes[node].machine.boot(self.now);
        for command in self.group.nodes[node].table.poll_due(now) {
            say!(self, "node {node} decides {command:?}");
            // Mostly at once; now and then so late that much has happened since.
            let late = !self.healing && self.rng.one_in(4);
            let after = if late { self.rng.below(2 * self.options.longest_ttl()) } else { 1_000 };
            self.plan(after, Happening::Propose(node, command));
        }
        self.set_timer(node);
    }

    pub(super) fn propose(&mut self, node: usize, command: &Command) {
        let now = self.group.nodes[node].machine.boot(self.now);
        let refused = self.group.nodes[node].leads.is_none() || self.chance(1_000);
        if refused {
            self.group.nodes[node].table.dropped(now, command);
            self.set_timer(node);
        } else {
            self.append(node, command.encode(), None);
        }
    }

    /// A majority chooses a leader, be it the old one.
    pub(super) fn elect(&mut self) {
        let ttl = self.options.longest_ttl();
        let (old, before) = (self.group.leader, self.group.term);
        let leader = self.rng.below(self.group.nodes.len() as u64) as usize;
        let survive = self.rng.below(self.group.pending() as u64 + 1) as usize;
        let committed = self.group.elect(leader, survive, self.now);
        let term = self.group.term;
        say!(self, "node {leader} leads in term {term}; {survive} entries of term {before} survive");
        self.committed(committed);
        if old != leader {
            // Some are cut off from the new leader together with the old one.
            for process in 0..self.processes.len() {
                if self.rng.one_in(3) {
                    self.processes[process].talks_to = Some(old);
                }
            }
            let after = self.rng.below(3 * ttl);
            self.plan(after, Happening::Deposed(old, before));
        }
        let after = self.latency() + self.latency();
        self.plan(after, Happening::Ready(leader, term));
    }

    pub(super) fn ready(&mut self, node: usize, term: u64) {
        if self.group.term != term || !self.group.is_leader(node) {
            return;
        }
        let now = self.group.nodes[node].machine.boot(self.now);
        let group = &mut self.group;
        group.nodes[node].table.became_leader(now, term, &group.state);
        self.set_timer(node);
    }

    pub(super) fn deposed(&mut self, node: usize, term: u64) {
        let old = &mut self.group.nodes[node];
        if old.leads == Some(term) {
            old.table.lost_leadership();
            (old.leads, old.stale) = (None, None);
            old.tickets.clear();
        }
    }

    fn reply(&mut self, to: Return, reply: Reply) {
        let cut = self.processes[to.0].cut_until > self.now;
        if cut || self.chance(self.options.net.answer_lost) {
            self.tally.count(WorldFault::AnswerLost);
            return;
        }
        let after = self.latency();
        self.plan(after, Happening::Answer(to, Some(reply)));
    }
}
