//! Between the processes and the store: what is delayed, lost, doubled, refused and announced.

use bellwether_backend::{Change, Write};
use bellwether_core::{Epoch, ErrorKind};

use crate::call::{OutgoingCall, Purpose, RegisterAnswer, RegisterCall, Slot};
use crate::connection::{leadership_of, lock, trouble};
use crate::faults::WorldFault;
use crate::invariants::epochs::Epochs;
use crate::invariants::exclusion::SimLeadership;
use crate::invariants::{order, read_only};
use crate::key::ElectionKey;
use crate::node::Cut;
use crate::options::Watch;
use crate::queue::{Delivery, WorldEvent};
use crate::store::StoreState;
use crate::time::Nanos;
use crate::world::{World, say};

impl World {
    /// Takes everything out of a process's outbox and sends it on its way.
    pub(crate) fn flush(&mut self, node: usize) {
        self.flush_sessions(node);
        let calls = std::mem::take(&mut lock(&self.nodes[node].connection).outbox);
        for call in calls {
            self.send(node, call);
        }
    }

    fn send(&mut self, from: usize, call: OutgoingCall) {
        self.judge(read_only::check(call.purpose, &call.ask));
        self.judge_sent(from, &call);
        let node = &mut self.nodes[from];
        if node.pending.len() > 24 {
            node.pending.retain(|slot| !slot.is_over());
        }
        node.pending.push(call.slot.clone());
        if !node.connected {
            self.fail_or_hang(from, call.slot);
            return;
        }
        if node.cut == Some(Cut::Calls) {
            self.hang(from, call.slot);
            return;
        }
        let net = self.options.net;
        if self.chance(net.call_lost) {
            self.tally.count(WorldFault::CallLost);
            self.hang(from, call.slot);
            return;
        }
        if self.chance(net.error / 2) {
            self.tally.count(WorldFault::Error);
            self.fail_soon(from, call.slot);
            return;
        }
        self.dispatch(from, call);
    }

    /// Sends it: once, or twice.
    fn dispatch(&mut self, from: usize, call: OutgoingCall) {
        let net = self.options.net;
        let first = self.now + self.latency();
        let copy = |call: &OutgoingCall| OutgoingCall {
            key: call.key,
            ask: call.ask.clone(),
            slot: call.slot.clone(),
            purpose: call.purpose,
            known: None,
        };
        let connection_number = self.nodes[from].connection_number;
        let deletions = self.store.deletions(call.key);
        let delivery = |call, answered| {
            WorldEvent::Deliver(Box::new(Delivery { from, connection_number, deletions, answered, call }))
        };
        if self.chance(net.self_conflict) {
            self.tally.count(WorldFault::SelfConflict);
            let second = first + self.latency();
            self.queue.push(first, delivery(copy(&call), false));
            self.queue.push(second, delivery(call, true));
            return;
        }
        if self.chance(net.twice) {
            self.tally.count(WorldFault::CallTwice);
            let second = first + self.latency() + self.rng.below(self.options.longest_ttl());
            self.queue.push(second, delivery(copy(&call), false));
        }
        self.queue.push(first, delivery(call, true));
    }

    /// What leaves a process is judged when it leaves.
    fn judge_sent(&mut self, from: usize, call: &OutgoingCall) {
        let RegisterCall::Write { record, .. } = &call.ask else { return };
        let node = &mut self.nodes[from];
        if !matches!(call.purpose, Purpose::Request(_) | Purpose::Pause) {
            node.beats.entry(call.key).or_default().insert(record.beat);
        }
        match call.purpose {
            Purpose::Release(who, epoch) => {
                let working = node.candidate_of(who).and_then(|candidate| candidate.work);
                self.judge(order::check(epoch, working.map(|work| work.epoch)));
            }
            Purpose::Claim(who) => {
                if let (Some(epoch), Some(known)) = (record.epoch, &call.known) {
                    self.election(call.key).losses.claims(SimLeadership { who, epoch }, known);
                    self.judge(Epochs::claims(epoch, known.highest));
                }
            }
            Purpose::Renew(..) | Purpose::Request(_) | Purpose::Pause | Purpose::Look | Purpose::Tend => {}
        }
    }

