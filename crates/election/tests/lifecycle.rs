//! Starting and stopping: as often as one likes, from everywhere at once.

mod common;

use std::collections::BTreeSet;

use bellwether_backend::MemoryStore;
use bellwether_election::{Error, Role, StateName};
use common::*;

#[tokio::test]
async fn starting_and_stopping_twice_does_nothing_the_second_time() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let incarnation = election.incarnation();
    election.start().await.unwrap();
    assert!(leadership.is_valid());
    assert_eq!((election.incarnation(), puppet.log.count("claim")), (incarnation, 1));
    soon(election.stop()).await.unwrap();
    soon(election.stop()).await.unwrap();
    assert_eq!((puppet.log.count("release"), puppet.log.count("retire")), (1, 1));
    assert_eq!(election.role(), Role::Unknown);
}

#[tokio::test]
async fn starting_again_is_a_new_incarnation_with_a_higher_epoch() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    let mut last = (election.incarnation(), soon(election.wait_for_leadership()).await.unwrap().epoch());
    for _ in 0..3 {
        soon(election.stop()).await.unwrap();
        assert!(matches!(election.wait_for_leadership().await, Err(Error::NotStarted)));
        assert!(matches!(election.step_down().await, Err(Error::NotStarted)));
        election.start().await.unwrap();
        let now = (election.incarnation(), soon(election.wait_for_leadership()).await.unwrap().epoch());
        assert!(now.0 != last.0 && now.1 > last.1, "{last:?} {now:?}");
        last = now;
    }
}

#[tokio::test]
async fn a_start_while_stopping_waits_and_then_takes_part_anew() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.start().await.unwrap();
    let first = soon(election.wait_for_leadership()).await.unwrap();
    let before = election.incarnation();
    puppet.set(Op::Release, Rule::Hang);
    let stopping = tokio::spawn({
        let election = election.clone();
        async move { election.stop().await }
    });
    puppet.log.until("called release", 1).await;
    let starting = tokio::spawn({
        let election = election.clone();
        async move { election.start().await }
    });
    tokio::task::yield_now().await;
    assert!(!starting.is_finished() && puppet.log.count("claim") == 1);
    puppet.set(Op::Release, Rule::Pass);
    soon(stopping).await.unwrap().unwrap();
    soon(starting).await.unwrap().unwrap();
    let second = soon(election.wait_for_leadership()).await.unwrap();
    assert!(second.epoch() > first.epoch() && election.incarnation() != before);
    assert!(puppet.log.place("answered release") < puppet.log.lines().len());
    assert_eq!(puppet.log.count("retire"), 1, "the earlier start has left");
}

#[tokio::test]
async fn a_stop_during_an_attempt_waits_until_the_late_grant_is_given_back() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set(Op::Claim, Rule::Late);
    let starting = tokio::spawn(builder.start());
    puppet.log.until("claim", 1).await;
    // The first time-out ends the wait of `start`, not the attempt.
    puppet.set(Op::Observe, Rule::Hang);
    let election = soon(starting).await.unwrap().unwrap();
    let stopping = tokio::spawn({
        let election = election.clone();
        async move { election.stop().await }
    });
    tokio::task::yield_now().await;
    // The record that the claim left is released as soon as it is seen; what the answer brings, once more when it comes.
    puppet.log.until("answered release", 1).await;
    assert_eq!(connect(&store).observe(&name()).await.unwrap().leader(), None);
    assert!(!stopping.is_finished(), "the claim is not answered");
    puppet.set_all(Rule::Pass);
    soon(stopping).await.unwrap().unwrap();
    assert_eq!(connect(&store).observe(&name()).await.unwrap().leader(), None);
}

#[tokio::test]
async fn a_start_that_is_called_off_can_still_be_stopped_and_gives_back_what_it_got() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.build().unwrap();
    soon(election.stop()).await.unwrap();
    assert_eq!(puppet.log.lines(), [""; 0], "nothing has begun");
    puppet.set(Op::Claim, Rule::Late);
    tokio::select! {
        _ = election.start() => panic!("the claim is not answered"),
        () = puppet.log.until("claim", 1) => {}
    }
    let ((), stopped) = tokio::join!(async { puppet.set_all(Rule::Pass) }, soon(election.stop()));
    stopped.unwrap();
    assert!(puppet.log.count("release") >= 1, "{:?}", puppet.log.lines());
    assert_eq!(connect(&store).observe(&name()).await.unwrap().leader(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_starts_at_once_are_one() {
    for _ in 0..20 {
        let store = MemoryStore::default();
        let (puppet, builder) = puppet(&store, "a");
        let election = builder.start().await.unwrap();
        soon(election.stop()).await.unwrap();
        let starts: Vec<_> = (0..8)
            .map(|_| {
                tokio::spawn({
                    let election = election.clone();
                    async move { election.start().await }
                })
            })
            .collect();
        for start in starts {
            soon(start).await.unwrap().unwrap();
        }
        soon(election.wait_for_leadership()).await.unwrap();
        assert_eq!(puppet.log.count("retire"), 1);
        soon(election.stop()).await.unwrap();
        assert_eq!(puppet.log.count("retire"), 2, "one start, one end: {:?}", puppet.log.lines());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_stops_or_step_downs_at_once_all_return_and_release_once() {
    for stop in [true, false] {
        for _ in 0..20 {
            let store = MemoryStore::default();
            let (puppet, builder) = puppet(&store, "a");
            let election = builder.cooldown(ms(60_000)).start().await.unwrap();
            soon(election.wait_for_leadership()).await.unwrap();
            let calls: Vec<_> = (0..8)
                .map(|_| {
                    let election = election.clone();
                    tokio::spawn(async move {
                        if stop { election.stop().await } else { election.step_down().await }
                    })
                })
                .collect();
            let mut done = 0;
            for call in calls {
                match soon(call).await.unwrap() {
                    Ok(()) => done += 1,
                    Err(Error::InCooldown) if !stop => {}
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(done >= 1 && (done == 8 || !stop));
            assert_eq!(puppet.log.count("release"), 1);
            let expected = if stop { StateName::Stopped } else { StateName::Follower };
            assert_eq!(election.status().state, expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_storm_of_starts_stops_and_step_downs_ends_in_order() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.retry_interval(ms(1)).start().await.unwrap();
    let storm: Vec<_> = (0..24)
        .map(|n| {
            let election = election.clone();
            tokio::spawn(async move {
                for _ in 0..15 {
                    match n % 3 {
                        0 => election.start().await.unwrap(),
                        1 => election.stop().await.unwrap(),
                        _ => drop(election.step_down().await),
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for one in storm {
        soon(one).await.unwrap();
    }
    soon(election.stop()).await.unwrap();
    assert_eq!((election.role(), election.is_leader()), (Role::Unknown, false));
    assert_eq!(connect(&store).observe(&name()).await.unwrap().leader(), None);
    soon(election.start()).await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    soon(election.stop()).await.unwrap();
    // Letting go of one grant twice is harmless, since each write is scoped to its epoch; none may be forgotten.
    let lines = puppet.log.lines();
    let let_go: BTreeSet<_> = lines.iter().filter(|line| line.starts_with("release")).collect();
    assert_eq!(let_go.len(), puppet.log.count("answered claim"), "{lines:?}");
}

#[tokio::test]
async fn a_step_down_returns_although_the_state_lasts_a_moment() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").retry_interval(ms(1)).start().await.unwrap();
    for _ in 0..50 {
        soon(election.wait_for_leadership()).await.unwrap();
        soon(election.step_down()).await.unwrap();
    }
    assert!(election.status().leaderships >= 50);
}
