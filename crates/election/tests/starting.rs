//! What a start fails on, what it does not, and how it is called off.

mod common;

use std::sync::Arc;

use bellwether_backend::MemoryStore;
use bellwether_core::{ErrorKind, RetryContext, RetryStrategy, Rng};
use bellwether_election::{Election, Error, Options, Role};
use common::*;
use tokio::sync::Notify;

#[tokio::test]
async fn what_trying_again_cannot_mend_fails_the_start() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set(Op::Claim, Rule::Refuse);
    let Err(Error::Backend(error)) = soon(builder.start()).await else { panic!("it started") };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    puppet.log.until("retire", 1).await;
    assert_eq!(puppet.log.count("called claim"), 1, "and it is not tried again");
}

#[tokio::test]
async fn a_store_out_of_reach_is_tried_until_it_answers() {
    for rule in [Rule::Fail, Rule::Hang] {
        let store = MemoryStore::default();
        let (puppet, builder) = puppet(&store, "a");
        puppet.set_all(rule);
        let election = soon(builder.ttl(ms(1_000)).start()).await.unwrap();
        assert_eq!(election.role(), Role::Passive);
        puppet.log.until("called claim", 1).await;
        assert!(election.status().last_error.is_some_and(|error| error.is_retryable()));
        puppet.set_all(Rule::Pass);
        soon(election.wait_for_leadership()).await.unwrap();
        assert!(election.status().last_success.is_some());
    }
}

#[tokio::test]
async fn bad_settings_bad_names_and_no_store_start_nothing() {
    let store = MemoryStore::default();
    let started = candidate(&store, "a").ttl(ms(3)).start().await;
    assert!(matches!(started, Err(Error::Settings(_))));
    let mut options = Options::default();
    options.failed_renewals = Some(0);
    assert!(matches!(candidate(&store, "a").options(options).start().await, Err(Error::Settings(_))));
    assert!(matches!(candidate(&store, "").start().await, Err(Error::Name(_))));
    assert!(matches!(candidate(&store, "a\nb").start().await, Err(Error::Name(_))));
    let backend = store.connect(Arc::new(bellwether_deadman::SystemClock));
    let unnamed = Election::builder("").backend(backend).id("a").start().await;
    assert!(matches!(unnamed, Err(Error::Name(_))));
    assert!(matches!(Election::builder("e").id("a").start().await, Err(Error::NoBackend)));
    assert_eq!(store.writes(), 0);
}

#[derive(Debug)]
struct Twice;

impl RetryStrategy for Twice {
    fn next_delay(&self, context: &RetryContext<'_>, _: &mut Rng) -> Option<std::time::Duration> {
        (context.attempt < 3).then_some(ms(1))
    }
}

#[tokio::test]
async fn a_strategy_that_gives_up_ends_it_with_the_reason() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set_all(Rule::Fail);
    let election = soon(builder.retry_strategy(Twice).start()).await.unwrap();
    let Err(Error::Backend(error)) = soon(election.wait_for_leadership()).await else { panic!("it leads") };
    assert_eq!(error.kind(), ErrorKind::GaveUp);
    eventually("it has left", || election.role() == Role::Unknown).await;
    puppet.set_all(Rule::Pass);
    election.start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
}

fn signal() -> (Arc<Notify>, impl Future<Output = ()> + Send + 'static) {
    let signal = Arc::new(Notify::new());
    let heard = Arc::clone(&signal);
    (signal, async move { heard.notified().await })
}

#[tokio::test]
async fn a_signal_is_heeded_in_back_off() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set_all(Rule::Fail);
    let (stop, heard) = signal();
    let slow = bellwether_core::Exponential { base: ms(3_000_000), ..Default::default() };
    let election = soon(builder.retry_strategy(slow).stop_when(heard).start()).await.unwrap();
    let mut events = election.events();
    stop.notify_one();
    next(&mut events, "stopped").await;
    puppet.log.until("retire", 1).await;
    assert!(matches!(election.wait_for_leadership().await, Err(Error::NotStarted)));
}

