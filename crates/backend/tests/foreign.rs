//! Records that Bellwether did not write, or that nobody can read.

mod bidding;

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Backend, MemoryStore, Record};
use bellwether_core::{
    Ask, Bid, CandidateId, Clock, ElectionName, Epoch, ErrorKind, Holder, Outcome, Request,
};
use bellwether_deadman::SystemClock;
use bidding::on;

const TTL: Duration = Duration::from_millis(200);

fn bid() -> Bid {
    bidding::bid("a", 1, TTL)
}

fn foreign(epoch: Option<Epoch>) -> Record {
    let holder = Some(Holder { id: CandidateId::new("theirs").unwrap(), incarnation: None });
    Record { holder, epoch, ..Record::default() }
}

#[tokio::test]
async fn foreign_and_broken_records_are_waited_for_and_then_replaced() {
    for record in [foreign(None), foreign(Epoch::new(41)), Record::unreadable()] {
        let store = MemoryStore::default();
        store.put(&on(), record.clone());
        let lease = store.connect(Arc::new(SystemClock));
        let from = SystemClock.boot();
        let Outcome::Denied(seen) = lease.claim(&on(), &bid()).await else { panic!("{record:?}: let in") };
        assert!(seen.free_at.is_some_and(|at| at >= from + TTL), "{record:?}");
        tokio::time::sleep(TTL).await;
        let Outcome::Done(grant) = lease.claim(&on(), &bid()).await else { panic!("{record:?}: kept out") };
        assert!(grant.epoch > record.epoch.unwrap_or_default(), "{record:?}");
    }
}

#[tokio::test]
async fn a_foreign_leader_cannot_be_asked_and_the_answer_says_so() {
    let store = MemoryStore::default();
    store.put(&on(), foreign(Epoch::new(41)));
    let lease = store.connect(Arc::new(SystemClock));
    let request = Request { epoch: Epoch::new(41).unwrap(), what: Ask::StepDown { to: None } };
    let Outcome::Refused(error) = lease.request(&on(), &request).await else { panic!("not refused") };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("theirs"), "{error}");
    assert_eq!(store.writes(), 1);
}

#[tokio::test]
async fn an_epoch_that_has_no_next_is_refused_and_not_repeated() {
    let store = MemoryStore::default();
    store.put(&on(), Record { holder: None, ..foreign(Some(Epoch::MAX)) });
    let lease = store.connect(Arc::new(SystemClock));
    let Outcome::Refused(error) = lease.claim(&on(), &bid()).await else { panic!("not refused") };
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    // The others of the store are not spoilt by it.
    let other = ElectionName::new("other").unwrap();
    let Outcome::Done(grant) = lease.claim(&other, &bid()).await else { panic!("not held") };
    assert!(grant.epoch < Epoch::MAX);
}
