//! User code that panics never leaves a leadership standing, and takes nobody along.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_backend::MemoryStore;
use bellwether_core::{RetryContext, RetryStrategy, Rng, Signal};
use bellwether_election::{CandidateId, Election, HealthCheck, HookError, Hooks, Leadership, Over, Store};
use common::*;

/// A leader that will not come back by itself soon, another one waiting, and a third election on the leader's store.
async fn scene() -> (MemoryStore, Store, Election) {
    let store = MemoryStore::default();
    let shared = Store::new(connect(&store));
    let bystander = Election::builder("other").backend(shared.clone()).id("x").start().await.unwrap();
    soon(bystander.wait_for_leadership()).await.unwrap();
    (store, shared, bystander)
}

#[tokio::test]
async fn work_that_panics_lets_go() {
    let (store, shared, bystander) = scene().await;
    let election = on(shared, "a").ttl(ms(60_000)).start().await.unwrap();
    let mut events = election.events();
    let other = candidate(&store, "b").start().await.unwrap();
    let leading = tokio::spawn({
        let election = election.clone();
        async move { election.lead(|work| async move { assert!(!work.is_valid(), "planned, in the work") }).await }
    });
    assert!(leading.await.unwrap_err().is_panic());
    soon(other.wait_for_leadership()).await.unwrap();
    let error = next(&mut events, "error").await.to_json();
    assert!(error["error"].as_str().unwrap().contains("panicked"), "{error}");
    assert!(bystander.is_leader());
}

#[tokio::test]
async fn a_panic_before_the_work_is_even_made_lets_go() {
    let (store, shared, bystander) = scene().await;
    let election = on(shared, "a").ttl(ms(60_000)).start().await.unwrap();
    let other = candidate(&store, "b").start().await.unwrap();
    let leading = tokio::spawn({
        let election = election.clone();
        async move {
            let work = |leadership: Leadership| {
                assert!(leadership.epoch().get() == 0, "planned, before the first await");
                async {}
            };
            election.lead(work).await
        }
    });
    assert!(leading.await.unwrap_err().is_panic());
    soon(other.wait_for_leadership()).await.unwrap();
    assert!(bystander.is_leader() && !election.is_leader());
}

#[derive(Clone, Copy, PartialEq)]
enum Where {
    Become,
    BecomeLater,
    Lose,
    Change,
}

struct Panicking(Where);

impl Hooks for Panicking {
    fn on_become_leader(&self, _: Leadership) -> impl Future<Output = Result<(), HookError>> + Send {
        assert!(self.0 != Where::Become, "planned, in making on_become_leader");
        async {
            tokio::task::yield_now().await;
            assert!(self.0 != Where::BecomeLater, "planned, in on_become_leader");
            Ok(())
        }
    }

    async fn on_lose_leadership(&self, _: Leadership) -> Result<(), HookError> {
        assert!(self.0 != Where::Lose, "planned, in on_lose_leadership");
        Ok(())
    }

    async fn on_leader_change(&self, _: Option<CandidateId>) -> Result<(), HookError> {
        assert!(self.0 != Where::Change, "planned, in on_leader_change");
        Ok(())
    }
}

#[tokio::test]
async fn a_promotion_hook_that_panics_lets_go() {
    for place in [Where::Become, Where::BecomeLater] {
        let (store, shared, bystander) = scene().await;
        let builder = on(shared, "a").ttl(ms(60_000)).hooks(Panicking(place));
        let election = builder.start().await.unwrap();
        let other = candidate(&store, "b").start().await.unwrap();
        soon(other.wait_for_leadership()).await.unwrap();
        assert!(!election.is_leader() && bystander.is_leader());
    }
}