#[tokio::test]
async fn a_signal_is_heeded_while_connecting() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set_all(Rule::Hang);
    let (stop, heard) = signal();
    // With this ttl the first time-out is minutes away.
    let starting = tokio::spawn(builder.ttl(ms(1_000_000)).stop_when(heard).start());
    puppet.log.until("called claim", 1).await;
    stop.notify_one();
    let election = soon(starting).await.unwrap().unwrap();
    puppet.set_all(Rule::Pass);
    puppet.log.until("retire", 1).await;
    assert_eq!(connect(&store).observe(&name()).await.unwrap().leader(), None);
    assert!(!election.is_leader());
}

#[tokio::test]
async fn a_signal_that_was_there_before_the_start_starts_nothing() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").stop_when(async {}).start().await.unwrap();
    assert_eq!((election.role(), store.writes()), (Role::Unknown, 0));
}

#[tokio::test]
async fn a_signal_ends_a_leadership_with_a_release_also_after_a_restart() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let (stop, heard) = signal();
    let election = builder.stop_when(heard).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    soon(election.stop()).await.unwrap();
    election.start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    stop.notify_one();
    assert_eq!(soon(leadership.lost()).await, bellwether_election::Over::Released);
    puppet.log.until("retire", 2).await;
    assert_eq!(puppet.log.count("answered release"), 2);
}

/// Found by review: `build` dropped the signal.
#[tokio::test]
async fn a_signal_is_heeded_by_an_election_that_was_built_and_started_later() {
    let store = MemoryStore::default();
    let (stop, heard) = signal();
    let election = candidate(&store, "a").stop_when(heard).build().unwrap();
    soon(election.start()).await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    stop.notify_one();
    assert_eq!(soon(leadership.lost()).await, bellwether_election::Over::Released);
    // It has served: whoever starts again means to.
    soon(election.start()).await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
}

/// Found by review: the task that waited for the signal had ended with the first runtime, and no other was made.
#[test]
fn a_signal_is_heeded_in_the_next_runtime_too() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = MemoryStore::default();
    let (stop, heard) = signal();
    let first = runtime();
    let election = first.block_on(candidate(&store, "a").ttl(ms(300)).stop_when(heard).start()).unwrap();
    drop(first);
    runtime().block_on(async {
        soon(election.start()).await.unwrap();
        soon(election.wait_for_leadership()).await.unwrap();
        let mut events = election.events();
        stop.notify_one();
        next(&mut events, "stopped").await;
        // It has served: whoever starts again means to.
        soon(election.start()).await.unwrap();
        soon(election.wait_for_leadership()).await.unwrap();
    });
}

/// Found by review: it gave up after a ttl and a call, and blamed the store.
#[tokio::test]
async fn a_start_waits_for_work_that_may_stop_for_longer_than_a_ttl() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").ttl(ms(1_000)).stop_timeout(ms(60_000)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let work = leadership.hold().unwrap();
    let (stopped, started) = (election.clone(), election.clone());
    let stopping = tokio::spawn(async move { stopped.stop().await });
    soon(leadership.lost()).await;
    let mut starting = tokio::spawn(async move { started.start().await });
    let early = tokio::time::timeout(ms(2_500), &mut starting).await;
    assert!(early.is_err(), "it did not wait for the work: {early:?}");
    drop(work);
    soon(stopping).await.unwrap().unwrap();
    soon(starting).await.unwrap().unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn a_start_that_waits_for_work_in_vain_says_so() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").ttl(ms(300)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let _work = leadership.hold().unwrap();
    let stopped = election.clone();
    tokio::spawn(async move { stopped.stop().await });
    soon(leadership.lost()).await;
    let error = soon(election.start()).await.expect_err("its work has not ended");
    assert!(matches!(error, Error::StillWorking), "{error}");
}
