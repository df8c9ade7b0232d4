//! How processes and their candidates come and go: started, stopped by their users, started again.

use std::sync::Arc;

use bellwether_backend::{Backend, Lease};
use bellwether_core::{Candidate, Core, Incarnation, Input, Settings, StateName};

use crate::candidate::SimCandidate;
use crate::clock::Machine;
use crate::connection::{SimRegister, new_connection};
use crate::key::Seat;
use crate::node::Node;
use crate::options::{CandidatePlan, StoreKind};
use crate::queue::WorldEvent;
use crate::session::backend::SimSessions;
use crate::session::wire::{SharedSessionMail, Wire};
use crate::time::{MILLI, SECOND};
use crate::world::{World, say};

impl World {
    /// A process is started: new incarnations of old ids.
    pub(crate) fn restart(&mut self, slot: usize) {
        if self.alive_of(slot) >= 2 {
            return;
        }
        let node = self.add(Some(slot));
        for seat in self.seats(node) {
            say!(self, "{seat} starts as {:?} in {:?}", self.candidate(seat).who, self.candidate(seat).key);
            self.start(seat);
        }
        self.step(node);
    }

    fn start(&mut self, seat: Seat) {
        let Some(process) = &self.nodes[seat.node].process else { return };
        let backend = Arc::clone(&process.backend);
        let me = self.candidate_mut(seat);
        if me.core.state() != StateName::Stopped {
            return;
        }
        if !std::mem::replace(&mut me.follows, true) {
            backend.follow(&me.key.name());
        }
        let healthy = !me.sick;
        self.tell(seat, Input::Start);
        self.tell(seat, Input::Health(healthy));
    }

    pub(crate) fn add(&mut self, slot: Option<usize>) -> usize {
        let plans = slot.map(|slot| self.options.plans[slot].candidates.clone()).unwrap_or_default();
        // The outsider draws as much as one candidate does: so a seed goes on to mean what it meant when the outsider was one.
        let incarnations: Vec<Incarnation> =
            (0..plans.len().max(1)).map(|_| self.draw_incarnation()).collect();
        let machine = self.draw_machine();
        if plans.is_empty() {
            self.rng.next_u64();
        }
        let connection = new_connection();
        let mail = SharedSessionMail::default();
        let mut lease = None;
        let backend: Arc<dyn Backend> = if self.sessions.is_some() {
            let (clock, node) = (machine.face(), self.nodes.len());
            let wire = Wire { node, clock, mail: Arc::clone(&mail), connection: Arc::clone(&connection) };
            Arc::new(SimSessions::new(wire, self.options.ttl_of(slot)))
        } else {
            let register =
                SimRegister::new(Arc::clone(&connection), self.store.facts(), self.options.crash_proof);
            Arc::clone(lease.insert(Arc::new(Lease::new(register, machine.face())))) as _
        };
        let candidate = |(plan, incarnation): (CandidatePlan, Incarnation)| {
            let who = Candidate { id: plan.id, incarnation };
            SimCandidate::new(plan.key, self.core(plan.settings, who))
        };
        let candidates = plans.into_iter().zip(incarnations).map(candidate).collect();
        self.nodes.push(Node { lease, ..Node::new(slot, candidates, machine, connection, mail, backend) });
        self.nodes.len() - 1
    }

    /// As the driver sets one up on such a store. Every second one on a register spreads its renewals, as one among very many
    /// elections would.
    fn core(&mut self, settings: Settings, who: Candidate) -> Core {
        let seed = self.rng.next_u64();
        let mut core = Core::new(settings, who, seed);
        if self.options.staggered {
            core.stagger_claims();
        }
        if self.options.store == StoreKind::Register && seed.is_multiple_of(2) {
            core.jitter_renewals();
        }
        core
    }

    fn draw_incarnation(&mut self) -> Incarnation {
        Incarnation::from_bits(u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64()))
    }

    /// A clock at one end of what is tolerated, half of the time: that is where margins are tested.
    pub(crate) fn draw_machine(&mut self) -> Machine {
        let (slowest, fastest) = self.options.ppm;
        let ppm = match self.rng.below(4) {
            0 => slowest,
            1 => fastest,
            _ => slowest + self.rng.below(fastest - slowest + 1),
        };
        let hour = 3_600 * SECOND;
        let wall = self.rng.below(2 * hour) as i64 - hour as i64;
        Machine::new(self.rng.below(1_000 * hour), ppm, 1_800_000_000 * SECOND as i64 + wall)
    }

    /// After a candidate has done everything it wanted: its next time-out, and whether it takes part any more.
    pub(crate) fn settle(&mut self, seat: Seat) {
        let node = &self.nodes[seat.node];
        let (Some(process), me) = (&node.process, &node.candidates[seat.place]) else { return };
        let backend = Arc::clone(&process.backend);
        let due = me.core.poll_timeout();
        if me.timer.1 != due {
            let at = due.map(|due| node.machine.when(due).max(self.now));
            let at = at.map_or(u64::MAX, |at| at.saturating_add(self.lateness()));
            self.candidate_mut(seat).timer = (at, due);
            if due.is_some() {
                self.queue.push(at, WorldEvent::Timer(seat));
            }
        }
        let me = self.candidate(seat);
        self.judge(me.requests.check_heard(me.believed()));
        let me = self.candidate_mut(seat);
        if me.core.state() != StateName::Stopped {
            return;
        }
        if me.core.is_quiet() && std::mem::take(&mut me.follows) {
            backend.retire(&me.key.name(), &me.who);
            backend.unfollow(&me.key.name());
        }
        if !std::mem::replace(&mut me.start_planned, true) {
            let pause = match self.heal {
                Some(_) => 10 * MILLI,
                None => self.rng.below(2 * self.options.longest_ttl()),
            };
            self.queue.push(self.now + pause, WorldEvent::StartAgain(seat));
        }
    }

    pub(crate) fn timer(&mut self, seat: Seat) {
        let (now, runs) = (self.now, self.nodes[seat.node].runs());
        let me = self.candidate_mut(seat);
        // A time-out that was moved is another event; one of a process that stands still waits for it.
        if !runs || now < me.timer.0 {
            return;
        }
        me.timer = (u64::MAX, None);
        self.tell(seat, Input::Timeout);
        self.step(seat.node);
    }

    /// Who was stopped takes part again as a new incarnation in the same process, once nothing of the old one
    /// is under way: that is what a program's `stop` and `start` do.
    pub(crate) fn start_again(&mut self, seat: Seat) {
        let node = &self.nodes[seat.node];
        let me = &node.candidates[seat.place];
        if node.process.is_none() {
            return;
        }
        if node.frozen || !me.core.is_quiet() {
            let pause = if self.heal.is_some() { MILLI } else { 100 * MILLI };
            self.queue.push(self.now + pause, WorldEvent::StartAgain(seat));
            return;
        }
        let (settings, id) = (me.core.settings().clone(), me.who.id.clone());
        let who = Candidate { id, incarnation: self.draw_incarnation() };
        let core = self.core(settings, who);
        self.candidate_mut(seat).begin_anew(core);
        say!(self, "{seat} is now {:?}", self.candidate(seat).who);
        self.start(seat);
        self.step(seat.node);
    }
}
