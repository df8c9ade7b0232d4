//! The health gate: only the healthy stand, and an unhealthy leader makes room.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bellwether_backend::MemoryStore;
use bellwether_election::{ElectionBuilder, HealthCheck, Over, Reason, StateName};
use common::*;

const WELL: u8 = 0;
const ILL: u8 = 1;
const HANGS: u8 = 2;

/// A check that the story decides.
#[derive(Clone, Default)]
struct Patient {
    state: Arc<AtomicU8>,
    log: Log,
}

impl Patient {
    fn is(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }

    fn watched(&self, builder: ElectionBuilder, failures: u32) -> ElectionBuilder {
        let patient = self.clone();
        builder.health(HealthCheck::every(ms(5)).timeout(ms(50)).failures(failures), move || {
            let patient = patient.clone();
            async move {
                patient.log.put("checked");
                match patient.state.load(Ordering::Relaxed) {
                    WELL => true,
                    ILL => false,
                    _ => std::future::pending().await,
                }
            }
        })
    }
}

#[tokio::test]
async fn the_unhealthy_do_not_stand_until_they_are_well() {
    let store = MemoryStore::default();
    let patient = Patient::default();
    patient.is(ILL);
    let (puppet, builder) = puppet(&store, "a");
    let election = patient.watched(builder, 3).start().await.unwrap();
    patient.log.until("checked", 5).await;
    assert_eq!((election.status().state, puppet.log.count("called claim")), (StateName::Follower, 0));
    patient.is(WELL);
    soon(election.wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn a_leader_that_fails_often_enough_in_a_row_makes_room() {
    for illness in [ILL, HANGS] {
        let store = MemoryStore::default();
        let patient = Patient::default();
        let (puppet, builder) = puppet(&store, "a");
        let builder = builder.ttl(ms(60_000)).retry_interval(ms(20));
        let election = patient.watched(builder, 3).start().await.unwrap();
        let leadership = soon(election.wait_for_leadership()).await.unwrap();
        let other = candidate(&store, "b").start().await.unwrap();
        let mut events = election.events();
        patient.is(illness);
        assert_eq!(soon(leadership.lost()).await, Over::Lost(Reason::Health));
        soon(other.wait_for_leadership()).await.unwrap();
        assert_eq!(next(&mut events, "lost").await.to_json()["reason"], "health");
        assert_eq!(puppet.log.count("answered release"), 1, "released, not left to run out");
        soon(other.stop()).await.unwrap();
        patient.is(WELL);
        soon(election.wait_for_leadership()).await.unwrap();
    }
}

#[tokio::test]
async fn fewer_failures_than_the_threshold_change_nothing() {
    let store = MemoryStore::default();
    let patient = Patient::default();
    let election = patient.watched(candidate(&store, "a"), u32::MAX).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    patient.is(ILL);
    let before = patient.log.count("checked");
    patient.log.until("checked", before + 10).await;
    assert!(leadership.is_valid());
}

#[tokio::test]
async fn checks_end_with_the_election_and_begin_again_with_it() {
    let store = MemoryStore::default();
    let patient = Patient::default();
    let election = patient.watched(candidate(&store, "a"), 1).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    soon(election.stop()).await.unwrap();
    tokio::task::yield_now().await;
    let checked = patient.log.count("checked");
    tokio::time::sleep(ms(50)).await;
    assert_eq!(patient.log.count("checked"), checked);
    election.start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    assert!(patient.log.count("checked") > checked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_check_is_not_lost_in_the_race_with_the_start() {
    let store = MemoryStore::default();
    let shared = bellwether_election::Store::new(connect(&store));
    for n in 0..300 {
        let election = bellwether_election::Election::builder(format!("race {n}"))
            .backend(shared.clone())
            .id("a")
            .health(HealthCheck::every(ms(60_000)).timeout(ms(5_000)), || async { true })
            .start()
            .await
            .unwrap();
        soon(election.wait_for_leadership()).await.unwrap();
    }
}
