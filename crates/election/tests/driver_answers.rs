//! A watchdog asks whether the driver runs: it answers whatever the store does, and only while it runs.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_election::{Error, Store};
use common::*;

#[tokio::test]
async fn the_driver_answers_from_the_first_start_on_whatever_the_store_does() {
    let puppet = Puppet::new(connect(&MemoryStore::default()));
    let store = Store::from(puppet.clone());
    assert!(matches!(store.driver_answers().await, Err(Error::NotStarted)));
    puppet.set_all(Rule::Hang);
    let election = soon(on(store.clone(), "a").ttl(ms(1_000)).start()).await.unwrap();
    soon(store.driver_answers()).await.unwrap();
    puppet.set_all(Rule::Fail);
    soon(store.driver_answers()).await.unwrap();
    // Also while nobody takes part, as between two attempts to start a command.
    soon(election.stop()).await.unwrap();
    soon(store.driver_answers()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_is_stuck_does_not_answer_while_its_runtime_runs() {
    let puppet = Puppet::new(connect(&MemoryStore::default()));
    let store = Store::from(puppet.clone());
    let election = soon(on(store.clone(), "a").renew_interval(ms(50)).start()).await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Renew, Rule::Block);
    let renewals = puppet.log.count("called renew");
    puppet.log.until("called renew", renewals + 1).await;
    // That it is blocked comes right after that line.
    let mut answer = std::pin::pin!(store.driver_answers());
    let early = tokio::time::timeout(ms(200), &mut answer).await;
    assert!(early.is_err(), "{early:?}");
    puppet.set(Op::Renew, Rule::Pass);
    soon(answer).await.unwrap();
}

#[test]
fn a_driver_that_ended_with_its_runtime_is_gone() {
    let store = Store::new(connect(&MemoryStore::default()));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let _election = first.block_on(on(store.clone(), "a").start()).unwrap();
    drop(first);
    assert!(matches!(runtime().block_on(store.driver_answers()), Err(Error::DriverGone)));
}
