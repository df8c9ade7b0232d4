//! Leaders ended in every way there is, with a witness as their command: never two at once, never an orphan, and the next
//! leader within the bound that `bellwether explain` prints.
//!
//! A short series; `cargo xtask prove run` is the long one.

#![cfg(target_os = "linux")]

use std::process::Command;

use bellwether_tests::series::{Ending, Series};
use bellwether_tests::{OutputLines, Stage, Surroundings};

fn every_way(surroundings: Surroundings, times: usize) {
    let ways = Ending::all(surroundings).repeat(times);
    all_well(surroundings, &ways);
}

fn all_well(surroundings: Surroundings, ways: &[Ending]) {
    let Some(mut series) = Series::new(surroundings, ways[0]) else { return };
    series.rounds(ways);
    let figures = series.end();
    println!("{surroundings:?}\n{figures}");
    assert_eq!(figures.rounds(), ways.len());
    assert!(figures.complaints().is_empty(), "{:#?}", figures.complaints());
}

#[test]
fn whatever_happens_to_a_leader_there_are_never_two_and_never_an_orphan() {
    every_way(Surroundings::Plain, 3);
}

#[test]
fn as_process_1_of_a_container_it_is_the_same() {
    every_way(Surroundings::Container, 2);
}

#[test]
fn as_an_ordinary_user_without_namespaces_it_holds_as_far_as_promised() {
    every_way(Surroundings::Nobody, 2);
}

#[test]
fn kill_after_kill_the_work_of_a_grandchild_never_meets_the_next() {
    for surroundings in [Surroundings::Plain, Surroundings::Nobody] {
        all_well(surroundings, &[Ending::GrandchildWorks; 25]);
    }
}

/// What the judges go by can fail.
#[test]
fn two_witnesses_at_once_are_seen_and_so_is_an_orphan() {
    let stage = Stage::new(Surroundings::Plain).expect("plain surroundings");
    let mut first = stage.candidate("first", &["--ttl", "5s"]);
    let epoch = first.expect("witness").epoch();
    assert!(stage.orphans(epoch).is_empty());
    assert_eq!(stage.take_two_at_once(), "");
    assert!(!stage.orphans(epoch.map(|epoch| epoch + 1)).is_empty(), "an orphan goes unnoticed");
    // Another, which no election keeps from starting.
    let witness = env!("CARGO_BIN_EXE_bellwether-witness");
    let mut second = Command::new(witness);
    second.arg(stage.path());
    let said = OutputLines::run(second).line();
    assert!(said.contains("\"alone\":false"), "{said}");
    assert!(stage.take_two_at_once().contains("\"alone\":false"));
}
