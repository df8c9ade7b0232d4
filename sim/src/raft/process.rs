//! One candidate's process: its core, its work, its client, its clock.

use bellwether_core::{Boot, Candidate, Core};

use super::client::Client;
use crate::clock::Machine;
use crate::invariants::alternation::Alternation;
use crate::invariants::exclusion::SimLeadership;
use crate::node::SimWork;
use crate::time::Nanos;

pub(super) struct Process {
    pub(super) machine: Machine,
    pub(super) who: Candidate,
    /// What runs, until it crashes.
    pub(super) core: Option<Core>,
    /// Counts its crashes: what is meant for an earlier life reaches nobody.
    pub(super) life: u32,
    pub(super) client: Client,
    /// It stands still until then.
    pub(super) frozen_until: Nanos,
    /// Nothing passes between it and the cluster until then.
    pub(super) cut_until: Nanos,
    pub(super) work: Option<SimWork>,
    pub(super) alternation: Alternation,
    pub(super) timer: (Nanos, Option<Boot>),
    /// The node that it talks to, for as long as that believes that it leads.
    pub(super) talks_to: Option<usize>,
    /// It has left the election, and said so.
    pub(super) retired: bool,
}

impl Process {
    /// The leadership in force at that instant, by the work or by the core's own belief.
    pub(super) fn leadership(&self, now: Nanos) -> Option<SimLeadership> {
        let core = self.core.as_ref()?;
        let boot = self.machine.boot(now);
        let working = self.work.filter(|work| boot < work.until).map(|work| work.epoch);
        let believed = core.leadership().filter(|(_, deadline)| boot < *deadline);
        let epoch = working.or(believed.map(|(epoch, _)| epoch))?;
        Some(SimLeadership { who: self.who.incarnation, epoch })
    }
}
