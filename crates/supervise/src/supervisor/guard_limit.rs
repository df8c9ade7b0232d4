//! When the supervisor stops relying on the guard.

use crate::Containment;
use crate::kill_sequence::{SUPERVISOR_KILLS_GUARD, SUPERVISOR_SWEEPS};
use bellwether_core::Boot;
use std::time::Duration;

/// How long a guard has to report that its init has ended. Long enough for one that waits for a processor: killed, it takes the exit
/// code of the command with it.
const REPORT_WITHIN: Duration = Duration::from_millis(200);

/// The instant at which a guard that has not reported the end of its command is killed.
#[derive(Debug)]
pub(super) struct GuardLimit {
    /// The deadline that the guard was last told.
    deadline: Boot,
    /// Until it runs, the command has what was left of the leadership when it was ordered; renewals do not count.
    start_by: Option<Boot>,
    /// When it should have reported that its init has ended.
    report_by: Option<Boot>,
    containment: Option<Containment>,
}

impl GuardLimit {
    pub(super) fn new(deadline: Boot) -> GuardLimit {
        GuardLimit { deadline, start_by: Some(deadline), report_by: None, containment: None }
    }

    pub(super) fn at(&self) -> Boot {
        let end = self.start_by.unwrap_or(self.deadline).min(self.deadline);
        let step = match self.containment {
            Some(Containment::Sweep) => &SUPERVISOR_SWEEPS,
            Some(Containment::Namespace) | None => &SUPERVISOR_KILLS_GUARD,
        };
        self.report_by.map_or(step.at(end), |by| step.at(end).min(by))
    }

    pub(super) fn deadline(&self) -> Boot {
        self.deadline
    }

    pub(super) fn extend(&mut self, deadline: Boot) {
        self.deadline = deadline;
    }

    pub(super) fn contained(&mut self, containment: Containment) {
        self.containment = Some(containment);
    }

    pub(super) fn command_started(&mut self) {
        self.start_by = None;
    }

    pub(super) fn init_ended(&mut self, now: Boot) {
        self.report_by.get_or_insert(now + REPORT_WITHIN);
    }

    pub(super) fn waits_for_init(&self) -> bool {
        self.report_by.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Boot = Boot::from_nanos(10_000_000_000);

    #[test]
    fn renewals_count_once_the_command_runs() {
        let mut limit = GuardLimit::new(DEADLINE);
        limit.extend(DEADLINE + Duration::from_secs(5));
        assert_eq!(limit.at(), DEADLINE, "until the command runs, the first deadline holds");
        limit.command_started();
        assert_eq!(limit.at(), DEADLINE + Duration::from_secs(5));
    }

    #[test]
    fn without_a_namespace_the_supervisor_acts_before_the_deadline() {
        let mut limit = GuardLimit::new(DEADLINE);
        limit.contained(Containment::Namespace);
        assert_eq!(limit.at(), DEADLINE);
        limit.contained(Containment::Sweep);
        assert_eq!(limit.at(), DEADLINE - SUPERVISOR_SWEEPS.before);
    }

    #[test]
    fn a_guard_has_a_moment_to_report_the_end_of_its_init() {
        let mut limit = GuardLimit::new(DEADLINE);
        let now = DEADLINE - Duration::from_secs(1);
        limit.init_ended(now);
        assert!(!limit.waits_for_init());
        assert_eq!(limit.at(), now + REPORT_WITHIN);
        limit.init_ended(DEADLINE);
        assert_eq!(limit.at(), now + REPORT_WITHIN, "the first report of it counts");
    }
}
