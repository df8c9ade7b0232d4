//! In user namespaces and under other kinds of `/proc`, as in rootless containers: COMMAND runs, and the log and `doctor` say
//! which containment it has.

use std::process::Command;

use bellwether_tests::{Candidate, is_root, permitted, run_to_end, skipped};

use rustix::process::Signal;

use crate::{command, has_said, plain, words};

/// What bellwether is started by, and whether it can make a PID namespace there.
const OF_ANYBODY: [(&[&str], bool); 3] = [
    (&["unshare", "--user", "--map-root-user"], true),
    (&["unshare", "--user", "--map-root-user", "unshare", "--user", "--map-root-user"], true),
    // Nobody's rights are mapped, so there are none.
    (&["unshare", "--user"], false),
];

/// Likewise, where only root may start it, in a mount namespace of its own.
const OF_ROOT: [(&[&str], bool); 4] = [
    (&["setpriv", "--reuid=65534", "--clear-groups", "unshare", "--user", "--map-root-user"], true),
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

/// Those that whoever runs this may make: all as root, and as others those of anybody, unless the kernel permits them to root only. What is
/// left out is said.
fn surroundings() -> Vec<(Vec<&'static str>, bool)> {
    let with = |before: &[&'static str], (prefix, namespace): (&[&'static str], bool)| {
        ([before, prefix].concat(), namespace)
    };
    let mut all = Vec::new();
    let mut attempt = Command::new("unshare");
    if permitted(attempt.args(["--user", "--map-root-user", "true"]), "a user namespace") {
        all.extend(OF_ANYBODY.map(|one| with(&[], one)));
    }
    if is_root() {
        all.extend(OF_ROOT.map(|one| with(&["unshare", "--mount"], one)));
    } else {
        skipped("a changed /proc and another user's namespace need root");
    }
    all
}

/// The same command, started by `prefix`.
fn within(prefix: &[&str], inner: &Command) -> Command {
    let outer = || {
        let mut command = Command::new(prefix[0]);
        command.args(&prefix[1..]);
        command
    };
    let tried = outer().arg("true").output().expect("util-linux is installed");
    assert!(tried.status.success(), "{prefix:?} cannot be had here: {tried:?}");
    let mut command = outer();
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

#[test]
fn a_command_runs_in_every_kind_of_user_namespace_and_the_log_says_what_contains_it() {
    for (prefix, namespace) in surroundings() {
        let stage = plain();
        let script = "setsid sleep 1000 & say ran; exit 4";
        let mut candidate = Candidate::start(within(&prefix, &command(&stage, "a", &[], script)));
        let ended = candidate.ended();
        assert_eq!(ended.code, Some(4), "{prefix:?}: {}", ended.stderr);
        assert!(has_said(&candidate, "said"), "{prefix:?}: {:?}", candidate.said);
        let (level, holds) = match namespace {
            true => (" INFO ", "it has a PID namespace of its own"),
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
    for (prefix, namespace) in surroundings() {
        let stage = plain();
        let mut doctor = stage.bellwether("a");
        doctor.args(["doctor", "-o", "json"]);
        let output = run_to_end(within(&prefix, &doctor));
        assert_eq!(output.status.code(), Some(0), "{prefix:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let holds = if namespace { "has a PID namespace" } else { "may not make a PID namespace" };
        assert!(said.contains(holds), "{prefix:?}: {said}");
    }
}

/// Process 1 of a container without the right to make a PID namespace.
#[test]
fn doctor_does_not_advise_the_first_process_of_a_container_to_become_it() {
    let prefix = ["unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc"];
    if !permitted(Command::new(prefix[0]).args(&prefix[1..]).arg("true"), "a user and a PID namespace") {
        return;
    }
    let unprivileged = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
    let stage = plain();
    let mut doctor = stage.bellwether("a");
    doctor.args(["doctor", "-o", "json"]);
    let output = run_to_end(within(&[&prefix[..], &unprivileged].concat(), &doctor));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("is the first process of a container"), "{said}");
    assert!(!said.contains("grant CAP_SYS_ADMIN"), "{said}");
}

/// The right to make a PID namespace may be gone when it is needed.
#[test]
fn a_start_with_less_containment_than_announced_is_warned_of() {
    let prefix = ["unshare", "--user", "--map-root-user"];
    if !permitted(Command::new(prefix[0]).args(&prefix[1..]).arg("true"), "a user namespace") {
        return;
    }
    let stage = plain();
    let mut first = Candidate::start(command(&stage, "a", &[], &crate::WAIT[1..]));
    assert_eq!(words(&mut first), "ready");
    let mut next = Candidate::start(within(&prefix, &command(&stage, "b", &[], "say ran; exit 4")));
    next.joined();
    let mut forbid = Command::new("nsenter");
    forbid.args(["--target", &next.pid().to_string(), "--user", "--preserve-credentials"]);
    forbid.args(["sh", "-c", "echo 0 > /proc/sys/user/max_pid_namespaces"]);
    assert!(forbid.status().expect("util-linux is installed").success());
    first.signal(Signal::TERM);
    assert_eq!(first.ended().code, Some(0));
    let ended = next.ended();
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    let warned = |line: &str| line.contains(" WARN ") && line.contains("os error 28");
    assert!(ended.stderr.lines().any(warned), "{}", ended.stderr);
}
