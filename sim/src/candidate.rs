//! One candidate of a process: the real core, its work, and what is judged of it alone.

use bellwether_core::{Boot, Candidate, Core, Epoch, StateName};

use crate::invariants::alternation::Alternation;
use crate::invariants::cooldown::Cooldown;
use crate::invariants::exclusion::SimLeadership;
use crate::invariants::grants::Grants;
use crate::invariants::health::HealthInvariant;
use crate::invariants::quiet::Quiet;
use crate::invariants::requests::Requests;
use crate::key::ElectionKey;
use crate::time::Nanos;

/// SimWork that is protected by a leadership.
#[derive(Clone, Copy, Debug)]
pub struct SimWork {
    /// The leadership.
    pub epoch: Epoch,
    /// When it began, in true time.
    pub since: Nanos,
    /// On the process's own clock: killed then.
    pub until: Boot,
}

/// A candidate of one election, in one process.
#[derive(Clone)]
pub struct SimCandidate {
    /// What it takes part in.
    pub key: ElectionKey,
    /// Its id and incarnation.
    pub who: Candidate,
    /// The state machine under test.
    pub core: Core,
    /// When its next time-out comes, and what that was computed from.
    pub timer: (Nanos, Option<Boot>),
    /// Its work.
    pub work: Option<SimWork>,
    /// Work that ended while the process stood still.
    pub work_over: Option<Epoch>,
    /// It wants the news of its election.
    pub follows: bool,
    /// A start is planned.
    pub start_planned: bool,
    /// Its health check fails.
    pub sick: bool,
    /// Its last call failed, and it has heard nothing since that ends a pause.
    pub troubled: bool,
    /// Judged by itself.
    pub alternation: Alternation,
    /// Judged by itself.
    pub grants: Grants,
    /// Judged by itself.
    pub quiet: Quiet,
    /// Judged by itself.
    pub requests: Requests,
    /// Judged by itself.
    pub cooldown: Cooldown,
    /// Judged by itself.
    pub health: HealthInvariant,
}

impl SimCandidate {
    /// One that has not done anything.
    pub fn new(key: ElectionKey, core: Core) -> SimCandidate {
        SimCandidate {
            key,
            who: core.who().clone(),
            core,
            timer: (Nanos::MAX, None),
            work: None,
            work_over: None,
            follows: false,
            start_planned: false,
            sick: false,
            troubled: false,
            alternation: Alternation::default(),
            grants: Grants::default(),
            quiet: Quiet::default(),
            requests: Requests::default(),
            cooldown: Cooldown::default(),
            health: HealthInvariant::default(),
        }
    }

    /// Another incarnation takes the place of one that has stopped and has nothing under way.
    pub fn begin_anew(&mut self, core: Core) {
        self.who = core.who().clone();
        self.timer = (Nanos::MAX, None);
        (self.start_planned, self.troubled) = (false, false);
        (self.alternation, self.grants) = (Alternation::default(), Grants::default());
        (self.requests, self.cooldown, self.health) = Default::default();
        self.core = core;
    }

    /// The same in a process that was cloned.
    pub fn cloned(&self) -> SimCandidate {
        SimCandidate { timer: (Nanos::MAX, None), ..self.clone() }
    }

    /// What its core believes in.
    pub fn believed(&self) -> Option<Epoch> {
        self.core.leadership().map(|(epoch, _)| epoch)
    }

    /// Whether it can be copied: nothing is planned for it alone, and it stands by or leads.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.core.state(), StateName::Follower | StateName::Leader)
            && self.work.map(|work| work.epoch) == self.believed()
            && !self.sick
    }

    /// The leadership in force at that instant of its own clock, by the work or by the core's own belief.
    pub fn leadership(&self, boot: Boot) -> Option<SimLeadership> {
        let working = self.work.filter(|work| boot < work.until).map(|work| work.epoch);
        let believed = self.core.leadership().filter(|(_, deadline)| boot < *deadline);
        let epoch = working.or(believed.map(|(epoch, _)| epoch))?;
        Some(SimLeadership { who: self.who.incarnation, epoch })
    }
}
