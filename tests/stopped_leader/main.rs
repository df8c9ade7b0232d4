//! A leader that is stopped (SIGSTOP) is not dead: it is replaced when its lease has run out, and when it goes on it
//! knows at once that its time is over.

use std::time::Duration;

use bellwether_tests::{Candidate, overlaps};
use rustix::process::Signal;

const TTL: &[&str] = &["--ttl", "1s"];

#[test]
fn a_stopped_leader_is_replaced_by_its_ttl_and_wakes_up_as_a_follower() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut first = Candidate::on_file(directory.path(), "job", "first", TTL);
    let old = first.expect("acquired");
    let mut second = Candidate::on_file(directory.path(), "job", "second", TTL);
    second.expect("acquire_failed");
    let stopped = first.signal(Signal::STOP);
    let taken = second.expect("acquired");
    let after = taken.boot().since(stopped);
    println!("stopped to replaced: {after:?}");
    // The last renewal was at most a renew interval (ttl/3) before the stop.
    assert!(after > Duration::from_millis(600), "{after:?}: a stopped process was taken for a dead one");
    assert!(taken.epoch() > old.epoch());
    first.signal(Signal::CONT);
    let lost = first.expect("lost");
    assert!(matches!(lost.text("reason"), Some("deadline" | "conflict")), "{lost:?}");
    second.drain();
    let found = overlaps([&first, &second]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn the_death_of_a_replaced_leader_deposes_nobody() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut first = Candidate::on_file(directory.path(), "job", "first", TTL);
    first.expect("acquired");
    let mut second = Candidate::on_file(directory.path(), "job", "second", TTL);
    let mut third = Candidate::on_file(directory.path(), "job", "third", TTL);
    second.expect("acquire_failed");
    third.expect("acquire_failed");
    first.signal(Signal::STOP);
    // Whoever it is, it leads now, and the zombie's death must not change that.
    let mut leader = loop {
        if second.wait("acquired", Duration::from_millis(20)).is_some() {
            break second;
        }
        if third.wait("acquired", Duration::from_millis(20)).is_some() {
            std::mem::swap(&mut second, &mut third);
            break second;
        }
    };
    first.kill();
    assert!(leader.wait("lost", Duration::from_secs(3)).is_none(), "deposed: {:?}", leader.said);
    third.drain();
    // The zombie was killed before it could say until when it believed, so it is not judged here.
    let found = overlaps([&leader, &third]);
    assert!(found.is_empty(), "{found:?}");
}
