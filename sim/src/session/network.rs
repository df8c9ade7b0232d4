//! Between the processes and the server: connections that keep their order, stall, go dead and break.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_backend::Condition;

use super::line::{Down, SessionLink, Stalled};
use super::server::Server;
use super::wire::{SentStatement, SessionKind, SessionNumber, Statement, StatementAnswer, StatementFailure};
use crate::call::Purpose;
use crate::connection::lock;
use crate::faults::WorldFault;
use crate::invariants::{order, read_only};
use crate::node::Cut;
use crate::queue::WorldEvent;
use crate::time::Nanos;
use crate::world::{World, say};

/// Everything of a world with a session store.
#[derive(Debug)]
pub(crate) struct SessionWorld {
    pub(crate) server: Server,
    pub(crate) lines: BTreeMap<SessionNumber, SessionLink>,
    /// What has reached a server that does not run on just now.
    backlog: Vec<(usize, SentStatement)>,
    /// Who had a lock when the server crashed.
    pub(crate) last_holders: BTreeSet<SessionNumber>,
}

impl SessionWorld {
    pub(crate) fn new(server: Server) -> SessionWorld {
        SessionWorld { server, lines: BTreeMap::new(), backlog: Vec::new(), last_holders: BTreeSet::new() }
    }
}

impl World {
    /// Takes everything off a process's mail: statements go on their way, alarms are set.
    pub(crate) fn flush_sessions(&mut self, node: usize) {
        if self.sessions.is_none() {
            return;
        }
        let (sent, alarms) = {
            let mut mail = lock(&self.nodes[node].mail);
            (std::mem::take(&mut mail.outbox), std::mem::take(&mut mail.alarms))
        };
        for boot in alarms {
            let at = self.nodes[node].machine.when(boot).max(self.now).saturating_add(1_000);
            self.queue.push(at, WorldEvent::Alarm(node));
        }
        let opens = sent.iter().any(|sent| matches!(sent.statement, Statement::Open(_)));
        let slow = if opens { self.slow_to_connect() } else { 0 };
        for sent in sent {
            self.send_up(node, sent, slow);
        }
    }

    /// Now and then all that a process opens at one time takes long to reach the server, and the server may restart meanwhile.
    fn slow_to_connect(&mut self) -> Nanos {
        if !self.chance(1_000) {
            return 0;
        }
        self.tally.count(WorldFault::AnswerLate);
        // Mostly longer than a ttl: a session of that age would be proof that the server did not restart.
        let ttl = self.options.longest_ttl();
        ttl * 3 / 4 + self.rng.below(ttl * 3 / 4)
    }

    fn send_up(&mut self, node: usize, sent: SentStatement, slow: Nanos) {
        say!(self, "{node} asks {:x} {:?} for {:?}", sent.session, sent.statement, sent.purpose);
        self.judge_asked(node, &sent);
        let lost = self.chance(self.options.net.call_lost / 4);
        let at = self.now + self.latency() + slow;
        let Some(sessions) = &mut self.sessions else { return };
        let kind = if let Statement::Open(kind) = sent.statement { kind } else { SessionKind::Lock };
        let line = sessions.lines.entry(sent.session).or_insert(SessionLink {
            node,
            kind,
            up: 0,
            down: 0,
            dead: false,
            closed: false,
            present: BTreeSet::new(),
            left: BTreeSet::new(),
            ended_by_hand: None,
        });
        match &sent.statement {
            Statement::Close => line.closed = true,
            Statement::Appear(wishes, _) => {
                for wish in wishes.iter().filter(|wish| wish.condition != Condition::NEVER) {
                    line.present.insert(wish.key);
                    if let Purpose::Claim(_) = sent.purpose {
                        line.left.remove(&wish.key);
                    }
                }
            }
            Statement::Leave(key, _) => {
                line.present.remove(key);
                line.left.insert(*key);
            }
            _ => {}
        }
        if line.dead {
            return;
        }
        if lost {
            self.tally.count(WorldFault::HalfOpen);
            line.dead = true;
            return;
        }
        if self.nodes[node].cut == Some(Cut::Calls) {
            self.nodes[node].stalled.push(Stalled::Up(sent));
            return;
        }
        line.up = at.max(line.up + 1);
        self.queue.push(line.up, WorldEvent::Arrive(node, Box::new(sent)));
    }

