//! What goes wrong with processes, and what somebody wants of their candidates.

use bellwether_core::Input;

use super::world::{Happening, NODES, RaftWorld, say};
use crate::faults::WorldFault;
use crate::key::Seat;

impl RaftWorld {
    pub(super) fn fault(&mut self) {
        if self.healing {
            return;
        }
        let next = self.options.fault_every / 2 + self.rng.below(self.options.fault_every);
        self.plan(next, Happening::Fault);
        let slot = self.rng.below(self.processes.len() as u64) as usize;
        let ttl = self.options.longest_ttl();
        let span = match self.rng.below(3) {
            0 => self.rng.below(ttl / 4),
            1 => self.rng.below(ttl),
            _ => self.rng.below(3 * ttl),
        };
        let until = self.now + span;
        match self.rng.below(8) {
            0 | 1 => {
                say!(self, "{slot} stands still for {span}ns");
                self.tally.count(WorldFault::Pause);
                self.processes[slot].frozen_until = until;
            }
            2 | 3 => {
                say!(self, "{slot} is cut off for {span}ns");
                self.tally.count(WorldFault::Cut);
                self.processes[slot].cut_until = until;
            }
            4 => {
                say!(self, "{slot} crashes");
                self.tally.count(WorldFault::Crash);
                self.processes[slot].crash();
                self.start_all(slot, span);
            }
            5 => {
                self.tally.count(WorldFault::StepDown);
                let seat = self.some_candidate(slot);
                let to = self.rng.one_in(2).then(|| self.first_beside(seat));
                self.tell(seat, Input::StepDown { to });
            }
            6 => {
                self.tally.count(WorldFault::StopStart);
                let seat = self.some_candidate(slot);
                self.tell(seat, Input::Stop);
            }
            _ => {
                say!(self, "node {} starts again", self.group.leader);
                // The leader's table is lost, and somebody else may lead next.
                self.elect();
                let node = self.rng.below(NODES as u64) as usize;
                if !self.group.is_leader(node) {
                    let lost = &mut self.group.nodes[node];
                    lost.table.lost_leadership();
                    (lost.leads, lost.stale) = (None, None);
                }
            }
        }
    }

    fn some_candidate(&mut self, node: usize) -> Seat {
        let place = match self.processes[node].candidates.len() as u64 {
            1 => 0,
            many => self.rng.below(many) as usize,
        };
        Seat { node, place }
    }

    /// The first candidate of the same election.
    fn first_beside(&self, seat: Seat) -> bellwether_core::CandidateId {
        let candidates = &self.processes[seat.node].candidates;
        let mut all = self.processes.iter().flat_map(|process| &process.candidates);
        let first = all.find(|candidate| candidate.key == candidates[seat.place].key);
        first.unwrap_or(&candidates[seat.place]).who.id.clone()
    }
}
