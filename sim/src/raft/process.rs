//! A process: its candidates, the client that they share, its clock.

use bellwether_core::{Boot, Candidate, Core, Epoch};

use super::client::Client;
use crate::candidate::SimWork;
use crate::clock::Machine;
use crate::invariants::alternation::Alternation;
use crate::invariants::exclusion::SimLeadership;
use crate::key::ElectionKey;
use crate::time::Nanos;

pub(super) struct Process {
    pub(super) machine: Machine,
    pub(super) candidates: Vec<RaftCandidate>,
    pub(super) is_up: bool,
    /// Counts its crashes: what is meant for an earlier life reaches nobody.
    pub(super) life: u32,
    pub(super) client: Client,
    /// It stands still until then.
    pub(super) frozen_until: Nanos,
    /// Nothing passes between it and the cluster until then.
    pub(super) cut_until: Nanos,
    /// The node that it talks to, for as long as that believes that it leads.
    pub(super) talks_to: Option<usize>,
}

pub(super) struct RaftCandidate {
    pub(super) key: ElectionKey,
    pub(super) who: Candidate,
    /// What runs, until its process crashes.
    pub(super) core: Option<Core>,
    pub(super) work: Option<SimWork>,
    pub(super) alternation: Alternation,
    pub(super) timer: (Nanos, Option<Boot>),
    /// It has left the election, and said so.
    pub(super) retired: bool,
}

impl Process {
    /// The leadership of one of its candidates in force at that instant, by the work or by the core's own belief.
    pub(super) fn leadership(&self, place: usize, now: Nanos) -> Option<SimLeadership> {
        let candidate = &self.candidates[place];
        let core = candidate.core.as_ref()?;
        let boot = self.machine.boot(now);
        let working = candidate.work.filter(|work| boot < work.until).map(|work| work.epoch);
        let believed = core.leadership().filter(|(_, deadline)| boot < *deadline);
        let epoch = working.or(believed.map(|(epoch, _)| epoch))?;
        Some(SimLeadership { who: candidate.who.incarnation, epoch })
    }

    /// It dies, with everything in it.
    pub(super) fn crash(&mut self) {
        for candidate in &mut self.candidates {
            (candidate.core, candidate.work) = (None, None);
        }
        (self.is_up, self.client, self.frozen_until) = (false, Client::default(), 0);
        self.life += 1;
    }
}

impl RaftCandidate {
    pub(super) fn new(key: ElectionKey, who: Candidate) -> RaftCandidate {
        RaftCandidate {
            key,
            who,
            core: None,
            work: None,
            alternation: Alternation::default(),
            timer: (Nanos::MAX, None),
            retired: true,
        }
    }

    pub(super) fn believed(&self) -> Option<Epoch> {
        self.core.as_ref()?.leadership().map(|(epoch, _)| epoch)
    }
}
