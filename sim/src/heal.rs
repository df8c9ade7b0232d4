//! The healing phase: faults stop, everybody is back, and now somebody has to lead, and go on leading; then that
//! one is killed, and somebody else has to.

use bellwether_core::{Input, Reason};

use crate::invariants::{BrokenInvariant, recovery, requests};
use crate::options::Watch;
use crate::queue::WorldEvent;
use crate::time::{MILLI, Nanos};
use crate::world::{World, say};

/// How far the healing has come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heal {
    /// Since then, somebody has to lead within the bound.
    Recovering { since: Nanos, bound: Nanos },
    /// Somebody leads. Cooldowns run out, and the highest priority gets its way.
    Settling,
    /// Nothing may change any more, but by priority.
    Steady,
    /// The leader was killed then.
    Bereft { since: Nanos, bound: Nanos },
}

/// Beyond the bounds of the settings: waking up is not instant, and a claim that meets another is tried again.
const SLACK: Nanos = 60 * MILLI;

/// How often the healing phase may find a handover under way: candidates have four priorities between them.
const HANDOVERS_MAX: u32 = 4;

impl World {
    pub(crate) fn begin_healing(&mut self) {
        say!(self, "faults stop");
        if self.options.ends_with_death
            && let Some(leader) = self.leader()
        {
            self.crash(leader, true);
        }
        let bound = self.options.bound(|line| line.recovery) + SLACK + self.pause_left();
        self.heal = Some(Heal::Recovering { since: self.now, bound });
        self.look_again(self.now + bound + 1);
        self.queue.push(self.now + self.round_trips() + SLACK, WorldEvent::Arrived);
        self.spike = None;
        self.outage = false;
        self.hasten();
        self.server_up();
        self.read_backlog();
        for node in self.alive() {
            self.mend(node);
        }
        for slot in 0..self.options.plans.len() {
            if self.alive_of(slot) == 0 {
                self.restart(slot);
            }
        }
        if let Some(leader) = self.leader() {
            self.healing_led(leader);
        } else if self.options.ends_with_death {
            self.queue.push(self.now + 1, WorldEvent::Outsider);
        }
    }

    fn look_again(&mut self, at: Nanos) {
        self.progress_at = at;
        self.queue.push(at, WorldEvent::Progress);
    }

    /// From now on no call fails any more, and how long it takes depends on what each candidate knows.
    pub(crate) fn all_arrived(&mut self) {
        let Some(Heal::Recovering { since, bound }) = self.heal else { return };
        if self.nodes.iter().any(|node| node.process.is_some() && node.work.is_some()) {
            // SimWork that is still stopping keeps everybody out, and takes its time.
            self.queue.push(self.now + SLACK, WorldEvent::Arrived);
            return;
        }
        let left = self.pause_left();
        if let Some(expected) = self.expected().map(|expected| expected.max(left) + SLACK)
            && self.now + expected < since + bound
        {
            say!(self, "somebody has to lead within {expected}ns");
            self.heal = Some(Heal::Recovering { since: self.now, bound: expected });
            self.look_again(self.now + expected + 1);
        }
    }

    /// What is on its way comes soon: a message that arrives an hour late is a fault that has not stopped.
    fn hasten(&mut self) {
        let (now, longest) = (self.now, self.options.latency.1);
        let soon = now + longest;
        self.queue.reschedule(|at, event| match event {
            WorldEvent::Deliver(_)
            | WorldEvent::Answer(..)
            | WorldEvent::GiveUp(..)
            | WorldEvent::News(..)
            | WorldEvent::Arrive(..)
            | WorldEvent::Down(..)
            | WorldEvent::ServerUp
            | WorldEvent::Resume(_)
            | WorldEvent::Reconnect(..)
            | WorldEvent::Restart(_)
            | WorldEvent::StartAgain(_)
            | WorldEvent::Recover(_) => at.min(soon),
            _ => at,
        });
    }

    fn mend(&mut self, node: usize) {
        let connection_number = self.nodes[node].connection_number;
        self.resume(node);
        if self.nodes[node].cut.is_some() || !self.nodes[node].connected {
            self.reconnect(node, connection_number);
        }
        self.nodes[node].sick = false;
        self.tell(node, Input::Health(true));
        self.step(node);
    }

