//! Many elections on one store and one task, none in the way of another.

mod common;

use std::collections::BTreeSet;

use bellwether_backend::MemoryStore;
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Store};
use common::*;

const ELECTIONS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_elections_are_independent() {
    let store = MemoryStore::default();
    let puppet = Puppet::new(connect(&store));
    let ours = Store::from(puppet.clone());
    let theirs = Store::new(connect(&store));
    let mut elections = Vec::new();
    for n in 0..ELECTIONS {
        let builder = Election::builder(format!("e{n}")).id("ours").ttl(ms(5_000));
        elections.push(builder.backend(ours.clone()).start().await.unwrap());
    }
    for election in &elections {
        soon(election.wait_for_leadership()).await.unwrap();
    }
    let mut listeners: Vec<_> = elections.iter().map(Election::events).collect();
    let mut rivals = Vec::new();
    for n in 0..ELECTIONS {
        let builder = Election::builder(format!("e{n}")).id("theirs").ttl(ms(5_000));
        rivals.push(builder.backend(theirs.clone()).start().await.unwrap());
    }
    // Every third one changes hands; nobody else notices.
    for election in elections.iter().step_by(3) {
        soon(election.stop()).await.unwrap();
    }
    for (n, rival) in rivals.iter().enumerate() {
        if n % 3 == 0 {
            soon(rival.wait_for_leadership()).await.unwrap();
        }
        assert_eq!((rival.is_leader(), elections[n].is_leader()), (n % 3 == 0, n % 3 != 0), "{n}");
    }
    for (n, events) in listeners.iter_mut().enumerate() {
        let mut words = BTreeSet::new();
        while let Some(event) = events.try_next() {
            assert_eq!((event.election.as_str(), event.candidate.id.as_str()), (&*format!("e{n}"), "ours"));
            words.insert(event.what.as_str());
        }
        assert_eq!(words.contains("stopped"), n % 3 == 0, "{n}: {words:?}");
        assert!(n % 3 == 0 || words.is_empty(), "{n}: {words:?}");
    }
    assert_eq!(ours.elections().await.unwrap().len(), ELECTIONS);
}

#[tokio::test]
async fn two_candidates_of_one_election_share_a_store_and_take_turns() {
    let store = MemoryStore::default();
    let shared = Store::new(connect(&store));
    let a = on(shared.clone(), "a").start().await.unwrap();
    let b = on(shared, "b").start().await.unwrap();
    let first = soon(a.wait_for_leadership()).await.unwrap();
    assert!(!b.is_leader());
    soon(a.step_down()).await.unwrap();
    let second = soon(b.wait_for_leadership()).await.unwrap();
    assert!(!a.is_leader() && second.epoch() > first.epoch());
    soon(b.stop()).await.unwrap();
    soon(a.wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn one_id_twice_never_leads_twice() {
    let store = MemoryStore::default();
    let one = candidate(&store, "twin").start().await.unwrap();
    soon(one.wait_for_leadership()).await.unwrap();
    let two = candidate(&store, "twin").start().await.unwrap();
    assert!(two.wait_for_leadership_within(ms(100)).await.is_err());
    assert!(one.is_leader() && !two.is_leader());
}

/// More than claim at a time.
const BEGINNERS: usize = 400;
const CLAIMS_AT_ONCE: usize = 256;

async fn beginners(puppet: &Puppet) -> Vec<Election> {
    let store = Store::from(puppet.clone());
    let start =
        |n| Election::builder(format!("e{n}")).id("ours").ttl(ms(60_000)).backend(store.clone()).start();
    futures_util::future::try_join_all((0..BEGINNERS).map(start)).await.unwrap()
}

#[tokio::test]
async fn of_many_that_begin_together_a_part_claims_and_the_others_follow_with_the_answers() {
    let puppet = Puppet::new(connect(&MemoryStore::default()));
    puppet.set(Op::Claim, Rule::Hang);
    let began = boot_now();
    let starting = tokio::spawn({
        let puppet = puppet.clone();
        async move { beginners(&puppet).await }
    });
    puppet.log.until("called claim", CLAIMS_AT_ONCE).await;
    tokio::time::sleep(ms(50)).await;
    let called = puppet.log.count("called claim");
    // With no answer for a second, they would not have waited.
    assert!(called == CLAIMS_AT_ONCE || boot_now().since(began) >= ms(1_000), "{called} claims at once");
    puppet.set(Op::Claim, Rule::Pass);
    for election in soon(starting).await.unwrap() {
        soon(election.wait_for_leadership()).await.unwrap();
    }
    assert_eq!(puppet.log.count("called claim"), BEGINNERS, "nobody had to try twice");
}

#[tokio::test]
async fn those_that_wait_to_begin_do_so_where_the_store_answers_nobody_and_can_be_stopped() {
    let puppet = Puppet::new(connect(&MemoryStore::default()));
    puppet.set(Op::Claim, Rule::Hang);
    let store = Store::from(puppet.clone());
    let first: Vec<_> = (0..CLAIMS_AT_ONCE)
        .map(|n| tokio::spawn(Election::builder(format!("e{n}")).id("ours").backend(store.clone()).start()))
        .collect();
    puppet.log.until("called claim", CLAIMS_AT_ONCE).await;
    let late = tokio::spawn(Election::builder("late").id("late").backend(store.clone()).start());
    puppet.log.until("called claim late", 1).await;
    // Dropped before its turn: nothing of it stays behind.
    let gone = Election::builder("gone").id("gone").backend(store.clone()).start();
    assert!(tokio::time::timeout(ms(5), gone).await.is_err(), "nobody is answered");
    puppet.log.until("called claim gone", 1).await;
    puppet.set(Op::Claim, Rule::Pass);
    puppet.log.until("retire gone", 1).await;
    for start in first.into_iter().chain([late]) {
        soon(soon(start).await.unwrap().unwrap().wait_for_leadership()).await.unwrap();
    }
}
