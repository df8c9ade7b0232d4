//! As process 1 of a container, and as an ordinary user.

use std::process::Command;

use bellwether_tests::{Candidate, Process, Stage, Surroundings, bellwether, run_to_end};
use rustix::process::Signal;

use crate::{WAIT, command, has_said, run, words};

#[test]
fn process_1_passes_signals_on_and_ends_with_the_code() {
    let Some(stage) = Stage::new(Surroundings::Container) else { return };
    for (script, code) in [("exit 7", 7), ("kill -TERM $$", 143), ("exit 0", 0)] {
        assert_eq!(run(&stage, &[], script).ended().code, Some(code), "{script}");
    }
    let script =
        format!("for s in HUP USR1 TERM; do trap \"say $s\" $s; done; trap 'say INT; exit 5' INT{WAIT}");
    let mut candidate = run(&stage, &["--ttl", "60s", "--grace", "20s"], &script);
    assert_eq!(words(&mut candidate), "ready");
    let first = first(&stage, &candidate);
    for (signal, name) in [(Signal::HUP, "HUP"), (Signal::USR1, "USR1"), (Signal::INT, "INT")] {
        first.signal(signal);
        assert_eq!(words(&mut candidate), name);
    }
    assert_eq!(candidate.ended().code, Some(0));
    assert!(has_said(&candidate, "released"));
    assert!(stage.emptied().is_empty());
}

#[test]
fn the_end_of_the_container_is_the_end_of_everything_in_it() {
    let Some(stage) = Stage::new(Surroundings::Container) else { return };
    let mut candidate =
        run(&stage, &["--ttl", "60s"], &format!("setsid sleep 1000 &{WAIT}").replace("&;", "&"));
    assert_eq!(words(&mut candidate), "ready");
    first(&stage, &candidate).signal(Signal::KILL);
    assert!(stage.emptied().is_empty());
    let mut next = Candidate::start(command(&stage, "b", &["--ttl", "60s"], "exit 0"));
    assert_eq!(next.ended().code, Some(0), "taken over long before the lease runs out");
}

#[test]
fn an_ordinary_user_is_told_that_there_is_no_namespace_and_the_rest_is_the_same() {
    let Some(stage) = Stage::new(Surroundings::Nobody) else { return };
    let script = "setsid sleep 1000 & say $(id -u); exit 4";
    let mut candidate = run(&stage, &[], script);
    assert_eq!(words(&mut candidate), "65534");
    let ended = candidate.ended();
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.contains("no permission to make a PID namespace"), "{}", ended.stderr);
    let left = stage.alive();
    assert!(left.is_empty(), "a daemon outlived the leadership: {left:?}");
}

/// Process 1 keeps deadlines for what it was started with, and for nobody else.
#[test]
fn only_what_a_container_was_started_with_is_promised_what_process_1_does() {
    let Some(stage) = Stage::new(Surroundings::Container) else { return };
    let mut candidate = run(&stage, &["--no-pid-namespace"], &WAIT[1..]);
    assert_eq!(words(&mut candidate), "ready");
    let mut second = Command::new("nsenter");
    second
        .args(["--target", &first(&stage, &candidate).pid.to_string(), "--pid", "--mount"])
        .arg(bellwether());
    second.arg("--backend").arg(format!("file:{}", stage.store().display()));
    second.args(["run", "other", "--no-pid-namespace", "--", "true"]);
    let second = run_to_end(second);
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(0), "{said}");
    assert!(said.contains(" WARN ") && said.contains("could outlive the leadership"), "{said}");
    assert!(!said.contains("the first process of its container"), "{said}");
    first(&stage, &candidate).signal(Signal::TERM);
    let ended = candidate.ended();
    assert!(ended.stderr.contains("the first process of its container"), "{}", ended.stderr);
}

/// Process 1 of the container, as seen from here.
fn first(stage: &Stage, candidate: &Candidate) -> Process {
    let unshare = candidate.pid().cast_signed();
    stage.alive().into_iter().find(|process| process.parent == unshare).expect("process 1")
}
