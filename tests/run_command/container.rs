//! As process 1 of a container, and as an ordinary user.

use bellwether_tests::{Candidate, Process, Stage, Surroundings};
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
    assert!(ended.stderr.contains("no right to make a PID namespace"), "{}", ended.stderr);
    let left = stage.alive();
    assert!(left.is_empty(), "a daemon outlived the leadership: {left:?}");
}

/// Process 1 of the container, as seen from here.
fn first(stage: &Stage, candidate: &Candidate) -> Process {
    let unshare = candidate.pid().cast_signed();
    stage.alive().into_iter().find(|process| process.parent == unshare).expect("process 1")
}
