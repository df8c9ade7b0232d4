//! Leaders that fall silent are replaced by their ttl, and believe no more by then. Ten runs of each kind on each store;
//! `cargo xtask prove postgres` and `cargo xtask prove nats` do fifty, on several servers and on older ones too. Those on Kubernetes
//! are in the test `kubernetes`, with everything else that needs an API server.
#![cfg(target_os = "linux")]

use bellwether_tests::silent_leader::{Kind, Profile, Silenced, Silences};

const RUNS: usize = 10;

fn replaced_and_believing_no_more(kind: Kind, at_once: usize) {
    let Some(mut silences) = Silences::new(kind) else { return };
    println!("{}", Silenced::heading());
    for how in kind.ways() {
        let silenced = silences.series(*how, RUNS, at_once);
        println!("{silenced}");
        assert!(silenced.complaints().is_empty(), "{how}: {:#?}", silenced.complaints());
        assert!(silenced.late().is_empty(), "{how}: {:#?}", silenced.late());
        // The bound is proven by the longer series on a quiet machine; here others are at work too.
        let (median, _) = silenced.took();
        assert!(median < 3 * kind.bound(*how), "{how}: {median:?}");
    }
}

#[test]
fn silent_leaders_on_postgresql_believe_no_more_when_they_are_replaced() {
    replaced_and_believing_no_more(Kind::Postgres, 5);
}

#[test]
fn silent_leaders_on_nats_believe_no_more_when_they_are_replaced() {
    replaced_and_believing_no_more(Kind::nats(Profile::Native, 1), RUNS);
}

#[test]
fn silent_leaders_in_the_profile_cluster_believe_no_more_when_they_are_replaced() {
    replaced_and_believing_no_more(Kind::nats(Profile::Cluster, 1), RUNS);
}

#[test]
fn silent_leaders_in_the_profile_leader_believe_no_more_when_they_are_replaced() {
    replaced_and_believing_no_more(Kind::nats(Profile::Leader, 1), RUNS);
}