#[tokio::test]
async fn other_hooks_that_panic_are_reported_and_stop_nothing() {
    for (place, word) in [(Where::Lose, "on_lose_leadership"), (Where::Change, "on_leader_change")] {
        let (store, shared, bystander) = scene().await;
        let other = candidate(&store, "b").start().await.unwrap();
        soon(other.wait_for_leadership()).await.unwrap();
        let election = on(shared, "a").hooks(Panicking(place)).start().await.unwrap();
        let mut events = election.events();
        soon(other.stop()).await.unwrap();
        soon(election.wait_for_leadership()).await.unwrap();
        soon(election.step_down()).await.unwrap();
        loop {
            let error = next(&mut events, "error").await.to_json();
            if error["error"].as_str().unwrap().contains(&format!("{word}: panicked")) {
                break;
            }
        }
        assert!(bystander.is_leader());
    }
}

#[tokio::test]
async fn a_health_check_that_panics_is_a_failed_check() {
    let (store, shared, bystander) = scene().await;
    let ill = Arc::new(AtomicBool::new(false));
    let check = {
        let ill = Arc::clone(&ill);
        move || {
            assert!(!ill.load(Ordering::Relaxed), "planned, in the health check");
            async { true }
        }
    };
    let builder = on(shared, "a")
        .ttl(ms(60_000))
        .retry_interval(ms(20))
        .health(HealthCheck::every(ms(5)).timeout(ms(1_000)).failures(2), check);
    let election = builder.start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let other = candidate(&store, "b").start().await.unwrap();
    ill.store(true, Ordering::Relaxed);
    assert_eq!(soon(leadership.lost()).await, Over::Lost(bellwether_election::Reason::Health));
    soon(other.wait_for_leadership()).await.unwrap();
    soon(other.stop()).await.unwrap();
    ill.store(false, Ordering::Relaxed);
    soon(election.wait_for_leadership()).await.unwrap();
    assert!(bystander.is_leader());
}

#[derive(Debug)]
struct Panics;

impl RetryStrategy for Panics {
    fn next_delay(&self, _: &RetryContext<'_>, _: &mut Rng) -> Option<Duration> {
        panic!("planned, in the retry strategy")
    }
}

#[tokio::test]
async fn a_retry_strategy_that_panics_takes_no_other_election_along() {
    let store = MemoryStore::default();
    let puppet = Puppet::new(connect(&store));
    let shared = Store::from(puppet.clone());
    let bystander = Election::builder("other").backend(shared.clone()).id("x").start().await.unwrap();
    soon(bystander.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Claim, Rule::Fail);
    puppet.set(Op::Observe, Rule::Fail);
    let election = soon(on(shared, "a").retry_strategy(Panics).start()).await.unwrap();
    puppet.log.until("called claim a", 2).await;
    puppet.set_all(Rule::Pass);
    soon(election.wait_for_leadership()).await.unwrap();
    assert!(bystander.is_leader());
    soon(bystander.stop()).await.unwrap();
}

#[tokio::test]
async fn a_backend_that_panics_is_an_error_like_others() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(1_500)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    puppet.set(Op::Renew, Rule::Panic);
    let error = next(&mut events, "error").await.to_json();
    assert_eq!(error["kind"], "bug", "{error}");
    puppet.set(Op::Renew, Rule::Pass);
    let before = leadership.deadline();
    eventually("renewed again", || leadership.deadline() > before).await;
    puppet.set(Op::Release, Rule::Panic);
    soon(election.stop()).await.unwrap();
    assert!(!election.is_leader());
}

#[tokio::test]
async fn a_backend_that_panics_outside_its_calls_takes_no_election_along() {
    let store = MemoryStore::default();
    let puppet = Puppet::new(connect(&store));
    let shared = Store::from(puppet.clone());
    let bystander = Election::builder("other").backend(shared.clone()).id("x").ttl(ms(1_500)).start();
    let bystander = bystander.await.unwrap();
    let leadership = soon(bystander.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Follow, Rule::Panic);
    let election = on(shared, "a").start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    soon(election.stop()).await.unwrap();
    puppet.set(Op::News, Rule::Panic);
    puppet.signal(Signal::Restored);
    // Without news the timers still run.
    let before = puppet.log.count("answered renew");
    puppet.log.until("answered renew", before + 2).await;
    assert!(leadership.is_valid());
}
