//! The bootstrap ledger on real stores, and on one that misbehaves.

use std::sync::Arc;

use bellwether::backend::Backend;
use bellwether::cluster::formation::{Formed, Voter};
use bellwether::cluster::{
    BackendLedger, BootstrapLedger as _, ClusterId, ErrorKind, NodeId, NodeName, Recording,
};
use bellwether::{ElectionName, MemoryStore};
use bellwether_backend::Creation;
use bellwether_backend::faults::{Fault, Faults, FaultyBackend, Op};
use bellwether_support::{Scratch, clock};

fn name() -> ElectionName {
    ElectionName::new("orders").unwrap()
}

fn formed(cluster: u128) -> Formed {
    let voter = |number: u64| Voter {
        node: NodeId::from_random(u64::MAX - number),
        name: NodeName::new(format!("orders-{number}")).unwrap(),
    };
    Formed {
        cluster: ClusterId::from_random(cluster),
        voters: (0..3).map(voter).collect(),
        time: "2026-01-02T03:04:05Z".to_owned(),
    }
}

fn ledger(backend: Arc<dyn Backend>) -> BackendLedger {
    BackendLedger::new(backend, name()).unwrap()
}

fn in_directory(scratch: &Scratch) -> BackendLedger {
    ledger(Arc::new(bellwether::file::open(scratch.path(), clock()).unwrap()))
}

fn in_memory() -> (Arc<dyn Backend>, BackendLedger) {
    let backend: Arc<dyn Backend> = Arc::new(MemoryStore::default().connect(clock()));
    (Arc::clone(&backend), ledger(backend))
}

/// Every seed of a set that was configured wrongly proposes a cluster of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_seeds_one_records_its_cluster_and_the_others_learn_which() {
    let scratch = Scratch::new();
    assert_eq!(in_directory(&scratch).read().await, Ok(None));
    let seeds: Vec<_> = (0..8)
        .map(|number| {
            let ledger = in_directory(&scratch);
            tokio::spawn(async move { (number, ledger.create(&formed(number)).await) })
        })
        .collect();
    let mut recordings = Vec::new();
    for seed in seeds {
        recordings.push(seed.await.unwrap());
    }
    let recorded: Vec<u128> = recordings
        .iter()
        .filter(|(_, recording)| *recording == Recording::Recorded)
        .map(|(number, _)| *number)
        .collect();
    let [first] = recorded[..] else { panic!("recorded: {recorded:?}") };
    for (number, recording) in recordings.into_iter().filter(|(number, _)| *number != first) {
        assert_eq!(recording, Recording::Exists(formed(first)), "seed {number}");
    }
    // After all disks of the nodes are lost.
    assert_eq!(in_directory(&scratch).read().await, Ok(Some(formed(first))));
}

#[tokio::test]
async fn a_record_whose_answer_was_lost_is_recorded_by_the_next_try() {
    let (backend, plain) = in_memory();
    let faults = Faults::new();
    let faulty = ledger(Arc::new(FaultyBackend::new(backend, faults.clone())));
    faults.next(Op::Note, Fault::LosesAnswer);
    let Recording::Unknown(error) = faulty.create(&formed(7)).await else { panic!("the answer was lost") };
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert_eq!(faulty.create(&formed(7)).await, Recording::Recorded);
    assert_eq!(faulty.create(&formed(8)).await, Recording::Exists(formed(7)));
    assert_eq!(plain.read().await, Ok(Some(formed(7))));
}

#[tokio::test]
async fn a_ledger_that_cannot_be_reached_is_not_an_empty_one() {
    let (backend, _) = in_memory();
    let faults = Faults::new();
    let ledger = ledger(Arc::new(FaultyBackend::new(backend, faults.clone())));
    for (fault, kind) in [
        (bellwether::ErrorKind::Unavailable, ErrorKind::SeedUnavailable),
        (bellwether::ErrorKind::PermissionDenied, ErrorKind::Refused),
    ] {
        faults.next(Op::Note, Fault::Fails(fault));
        let error = ledger.read().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("cannot read the bootstrap ledger orders"), "{error}");
    }
    faults.next(Op::Note, Fault::Fails(bellwether::ErrorKind::PermissionDenied));
    assert!(matches!(ledger.create(&formed(1)).await, Recording::Refused(_)));
    assert_eq!(ledger.read().await, Ok(None));
}

#[tokio::test]
async fn a_record_that_makes_no_sense_is_neither_empty_nor_replaced() {
    let (backend, ledger) = in_memory();
    assert!(matches!(backend.create_once(&name(), b"").await, Creation::Created));
    let error = ledger.read().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("restore it"), "{error}");
    assert_eq!(ledger.create(&formed(1)).await, Recording::Refused(error));
}

/// Nothing is connected for that.
#[cfg(feature = "postgres")]
#[test]
fn a_store_without_create_once_notes_is_refused_at_once() {
    let open = |url| bellwether::open(url).unwrap().backend().clone();
    let error = BackendLedger::new(open("postgres://127.0.0.1:1/postgres"), name()).unwrap_err();
    assert_eq!(error.kind(), bellwether::ErrorKind::Unsupported);
    assert!(error.to_string().contains("PostgreSQL with tables"), "{error}");
    assert!(BackendLedger::new(open("postgres://127.0.0.1:1/postgres?schema=bellwether"), name()).is_ok());
}

/// A cluster was recovered, or given up: the same flags everywhere lead to the one that took its place.
#[tokio::test]
async fn of_clusters_that_took_the_place_of_others_the_last_counts() {
    let scratch = Scratch::new();
    let after = |cluster| in_directory(&scratch).after(ClusterId::from_random(cluster));
    assert_eq!(in_directory(&scratch).create(&formed(1)).await, Recording::Recorded);
    assert_eq!(after(1).read().await, Ok(None), "what it takes the place of does not count");
    assert_eq!(after(1).create(&formed(2)).await, Recording::Recorded);
    assert_eq!(after(1).create(&formed(2)).await, Recording::Recorded, "the answer was lost");
    assert_eq!(after(1).create(&formed(3)).await, Recording::Exists(formed(2)), "one successor at most");
    assert_eq!(in_directory(&scratch).read().await, Ok(Some(formed(2))));
    assert_eq!(in_directory(&scratch).create(&formed(4)).await, Recording::Exists(formed(2)));
    assert_eq!(after(2).create(&formed(5)).await, Recording::Recorded);
    assert_eq!(after(1).read().await, Ok(Some(formed(5))), "a flag that was left");
    let unknown = after(9).read().await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Refused);
    assert!(unknown.to_string().contains("does not know cluster"), "{unknown}");
    assert!(matches!(after(9).create(&formed(6)).await, Recording::Refused(_)));
}

#[tokio::test]
async fn an_empty_ledger_takes_the_first_cluster_as_it_comes() {
    let (_, ledger) = in_memory();
    let ledger = ledger.after(ClusterId::from_random(1));
    assert_eq!(ledger.read().await, Ok(None));
    assert_eq!(ledger.create(&formed(2)).await, Recording::Recorded);
}
