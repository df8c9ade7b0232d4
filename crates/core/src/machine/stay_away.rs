//! Until when a candidate does not compete.

use crate::Boot;

/// Two times to stay away: a cooldown, which nothing ends early, and a shorter one after a release, which ends as soon as somebody
/// else leads.
///
/// Without the second, the candidate that has just released would be the quickest to claim.
#[derive(Clone, Debug, Default)]
pub(super) struct StayAway {
    cooldown_until: Boot,
    yield_until: Boot,
}

impl StayAway {
    pub(super) fn until(&self) -> Boot {
        self.cooldown_until.max(self.yield_until)
    }

    /// Stays away at least until then.
    pub(super) fn cool_down(&mut self, until: Boot) {
        self.cooldown_until = self.cooldown_until.max(until);
    }

    /// Lets others go first until then.
    pub(super) fn yield_until(&mut self, until: Boot) {
        self.yield_until = until;
    }

    /// Somebody else leads, and may release at any moment: from then on this candidate is as good as any.
    pub(super) fn another_leads(&mut self) {
        self.yield_until = Boot::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cooldown_is_never_shortened_and_another_leader_does_not_end_it() {
        let mut away = StayAway::default();
        away.cool_down(Boot::from_nanos(9));
        away.cool_down(Boot::from_nanos(5));
        away.another_leads();
        assert_eq!(away.until(), Boot::from_nanos(9));
    }

    #[test]
    fn another_leader_ends_the_time_left_to_others() {
        let mut away = StayAway::default();
        away.cool_down(Boot::from_nanos(2));
        away.yield_until(Boot::from_nanos(7));
        assert_eq!(away.until(), Boot::from_nanos(7));
        away.another_leads();
        assert_eq!(away.until(), Boot::from_nanos(2));
    }
}
