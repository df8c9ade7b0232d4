//! The work of leaderships: it begins with belief, is told to stop, and takes its time.

use bellwether_core::{Boot, Epoch, Input};

use super::world::{Happening, RaftWorld, say};
use crate::candidate::SimWork;
use crate::invariants::exclusion::{self, SimLeadership};
use crate::key::{ElectionKey, Seat};
use crate::time::{MILLI, nanos};

impl RaftWorld {
    pub(super) fn believe(&mut self, seat: Seat, epoch: Epoch, until: Boot) {
        let (now, candidate) = (self.now, self.candidate(seat));
        let (key, leadership) = (candidate.key, SimLeadership { who: candidate.who.incarnation, epoch });
        let alternates = candidate.alternation.believes(epoch);
        let begins = candidate.work.is_none_or(|work| work.epoch != epoch);
        if begins {
            candidate.work = Some(SimWork { epoch, since: now, until });
        } else if let Some(work) = &mut candidate.work {
            work.until = until;
        }
        self.judge(alternates);
        self.trace.mix(epoch.get());
        for other in self.others_leading(key, seat) {
            let verdict = exclusion::check(leadership, other, &self.losses).map(drop);
            self.judge(verdict);
        }
        if begins {
            say!(self, "{seat} LEADS {key:?} under {epoch:?}");
            self.tally.elections += 1;
            self.tally.beside += u64::from(self.leads_another(seat));
            let verdict = self.epochs[key.0].begins(leadership, &self.losses);
            self.judge(verdict);
        }
    }

    pub(super) fn end_work(&mut self, seat: Seat, epoch: Epoch, by: Boot) {
        let process = &mut self.processes[seat.node];
        let (life, killed) = (process.life, process.machine.when(by).max(self.now));
        let candidate = &mut process.candidates[seat.place];
        let verdict = candidate.alternation.ends(epoch);
        if let Some(work) = candidate.work.as_mut().filter(|work| work.epoch == epoch) {
            work.until = work.until.min(by);
        }
        let settings = &self.options.plans[seat.node].candidates[seat.place].settings;
        let left = (killed - self.now).max(nanos(settings.options().stop_timeout).min(MILLI));
        let takes = if self.rng.one_in(4) { left } else { self.rng.below(left + 1) / 2 };
        self.plan(takes + 1, Happening::WorkOver(seat, life, epoch));
        self.judge(verdict);
    }

    pub(super) fn work_over(&mut self, seat: Seat, life: u32, epoch: Epoch) {
        let now = self.now;
        let process = &mut self.processes[seat.node];
        let candidate = &mut process.candidates[seat.place];
        if process.life != life || candidate.work.is_none_or(|work| work.epoch != epoch) {
            return;
        }
        if let Some(work) = candidate.work.take() {
            let end = process.machine.when(work.until).clamp(work.since, now.max(work.since));
            self.tally.led += u128::from(end - work.since);
        }
        self.candidate(seat).alternation.ended(epoch);
        self.tell(seat, Input::WorkEnded(epoch));
    }

    /// Every candidate of that election that leads just now.
    pub(super) fn leading(&self, key: ElectionKey) -> impl Iterator<Item = (Seat, SimLeadership)> {
        let seats = (0..self.processes.len()).flat_map(|node| self.seats(node));
        let of = seats.filter(move |seat| self.processes[seat.node].candidates[seat.place].key == key);
        of.filter_map(|seat| Some((seat, self.processes[seat.node].leadership(seat.place, self.now)?)))
    }

    fn others_leading(&self, key: ElectionKey, but: Seat) -> Vec<SimLeadership> {
        self.leading(key).filter(|(seat, _)| *seat != but).map(|(_, leadership)| leadership).collect()
    }

    fn leads_another(&self, seat: Seat) -> bool {
        let process = &self.processes[seat.node];
        let mut others = self.seats(seat.node).filter(|other| *other != seat);
        others.any(|other| process.leadership(other.place, self.now).is_some())
    }
}
