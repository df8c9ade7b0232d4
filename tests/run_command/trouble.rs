//! A store that cannot be written.

use rustix::process::Signal;

use crate::{WAIT, plain, ready_after, run, words};

#[test]
fn danger_is_told_before_the_command_is_told_to_stop() {
    let stage = plain();
    let store = stage.small_store();
    let options = ["--ttl", "3s", "--grace", "500ms"];
    let mut candidate = run(&stage, &options, &format!("trap 'say TERM; exit 0' TERM{WAIT}"));
    assert_eq!(words(&mut candidate), "ready");
    let ballast = store.fill();
    let danger = candidate.expect("danger");
    assert_eq!(danger.epoch(), candidate.heard("acquired").epoch());
    assert_eq!(words(&mut candidate), "TERM");
    let exited = candidate.expect("child_exited");
    let lost = candidate.heard("lost");
    let deadline = lost.instant("deadline_boot_ns").expect("a deadline");
    assert!(danger.boot() < exited.boot() && exited.boot() < deadline, "{danger:?} {exited:?} {lost:?}");
    assert_eq!(lost.text("reason"), Some("deadline"), "{lost:?}");
    std::fs::remove_file(ballast).expect("room again");
    let again = ready_after(&mut candidate, danger.epoch());
    assert!(again.epoch() > Some(1));
    candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
}

#[test]
fn a_store_made_read_only_ends_the_command_in_time_and_says_why() {
    let stage = plain();
    let mut candidate = run(&stage, &["--ttl", "1s"], &WAIT[1..]);
    assert_eq!(words(&mut candidate), "ready");
    let _read_only = stage.read_only();
    let lost = candidate.expect("lost");
    let exited = candidate.heard("child_exited");
    assert!(exited.boot() < lost.instant("deadline_boot_ns").expect("a deadline"), "{exited:?} {lost:?}");
    let ended = candidate.ended();
    assert_eq!(ended.code, Some(77), "{}", ended.stderr);
    assert!(ended.stderr.contains("read-only"), "{}", ended.stderr);
}
