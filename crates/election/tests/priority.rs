//! A higher priority asks; the lower one stops first.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_election::{HookError, Hooks, Leadership, Over, Reason};
use common::*;

struct Ending(Log);

impl Hooks for Ending {
    async fn on_become_leader(&self, _: Leadership) -> Result<(), HookError> {
        self.0.put("low began");
        Ok(())
    }

    async fn on_lose_leadership(&self, _: Leadership) -> Result<(), HookError> {
        tokio::time::sleep(ms(30)).await;
        self.0.put("low stopped");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lower_steps_down_before_the_higher_leads() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "low");
    let low = builder.priority(1).hooks(Ending(puppet.log.clone())).start().await.unwrap();
    let leadership = soon(low.wait_for_leadership()).await.unwrap();
    // Before it has begun there is nothing to stop.
    puppet.log.until("low began", 1).await;
    let log = puppet.log.clone();
    let high = candidate(&store, "high")
        .priority(2)
        .preempt(true)
        .on_acquired(move |_| log.put("high leads"))
        .start()
        .await
        .unwrap();
    let both = async {
        loop {
            let (high, low) = (high.is_leader(), low.is_leader());
            assert!(!(high && low), "two leaders");
            if high {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(both).await;
    assert_eq!(soon(leadership.lost()).await, Over::Lost(Reason::Preempted));
    puppet.log.until("high leads", 1).await;
    assert!(puppet.log.place("low stopped") < puppet.log.place("called release"));
    assert!(puppet.log.place("called release") < puppet.log.place("high leads"));
    // The lower one follows, and leads again when there is room.
    let knows =
        |status: &bellwether_election::Status| status.leader.as_ref().is_some_and(|id| id.as_str() == "high");
    soon(low.wait_until(knows)).await.unwrap();
    soon(high.stop()).await.unwrap();
    soon(low.wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn without_preempting_or_with_equal_priority_nobody_is_asked() {
    let store = MemoryStore::default();
    let low = candidate(&store, "low").priority(1).start().await.unwrap();
    let leadership = soon(low.wait_for_leadership()).await.unwrap();
    let polite = candidate(&store, "polite").priority(9).start().await.unwrap();
    let equal = candidate(&store, "equal").priority(1).preempt(true).start().await.unwrap();
    assert!(polite.wait_for_leadership_within(ms(100)).await.is_err());
    assert!(leadership.is_valid() && !equal.is_leader());
}
