//! In user namespaces and under other kinds of `/proc`, as in rootless containers: COMMAND runs, and the log and `doctor` say
//! which containment it has.

use std::process::{Command, Stdio};

use bellwether_tests::{Candidate, Stage, Surroundings, run_to_end};

use crate::{command, words};

/// What bellwether is started by, and whether it can make a PID namespace there.
const SURROUNDINGS: [(&[&str], bool); 7] = [
    (&["unshare", "--user", "--map-root-user"], true),
    (&["unshare", "--user", "--map-root-user", "unshare", "--user", "--map-root-user"], true),
    (&["setpriv", "--reuid=65534", "--clear-groups", "unshare", "--user", "--map-root-user"], true),
    // Nobody's rights are mapped, so there are none.
    (&["unshare", "--user"], false),
    // The kernel mounts no `/proc` that would show more than the one there is.
    (
        &["sh", "-c", "mount -t tmpfs none /proc/sys && exec unshare --user --map-root-user \"$@\"", "sh"],
        false,
    ),
    (
        &[
            "sh",
            "-c",
            "mount -o remount,bind,ro /proc && exec setpriv --reuid=65534 --clear-groups \"$@\"",
            "sh",
        ],
        false,
    ),
    (
        &[
            "sh",
            "-c",
            "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --clear-groups \"$@\"",
            "sh",
        ],
        false,
    ),
];

/// The same command, started by `prefix` in a mount namespace of its own; `None` where that is not permitted.
fn within(prefix: &[&str], inner: &Command) -> Option<Command> {
    let outer = || {
        let mut command = Command::new("unshare");
        command.arg("--mount").args(prefix);
        command
    };
    if !outer().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("skipped: {prefix:?} is not permitted here");
        return None;
    }
    let mut command = outer();
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Some(command)
}

#[test]
fn a_command_runs_in_every_kind_of_user_namespace_and_the_log_says_what_contains_it() {
    for (prefix, namespace) in SURROUNDINGS {
        let stage = Stage::new(Surroundings::Plain).expect("plain surroundings");
        let script = "setsid sleep 1000 & say ran; exit 4";
        let Some(within) = within(prefix, &command(&stage, "a", &[], script)) else { continue };
        let mut candidate = Candidate::start(within);
        assert_eq!(words(&mut candidate), "ran", "{prefix:?}");
        let ended = candidate.ended();
        assert_eq!(ended.code, Some(4), "{prefix:?}: {}", ended.stderr);
        let (level, holds) = match namespace {
            true => (" INFO ", "containment=PID namespace"),
            false => (" WARN ", "could outlive the leadership"),
        };
        let said = ended.stderr.lines().any(|line| line.contains(level) && line.contains(holds));
        assert!(said, "{prefix:?}: {}", ended.stderr);
        let left = stage.emptied();
        assert!(left.is_empty(), "{prefix:?}: a daemon outlived the leadership: {left:?}");
    }
}

#[test]
fn doctor_says_in_every_kind_of_user_namespace_which_containment_there_is() {
    for (prefix, namespace) in SURROUNDINGS {
        let stage = Stage::new(Surroundings::Plain).expect("plain surroundings");
        let mut doctor = stage.bellwether("a");
        doctor.args(["doctor", "-o", "json"]);
        let Some(within) = within(prefix, &doctor) else { continue };
        let output = run_to_end(within);
        assert_eq!(output.status.code(), Some(0), "{prefix:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let holds = if namespace { "has a PID namespace" } else { "no right to a PID namespace" };
        assert!(said.contains(holds), "{prefix:?}: {said}");
    }
}