    /// A call reaches the store.
    pub(crate) fn deliver(&mut self, delivery: Delivery) {
        let Delivery { from, connection_number, deletions, answered, call } = delivery;
        // A connection that broke took with it what was on its way.
        if connection_number != self.nodes[from].connection_number {
            return;
        }
        // An order that arrives when the faults have stopped is one more.
        if self.outage || self.heal.is_some() && call.purpose == Purpose::Pause {
            if answered {
                self.fail_or_hang(from, call.slot);
            }
            return;
        }
        // A create that left before a deletion is void after it: stores that can delete compare for that (a
        // deleted key of NATS keeps its revision, a directory's numbers go on), else one that was judged by what
        // stood there before would count for what came after.
        if matches!(call.ask, RegisterCall::Write { at: None, .. })
            && deletions != self.store.deletions(call.key)
        {
            if answered {
                self.hang(from, call.slot);
            }
            return;
        }
        let (answer, commit) = self.store.apply(call.key, &call.ask);
        if let (Purpose::Claim(_), RegisterAnswer::Written(Write::Conflict)) = (call.purpose, &answer) {
            self.tally.claims_lost += 1;
        }
        if let Some(commit) = commit {
            self.committed(from, call.key, call.purpose, &commit);
        }
        if !answered {
            return;
        }
        let net = self.options.net;
        if self.nodes[from].cut == Some(Cut::Answers) {
            self.hang(from, call.slot);
        } else if self.chance(net.answer_lost) {
            self.tally.count(WorldFault::AnswerLost);
            self.hang(from, call.slot);
        } else if self.chance(net.error / 2) {
            self.tally.count(WorldFault::Error);
            self.fail_soon(from, call.slot);
        } else {
            let mut at = self.now + self.latency();
            if self.chance(net.answer_late) {
                self.tally.count(WorldFault::AnswerLate);
                at += self.rng.below(2 * self.options.longest_ttl());
            }
            self.queue.push(at, WorldEvent::Answer(from, call.slot, Box::new(answer)));
        }
    }

    /// Tells everybody who follows the election what its record is now.
    pub(crate) fn announce(&mut self, key: ElectionKey) {
        if self.options.watch == Watch::Off {
            return;
        }
        let state = self.store.record(key).clone();
        for node in self.alive() {
            if !lock(&self.nodes[node].connection).follows(key) {
                continue;
            }
            let Some(at) = self.heard_at(node) else { continue };
            self.send_news(node, key, at, &state);
            if self.chance(self.options.net.news_again) {
                self.tally.count(WorldFault::NewsAgain);
                let again = at + self.rng.below(self.options.longest_ttl());
                self.send_news(node, key, again, &state);
            }
        }
    }

    /// When this node hears what followers are told now, if it does.
    pub(crate) fn heard_at(&mut self, node: usize) -> Option<Nanos> {
        if self.nodes[node].cut.is_some() {
            return None;
        }
        let net = self.options.net;
        if self.chance(net.news_lost) {
            self.tally.count(WorldFault::NewsLost);
            return None;
        }
        let mut at = self.now + self.latency();
        if self.chance(net.news_late) {
            self.tally.count(WorldFault::NewsLate);
            at += self.rng.below(self.options.longest_ttl());
        }
        Some(at)
    }

    fn send_news(&mut self, node: usize, key: ElectionKey, at: Nanos, state: &StoreState) {
        let change = match self.options.watch {
            Watch::Record => Change::Now(key.name(), state.as_deref().cloned()),
            Watch::Look => Change::Look(key.name()),
            Watch::Off => return,
        };
        let connection_number = self.nodes[node].connection_number;
        self.queue.push(at, WorldEvent::News(node, connection_number, Box::new(change)));
    }

