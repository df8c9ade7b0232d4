//! What happens to processes and their machines.

use bellwether_core::Input;

use super::WorldFault;
use crate::node::Cut;
use crate::queue::WorldEvent;
use crate::time::{Nanos, SECOND};
use crate::world::{World, say};

impl World {
    /// One fault, and the next one's instant.
    pub(crate) fn next_fault(&mut self) {
        if self.heal.is_some() {
            return;
        }
        let next = self.now + 1 + self.rng.below(2 * self.options.fault_every);
        self.queue.push(next, WorldEvent::Fault);
        let faults = std::mem::take(&mut self.options.faults);
        let fault = self.draw(&faults);
        self.options.faults = faults;
        if let Some(fault) = fault {
            self.inflict(fault);
        }
    }

    /// One of these, by weight.
    pub(crate) fn draw(&mut self, of: &[(WorldFault, u64)]) -> Option<WorldFault> {
        let mut left = self.rng.below(of.iter().map(|(_, weight)| weight).sum());
        for (fault, weight) in of {
            if left < *weight {
                return Some(*fault);
            }
            left -= weight;
        }
        None
    }

    fn inflict(&mut self, fault: WorldFault) {
        match fault {
            WorldFault::Spike => self.slow_spell(),
            WorldFault::Outage => self.store_outage(),
            WorldFault::Rollback => self.roll_back(),
            WorldFault::Delete => self.delete(),
            WorldFault::Restart | WorldFault::Promotion => self.restart_server(fault),
            _ => {
                let Some(victim) = self.victim() else { return };
                match fault {
                    WorldFault::Pause | WorldFault::Suspend => self.freeze(victim, fault),
                    WorldFault::Crash => self.crash(victim, true),
                    WorldFault::Twin => self.twin(victim),
                    WorldFault::Clone => self.clone_process(victim),
                    WorldFault::Cut => self.cut(victim),
                    WorldFault::Terminate => self.terminate(victim),
                    WorldFault::WallJump => self.jump_wall(victim),
                    _ => {}
                }
            }
        }
    }

    /// The process of a leader more often than not: that is where it hurts.
    fn victim(&mut self) -> Option<usize> {
        let key = self.some_election();
        if let Some(leader) = self.leader(key)
            && self.rng.below(10) < 6
        {
            return Some(leader.node);
        }
        let alive = self.alive();
        let choice = self.rng.below(alive.len() as u64) as usize;
        alive.get(choice).copied()
    }

    /// How long something lasts: mostly around a ttl, where it matters.
    pub(crate) fn a_while(&mut self) -> Nanos {
        let ttl = self.options.longest_ttl();
        match self.rng.below(4) {
            0 => self.rng.below(ttl / 2),
            1 => ttl / 2 + self.rng.below(ttl),
            2 => self.rng.below(3 * ttl),
            _ => self.options.shortest_ttl() + self.rng.below(ttl / 2),
        }
    }

    fn freeze(&mut self, node: usize, how: WorldFault) {
        if !self.nodes[node].runs() {
            return;
        }
        self.tally.count(how);
        let span = self.a_while();
        say!(self, "{node} {how} for {span}ns");
        self.nodes[node].frozen = true;
        if how == WorldFault::Suspend {
            let now = self.now;
            self.nodes[node].machine.suspend(now);
        }
        self.queue.push(self.now + span, WorldEvent::Resume(node));
    }

    pub(crate) fn resume(&mut self, node: usize) {
        if !self.nodes[node].frozen {
            return;
        }
        say!(self, "{node} runs again");
        self.nodes[node].frozen = false;
        let now = self.now;
        self.nodes[node].machine.resume(now);
        self.nodes[node].candidates.iter_mut().for_each(|candidate| candidate.timer = (u64::MAX, None));
        // Timer, answers and the end of the work are all there at once; which is noticed first is a matter of luck.
        let back = crate::connection::lock(&self.nodes[node].connection).is_back();
        if self.rng.one_in(2) && !back {
            for seat in self.seats(node) {
                self.tell(seat, Input::Timeout);
            }
        }
        for seat in self.seats(node) {
            if let Some(epoch) = self.candidate_mut(seat).work_over.take() {
                self.work_over(seat, epoch);
            }
        }
        self.step(node);
    }

