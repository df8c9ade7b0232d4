//! The health gate, and whatever else keeps a candidate from standing.

use super::Core;
use super::state::{State, Then, Why};
use crate::{Boot, Reason};

impl Core {
    pub(super) fn health(&mut self, ok: bool) {
        let Some(threshold) = self.settings.options().health_failures else { return };
        if ok {
            self.health_failures = 0;
            self.healthy = Some(true);
            return;
        }
        self.health_failures = self.health_failures.saturating_add(1);
        if self.health_failures < threshold {
            return;
        }
        self.healthy = Some(false);
        if matches!(self.state, State::Leader(_)) && !self.is_fit() {
            self.let_go(Why::Lost(Reason::Health), Then::Stand, None);
        }
    }

    /// Whether anything but time keeps this candidate from standing.
    pub(super) fn may_stand(&self) -> bool {
        self.is_fit() && self.ending.is_none() && !self.is_full()
    }

    /// Not standing before then.
    pub(super) fn stays_away_until(&self) -> Boot {
        self.cooldown_until.max(self.yield_until)
    }

    /// Whether anything keeps this candidate from standing now.
    pub(super) fn stays_away(&self) -> bool {
        !self.may_stand() || self.now < self.stays_away_until()
    }

    /// Whether the health check, if there is one, allows this candidate to lead.
    pub(super) fn is_fit(&self) -> bool {
        let checked = self.settings.options().health_failures.is_some();
        !checked || self.healthy == Some(true)
    }

    pub(super) fn next_try(&self, wake: Boot) -> Boot {
        // With every place for a call taken the time comes all the same: not to try, but to say so.
        let stands = self.is_fit() && self.ending.is_none();
        if stands { wake.max(self.stays_away_until()) } else { Boot::FOREVER }
    }
}