    /// What leaves a process is judged when it leaves.
    fn judge_asked(&mut self, node: usize, sent: &SentStatement) {
        self.judge(read_only::check_asked(sent.purpose, &sent.statement));
        let lets_go = matches!(sent.statement, Statement::Unlock(..) | Statement::Leave(..));
        if let (Purpose::Release(who, epoch), true) = (sent.purpose, lets_go) {
            let working = self.nodes[node].candidate_of(who).and_then(|candidate| candidate.work);
            self.judge(order::check(epoch, working.map(|work| work.epoch)));
        }
        let Some(sessions) = &self.sessions else { return };
        let verdict = match (sent.purpose, &sent.statement) {
            (Purpose::Renew(_, epoch), Statement::Appear(wishes, _)) => {
                let line = sessions.lines.get(&sent.session);
                let left = line.is_some_and(|line| wishes.iter().any(|wish| line.left.contains(&wish.key)));
                order::not_present_again(left, epoch)
            }
            (_, Statement::Unlock(key, _)) => {
                let mut own = sessions.lines.values().rev().filter(|line| line.node == node);
                let b = own.find(|line| line.kind == SessionKind::Presence);
                let present = b.is_some_and(|line| line.present.contains(key) && !line.closed);
                order::presence_first(present)
            }
            _ => Ok(()),
        };
        self.judge(verdict);
    }

    /// Something reaches the server.
    pub(crate) fn arrive(&mut self, node: usize, sent: SentStatement) {
        let Some(sessions) = &mut self.sessions else { return };
        if sessions.lines.get(&sent.session).is_none_or(|line| line.dead) {
            return;
        }
        let waits = self.outage || (sessions.server.down && self.rng.one_in(2));
        if waits && matches!(sent.statement, Statement::Open(_)) || self.outage {
            sessions.backlog.push((node, sent));
            return;
        }
        if sessions.server.down {
            match sent.statement {
                Statement::Open(_) => self.answer(node, sent, Err(StatementFailure::Over)),
                _ if self.rng.one_in(2) => self.hang_up(sent.session),
                _ => {}
            }
            return;
        }
        match sent.statement {
            Statement::Open(kind) => {
                sessions.server.open(self.now, sent.session, kind);
                self.answer(node, sent, Ok(StatementAnswer::Yes(true)));
            }
            Statement::Close => self.end_session(sent.session, false),
            _ if sessions.server.sessions.contains_key(&sent.session) => self.run_statement(node, sent),
            _ => self.hang_up(sent.session),
        }
    }

    fn run_statement(&mut self, node: usize, sent: SentStatement) {
        let error = self.options.net.error / 2;
        if self.chance(error) {
            self.tally.count(WorldFault::Error);
            self.answer(node, sent, Err(StatementFailure::Error));
            return;
        }
        let other_work = self.rng.below(3);
        let Some(sessions) = &mut self.sessions else { return };
        let (said, effect) = sessions.server.execute(self.now, sent.session, &sent.statement, other_work);
        if let Some(at) = sessions.server.idle_at(sent.session) {
            // One alarm for each session that can be ended: an earlier one finds that it is not yet time.
            self.queue.push(at, WorldEvent::Idle(sent.session));
        }
        self.took_effect(&sent, &effect);
        if self.chance(error) {
            self.tally.count(WorldFault::Error);
            self.answer(node, sent, Err(StatementFailure::Error));
        } else {
            self.answer(node, sent, Ok(said));
        }
    }

    /// The session's silence has lasted for its lease, or not yet.
    pub(crate) fn idle(&mut self, id: SessionNumber) {
        let Some(sessions) = &self.sessions else { return };
        let Some(due) = sessions.server.idle_at(id) else { return };
        if self.outage {
            // A server that stands still ends nothing.
            self.queue.push(self.now + self.options.shortest_ttl() / 50, WorldEvent::Idle(id));
        } else if due <= self.now {
            say!(self, "server: {id:x} was silent for too long");
            self.end_session(id, true);
        }
    }

    pub(crate) fn hang_up(&mut self, id: SessionNumber) {
        self.send_down(id, Down::HangUp);
    }

