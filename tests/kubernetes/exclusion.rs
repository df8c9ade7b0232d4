//! At most one leads: through the silence of leaders, and beside candidates of client-go. A few runs each;
//! `cargo xtask prove kubernetes` does more, and judges how long a successor may take.

use std::sync::{Mutex, PoisonError};

use bellwether_support::servers::kubernetes::{self, Server};
use bellwether_tests::mixed_election::{Make, MixedElection, Plan};
use bellwether_tests::silent_leader::{Kind, Silenced, Silences};
use bellwether_tests::torture::survives;
use bellwether_tests::unwritten_lease_by_status;

const RUNS: usize = 4;

/// One of these at a time: each starts a server of its own, and leases are as short as a quiet machine allows.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn silent_leaders_on_a_lease_believe_no_more_when_they_are_replaced() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let kind = Kind::Kubernetes { short_watches: true };
    let Some(mut silences) = Silences::new(kind) else { return };
    println!("{}", Silenced::heading());
    for how in kind.ways() {
        let silenced = silences.series(*how, RUNS, RUNS);
        println!("{silenced}");
        assert!(silenced.complaints().is_empty(), "{how}: {:#?}", silenced.complaints());
        let (median, _) = silenced.took();
        assert!(median < 3 * kind.bound(*how), "{how}: {median:?}");
    }
}

#[test]
fn candidates_of_client_go_and_ours_never_lead_at_once() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(election) = MixedElection::new() else { return };
    let figures = election.hold(Plan { handovers: 8, silences: 1, faults: 0 });
    println!("{figures}");
    assert!(figures.complaints().is_empty(), "{:#?}", figures.complaints());
    for make in [Make::Ours, Make::ClientGo] {
        assert!(figures.leaderships(make) > 3, "{figures}");
    }
    assert!(figures.risen_through_client_go() > 0, "{figures}");
}

#[tokio::test]
async fn nobody_leads_beside_another_under_torture() {
    let url = Server::shared().await.backend(kubernetes::ADMIN, "default");
    let torture = tokio::task::spawn_blocking(move || {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        survives(&url, &[])
    });
    torture.await.expect("nothing to complain of");
}

#[tokio::test]
async fn a_look_at_a_lease_changes_nothing() {
    let (before, after, writes) = unwritten_lease_by_status(Server::shared().await, 8).await;
    assert_eq!((after, writes), (before, Vec::new()));
}
