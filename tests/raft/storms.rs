//! What clients were told while leaders were killed, stopped, cut off and asked to leave: one order explains it.

use bellwether_tests::raft::{Fault, Storm};

/// Each fault so often; `cargo xtask prove raft` does it at full length.
const ROUNDS: usize = 2;

#[test]
fn one_order_explains_what_clients_were_told_while_leaders_failed() {
    let Some(mut storm) = Storm::begin() else { return };
    for fault in Fault::ALL.into_iter().cycle().take(ROUNDS * Fault::ALL.len()) {
        storm.round(fault);
    }
    let figures = storm.end();
    println!("{figures}");
    assert!(figures.complaints.is_empty(), "{:#?}", figures.complaints);
    assert!(figures.done > 100, "{figures}");
}
