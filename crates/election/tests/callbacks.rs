//! Callbacks: several for one event, in order, sync and async; what goes wrong in them goes to `on_error`.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_election::{Event, On};
use common::*;

/// Found by review: the task that calls them had ended with the first runtime, and no other was made.
#[test]
fn they_are_called_in_the_next_runtime_too() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (store, log) = (MemoryStore::default(), Log::default());
    let acquired = log.clone();
    let first = runtime();
    let election = first.block_on(async {
        let builder = candidate(&store, "a").ttl(ms(300));
        let election = builder.on_acquired(move |_| acquired.put("acquired")).start().await.unwrap();
        log.until("acquired", 1).await;
        election
    });
    drop(first);
    runtime().block_on(async {
        soon(election.start()).await.unwrap();
        log.until("acquired", 2).await;
    });
}

#[tokio::test]
async fn several_for_one_event_are_called_in_the_order_of_registration() {
    let store = MemoryStore::default();
    let log = Log::default();
    let put = |line: &'static str| {
        let log = log.clone();
        move |_: Event| log.put(line)
    };
    let later = log.clone();
    let election = candidate(&store, "a")
        .on_acquired(put("acquired 1"))
        .on_async(On::Acquired, move |_| {
            let log = later.clone();
            async move {
                tokio::time::sleep(ms(5)).await;
                log.put("acquired 2");
            }
        })
        .on_acquired(put("acquired 3"))
        .on_released(put("released"))
        .on_state_change(put("state"))
        .on_stopped(put("stopped"))
        .on_lost(put("lost"))
        .start()
        .await
        .unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    soon(election.stop()).await.unwrap();
    log.until("stopped", 1).await;
    let lines = log.lines();
    let order: Vec<_> = lines.iter().filter(|line| *line != "state").collect();
    assert_eq!(order, ["acquired 1", "acquired 2", "acquired 3", "released", "stopped"]);
    assert_eq!(log.count("state"), 5, "follower, acquiring, leader, releasing, stopped: {lines:?}");
}

#[tokio::test]
async fn a_denied_attempt_names_who_is_in_the_way() {
    let store = MemoryStore::default();
    let leader = candidate(&store, "a").start().await.unwrap();
    soon(leader.wait_for_leadership()).await.unwrap();
    let log = Log::default();
    let put = log.clone();
    let follower = candidate(&store, "b")
        .on_acquire_failed(move |event| put.put(event.to_json()["holder"].as_str().unwrap()))
        .start()
        .await
        .unwrap();
    log.until("a", 1).await;
    soon(follower.stop()).await.unwrap();
}

#[tokio::test]
async fn errors_and_panics_go_to_on_error_and_the_others_are_still_called() {
    let store = MemoryStore::default();
    let log = Log::default();
    let (errors, after, worse) = (log.clone(), log.clone(), log.clone());
    let election = candidate(&store, "a")
        .on_error(move |event| errors.put(event.to_json()["error"].as_str().unwrap()))
        .on_error(move |_| -> Result<(), &str> {
            worse.put("failing error callback");
            Err("planned, in on_error")
        })
        .on_acquired(|_| Err::<(), _>("planned"))
        .on_acquired(|_| -> () { panic!("planned, sync") })
        .on_async(On::Acquired, |event| async move { assert!(event.attempt == 0, "planned, async") })
        .on_async(On::Acquired, |_| async { Err::<(), _>("planned later") })
        .on_acquired(move |_| after.put("still called"))
        .start()
        .await
        .unwrap();
    log.until("still called", 1).await;
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line != "failing error callback").collect();
    assert_eq!(
        lines,
        [
            "callback: callback for acquired failed: planned",
            "callback: callback for acquired failed: panicked",
            "callback: callback for acquired failed: panicked",
            "callback: callback for acquired failed: planned later",
            "still called",
        ]
    );
    assert_eq!(log.count("failing error callback"), 4, "and an error there goes no further");
    assert!(election.is_leader());
}

#[tokio::test]
async fn one_registered_while_running_hears_what_comes_after() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").retry_interval(ms(1)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let log = Log::default();
    let put = log.clone();
    election.on(On::Released, move |_| put.put("released"));
    let put = log.clone();
    election.on(On::Acquired, move |event| put.put(format!("acquired {}", event.epoch.unwrap())));
    soon(election.step_down()).await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    log.until("acquired", 1).await;
    assert_eq!(log.lines(), ["released".to_owned(), format!("acquired {}", leadership.epoch())]);
    // And over a restart; async ones, too.
    let put = log.clone();
    election.on_async(On::Stopped, move |_| {
        let log = put.clone();
        async move { log.put("stopped") }
    });
    soon(election.stop()).await.unwrap();
    election.start().await.unwrap();
    log.until("acquired", 2).await;
    assert_eq!(log.count("stopped"), 1);
}