    /// While nobody leads, the outsider goes on asking whoever the record names, dead or alive.
    pub(crate) fn outsider_asks_again(&mut self) {
        if matches!(self.heal, Some(Heal::Recovering { .. })) {
            self.outsider_asks();
            self.queue.push(self.now + self.options.shortest_ttl() / 3, WorldEvent::Outsider);
        }
    }

    /// Somebody begins to lead.
    pub(crate) fn healing_led(&mut self, node: usize) {
        match self.heal {
            Some(Heal::Recovering { since, bound }) => {
                let took = self.now - since;
                self.judge(recovery::check("the end of all faults", took, bound));
                self.tally.recovery_max = self.tally.recovery_max.max(took);
                let share = took * 1_000 / bound;
                self.tally.recovery_share_max = self.tally.recovery_share_max.max(share);
                say!(self, "healed: {node} leads {took}ns after the faults, of {bound}ns");
                self.heal = Some(Heal::Settling);
                self.look_again(self.now + self.options.bound(|line| line.recovery) + self.pause_left());
            }
            Some(Heal::Bereft { since, bound }) => {
                let took = self.now - since;
                self.judge(recovery::check("the leader's death", took, bound));
                self.tally.failover_share_max = self.tally.failover_share_max.max(took * 1_000 / bound);
                self.done = true;
            }
            Some(Heal::Settling | Heal::Steady) | None => {}
        }
    }

    /// Somebody lost the lead.
    pub(crate) fn healing_lost(&mut self, node: usize, reason: Reason) {
        if matches!(self.heal, Some(Heal::Steady)) && reason != Reason::Preempted {
            let said = format!("{node} lost the lead for {reason:?} with no fault about");
            self.judge(Err(BrokenInvariant::new("recovery", said)));
        }
    }

    pub(crate) fn healing_progress(&mut self) {
        if self.now < self.progress_at {
            return;
        }
        match self.heal {
            Some(Heal::Recovering { since, bound }) => {
                self.judge(recovery::check("the end of all faults", self.now - since, bound));
            }
            Some(Heal::Settling) => {
                if self.leader().is_none() {
                    self.await_handover();
                    return;
                }
                self.heal = Some(Heal::Steady);
                self.look_again(self.now + self.options.longest_ttl());
            }
            Some(Heal::Steady) => {
                let Some(leader) = self.leader() else {
                    self.await_handover();
                    return;
                };
                self.judge_priority(leader);
                let bound = self.failover();
                self.heal = Some(Heal::Bereft { since: self.now, bound });
                self.crash(leader, false);
                self.look_again(self.now + bound + 1);
            }
            Some(Heal::Bereft { since, bound }) => {
                self.judge(recovery::check("the leader's death", self.now - since, bound));
            }
            None => {}
        }
    }

    /// After all this time the highest priority has got its way, where a leader can be asked.
    fn judge_priority(&mut self, leader: usize) {
        if self.sessions.is_some() {
            return;
        }
        let options = |node: usize| {
            let process = self.nodes[node].process.as_ref();
            process.map(|process| process.core.settings().options().clone())
        };
        let Some(led) = options(leader) else { return };
        let others = self.alive().into_iter().filter(|node| *node != leader).filter_map(options);
        let asker = others.filter(|options| options.preempt).map(|options| options.priority).max();
        self.judge(requests::check_priority(led.priority, asker));
    }

    /// Nobody leads just now: the only reason can be a handover by priority, and that is over within a failover.
    /// There are only so many priorities, so it does not go on for ever.
    fn await_handover(&mut self) {
        self.handovers += 1;
        if self.handovers > HANDOVERS_MAX {
            self.judge(Err(BrokenInvariant::new("recovery", "nobody stays in the lead with no fault about")));
            return;
        }
        let bound = self.failover();
        self.heal = Some(Heal::Recovering { since: self.now, bound });
        self.look_again(self.now + bound + 1);
    }

    fn failover(&self) -> Nanos {
        let announced = self.options.watch != Watch::Off;
        let bound = self.options.bound(|line| if announced { line.failover } else { line.unannounced });
        bound + SLACK + self.pause_left()
    }

    /// How much longer somebody may wait because the election is paused.
    fn pause_left(&self) -> Nanos {
        self.pauses.waited_for(self.now, self.store.record().as_deref().map(|found| &found.0))
    }
}
