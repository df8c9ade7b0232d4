//! Work that is not a future: it holds the release back and follows the deadline from outside.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::MemoryStore;
use bellwether_deadman::SystemClock;
use bellwether_election::{Election, ElectionBuilder, Over, Standing};
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(20);

fn candidate(store: &MemoryStore, id: &str) -> ElectionBuilder {
    let backend = store.connect(Arc::new(SystemClock));
    Election::builder("reports").backend(backend).id(id).ttl(Duration::from_secs(2))
}

#[tokio::test]
async fn a_release_waits_for_the_guard() {
    let store = MemoryStore::default();
    let first = candidate(&store, "a").start().await.unwrap();
    let leadership = first.wait_for_leadership().await.unwrap();
    let second = candidate(&store, "b").start().await.unwrap();
    let guard = leadership.hold().unwrap();
    let mut stopping = tokio::spawn(async move { first.stop().await });
    assert_eq!(leadership.lost().await, Over::Released);
    assert!(timeout(SHORT, &mut stopping).await.is_err(), "released while work was running");
    assert!(!second.is_leader());
    assert!(matches!(leadership.hold(), Err(Over::Released)), "no new work once it is over");
    drop(guard);
    timeout(LONG, stopping).await.expect("released").unwrap().unwrap();
    timeout(LONG, second.wait_for_leadership()).await.expect("handed over").unwrap();
}

#[tokio::test]
async fn renewals_and_the_end_are_followed() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").ttl(Duration::from_millis(300)).start().await.unwrap();
    let leadership = election.wait_for_leadership().await.unwrap();
    let mut standing = leadership.standing();
    let Standing::Until(first) = standing.now() else { panic!("over at once") };
    timeout(LONG, standing.changed()).await.expect("renewed");
    let Standing::Until(second) = standing.now() else { panic!("over without being told to") };
    assert!(second > first && second <= leadership.deadline());
    let last = leadership.deadline();
    election.stop().await.unwrap();
    let Standing::Over { how, by } = standing.now() else { panic!("still on after stop") };
    assert_eq!(how, Over::Released);
    assert!(by >= last, "a release has until the deadline: {by:?}, {last:?}");
}
