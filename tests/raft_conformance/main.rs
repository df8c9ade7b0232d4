//! The suite that every backend passes, on three nodes whose leader has just been killed, stopped or cut off. A program of its own: it
//! times what a busy machine delays. [`bellwether_tests::raft::Conformance`] says what is shown.

#![cfg(target_os = "linux")]

use bellwether_tests::raft::Conformance;

/// Why a case does not apply to this store, on a healthy cluster as on this one.
const SKIPPED: [&str; 6] = [
    "the death of a process cannot be proven",
    "the harness cannot remove a record",
    "a claim does not read first",
    "elections cannot be paused",
    "a claim on a session changes nothing that is watched",
    "a session's heartbeat changes nothing that is watched",
];

#[test]
fn a_cluster_conforms_while_its_leaders_are_killed_stopped_and_cut_off() {
    let Some(suite) = Conformance::begin() else { return };
    let figures = suite.round(0);
    for batch in &figures.batches {
        println!("# the leader was {}\n{}", batch.fault, batch.report);
    }
    println!("{figures}");
    assert!(figures.complaints().is_empty(), "{:#?}", figures.complaints());
    for (case, why) in figures.batches.iter().flat_map(|batch| batch.report.skipped()) {
        assert!(SKIPPED.contains(&why), "{case}: {why}");
    }
    suite.end();
}
