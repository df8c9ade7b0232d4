//! The health gate, and whatever else keeps a candidate from competing.

use super::Core;
use super::releasing::{Cause, Then};
use super::state::State;
use crate::{Boot, Reason};

/// Whether the health check lets this candidate lead: closed until the first success, and after several failures in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct HealthGate {
    failures: u32,
    open: bool,
}

impl HealthGate {
    /// Counts a result; `limit` failures in a row close the gate.
    fn checked(&mut self, healthy: bool, limit: u32) {
        self.failures = if healthy { 0 } else { self.failures.saturating_add(1) };
        self.open = healthy || self.open && self.failures < limit;
    }
}

impl Core {
    pub(super) fn health_checked(&mut self, healthy: bool) {
        let Some(limit) = self.settings.options().health_failures else { return };
        self.health.checked(healthy, limit);
        if !self.is_healthy() && matches!(self.state, State::Leader(_)) {
            self.release(Cause::Lost(Reason::Health), Then::Compete, None);
        }
    }

    /// Whether the health check, if there is one, lets this candidate lead.
    pub(super) fn is_healthy(&self) -> bool {
        let checked = self.settings.options().health_failures.is_some();
        !checked || self.health.open
    }

    /// Whether nothing keeps this candidate from competing now.
    pub(super) fn may_compete(&self) -> bool {
        self.is_healthy()
            && !self.work.is_ending()
            && !self.calls.is_full()
            && self.now >= self.stay_away.until()
    }

    /// When to try, for a candidate that waits until `wake`.
    pub(super) fn next_try(&self, wake: Boot) -> Boot {
        // If no call can be made, the time comes all the same: not to try, but to say so.
        let competes = self.is_healthy() && !self.work.is_ending();
        if competes { wake.max(self.stay_away.until()) } else { Boot::FOREVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_opens_at_the_first_success_and_closes_after_failures_in_a_row() {
        let mut gate = HealthGate::default();
        let mut check = |healthy| {
            gate.checked(healthy, 2);
            gate.open
        };
        assert!(!check(false), "closed until the first success");
        assert!(
            check(true) && check(false) && check(true) && check(false),
            "one failure is not two in a row"
        );
        assert!(!check(false));
        assert!(check(true));
    }
}
