//! The work of leaderships: it begins with belief, is told to stop, takes its time, and is killed at its deadline.

use bellwether_core::{Boot, Epoch, Input};

use crate::candidate::SimWork;
use crate::invariants::exclusion::{self, SimLeadership};
use crate::key::Seat;
use crate::queue::WorldEvent;
use crate::time::{MILLI, nanos};
use crate::world::{World, say};

impl World {
    pub(crate) fn believe(&mut self, seat: Seat, epoch: Epoch, until: Boot) {
        let (now, me) = (self.now, self.candidate_mut(seat));
        let (key, leadership) = (me.key, SimLeadership { who: me.who.incarnation, epoch });
        let alternates = me.alternation.believes(epoch);
        let begins = me.work.is_none_or(|work| work.epoch != epoch);
        if begins {
            me.work = Some(SimWork { epoch, since: now, until });
            me.grants.led(epoch);
        } else if let Some(work) = &mut me.work {
            work.until = until;
        }
        self.judge(alternates);
        self.trace.mix(epoch.get());
        for other in self.others_leading(key, Some(seat)) {
            let election = self.election(key);
            if election.clones.excuse(leadership, other) {
                continue;
            }
            match exclusion::check(leadership, other, &election.losses) {
                Ok(excused) => self.tally.excused += u64::from(excused && begins),
                Err(finding) => self.judge(Err(finding)),
            }
        }
        if begins {
            self.tally.elections += 1;
            self.tally.beside += u64::from(self.leads_another(seat));
            say!(self, "{seat} LEADS {key:?} under {epoch:?}");
            let election = self.election(key);
            let verdicts = [
                election.epochs.begins(leadership, &election.losses),
                election.owners.owns(leadership, &election.losses),
            ];
            verdicts.into_iter().for_each(|verdict| self.judge(verdict));
            self.healing_led(seat, key);
        }
    }

    /// The work is told to stop: it takes its time, sometimes more than it has.
    pub(crate) fn end_work(&mut self, seat: Seat, epoch: Epoch, by: Boot, planned: bool) {
        let node = &mut self.nodes[seat.node];
        let killed = node.machine.when(by).max(self.now);
        let me = &mut node.candidates[seat.place];
        let verdict = me.alternation.ends(epoch);
        if let Some(work) = &mut me.work
            && work.epoch == epoch
        {
            work.until = work.until.min(by);
        }
        let (whose, stop_timeout) = (me.who.incarnation, nanos(me.core.settings().options().stop_timeout));
        // An end that is forced is one: whatever protects the work ends then, and so does the work.
        let left = (killed - self.now).max(if planned { stop_timeout } else { 0 });
        let takes = match self.rng.below(16) {
            0..=3 => 0,
            4 => left + self.rng.below(20 * MILLI),
            _ => self.rng.below(left + 1) / 2,
        };
        say!(self, "{seat} STOPS work of {epoch:?}, over in {takes}ns of {left}ns");
        self.queue.push(self.now + takes + 1, WorldEvent::WorkOver(seat, whose, epoch));
        self.judge(verdict);
    }

    /// The work is protected for longer while it stops.
    pub(crate) fn extend_stop(&mut self, seat: Seat, epoch: Epoch, by: Boot) {
        if let Some(work) = self.candidate_mut(seat).work.as_mut().filter(|work| work.epoch == epoch) {
            work.until = work.until.max(by);
        }
    }

    pub(crate) fn work_over(&mut self, seat: Seat, epoch: Epoch) {
        let node = &mut self.nodes[seat.node];
        let me = &mut node.candidates[seat.place];
        if node.process.is_none() || me.work.is_none_or(|work| work.epoch != epoch) {
            return;
        }
        if node.frozen {
            me.work_over = Some(epoch);
            return;
        }
        self.forget_work(seat);
        self.candidate_mut(seat).alternation.ended(epoch);
        self.tell(seat, Input::WorkEnded(epoch));
        self.step(seat.node);
    }

    /// The work is gone, one way or the other.
    pub(crate) fn forget_work(&mut self, seat: Seat) {
        let node = &mut self.nodes[seat.node];
        if let Some(work) = node.candidates[seat.place].work.take() {
            let end = node.machine.when(work.until).clamp(work.since, self.now.max(work.since));
            self.tally.led += u128::from(end - work.since);
        }
    }
}
