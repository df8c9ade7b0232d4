//! Letting go within a limit: what can be cut off is, and what cannot holds its own release up.

mod common;

use std::sync::mpsc;

use bellwether_backend::MemoryStore;
use bellwether_core::{Seen, Signal};
use bellwether_deadman::boot_now;
use bellwether_election::{Epoch, Error, HookError, Hooks, Leadership, Over};
use common::*;

/// Its demotion never ends by itself.
struct Stubborn(Log);

impl Hooks for Stubborn {
    async fn on_lose_leadership(&self, _: Leadership) -> Result<(), HookError> {
        let _dropped = self.0.on_drop("hook dropped");
        self.0.put("hook began");
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_hook_that_hangs_is_cut_off_before_the_release_is_written() {
    for stop in [true, false] {
        let store = MemoryStore::default();
        let (puppet, builder) = puppet(&store, "a");
        let builder = builder.ttl(ms(20_000)).hooks(Stubborn(puppet.log.clone()));
        let election = builder.cooldown(ms(60_000)).start().await.unwrap();
        let leadership = soon(election.wait_for_leadership()).await.unwrap();
        let mut events = election.events();
        let limit = ms(50);
        let call = async {
            if stop { election.stop_within(limit).await } else { election.step_down_within(limit).await }
        };
        soon(call).await.unwrap();
        assert_eq!(leadership.lost().await, Over::Released);
        let log = &puppet.log;
        assert!(log.place("hook began") < log.place("hook dropped"), "{:?}", log.lines());
        assert!(log.place("hook dropped") < log.place("called release"), "{:?}", log.lines());
        let error = next(&mut events, "error").await;
        assert!(error.to_json()["error"].as_str().unwrap().contains("on_lose_leadership: was cut off"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn work_that_blocks_its_thread_holds_up_its_own_release() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(1_500)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let (finish, finished) = mpsc::channel::<()>();
    let log = puppet.log.clone();
    let work = tokio::spawn({
        let leadership = leadership.clone();
        async move {
            leadership
                .run(async move {
                    log.put("work blocks");
                    let _ = finished.recv();
                    std::future::pending::<()>().await;
                })
                .await
        }
    });
    puppet.log.until("work blocks", 1).await;
    let deadline = leadership.deadline();
    assert!(matches!(election.stop_within(ms(20)).await, Err(Error::TimedOut)));
    assert!(boot_now() < deadline, "the machine is too slow for this story");
    assert!(!leadership.is_valid() && !election.is_leader(), "told to stop, so over");
    assert_eq!(puppet.log.count("called release"), 0);
    // Another candidate leads only when the record has run out, and the blocked one never releases.
    let other = candidate(&store, "b").start().await.unwrap();
    soon(other.wait_for_leadership()).await.unwrap();
    assert!(boot_now() >= deadline);
    finish.send(()).unwrap();
    assert_eq!(soon(work).await.unwrap(), Err(Over::Released));
    soon(election.stop()).await.unwrap();
    assert_eq!(puppet.log.count("called release"), 0, "past the deadline nothing is written");
}

#[tokio::test]
async fn two_pieces_of_work_are_both_gone_before_the_release() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let mut work = Vec::new();
    for n in 0..2 {
        let (leadership, log) = (leadership.clone(), puppet.log.clone());
        work.push(tokio::spawn(async move {
            let inner = async {
                let _dropped = log.on_drop(&format!("work {n} dropped"));
                log.put(format!("work {n} began"));
                std::future::pending::<()>().await;
            };
            leadership.run(inner).await
        }));
        puppet.log.until(&format!("work {n} began"), 1).await;
    }
    soon(election.step_down()).await.unwrap();
    for one in work {
        assert_eq!(soon(one).await.unwrap(), Err(Over::Released));
    }
    let release = puppet.log.place("called release");
    assert!(puppet.log.place("work 0 dropped") < release && puppet.log.place("work 1 dropped") < release);
}

#[tokio::test]
async fn a_release_that_is_never_answered_does_not_hold_up_a_step_down() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(1_000)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    puppet.set(Op::Release, Rule::Hang);
    soon(election.step_down()).await.unwrap();
    let released = next(&mut events, "released").await.to_json();
    assert_eq!(released["confirmed"], false);
    puppet.set(Op::Release, Rule::Pass);
}

#[tokio::test]
async fn a_second_step_down_waits_for_the_first_whatever_epochs_are_seen_meanwhile() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(30_000)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Release, Rule::Hang);
    let step_down = || {
        let election = election.clone();
        tokio::spawn(async move { election.step_down().await })
    };
    let first = step_down();
    puppet.log.until("called release", 1).await;
    let later = Epoch::new(leadership.epoch().get() + 100);
    puppet.signal(Signal::Changed(Seen { epoch: later, ..Seen::nothing() }));
    eventually("seen", || election.epoch() == later).await;
    let second = step_down();
    tokio::task::yield_now().await;
    assert!(!first.is_finished() && !second.is_finished());
    puppet.set(Op::Release, Rule::Pass);
    soon(first).await.unwrap().unwrap();
    soon(second).await.unwrap().unwrap();
}

#[tokio::test]
async fn handing_over_keeps_the_record_for_the_one_named() {
    let store = MemoryStore::default();
    let first = candidate(&store, "a").start().await.unwrap();
    soon(first.wait_for_leadership()).await.unwrap();
    let others = [
        candidate(&store, "b").start().await.unwrap(),
        candidate(&store, "c").start().await.unwrap(),
        candidate(&store, "d").start().await.unwrap(),
    ];
    soon(first.step_down_to(others[1].id().clone())).await.unwrap();
    soon(others[1].wait_for_leadership()).await.unwrap();
    assert_eq!([others[0].status().leaderships, others[2].status().leaderships], [0, 0]);
}
