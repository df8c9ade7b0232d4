//! Every way in which a command can end while supervisor and guard are well.

#![cfg(target_os = "linux")]

mod stage;

use stage::Stage;

#[test]
fn a_command_that_exits_by_itself_ends_with_its_own_code() {
    let stage = Stage::new();
    let mut host = stage.host_of(&[], &["/bin/sh", "-c", "exit 7"]);
    assert!(host.expect("ended").starts_with("Code(7) ByItself"));
    host.expect("released");
    stage.expect_empty();
}

#[test]
fn a_command_that_is_killed_by_a_signal_ends_with_it() {
    let stage = Stage::new();
    let mut host = stage.host_of(&[], &["/bin/sh", "-c", "kill -SEGV $$"]);
    assert!(host.expect("ended").starts_with("Signal(11) ByItself"));
    host.expect("released");
    stage.expect_empty();
}

#[test]
fn a_command_that_is_asked_to_stop_gets_term_and_its_grace() {
    let stage = Stage::new();
    let script = "trap 'echo witness; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let mut host = stage.host_of(&["grace=500"], &["/bin/sh", "-c", script]);
    host.expect("ready");
    host.tell("term");
    let ended = host.expect("ended");
    assert!(ended.starts_with("Code(3) Asked"), "{ended}");
    host.expect("released");
    stage.expect_empty();
}

#[test]
fn a_signal_is_passed_on_as_it_is_and_to_the_command_alone() {
    let stage = Stage::new();
    let script = "trap 'echo got hup' HUP; trap 'exit 4' INT; echo ready; while :; do sleep 0.01; done";
    let mut host = stage.host_of(&["grace=500"], &["/bin/sh", "-c", script]);
    host.expect("ready");
    host.tell("hup");
    assert_eq!(host.expect("got"), "hup");
    host.tell("int");
    assert!(host.expect("ended").starts_with("Code(4) Asked"));
    stage.expect_empty();
}

#[test]
fn a_command_that_does_not_listen_is_killed_after_the_grace() {
    let stage = Stage::new();
    let mut host = stage.host(&["grace=100"], &["deaf"]);
    host.running();
    host.tell("term");
    let ended = host.expect("ended");
    assert!(ended.starts_with("Signal(9) Asked"), "{ended}");
    assert!(left(&ended) > 500, "the grace is over long before the deadline: {ended}");
    host.expect("released");
    stage.expect_empty();
}

#[test]
fn a_command_that_is_to_die_at_once_does() {
    let stage = Stage::new();
    let mut host = stage.host(&["grace=500"], &["deaf", "daemon"]);
    host.running();
    host.tell("kill");
    assert!(host.expect("ended").starts_with("Signal(9) Asked"));
    assert!(!stage.witnessed());
    host.expect("released");
    stage.expect_empty();
}

#[test]
fn a_command_whose_handle_is_dropped_dies_at_once() {
    let stage = Stage::new();
    let mut host = stage.host(&["grace=500"], &["deaf", "daemon"]);
    host.running();
    host.tell("drop");
    // The leadership is released only when the tree is gone.
    host.expect("released");
    assert!(!stage.witnessed());
    stage.expect_empty();
}

#[test]
fn a_leadership_that_is_let_go_waits_for_the_tree() {
    let stage = Stage::new();
    let mut host = stage.host(&["grace=100"], &["deaf", "daemon"]);
    host.running();
    host.tell("step down");
    let ended = host.expect("ended");
    assert!(ended.starts_with("Signal(9) Over(Released)"), "{ended}");
    assert!(!stage.witnessed());
    host.expect("released");
    stage.expect_empty();
}

#[test]
fn what_a_command_leaves_behind_goes_with_it() {
    let stage = Stage::new();
    let lock = stage.witness_lock();
    let script = format!(
        "{} witness {lock} deaf daemon & while ! grep -q . {lock}.up 2>/dev/null; \
         do sleep 0.01; done; exit 5",
        stage::PROBE
    );
    let mut host = stage.host_of(&[], &["/bin/sh", "-c", &script]);
    host.expect("witness");
    std::fs::write(format!("{lock}.up"), "x").unwrap();
    assert!(host.expect("ended").starts_with("Code(5) ByItself"));
    assert!(!stage.witnessed(), "a daemon outlived its command");
    stage.expect_empty();
}

#[test]
fn one_supervisor_runs_command_after_command() {
    let stage = Stage::new();
    let mut host = stage.host(&["rounds=5"], &["exit", "daemonless"]);
    for _ in 0..5 {
        host.expect("witness");
        assert!(host.expect("ended").starts_with("Code(0) ByItself"));
    }
    host.expect("released");
    stage.expect_never_two();
    stage.expect_empty();
}

fn left(ended: &str) -> u64 {
    ended.rsplit_once("left=").unwrap().1.parse().unwrap()
}
