//! Leaders on PostgreSQL that fall silent without dying are replaced by their ttl, and believe no more by then. Ten runs of each
//! kind; `cargo xtask prove postgres` does fifty.
#![cfg(target_os = "linux")]

use bellwether_tests::silenced::{SLACK, Silence, Silenced, Silences, TTL};

#[test]
fn a_stopped_and_a_cut_off_leader_believe_no_more_when_they_are_replaced() {
    let Some(mut silences) = Silences::new() else { return };
    println!("{}", Silenced::heading());
    for how in [Silence::Stopped, Silence::CutOff] {
        let silenced = silences.series(how, 10, 5);
        println!("{silenced}");
        assert!(silenced.complaints().is_empty(), "{how:?}: {:#?}", silenced.complaints());
        // The bound is proven by the longer series on a quiet machine; here others are at work too.
        let (median, _) = silenced.took();
        assert!(median < TTL + 10 * SLACK, "{how:?}: {median:?}");
    }
}