    fn answer(
        &mut self,
        node: usize,
        sent: SentStatement,
        result: Result<StatementAnswer, StatementFailure>,
    ) {
        say!(self, "server: to {node} on {:x} {:?}: {result:?}", sent.session, sent.statement);
        self.send_down(sent.session, Down::Answer(sent.reply, result));
    }

    pub(super) fn send_down(&mut self, id: SessionNumber, down: Down) {
        let net = self.options.net;
        let lost = self.chance(net.answer_lost / 4);
        let mut at = self.now + self.latency();
        if self.chance(net.answer_late) {
            self.tally.count(WorldFault::AnswerLate);
            at += self.rng.below(2 * self.options.longest_ttl());
        }
        let Some(line) = self.sessions.as_mut().and_then(|sessions| sessions.lines.get_mut(&id)) else {
            return;
        };
        if line.dead {
            return;
        }
        if lost {
            self.tally.count(WorldFault::HalfOpen);
            line.dead = true;
            return;
        }
        if self.nodes[line.node].cut.is_some() {
            self.nodes[line.node].stalled.push(Stalled::Down(id, down));
            return;
        }
        line.down = at.max(line.down + 1);
        self.queue.push(line.down, WorldEvent::Down(line.node, id, Box::new(down)));
    }

    /// Something reaches a process.
    pub(crate) fn come_down(&mut self, node: usize, id: SessionNumber, down: Down) {
        if self.nodes[node].process.is_none() {
            return;
        }
        match down {
            Down::Answer(reply, result) => *lock(&reply) = Some(result),
            Down::HangUp => {
                let line = self.sessions.as_mut().and_then(|sessions| sessions.lines.get_mut(&id));
                if let Some(line) = line {
                    line.closed = true;
                }
                lock(&self.nodes[node].mail).hung_up.push(id);
            }
            Down::News(news) => lock(&self.nodes[node].mail).inbox.push_back(news),
        }
        self.step(node);
    }

    /// A cut is over: what stalled goes on, in its order.
    pub(crate) fn flow_again(&mut self, node: usize) {
        self.nodes[node].cut = None;
        say!(self, "{node} is no longer cut off");
        for stalled in std::mem::take(&mut self.nodes[node].stalled) {
            let at = self.now + self.latency();
            let id = match &stalled {
                Stalled::Up(sent) => sent.session,
                Stalled::Down(id, _) => *id,
            };
            let Some(line) = self.sessions.as_mut().and_then(|sessions| sessions.lines.get_mut(&id)) else {
                continue;
            };
            match stalled {
                Stalled::Up(sent) => {
                    line.up = at.max(line.up + 1);
                    self.queue.push(line.up, WorldEvent::Arrive(node, Box::new(sent)));
                }
                Stalled::Down(id, down) => {
                    line.down = at.max(line.down + 1);
                    self.queue.push(line.down, WorldEvent::Down(node, id, Box::new(down)));
                }
            }
        }
    }

    /// The server runs on: it reads what has reached it meanwhile.
    pub(crate) fn read_backlog(&mut self) {
        let Some(sessions) = &mut self.sessions else { return };
        for (node, sent) in std::mem::take(&mut sessions.backlog) {
            self.queue.push(self.now + 1, WorldEvent::Arrive(node, Box::new(sent)));
        }
    }

    /// A process is dead: its kernel closes its connections, one after the other, if that gets through.
    pub(crate) fn close_all(&mut self, node: usize) {
        self.nodes[node].stalled.clear();
        let cut = self.nodes[node].cut.is_some();
        let Some(sessions) = &self.sessions else { return };
        let own = sessions.lines.iter().filter(|(_, line)| line.node == node && !line.dead);
        let own: Vec<SessionNumber> = own.map(|(id, _)| *id).collect();
        for session in own {
            let at = self.now + self.latency();
            let Some(line) = self.sessions.as_mut().and_then(|sessions| sessions.lines.get_mut(&session))
            else {
                continue;
            };
            if cut {
                line.dead = true;
                continue;
            }
            line.up = at.max(line.up + 1);
            let close = SentStatement {
                session,
                statement: Statement::Close,
                purpose: Purpose::Tend,
                reply: Arc::default(),
            };
            self.queue.push(line.up, WorldEvent::Arrive(node, Box::new(close)));
        }
    }
}
