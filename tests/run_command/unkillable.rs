//! A process of COMMAND's tree that has gained rights which bellwether does not have (a setuid program): nothing is released while it
//! runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use bellwether_tests::{Candidate, Process, Stage, Surroundings};
use rustix::process::Signal;

use crate::{command, has_said, run, words};

/// A program of root's that anybody may run as root, with everything that it is to run as its arguments.
fn become_root(stage: &Stage) -> String {
    let program = stage.path().join("become-root");
    fs::copy("/usr/bin/setpriv", &program).expect("our own directory");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("our own file");
    format!("{} --reuid=0 --regid=0 --clear-groups", program.display())
}

/// Root's process on this stage.
fn sleeper(stage: &Stage) -> Process {
    let asleep = |process: &Process| process.name == "sleep";
    bellwether_tests::until_blocking(|| stage.alive().into_iter().find(asleep).ok_or("nobody sleeps"))
}

#[test]
fn no_release_is_written_while_a_setuid_descendant_runs() {
    for (script_ends, why) in [("wait", "asked to stop"), ("exit 0", "by itself")] {
        let Some(stage) = Stage::new(Surroundings::Nobody) else { return };
        let script = format!("{} sleep 1000 & say ready; read line < go; {script_ends}", become_root(&stage));
        let script = format!("cd {}; {script}", stage.path().display());
        let go = stage.path().join("go");
        let made = std::process::Command::new("mkfifo").args(["-m", "666"]).arg(&go).status();
        assert!(made.expect("mkfifo").success());
        let mut candidate = run(&stage, &["--ttl", "2s", "--grace", "100ms"], &script);
        assert_eq!(words(&mut candidate), "ready");
        let sleeper = sleeper(&stage);
        fs::write(&go, "\n").expect("somebody reads");
        if script_ends == "wait" {
            candidate.signal(Signal::TERM);
        }
        let mut next = Candidate::start(command(&stage, "b", &["--ttl", "2s"], "say ran; exit 0"));
        next.expect("acquired");
        let ended = candidate.exit_code();
        assert_eq!(ended, Some(77), "{why}");
        candidate.drain();
        assert!(!has_said(&candidate, "released"), "{why}: {:?}", candidate.said);
        sleeper.signal(Signal::KILL);
        let ended = candidate.ended();
        let said = |words: &str| {
            let found = ended.stderr.find(words);
            found.unwrap_or_else(|| panic!("{why}: no {words:?} in {}", ended.stderr))
        };
        let named = format!("process {} of user 0", sleeper.pid);
        assert!(
            said(&format!("{named} was started by the command")) < said("job: lost (epoch "),
            "{why}: {}",
            ended.stderr
        );
        said(&format!("{named}, which the command started"));
        assert_eq!(next.ended().code, Some(0), "{why}");
        let left = stage.emptied();
        assert!(left.is_empty(), "{why}: {left:?}");
    }
}

#[test]
fn a_setuid_descendant_that_ends_in_time_is_waited_for_and_the_code_is_the_commands_own() {
    let Some(stage) = Stage::new(Surroundings::Nobody) else { return };
    let root = become_root(&stage);
    let script = format!(
        "cd {}; {root} sh -c 'touch up; exec sleep 1' & until test -e up; do sleep 0.01; done; exit 5",
        stage.path().display()
    );
    let mut candidate = run(&stage, &["--ttl", "60s"], &script);
    let ended = candidate.ended();
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert_eq!(candidate.heard("child_exited").number("code"), Some(5), "{:?}", candidate.said);
    assert!(has_said(&candidate, "released"), "{:?}", candidate.said);
    assert!(ended.stderr.contains("was started by the command and cannot be killed"), "{}", ended.stderr);
    assert!(stage.emptied().is_empty());
}
