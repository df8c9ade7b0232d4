//! What this machine has: clocks that can be relied on, and a way to keep a command's processes together.

use bellwether::SystemClock;
use bellwether::backend::Finding;
use bellwether::{Clock, Wall};
use bellwether_deadman::{COUNTS_SUSPEND, Pid1Deadline};
use bellwether_supervise::Containment;

/// No clock that was ever set shows less, nor more.
const SANE: (&str, &str) = ("2025-01-01T00:00:00Z", "2100-01-01T00:00:00Z");

/// The clock that decides, and the one that people read.
pub(super) fn clocks() -> [Finding; 2] {
    let boot = if COUNTS_SUSPEND {
        Finding::good(
            "boot clock",
            "counts the time asleep, so a leadership ends in time even if the machine sleeps",
        )
    } else {
        Finding::warning(
            "boot clock",
            "stands still while the machine sleeps, so a leader that slept believes for as long again that it leads: disable \
             suspend on machines that take part",
        )
    };
    let now = SystemClock.wall();
    let (early, late) = SANE;
    let sane = Wall::parse(early).is_some_and(|early| now >= early)
        && Wall::parse(late).is_some_and(|late| now < late);
    let wall = if sane {
        Finding::good("wall clock", format!("shows {now}; it does not decide who leads"))
    } else {
        Finding::warning(
            "wall clock",
            format!(
                "shows {now}: it does not decide who leads, but records and events carry it, cooldowns across a restart \
                 count by it, and in a directory epochs follow it after records were deleted by hand; set it (NTP)"
            ),
        )
    };
    [boot, wall]
}

/// Whether somebody may freeze a command so that not even the kernel kills it at its deadline.
pub(super) fn freezer() -> Option<Finding> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = v1_freezer(&groups)?;
    // The root of the hierarchy cannot be frozen, and has no such file. In a container the root that is seen may be another's child.
    let frozen_at = std::path::Path::new("/sys/fs/cgroup/freezer/freezer.state");
    (group != "/" || frozen_at.exists()).then(|| {
        Finding::warning(
            "freezer",
            format!(
                "bellwether is in the cgroup-v1 freezer {group}: a COMMAND that is frozen (`docker pause`) past its deadline is not killed \
                 before it is thawed, and may run for a moment then, beside the next leader; use cgroup v2, whose freezer lets kills through"
            ),
        )
    })
}

/// The group that the freezer of cgroup v1 has this process in, by the text of `/proc/self/cgroup`.
fn v1_freezer(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let (_number, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "freezer").then_some(group)
    })
}

/// What `run -- COMMAND` could rely on.
pub(super) fn containment(found: &Result<Containment, String>) -> Finding {
    const WHAT: &str = "containment";
    match found {
        Ok(containment @ Containment::Namespace) => {
            Finding::good(WHAT, format!("`run -- COMMAND` has a PID namespace: {}", containment.promise()))
        }
        Ok(Containment::Sweep) if Pid1Deadline::new().is_some() => Finding::good(
            WHAT,
            format!(
                "bellwether is the first process of a container, and ends it at a deadline if need be: {}",
                Containment::Namespace.promise()
            ),
        ),
        Ok(containment @ Containment::Sweep) => Finding::warning(
            WHAT,
            format!(
                "`run -- COMMAND` may not make a PID namespace and finds the command's processes through /proc: {}; grant \
                 CAP_SYS_ADMIN, or make bellwether the first process of a container",
                containment.promise()
            ),
        ),
        Err(reason) => Finding::warning(
            WHAT,
            format!(
                "`run -- COMMAND` does not work here ({reason}); `run` without COMMAND and the library do"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_freezer_of_cgroup_v1_is_one() {
        let v1 = "9:freezer:/docker/ab\n8:cpu,cpuacct:/\n0::/";
        assert_eq!(v1_freezer(v1), Some("/docker/ab"));
        assert_eq!(v1_freezer("4:cpuset,freezer:/a:b"), Some("/a:b"));
        assert_eq!(v1_freezer("0::/freezer\n1:name=systemd:/freezer"), None);
    }
}
