//! Leaders that fall silent are replaced by their ttl, and believe no more by then. Ten runs of each kind on each store;
//! `cargo xtask prove postgres` and `cargo xtask prove nats` do fifty.
#![cfg(target_os = "linux")]

use bellwether_tests::silenced::{Kind, Silence, Silenced, Silences};

fn replaced_and_believing_no_more(kind: Kind, ways: &[Silence]) {
    let Some(mut silences) = Silences::new(kind) else { return };
    println!("{}", Silenced::heading());
    for how in ways {
        let silenced = silences.series(*how, 10, 5);
        println!("{silenced}");
        assert!(silenced.complaints().is_empty(), "{how:?}: {:#?}", silenced.complaints());
        // The bound is proven by the longer series on a quiet machine; here others are at work too.
        let (median, _) = silenced.took();
        assert!(median < 3 * how.bound(), "{how:?}: {median:?}");
    }
}

#[test]
fn a_stopped_and_a_cut_off_leader_on_postgresql_believe_no_more_when_they_are_replaced() {
    replaced_and_believing_no_more(Kind::Postgres, &[Silence::Stopped, Silence::CutOff]);
}

#[test]
fn a_stopped_a_cut_off_and_a_killed_leader_on_nats_believe_no_more_when_they_are_replaced() {
    replaced_and_believing_no_more(Kind::Nats, &[Silence::Stopped, Silence::CutOff, Silence::Killed]);
}