    pub(crate) fn news(&mut self, node: usize, connection_number: u32, change: Change<u64>) {
        let receiver = &self.nodes[node];
        if receiver.process.is_none()
            || connection_number != receiver.connection_number
            || !receiver.connected
        {
            return;
        }
        lock(&receiver.connection).inbox.push_back(change);
        self.step(node);
    }

    /// The connection breaks: everything under way over it is lost, and the process hears of it.
    pub(crate) fn reset(&mut self, node: usize, back_after: Nanos) {
        let broken = &mut self.nodes[node];
        broken.connection_number += 1;
        broken.connected = false;
        for slot in broken.pending.drain(..) {
            slot.break_off(trouble(ErrorKind::Unavailable, "the connection broke"));
        }
        lock(&broken.connection).inbox.push_back(Change::Doubt);
        let connection_number = broken.connection_number;
        self.queue.push(self.now + back_after, WorldEvent::Reconnect(node, connection_number));
        self.step(node);
    }

    /// A cut is over, or a broken connection is back. What broke is announced before any call can succeed.
    pub(crate) fn reconnect(&mut self, node: usize, connection_number: u32) {
        if self.nodes[node].connection_number != connection_number || self.nodes[node].process.is_none() {
            return;
        }
        if self.sessions.is_some() {
            self.flow_again(node);
            return;
        }
        let silent = self.nodes[node].connected && self.rng.one_in(2);
        self.nodes[node].cut = None;
        if silent {
            return;
        }
        say!(self, "{node} is connected again");
        let back = &mut self.nodes[node];
        back.connection_number += 1;
        back.connected = true;
        for slot in back.pending.drain(..) {
            slot.break_off(trouble(ErrorKind::Unavailable, "the connection was renewed"));
        }
        lock(&back.connection).inbox.push_back(Change::Restored);
        self.step(node);
        for key in self.keys() {
            if self.rng.one_in(2) {
                self.watch_anew(node, key);
            }
        }
    }

    /// A watch that begins anew starts with what is there, sometimes with something older first.
    fn watch_anew(&mut self, node: usize, key: ElectionKey) {
        let (state, mut at) = (self.store.record(key).clone(), self.now + self.latency());
        let ago = self.rng.below(12) as usize;
        if let Some(older) = self.store.past(key, ago).filter(|_| self.heal.is_none()).cloned() {
            self.tally.count(WorldFault::NewsAgain);
            self.send_news(node, key, at, &older);
            at += self.latency();
        }
        self.send_news(node, key, at, &state);
    }

    fn fail_or_hang(&mut self, node: usize, slot: Slot) {
        if self.rng.one_in(2) { self.fail_soon(node, slot) } else { self.hang(node, slot) }
    }

    /// An error comes back.
    fn fail_soon(&mut self, node: usize, slot: Slot) {
        let at = self.now + self.latency();
        self.queue.push(at, WorldEvent::GiveUp(node, slot));
    }

    /// Nothing comes back; the process's client gives up by itself.
    fn hang(&mut self, node: usize, slot: Slot) {
        let at = match self.heal {
            Some(_) => self.now + self.latency(),
            None => self.now + self.options.patience / 2 + self.rng.below(self.options.patience),
        };
        self.queue.push(at, WorldEvent::GiveUp(node, slot));
    }

    /// The store lost something of an election: a record that was held may be gone, though nobody claimed or released it.
    pub(crate) fn content_lost(&mut self, key: ElectionKey, before: &StoreState) {
        let (now, count) = (self.store.record(key).clone(), self.store.count());
        let (at, election) = (self.now, self.election(key));
        election.pauses.content_lost(at, now.as_deref().map(|found| &found.0));
        let recorded = now.as_ref().and_then(|found| found.0.epoch).unwrap_or(Epoch::ZERO);
        election.losses.forgotten(recorded.max(count), election.owners.highest());
        let held = |state: &StoreState| state.as_ref().and_then(|found| leadership_of(&found.0));
        if let Some(leadership) = held(before)
            && held(&now) != Some(leadership)
        {
            election.losses.destroyed(leadership);
        }
    }
}
