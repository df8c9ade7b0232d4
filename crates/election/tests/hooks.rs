//! Hooks: promotion and demotion in turn, never at once, and the release only after the demotion.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_deadman::boot_now;
use bellwether_election::{CandidateId, HookError, Hooks, Leadership};
use common::*;

/// Writes what it is called for; each call takes a few turns of the runtime.
#[derive(Clone)]
struct Recorder {
    log: Log,
    /// The promotion never ends by itself.
    slow: bool,
    fails: bool,
}

impl Recorder {
    fn new(log: &Log) -> Recorder {
        Recorder { log: log.clone(), slow: false, fails: false }
    }

    fn outcome(&self) -> Result<(), HookError> {
        if self.fails { Err("planned".into()) } else { Ok(()) }
    }
}

impl Hooks for Recorder {
    async fn on_become_leader(&self, leadership: Leadership) -> Result<(), HookError> {
        self.log.put(format!("become {}", leadership.epoch()));
        let _ended = self.log.on_drop("become ended");
        tokio::task::yield_now().await;
        if self.slow {
            std::future::pending::<()>().await;
        }
        self.outcome()
    }

    async fn on_lose_leadership(&self, leadership: Leadership) -> Result<(), HookError> {
        assert!(!leadership.is_valid());
        self.log.put(format!("lose {}", leadership.epoch()));
        let _ended = self.log.on_drop("lose ended");
        tokio::task::yield_now().await;
        self.outcome()
    }

    async fn on_leader_change(&self, leader: Option<CandidateId>) -> Result<(), HookError> {
        self.log.put(format!("leader {}", leader.map_or("none".to_owned(), |id| id.to_string())));
        self.outcome()
    }
}

/// The lines about promotion and demotion.
fn turns(log: &Log) -> Vec<String> {
    let about = |line: &String| line.starts_with("become") || line.starts_with("lose");
    log.lines().into_iter().filter(about).collect()
}

fn assert_in_turn(log: &Log) -> usize {
    let lines = turns(log);
    for (place, group) in lines.chunks(4).enumerate() {
        let [gain, ended, lose, lose_ended] = group else { panic!("{place}: {lines:?}") };
        let epoch = gain.strip_prefix("become ").unwrap_or_else(|| panic!("{place}: {lines:?}"));
        assert_eq!([ended, lose_ended], ["become ended", "lose ended"], "{place}: {lines:?}");
        assert_eq!(lose.strip_prefix("lose "), Some(epoch), "{place}: {lines:?}");
    }
    lines.len() / 4
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn promotion_and_demotion_alternate_however_it_flaps() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let builder = builder.retry_interval(ms(1)).hooks(Recorder::new(&puppet.log));
    let election = builder.start().await.unwrap();
    for turn in 0..60 {
        soon(election.wait_for_leadership()).await.unwrap();
        if turn % 5 == 4 {
            soon(election.stop()).await.unwrap();
            election.start().await.unwrap();
        } else {
            soon(election.step_down()).await.unwrap();
        }
    }
    soon(election.stop()).await.unwrap();
    assert!(assert_in_turn(&puppet.log) > 0);
}

#[tokio::test]
async fn a_leadership_that_nobody_was_told_of_has_no_demotion() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let builder = builder.retry_interval(ms(1)).hooks(Recorder::new(&puppet.log));
    let election = builder.start().await.unwrap();
    // On one thread: the loss is asked for in the same turn in which the promotion is queued, again and again.
    for _ in 0..20 {
        let leadership = soon(election.wait_for_leadership()).await.unwrap();
        soon(election.step_down()).await.unwrap();
        assert!(!leadership.is_valid());
    }
    soon(election.stop()).await.unwrap();
    assert_in_turn(&puppet.log);
}

#[tokio::test]
async fn a_slow_promotion_is_dropped_before_the_demotion_begins() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let recorder = Recorder { slow: true, ..Recorder::new(&puppet.log) };
    let election = builder.hooks(recorder).start().await.unwrap();
    puppet.log.until("become", 1).await;
    soon(election.stop()).await.unwrap();
    assert_eq!(assert_in_turn(&puppet.log), 1);
}

#[tokio::test]
async fn the_release_is_written_after_the_demotion_has_ended() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.hooks(Recorder::new(&puppet.log)).start().await.unwrap();
    puppet.log.until("become ended", 1).await;
    soon(election.step_down()).await.unwrap();
    let log = &puppet.log;
    assert!(log.place("lose ended") < log.place("called release"), "{:?}", log.lines());
}

#[tokio::test]
async fn hooks_that_fail_are_reported_and_stop_nothing() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let recorder = Recorder { fails: true, ..Recorder::new(&puppet.log) };
    let election = builder.ttl(ms(20_000)).retry_interval(ms(20)).hooks(recorder).start().await.unwrap();
    let mut events = election.events();
    soon(election.wait_for_leadership()).await.unwrap();
    puppet.log.until("become ended", 1).await;
    assert!(election.is_leader());
    soon(election.step_down()).await.unwrap();
    let mut missing = vec!["on_become_leader", "on_lose_leadership", "on_leader_change"];
    while !missing.is_empty() {
        let error = next(&mut events, "error").await.to_json();
        assert_eq!(error["kind"], "bug");
        missing.retain(|hook| error["error"] != format!("hook: {hook}: planned"));
    }
}

#[tokio::test]
async fn changes_of_leader_are_told_with_and_without_a_leader() {
    let store = MemoryStore::default();
    let leader = candidate(&store, "a").start().await.unwrap();
    soon(leader.wait_for_leadership()).await.unwrap();
    let log = Log::default();
    let follower = candidate(&store, "b").hooks(Recorder::new(&log)).start().await.unwrap();
    log.until("leader a", 1).await;
    soon(leader.stop()).await.unwrap();
    log.until("leader b", 1).await;
    soon(follower.stop()).await.unwrap();
    log.until("leader none", 1).await;
    let leaders: Vec<_> = log.lines().into_iter().filter(|line| line.starts_with("leader")).collect();
    assert_eq!((&*leaders[0], leaders.last().map(|line| &**line)), ("leader a", Some("leader none")));
}

/// Learns of the first leader and never gets over it.
struct Struck(Recorder);

impl Hooks for Struck {
    async fn on_become_leader(&self, leadership: Leadership) -> Result<(), HookError> {
        self.0.on_become_leader(leadership).await
    }

    async fn on_lose_leadership(&self, leadership: Leadership) -> Result<(), HookError> {
        self.0.on_lose_leadership(leadership).await
    }

    async fn on_leader_change(&self, _: Option<CandidateId>) -> Result<(), HookError> {
        self.0.log.put("struck");
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_hook_about_other_leaders_that_hangs_holds_up_no_promotion_and_no_release() {
    let store = MemoryStore::default();
    let leader = candidate(&store, "a").start().await.unwrap();
    soon(leader.wait_for_leadership()).await.unwrap();
    let (puppet, builder) = puppet(&store, "b");
    let builder = builder.ttl(ms(60_000)).hooks(Struck(Recorder::new(&puppet.log)));
    let election = builder.start().await.unwrap();
    puppet.log.until("struck", 1).await;
    soon(leader.stop()).await.unwrap();
    puppet.log.until("become ended", 1).await;
    let began = boot_now();
    soon(election.stop()).await.unwrap();
    assert_eq!((puppet.log.count("answered release"), puppet.log.count("struck")), (1, 1));
    assert!(boot_now().since(began) < ms(5_000), "half of what a hook may take");
    assert_in_turn(&puppet.log);
}
