//! What can be asked of the machine at any time; nothing here changes it.

use super::Core;
use super::state::State;
use crate::{Boot, Candidate, CandidateId, Epoch, Proof, Settings, StateName, StoreError};

impl Core {
    /// The state, by name.
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// The leadership held now and when belief in it ends; the caller compares with its clock.
    pub fn leadership(&self) -> Option<(Epoch, Boot)> {
        match &self.state {
            State::Leader(leading) => Some((leading.grant.epoch, leading.deadline)),
            _ => None,
        }
    }

    /// Who leads as far as the store showed.
    pub fn leader(&self) -> Option<&CandidateId> {
        self.view.leader()
    }

    /// What is known about the leader; `None` before anything was seen.
    pub fn leader_proof(&self) -> Option<Proof> {
        self.view.proof()
    }

    /// The highest epoch seen in this election.
    pub fn highest_epoch(&self) -> Epoch {
        self.view.highest()
    }

    /// Until when this candidate stays away, if it does.
    pub fn in_cooldown(&self, now: Boot) -> Option<Boot> {
        Some(self.stay_away.until()).filter(|until| now < *until)
    }

    /// Until when the election is paused, as it was last seen, if it is.
    pub fn paused_until(&self, now: Boot) -> Option<Boot> {
        Some(self.view.paused_until()).filter(|until| now < *until)
    }

    /// Stopped, with every call answered and every work ended: nothing more can come.
    pub fn is_quiet(&self) -> bool {
        matches!(self.state, State::Stopped) && self.calls_unanswered() == 0 && !self.work.is_ending()
    }

    /// Calls that have not been answered.
    pub fn calls_unanswered(&self) -> usize {
        self.calls.count()
    }

    /// Why the machine stopped by itself, if it did.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Who this is.
    pub fn who(&self) -> &Candidate {
        &self.who
    }
}
