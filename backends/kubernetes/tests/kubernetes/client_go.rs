//! Candidates of client-go and ours on one Lease, each in turn.

use std::time::Duration;

use bellwether_core::{Boot, Epoch};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Leadership};
use bellwether_support::servers::kubernetes::{ADMIN, ClientGo, Timing};

use crate::stage::Namespace;

const TURNS: usize = 6;

/// A leadership as one clock saw it.
#[derive(Debug)]
struct Span {
    from: Boot,
    until: Boot,
}

async fn ours(namespace: &Namespace) -> Election {
    let builder = Election::builder("reports").backend(namespace.connect()).id("rust");
    builder.ttl(Duration::from_secs(3)).start().await.expect("it starts")
}

fn theirs(namespace: &Namespace, turn: usize) -> ClientGo {
    let (place, id) = ((namespace.name.as_str(), "reports"), format!("go-{}-{turn}", namespace.name));
    ClientGo::start(namespace.server, &namespace.server.kubeconfig(ADMIN), place, &id, Timing::SHORT)
}

/// Released in one turn, killed in the next. While one leads, the other stands by.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candidates_of_client_go_and_ours_take_turns_and_never_lead_at_once() {
    let namespace = Namespace::new().await;
    let (mut spans, mut epochs): (Vec<Span>, Vec<Epoch>) = Default::default();
    for turn in 0..TURNS {
        let mut go = theirs(&namespace, turn);
        let from = tokio::task::block_in_place(|| go.until("started_leading")).at;
        let election = ours(&namespace).await;
        let until = tokio::task::block_in_place(|| {
            if turn % 2 == 0 {
                go.cancel();
                let said = go.said();
                said.iter().find(|one| one.event == "work_ended").expect("its work ended").at
            } else {
                assert!(!election.is_leader(), "it still leads");
                let now = boot_now();
                go.kill();
                now
            }
        });
        spans.push(Span { from, until });
        let leadership: Leadership = election.wait_for_leadership().await.expect("it is our turn");
        let from = boot_now();
        epochs.push(leadership.epoch());
        // The next of theirs stands by, and gets it when we release.
        assert!(leadership.is_valid());
        spans.push(Span { from, until: boot_now() });
        election.stop().await.expect("it stops");
    }
    for pair in spans.windows(2) {
        assert!(pair[0].until <= pair[1].from, "two at once: {pair:?}");
    }
    assert!(epochs.is_sorted_by(|one, next| one < next), "{epochs:?}");
}
