//! Exit codes.

use std::os::unix::fs::PermissionsExt;

use bellwether_tests::{Candidate, run_to_end};
use rustix::process::Signal;

use crate::{WAIT, has_said, plain, run};

#[test]
fn a_command_that_ends_by_itself_gives_its_own_code_after_the_release() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255)] {
        let stage = plain();
        let mut candidate = run(&stage, &[], script);
        assert_eq!(candidate.ended().code, Some(code), "{script}");
        let said: Vec<&str> = candidate.said.iter().map(|line| line.event()).collect();
        let place =
            |event: &str| said.iter().position(|said| *said == event).unwrap_or_else(|| panic!("{said:?}"));
        assert!(place("acquired") < place("child_started") && place("child_started") < place("child_exited"));
        assert!(place("child_exited") < place("released"), "{said:?}");
        let exited = &candidate.said[place("child_exited")];
        assert_eq!(exited.number("code"), Some(code as u64));
        assert_eq!(exited.epoch(), candidate.said[place("acquired")].epoch());
    }
}

#[test]
fn a_command_that_a_signal_ends_gives_128_and_the_signal() {
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("SEGV", 139)] {
        let stage = plain();
        let mut candidate = run(&stage, &[], &format!("kill -{signal} $$"));
        assert_eq!(candidate.ended().code, Some(code), "{signal}");
    }
}

#[test]
fn a_command_that_cannot_be_run_keeps_the_node_from_standing() {
    let stage = plain();
    let plain_file = stage.path().join("file");
    std::fs::write(&plain_file, "").expect("our own directory");
    let file = plain_file.to_str().expect("UTF-8");
    for (command, code) in [("no-such-command", 127), ("/no/such/command", 127), (file, 126), ("/etc", 126)] {
        let mut bellwether = stage.bellwether("a");
        let output = run_to_end({
            bellwether.args(["run", "job", "--events", "--", command]);
            bellwether
        });
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
        assert!(output.stdout.is_empty(), "it stood: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(command), "{output:?}");
    }
    assert!(std::fs::read_dir(stage.store()).expect("a directory").next().is_none(), "it stood");
}

#[test]
fn a_command_that_turns_out_to_be_no_program_is_126_after_a_release() {
    let stage = plain();
    let script = stage.path().join("script");
    std::fs::write(&script, "no interpreter").expect("our own directory");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    let mut command = stage.bellwether("a");
    command.args(["run", "job", "--events", "--"]).arg(&script);
    let mut candidate = Candidate::start(command);
    let ended = candidate.ended();
    assert_eq!(ended.code, Some(126), "{}", ended.stderr);
    assert!(ended.stderr.contains("#!"), "{}", ended.stderr);
    assert!(has_said(&candidate, "released"), "{:?}", candidate.said);
}

#[test]
fn a_grace_that_does_not_fit_is_bad_usage() {
    let stage = plain();
    let mut candidate = run(&stage, &["--ttl", "1s", "--grace", "950ms"], "say ran");
    let ended = candidate.ended();
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    assert!(!has_said(&candidate, "said"), "it ran");
}

#[test]
fn once_is_76_after_a_loss() {
    let stage = plain();
    let mut asked = run(&stage, &["--once", "--ttl", "2s"], &WAIT[1..]);
    asked.expect("said");
    let step_down = run_to_end({
        let mut command = stage.bellwether("b");
        command.args(["step-down", "job"]);
        command
    });
    assert_eq!(step_down.status.code(), Some(75), "nobody else competes: {step_down:?}");
    assert_eq!(asked.ended().code, Some(76));
    // Stopped for longer than its lease.
    let mut stopped = run(&stage, &["--once", "--ttl", "1s"], &WAIT[1..]);
    stopped.expect("said");
    let pid = stopped.heard("child_started").number("pid").expect("a pid");
    stopped.signal(Signal::STOP);
    let gone = stage.alive().into_iter().find(|process| u64::try_from(process.pid) == Ok(pid));
    gone.expect("the command").wait_for_end();
    std::thread::sleep(std::time::Duration::from_millis(200));
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.ended().code, Some(76));
}

#[test]
fn who_does_not_get_to_lead_never_runs_the_command() {
    let stage = plain();
    let mut leader = run(&stage, &["--ttl", "30s"], &WAIT[1..]);
    leader.expect("said");
    for (options, code) in [(&["-n", "-E", "9"][..], 9), (&["-n"], 75), (&["--wait", "200ms"], 75)] {
        let options = [options, &["--ttl", "30s"]].concat();
        let mut other = Candidate::start(crate::command(&stage, "b", &options, "say ran"));
        assert_eq!(other.ended().code, Some(code), "{options:?}");
        assert!(!has_said(&other, "said"), "{options:?}: it ran");
    }
}
