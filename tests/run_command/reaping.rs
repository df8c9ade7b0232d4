//! Children that bellwether did not start.

use std::fs;
use std::path::Path;

use bellwether_tests::{Candidate, until_blocking};
use rustix::process::Signal;

use crate::{WAIT, plain, run, words};

/// The numbers of processes that have been written to this file, and are still there, be it as zombies.
fn left_of(file: &Path) -> Vec<String> {
    let pids = fs::read_to_string(file).unwrap_or_default();
    pids.lines()
        .filter(|pid| fs::exists(format!("/proc/{pid}")).is_ok_and(|there| there))
        .map(str::to_owned)
        .collect()
}

#[test]
fn orphans_of_health_checks_are_reaped() {
    let stage = plain();
    let pids = stage.path().join("pids");
    let enough = || fs::read_to_string(&pids).unwrap_or_default().lines().count() >= 8;
    // Whatever its name: guards are told apart by their numbers.
    let ping = stage.path().join("bellwether-ping");
    fs::copy("/usr/bin/sleep", &ping).expect("our own directory");
    let check = format!(
        "test -e {0}.enough || (setsid sh -c 'echo $$ >> {0}; exec {1} 0.3' &); true",
        pids.display(),
        ping.display()
    );
    // Without a PID namespace, orphans come to bellwether.
    let options = ["--no-pid-namespace", "--health-cmd", &check, "--health-cmd-interval", "100ms"];
    let mut candidate = run(&stage, &options, &WAIT[1..]);
    assert_eq!(words(&mut candidate), "ready");
    fs::write(&pids, "").expect("our own directory");
    until_blocking(|| enough().then_some(()).ok_or("too few health checks"));
    fs::write(stage.path().join("pids.enough"), "").expect("our own directory");
    until_blocking(|| match left_of(&pids) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("zombies: {left:?}")),
    });
    candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
}

#[test]
fn children_of_a_shell_that_became_bellwether_are_reaped() {
    let stage = plain();
    let pids = stage.path().join("pids");
    let inner = crate::command(&stage, "a", &[], &WAIT[1..]);
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &format!("sleep 0.1 & echo $! > {}; exec \"$@\"", pids.display()), "sh"]);
    shell.arg(inner.get_program()).args(inner.get_args());
    let mut candidate = Candidate::start(shell);
    assert_eq!(words(&mut candidate), "ready");
    until_blocking(|| left_of(&pids).is_empty().then_some(()).ok_or("a zombie"));
    candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
}
