//! What this machine has: clocks that can be relied on, and a way to keep a command's processes together.

use bellwether::SystemClock;
use bellwether::backend::Finding;
use bellwether::core::{Clock, Wall};
use bellwether_deadman::COUNTS_SUSPEND;
use bellwether_supervise::Containment;

/// No clock that was ever set shows less, nor more.
const SANE: (&str, &str) = ("2025-01-01T00:00:00Z", "2100-01-01T00:00:00Z");

/// The clock that decides, and the one that people read.
pub(super) fn clocks() -> [Finding; 2] {
    let boot = if COUNTS_SUSPEND {
        Finding::good("boot clock", "runs on while the machine sleeps: a leadership ends in time even so")
    } else {
        Finding::warning(
            "boot clock",
            "stands still while the machine sleeps, so a leader that slept believes for as long again: turn suspend \
             off on machines that take part",
        )
    };
    let now = SystemClock.wall();
    let (early, late) = SANE;
    let sane = Wall::parse(early).is_some_and(|early| now >= early)
        && Wall::parse(late).is_some_and(|late| now < late);
    let wall = if sane {
        Finding::good("wall clock", format!("shows {now}; nothing is decided by it"))
    } else {
        Finding::warning(
            "wall clock",
            format!(
                "shows {now}: nothing is decided by it, but records and events will carry it; set it (NTP)"
            ),
        )
    };
    [boot, wall]
}

/// What `run -- COMMAND` could rely on.
pub(super) fn containment(found: &Result<Containment, String>) -> Finding {
    const WHAT: &str = "containment";
    match found {
        Ok(Containment::Namespace) => Finding::good(
            WHAT,
            "`run -- COMMAND` has a PID namespace: no process of COMMAND outlives its leadership",
        ),
        Ok(Containment::Sweep) => Finding::warning(
            WHAT,
            "`run -- COMMAND` has no right to a PID namespace and finds COMMAND's processes by sweeping: one that \
             daemonises could outlive a kill -9 of supervisor and guard; give it CAP_SYS_ADMIN, or make bellwether the \
             first process of a container",
        ),
        Err(reason) => Finding::warning(
            WHAT,
            format!(
                "`run -- COMMAND` cannot be had here ({reason}); `run` without COMMAND, and the library, can"
            ),
        ),
    }
}
