//! Who ends a command's tree before the deadline of its leadership, and when.
//!
//! Each step is for the case that those before it did not act, because a process was stopped, killed or starved. The order is checked at
//! compile time, and the documents print [`KILL_SEQUENCE`].

use crate::Containment;
#[cfg(target_os = "linux")]
use bellwether_core::Boot;
use bellwether_core::KILL_LEAD;
use std::time::Duration;

/// One step of [`KILL_SEQUENCE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillStep {
    /// How long before the deadline it happens.
    pub before: Duration,
    /// Whether it happens earlier than that by the grace.
    pub plus_grace: bool,
    /// The containment that it belongs to; `None` means both.
    pub containment: Option<Containment>,
    /// Who acts.
    pub actor: &'static str,
    /// What that does.
    pub action: &'static str,
    /// Why the step exists.
    pub reason: &'static str,
}

impl KillStep {
    /// When the step is due, not counting the grace.
    #[cfg(target_os = "linux")]
    pub(crate) fn at(&self, deadline: Boot) -> Boot {
        deadline - self.before
    }
}

pub(crate) const GUARD_TERMS: KillStep = KillStep {
    before: KILL_LEAD,
    plus_grace: true,
    containment: None,
    actor: "the guard",
    action: "sends TERM to the tree",
    reason: "no renewal has reached it",
};

pub(crate) const GUARD_KILLS: KillStep = KillStep {
    before: KILL_LEAD,
    plus_grace: false,
    containment: None,
    actor: "the guard",
    action: "kills the tree",
    reason: "the grace is over",
};

pub(crate) const KERNEL_KILLS_GUARD: KillStep = KillStep {
    before: Duration::from_millis(40),
    plus_grace: false,
    containment: Some(Containment::Namespace),
    actor: "a kernel timer",
    action: "kills the guard, and the tree with it",
    reason: "the guard is stopped or starved",
};

pub(crate) const INIT_KILLS: KillStep = KillStep {
    before: Duration::from_millis(30),
    plus_grace: false,
    containment: Some(Containment::Sweep),
    actor: "init, the process between guard and command",
    action: "kills the tree",
    reason: "the guard is stopped or starved; to kill the guard would leave daemons behind",
};

pub(crate) const KERNEL_KILLS_INIT: KillStep = KillStep {
    before: Duration::from_millis(20),
    plus_grace: false,
    containment: Some(Containment::Sweep),
    actor: "a kernel timer",
    action: "kills init, and the command with it, unless init is killing the tree",
    reason: "init is stopped or starved too; the rest of the tree becomes the guard's",
};

pub(crate) const SUPERVISOR_SWEEPS: KillStep = KillStep {
    before: Duration::from_millis(10),
    plus_grace: false,
    containment: Some(Containment::Sweep),
    actor: "the supervisor",
    action: "kills the guard, then what is left of the tree",
    reason: "guard and init were stopped together",
};

pub(crate) const PROCESS_1_ENDS: KillStep = KillStep {
    before: Duration::from_millis(5),
    plus_grace: false,
    containment: Some(Containment::Sweep),
    actor: "process 1 of a container, if it is `bellwether`",
    action: "ends the container with code 137 if anything of the tree still runs",
    reason: "supervisor, guard and init are stopped",
};

pub(crate) const SUPERVISOR_KILLS_GUARD: KillStep = KillStep {
    before: Duration::ZERO,
    plus_grace: false,
    containment: Some(Containment::Namespace),
    actor: "the supervisor",
    action: "kills the guard, and the tree with it",
    reason: "the kernel timer has not ended the guard",
};

/// Every step, in the order in which they are due.
pub const KILL_SEQUENCE: [KillStep; 8] = [
    GUARD_TERMS,
    GUARD_KILLS,
    KERNEL_KILLS_GUARD,
    INIT_KILLS,
    KERNEL_KILLS_INIT,
    SUPERVISOR_SWEEPS,
    PROCESS_1_ENDS,
    SUPERVISOR_KILLS_GUARD,
];

const _: () = {
    let mut next = 1;
    while next < KILL_SEQUENCE.len() {
        let (earlier, later) = (&KILL_SEQUENCE[next - 1], &KILL_SEQUENCE[next]);
        assert!(!later.plus_grace, "only the first step waits for a grace");
        let (earlier_ms, later_ms) = (earlier.before.as_millis(), later.before.as_millis());
        assert!(
            earlier_ms > later_ms || (earlier.plus_grace && earlier_ms == later_ms),
            "each step is due before the next one"
        );
        next += 1;
    }
};
