//! Nobody holds the election any more: in every state it lets go, and what was started ends.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_core::Signal;
use bellwether_election::{CandidateId, Error, HookError, Hooks, Leadership, Over, Role, Store};
use common::*;

struct Quiet(Log);

impl Hooks for Quiet {
    async fn on_lose_leadership(&self, _: Leadership) -> Result<(), HookError> {
        tokio::task::yield_now().await;
        self.0.put("hook ended");
        Ok(())
    }
}

#[tokio::test]
async fn a_dropped_leader_stops_its_work_ends_its_hook_and_releases() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(30_000)).hooks(Quiet(puppet.log.clone())).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let log = puppet.log.clone();
    let work = tokio::spawn(async move {
        let inner = async {
            let _dropped = log.on_drop("work dropped");
            log.put("work began");
            std::future::pending::<()>().await;
        };
        leadership.run(inner).await
    });
    puppet.log.until("work began", 1).await;
    drop(election);
    assert_eq!(soon(work).await.unwrap(), Err(Over::Released));
    puppet.log.until("retire", 1).await;
    let log = &puppet.log;
    assert!(log.place("work dropped") < log.place("hook ended"), "{:?}", log.lines());
    assert!(log.place("hook ended") < log.place("called release"), "{:?}", log.lines());
    // The last thing it does is to write down how it ended.
    let history = soon(connect(&store).history(&name())).await.unwrap();
    assert_eq!(history[0].ended.as_deref(), Some("released"));
}

#[tokio::test]
async fn dropped_while_following_or_in_back_off_it_just_leaves() {
    let store = MemoryStore::default();
    let leader = candidate(&store, "leader").start().await.unwrap();
    soon(leader.wait_for_leadership()).await.unwrap();
    let (following, builder) = puppet(&store, "a");
    drop(builder.start().await.unwrap());
    following.log.until("retire", 1).await;
    let (failing, builder) = puppet(&store, "b");
    failing.set_all(Rule::Fail);
    drop(builder.start().await.unwrap());
    failing.log.until("retire", 1).await;
    assert!(leader.is_leader());
}

#[tokio::test]
async fn dropped_while_acquiring_it_gives_the_late_grant_back() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set(Op::Claim, Rule::Late);
    let starting = tokio::spawn(builder.start());
    puppet.log.until("claim", 1).await;
    starting.abort();
    assert!(starting.await.is_err());
    puppet.set(Op::Claim, Rule::Pass);
    puppet.log.until("answered release", 1).await;
    puppet.log.until("retire", 1).await;
    assert_eq!(connect(&store).observe(&name()).await.unwrap().leader(), None);
}

#[tokio::test]
async fn dropped_while_suspended_it_leaves() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.reconnect_grace(ms(60_000)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    puppet.set(Op::Claim, Rule::Fail);
    puppet.set(Op::Observe, Rule::Fail);
    puppet.signal(Signal::Gone);
    next(&mut events, "suspended").await;
    drop(election);
    next(&mut events, "stopped").await;
    puppet.log.until("retire", 1).await;
    assert!(soon(events.next()).await.is_none(), "no more events");
}

#[tokio::test]
async fn dropped_while_releasing_it_finishes() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Release, Rule::Hang);
    let down = tokio::time::timeout(ms(10), election.step_down()).await;
    assert!(down.is_err());
    puppet.log.until("called release", 1).await;
    drop(election);
    puppet.set(Op::Release, Rule::Pass);
    puppet.log.until("retire", 1).await;
    assert_eq!(connect(&store).observe(&name()).await.unwrap().leader(), None);
}

#[test]
fn a_runtime_that_is_shut_down_leaves_no_leader_and_nobody_waiting() {
    let store = MemoryStore::default();
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let first = runtime();
    let (election, leadership, mut events) = first.block_on(async {
        let election = candidate(&store, "a").ttl(ms(60_000)).start().await.unwrap();
        let leadership = soon(election.wait_for_leadership()).await.unwrap();
        let events = election.events();
        (election, leadership, events)
    });
    assert!(election.is_leader());
    drop(first);
    assert!(!election.is_leader() && !leadership.is_valid() && election.role() == Role::Unknown);
    runtime().block_on(async {
        assert!(matches!(soon(leadership.lost()).await, Over::Lost(_)));
        assert!(matches!(soon(election.wait_for_leadership()).await, Err(Error::DriverGone)));
        assert!(matches!(soon(election.step_down()).await, Err(Error::DriverGone)));
        assert!(matches!(soon(election.validate()).await, Err(Error::DriverGone)));
        assert!(soon(election.stop()).await.is_ok(), "there is nothing left to stop");
        while soon(events.next()).await.is_some() {}
    });
    drop(election);
}

#[test]
fn a_store_whose_runtime_ended_is_driven_in_another_one() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let memory = MemoryStore::default();
    let store = Store::new(connect(&memory));
    let first = runtime();
    let (election, before) = first.block_on(async {
        let election = on(store.clone(), "a").ttl(ms(300)).start().await.unwrap();
        let epoch = soon(election.wait_for_leadership()).await.unwrap().epoch();
        (election, epoch)
    });
    drop(first);
    runtime().block_on(async {
        let other = on(store.clone(), "b").ttl(ms(300)).start().await.unwrap();
        let leadership = soon(other.wait_for_leadership()).await.unwrap();
        assert!(leadership.epoch() > before);
        // What it hears comes from the new driver's own ear: a request of somebody else, and the release that follows.
        let outside = Store::new(connect(&memory));
        soon(election.start()).await.unwrap();
        outside.ask_to_step_down(&name(), Some(CandidateId::new("a").unwrap())).await.unwrap();
        soon(leadership.lost()).await;
        assert!(soon(election.wait_for_leadership()).await.unwrap().epoch() > leadership.epoch());
    });
}

#[test]
fn a_store_whose_connection_ended_with_its_runtime_says_what_to_do() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = Store::from(Puppet::new(connect(&MemoryStore::default())));
    let first = runtime();
    let election = first.block_on(on(store, "a").start()).unwrap();
    drop(first);
    let error = runtime().block_on(election.start()).expect_err("nothing can drive it");
    assert!(error.to_string().contains("open the store again"), "{error}");
}