    pub(crate) fn crash(&mut self, node: usize, comes_back: bool) {
        let Some(slot) = self.nodes[node].slot.filter(|_| self.nodes[node].process.is_some()) else { return };
        self.tally.count(WorldFault::Crash);
        say!(self, "{node} crashes");
        for seat in self.seats(node) {
            self.forget_work(seat);
        }
        self.nodes[node].process = None;
        self.close_all(node);
        self.nodes[node].pending.clear();
        let dead = self.nodes[node].candidates.iter().map(|candidate| candidate.who.incarnation);
        crate::connection::lock(&self.store.facts().dead).extend(dead);
        if comes_back {
            let pause = if self.rng.one_in(3) { self.rng.below(SECOND / 10) } else { self.a_while() };
            self.queue.push(self.now + pause, WorldEvent::Restart(slot));
        }
    }

    fn twin(&mut self, node: usize) {
        let Some(slot) = self.nodes[node].slot.filter(|slot| self.alive_of(*slot) < 2) else { return };
        self.tally.count(WorldFault::Twin);
        self.freeze(node, WorldFault::Pause);
        let soon = self.rng.below(self.options.shortest_ttl() / 4);
        self.queue.push(self.now + soon, WorldEvent::Restart(slot));
    }

    /// What is under way or is being stopped cannot be copied, so such a process is left alone. Nor is there a clone where the store
    /// can prove a crash: that proof is the kernel's, which a clone on another machine does not share.
    fn clone_process(&mut self, node: usize) {
        if self.options.crash_proof || !self.nodes[node].is_at_rest() {
            return;
        }
        let slot = self.nodes[node].slot;
        // Of one process there are never more than two.
        for other in self.alive() {
            if other != node && self.nodes[other].slot == slot {
                self.crash(other, false);
            }
        }
        let Some(clone) = self.nodes[node].cloned(self.store.facts()) else { return };
        self.tally.count(WorldFault::Clone);
        say!(self, "{node} is cloned: {} knows the same", self.nodes.len());
        for (place, candidate) in clone.candidates.iter().enumerate() {
            if let Some(leadership) = clone.leadership(place, self.now) {
                self.elections[candidate.key.0].clones.cloned(leadership);
            }
        }
        self.nodes.push(clone);
        let clone = self.nodes.len() - 1;
        if self.rng.one_in(2) {
            let back_after = self.latency();
            self.reset(clone, back_after);
        }
        self.step(clone);
    }

    fn cut(&mut self, node: usize) {
        if self.nodes[node].cut.is_some() || !self.nodes[node].connected {
            return;
        }
        self.tally.count(WorldFault::Cut);
        let how = if self.rng.one_in(3) { Cut::Answers } else { Cut::Calls };
        let span = self.a_while();
        say!(self, "{node} is cut off ({how:?}) for {span}ns");
        self.nodes[node].cut = Some(how);
        if self.sessions.is_none() && self.rng.one_in(2) {
            crate::connection::lock(&self.nodes[node].connection)
                .inbox
                .push_back(bellwether_backend::Change::Doubt);
            self.step(node);
        }
        let connection_number = self.nodes[node].connection_number;
        self.queue.push(self.now + span, WorldEvent::Reconnect(node, connection_number));
    }

    fn jump_wall(&mut self, node: usize) {
        self.tally.count(WorldFault::WallJump);
        let span = 2_000 * SECOND;
        let by = self.rng.below(2 * span) as i64 - span as i64;
        self.nodes[node].machine.jump_wall(by);
    }
}
