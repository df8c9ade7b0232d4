//! Reading the record back: still ours, not ours any more, or nobody can tell.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_core::Options;
use bellwether_election::{Election, Error, Over, Reason};
use common::*;

/// A leader that hears no news of its store, and will not renew during the story.
async fn deaf_leader(store: &MemoryStore) -> (Puppet, Election) {
    let (puppet, builder) = puppet(store, "a");
    puppet.deafen();
    let election = builder.ttl(ms(60_000)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    (puppet, election)
}

/// Somebody with the same id takes the record without asking.
async fn take_over(store: &MemoryStore) -> Election {
    let mut options = Options::default();
    options.danger_reclaim = true;
    options.timing.ttl = ms(60_000);
    let usurper = candidate(store, "a").options(options).start().await.unwrap();
    soon(usurper.wait_for_leadership()).await.unwrap();
    usurper
}

#[tokio::test]
async fn a_record_of_ours_is_valid_and_stays() {
    let store = MemoryStore::default();
    let (puppet, election) = deaf_leader(&store).await;
    assert!(soon(election.validate()).await.unwrap());
    assert_eq!(puppet.log.count("observe"), 1);
    soon(election.validate_or_step_down()).await.unwrap();
    assert!(election.is_leader());
    assert_eq!(puppet.log.count("observe"), 2);
}

#[tokio::test]
async fn a_confirmation_that_is_young_enough_is_not_asked_for_again() {
    let store = MemoryStore::default();
    let (puppet, election) = deaf_leader(&store).await;
    assert!(election.validate_within(PATIENCE).await.unwrap());
    assert_eq!(puppet.log.count("observe"), 0);
    tokio::time::sleep(ms(2)).await;
    assert!(election.validate_within(ms(1)).await.unwrap());
    assert_eq!(puppet.log.count("observe"), 1);
}

#[tokio::test]
async fn a_record_of_another_ends_the_leadership() {
    let store = MemoryStore::default();
    let (_puppet, election) = deaf_leader(&store).await;
    let leadership = election.leadership().unwrap();
    let usurper = take_over(&store).await;
    assert!(election.is_leader(), "it has not looked yet");
    assert!(!soon(election.validate()).await.unwrap());
    assert!(!election.is_leader());
    assert_eq!(soon(leadership.lost()).await, Over::Lost(Reason::Validation));
    assert!(usurper.is_leader() && soon(usurper.validate()).await.unwrap());
    assert!(matches!(election.validate().await, Err(Error::NotLeader)));
    assert!(matches!(election.validate_or_step_down().await, Err(Error::NotLeader)));
    assert!(matches!(election.validate_within(PATIENCE).await, Err(Error::NotLeader)));
}

#[tokio::test]
async fn a_record_that_was_deleted_ends_the_leadership() {
    let store = MemoryStore::default();
    let (puppet, election) = deaf_leader(&store).await;
    let epoch = election.leadership().unwrap().epoch();
    store.delete(&name());
    let Err(Error::EpochMismatch { ours, .. }) = soon(election.validate_or_step_down()).await else {
        panic!("validated")
    };
    assert_eq!(ours, epoch);
    assert_eq!(puppet.log.count("release"), 0, "there is nothing of ours to release");
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_changes_nothing_unless_one_steps_down_for_it() {
    let store = MemoryStore::default();
    let (puppet, election) = deaf_leader(&store).await;
    puppet.set(Op::Observe, Rule::Fail);
    assert!(matches!(soon(election.validate()).await, Err(Error::Backend(_))));
    assert!(election.is_leader());
    let refused = soon(election.validate_or_step_down()).await;
    assert!(matches!(refused, Err(Error::Backend(_))));
    assert!(!election.is_leader());
    assert_eq!(puppet.log.count("answered release"), 1);
}

#[tokio::test]
async fn a_look_that_hangs_times_out_and_its_late_answer_answers_nobody_else() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.deafen();
    let election = builder.ttl(ms(6_000)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Observe, Rule::Late);
    assert!(matches!(soon(election.validate()).await, Err(Error::TimedOut)));
    assert!(election.is_leader());
    // Only now somebody takes it; the look that saw our record is still on its way back.
    puppet.set(Op::Renew, Rule::Hang);
    let _usurper = take_over(&store).await;
    let again = tokio::spawn({
        let election = election.clone();
        async move { election.validate().await }
    });
    puppet.log.until("observe", 2).await;
    puppet.free_oldest(Op::Observe);
    puppet.log.until("answered observe", 1).await;
    puppet.free_oldest(Op::Observe);
    assert!(!soon(again).await.unwrap().unwrap(), "answered by a look from before");
    puppet.set_all(Rule::Pass);
}

#[tokio::test]
async fn validating_in_turns_finds_out_by_itself() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.deafen();
    let mut options = Options::default();
    (options.timing.ttl, options.timing.renew) = (ms(3_000), Some(ms(20)));
    options.validation = Some(ms(25));
    let election = builder.options(options).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    puppet.log.until("answered observe", 3).await;
    assert!(leadership.is_valid());
    puppet.set(Op::Renew, Rule::Fail);
    let _usurper = take_over(&store).await;
    assert_eq!(soon(leadership.lost()).await, Over::Lost(Reason::Validation));
}
