//! One candidate, two candidates: taking part, leading, handing over, leaving.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::MemoryStore;
use bellwether_deadman::SystemClock;
use bellwether_election::{Election, ElectionBuilder, Error, Options, Over, Role, Store};

fn candidate(store: &MemoryStore, id: &str) -> ElectionBuilder {
    let backend = store.connect(Arc::new(SystemClock));
    Election::builder("reports").backend(backend).id(id).ttl(Duration::from_secs(2))
}

#[tokio::test]
async fn a_lone_candidate_leads_at_once_and_knows_it() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    let leadership = election.wait_for_leadership().await.unwrap();
    assert!(election.is_leader() && leadership.is_valid());
    assert_eq!(election.role(), Role::Primary);
    assert_eq!(election.leader().unwrap().as_str(), "a");
    assert_eq!(election.epoch(), Some(leadership.epoch()));
    assert!(leadership.remaining() > Duration::from_secs(1));
    assert_eq!(leadership.check().unwrap(), leadership.epoch());
    election.stop().await.unwrap();
    assert!(!election.is_leader() && !leadership.is_valid());
    assert_eq!(leadership.lost().await, Over::Released);
    assert!(matches!(leadership.check(), Err(Error::NotLeader)));
    assert_eq!(election.role(), Role::Unknown);
}

#[tokio::test]
async fn a_follower_takes_over_when_the_leader_lets_go() {
    let store = MemoryStore::default();
    let first = candidate(&store, "a").start().await.unwrap();
    let leadership = first.wait_for_leadership().await.unwrap();
    let second = candidate(&store, "b").start().await.unwrap();
    assert_eq!(second.role(), Role::Passive);
    assert_eq!(second.leader().unwrap().as_str(), "a");
    first.step_down().await.unwrap();
    let next = second.wait_for_leadership_within(Duration::from_secs(1)).await.unwrap();
    assert!(next.epoch() > leadership.epoch());
    assert!(matches!(first.step_down().await, Err(Error::InCooldown | Error::NotLeader)));
}

#[tokio::test]
async fn dropping_the_last_handle_lets_go() {
    let store = MemoryStore::default();
    let first = candidate(&store, "a").start().await.unwrap();
    let leadership = first.wait_for_leadership().await.unwrap();
    let clone = first.clone();
    let mut events = first.events();
    let second = candidate(&store, "b").start().await.unwrap();
    drop(first);
    assert!(clone.is_leader());
    drop(clone);
    assert_eq!(leadership.lost().await, Over::Released);
    second.wait_for_leadership_within(Duration::from_secs(1)).await.unwrap();
    let mut words = Vec::new();
    while let Some(event) = events.next().await {
        words.push(event.what.as_str());
    }
    assert!(words.contains(&"released") && words.last() == Some(&"stopped"), "{words:?}");
}

#[tokio::test]
async fn leading_is_kept_by_renewals() {
    let store = MemoryStore::default();
    let backend = Store::from(store.connect(Arc::new(SystemClock)));
    let election = Election::builder("e")
        .backend(backend)
        .id("a")
        .ttl(Duration::from_millis(300))
        .start()
        .await
        .unwrap();
    let leadership = election.wait_for_leadership().await.unwrap();
    let mut events = election.events();
    let quiet = tokio::time::timeout(Duration::from_millis(1_500), events.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    assert!(leadership.is_valid());
}

#[test]
fn a_builder_starts_from_the_options_of_its_store_whenever_it_is_given_one() {
    let second = Duration::from_secs(1);
    let mut options = Options::default();
    (options.timing.ttl, options.timing.renew) = (10 * second, Some(3 * second));
    let store = || {
        let backend = MemoryStore::default().connect(Arc::new(SystemClock));
        Store::from(backend).with_default_options(options.clone())
    };
    let builder = || Election::builder("reports").id("a");
    assert!(builder().backend(store()).build().is_ok());
    // The interval of the store's options does not fit into this ttl.
    for build in [builder().ttl(3 * second).backend(store()), builder().backend(store()).ttl(3 * second)] {
        assert!(matches!(build.build(), Err(Error::Settings(_))));
    }
    let both = |builder: ElectionBuilder| builder.ttl(3 * second).renew_interval(second);
    assert!(both(builder()).backend(store()).build().is_ok());
    assert!(both(builder().backend(store())).build().is_ok());
    assert!(builder().options(Options::default()).ttl(3 * second).backend(store()).build().is_ok());
}
