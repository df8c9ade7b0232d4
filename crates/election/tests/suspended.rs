//! In doubt: the leadership is over at once, and a new one may follow within the grace.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_core::Signal;
use bellwether_election::{HookError, Hooks, Leadership, Over, Reason};
use common::*;

struct Recorder(Log);

impl Hooks for Recorder {
    async fn on_become_leader(&self, leadership: Leadership) -> Result<(), HookError> {
        self.0.put(format!("become {}", leadership.epoch()));
        Ok(())
    }

    async fn on_lose_leadership(&self, leadership: Leadership) -> Result<(), HookError> {
        self.0.put(format!("lose {}", leadership.epoch()));
        Ok(())
    }
}

#[tokio::test]
async fn a_session_that_ends_suspends_and_coming_back_is_a_new_leadership() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let log = Log::default();
    let election = builder.reconnect_grace(ms(60_000)).hooks(Recorder(log.clone())).start().await.unwrap();
    let old = soon(election.wait_for_leadership()).await.unwrap();
    log.until("become", 1).await;
    let mut events = election.events();
    puppet.set(Op::Claim, Rule::Hang);
    puppet.signal(Signal::Gone);
    assert_eq!(soon(old.lost()).await, Over::Lost(Reason::Connection));
    assert!(!old.is_valid() && !election.is_leader() && election.leadership().is_none());
    puppet.log.until("called claim", 2).await;
    puppet.set(Op::Claim, Rule::Pass);
    let new = soon(election.wait_for_leadership()).await.unwrap();
    assert!(new.epoch() > old.epoch() && !old.is_valid());
    let told = words_until(&mut events, "resumed").await;
    assert!(
        told.contains(&"suspended") && !told.contains(&"lost") && !told.contains(&"acquired"),
        "{told:?}"
    );
    log.until("become", 2).await;
    let (old, new) = (old.epoch(), new.epoch());
    assert_eq!(log.lines(), [format!("become {old}"), format!("lose {old}"), format!("become {new}")]);
    assert_eq!(election.status().leaderships, 2);
}

#[tokio::test]
async fn work_is_dropped_at_the_suspension_and_runs_again_after_it() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.reconnect_grace(ms(60_000)).start().await.unwrap();
    let log = puppet.log.clone();
    let leading = tokio::spawn({
        let election = election.clone();
        async move {
            let work = |leadership: Leadership| {
                let log = log.clone();
                async move {
                    let _dropped = log.on_drop("work dropped");
                    log.put(format!("work {}", leadership.epoch()));
                    std::future::pending::<()>().await;
                }
            };
            election.lead(work).await
        }
    });
    puppet.log.until("work", 1).await;
    puppet.signal(Signal::Gone);
    puppet.log.until("work dropped", 1).await;
    puppet.log.until("work", 3).await;
    assert!(election.is_leader());
    leading.abort();
}

#[tokio::test]
async fn a_grace_that_ends_is_a_loss() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.reconnect_grace(ms(100)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    puppet.set(Op::Claim, Rule::Fail);
    puppet.set(Op::Observe, Rule::Fail);
    puppet.signal(Signal::Gone);
    let told = words_until(&mut events, "lost").await;
    assert_eq!(told.iter().filter(|word| **word == "suspended").count(), 1, "{told:?}");
    puppet.set_all(Rule::Pass);
    next(&mut events, "acquired").await;
}

#[tokio::test]
async fn without_a_grace_it_is_lost_at_once() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    puppet.signal(Signal::Gone);
    assert_eq!(soon(leadership.lost()).await, Over::Lost(Reason::Connection));
    let told = words_until(&mut events, "lost").await;
    assert!(!told.contains(&"suspended"), "{told:?}");
}
