//! Events: all of them, in order, in the shape that scripts rely on, and at nobody's expense.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_core::Boot;
use bellwether_election::{
    CandidateId, EVENTS_WAITING_MAX, Epoch, HookError, Hooks, Leadership, On, StateName, What,
};
use common::*;

#[tokio::test]
async fn the_whole_story_of_a_leadership_is_told_in_order() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    soon(election.stop()).await.unwrap();
    let told = words_until(&mut events, "stopped").await;
    assert_eq!(told, ["state_changed", "released", "leader_changed", "state_changed", "stopped"]);
    election.start().await.unwrap();
    let told = words_until(&mut events, "leader_changed").await;
    assert_eq!(told, ["state_changed", "state_changed", "state_changed", "acquired", "leader_changed"]);
}

#[tokio::test]
async fn beginnings_and_ends_alternate_and_epochs_rise_however_it_flaps() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").retry_interval(ms(1)).start().await.unwrap();
    let mut events = election.events();
    soon(election.wait_for_leadership()).await.unwrap();
    for turn in 0..40 {
        if turn % 4 == 3 {
            soon(election.stop()).await.unwrap();
            election.start().await.unwrap();
        } else {
            soon(election.step_down()).await.unwrap();
        }
        soon(election.wait_for_leadership()).await.unwrap();
    }
    soon(election.stop()).await.unwrap();
    let mut leading: Option<Epoch> = None;
    let (mut last, mut at, mut ends) = (Epoch::ZERO, Boot::default(), 0);
    while let Some(event) = events.try_next() {
        assert!(event.boot >= at, "order by time");
        at = event.boot;
        match event.what {
            What::Acquired { epoch, .. } => {
                // The first was acquired before we listened, or is the first we hear of.
                assert!(leading.replace(epoch).is_none() && epoch > last);
                last = epoch;
            }
            What::Released { epoch, .. } => {
                assert!(leading.take().is_none_or(|now| now == epoch));
                ends += 1;
            }
            What::Missed { .. } => panic!("missed"),
            _ => {}
        }
    }
    assert_eq!((ends, leading), (41, None));
}

#[tokio::test]
async fn a_subscriber_that_reads_nothing_misses_the_middle_and_delays_nobody() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").retry_interval(ms(1)).start().await.unwrap();
    let mut unread = election.events();
    let mut read = election.events();
    let mut told = 0;
    // Read before each turn, so that one subscriber keeps up and counts what the other should have got.
    while told < 2 * EVENTS_WAITING_MAX {
        soon(election.wait_for_leadership()).await.unwrap();
        soon(election.step_down()).await.unwrap();
        while read.try_next().is_some() {
            told += 1;
        }
    }
    soon(election.stop()).await.unwrap();
    while read.try_next().is_some() {
        told += 1;
    }
    let (mut got, mut missed, mut last) = (0, None, None);
    while let Some(event) = unread.try_next() {
        match event.what {
            What::Missed { count, state } => assert!(missed.replace((count, state)).is_none(), "one for all"),
            what => {
                got += 1;
                last = Some(what);
            }
        }
    }
    let (count, state) = missed.unwrap();
    assert_eq!((got + 1, got as u64 + count), (EVENTS_WAITING_MAX, told as u64));
    assert_eq!(state, StateName::Stopped, "how it stands now");
    assert!(matches!(last, Some(What::Stopped)));
}

struct Hanging;

impl Hooks for Hanging {
    async fn on_become_leader(&self, _: Leadership) -> Result<(), HookError> {
        std::future::pending().await
    }

    async fn on_leader_change(&self, _: Option<CandidateId>) -> Result<(), HookError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn hooks_callbacks_and_subscribers_that_hang_cost_no_renewal() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let builder = builder.ttl(ms(600)).hooks(Hanging);
    let election = builder.on_async(On::Any, |_| std::future::pending::<()>()).start().await.unwrap();
    let _unread = election.events();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    // Five times a third of the ttl: long after the first grant would have run out.
    puppet.log.until("answered renew", 5).await;
    assert!(leadership.is_valid());
    soon(election.stop()).await.unwrap();
    assert_eq!(puppet.log.count("answered release"), 1, "and none of them holds the release up");
}
