//! The real driver in virtual time: days pass in a moment, and an instant is exact.

mod common;

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Fut, MemoryStore};
use bellwether_core::{Clock, Wall};
use bellwether_election::{Boot, Election, ElectionBuilder, Over, Reason, Store, Timekeeper, What};
use common::*;
use tokio::sync::watch;

const TTL: Duration = Duration::from_secs(15);

/// Stands still until it is moved.
struct Virtual(watch::Sender<Boot>);

impl Virtual {
    fn new() -> Arc<Virtual> {
        Arc::new(Virtual(watch::Sender::new(Boot::from_nanos(1_000_000_000))))
    }

    /// Moves it, and lets everybody who waits for that do what they do.
    async fn go(&self, to: Boot) {
        self.0.send_replace(to);
        // One thread, and a store that answers at once: after so many turns nobody has anything left to do.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}

impl Clock for Virtual {
    fn boot(&self) -> Boot {
        *self.0.borrow()
    }

    fn wall(&self) -> Wall {
        Wall::from_unix_nanos(self.boot().as_nanos() as i64)
    }
}

impl Timekeeper for Virtual {
    fn until(&self, instant: Boot) -> Fut<'_, ()> {
        let mut now = self.0.subscribe();
        Box::pin(async move { drop(now.wait_for(|now| *now >= instant).await) })
    }
}

fn puppet_in(time: &Arc<Virtual>) -> (Puppet, ElectionBuilder) {
    let puppet = Puppet::new(Arc::new(MemoryStore::default().connect(Arc::clone(time) as Arc<dyn Clock>)));
    let store = Store::with_time(Arc::new(puppet.clone()), Arc::clone(time) as Arc<dyn Timekeeper>);
    (puppet, Election::builder(NAME).backend(store).id("a").ttl(TTL))
}

async fn leader(time: &Arc<Virtual>) -> (Puppet, Election) {
    let (puppet, builder) = puppet_in(time);
    let election = builder.start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    (puppet, election)
}

#[tokio::test]
async fn a_leader_renews_for_a_day_and_ends_at_its_deadline_when_the_store_falls_silent() {
    let time = Virtual::new();
    let (puppet, election) = leader(&time).await;
    let leadership = election.leadership().unwrap();
    let renew = election.settings().timing().renew();
    let rounds = 24 * 3_600 / renew.as_secs();
    for round in 0..rounds {
        let before = leadership.deadline();
        time.go(time.boot() + renew).await;
        assert_eq!(leadership.deadline(), before + renew, "round {round}");
    }
    assert_eq!(puppet.log.count("answered renew"), rounds as usize);
    assert_eq!(election.status().leaderships, 1);

    puppet.set_all(Rule::Hang);
    let deadline = leadership.deadline();
    let last = deadline - election.settings().timing().stop_lead() - Duration::from_nanos(1);
    time.go(last).await;
    assert!(election.is_leader() && leadership.is_valid());
    time.go(deadline).await;
    assert!(!election.is_leader() && !leadership.is_valid());
    assert_eq!(soon(leadership.lost()).await, Over::Lost(Reason::Deadline));
}

#[tokio::test]
async fn no_work_begins_past_the_deadline_while_the_driver_does_not_run() {
    let time = Virtual::new();
    let (_puppet, election) = leader(&time).await;
    let leadership = election.leadership().unwrap();
    let guard = leadership.hold().expect("there is time left");
    // Nobody else runs before the next await.
    time.0.send_replace(leadership.deadline());
    assert_eq!(leadership.hold().err(), Some(Over::Expired));
    assert_eq!(soon(leadership.run(async {})).await, Err(Over::Expired));
    drop(guard);
}

#[tokio::test]
async fn a_candidate_whose_calls_never_end_says_so_hour_after_hour_and_leads_once_they_do() {
    let time = Virtual::new();
    let (puppet, builder) = puppet_in(&time);
    puppet.set_all(Rule::Hang);
    let election = builder.build().unwrap();
    let mut events = election.events();
    let starting = tokio::spawn({
        let election = election.clone();
        async move { election.start().await }
    });
    for hour in 0..3 {
        for _ in 0..3_600 {
            time.go(time.boot() + Duration::from_secs(1)).await;
        }
        let told = std::iter::from_fn(|| events.try_next());
        let errors = told.filter(|event| matches!(event.what, What::Error(_))).count();
        assert!(errors >= 60, "hour {hour}: {errors} errors were told");
    }
    let calls = puppet.log.count("called");
    assert!(calls <= bellwether_core::CALLS_MAX, "{calls} calls wait");
    soon(starting).await.unwrap().expect("a store that is silent is tried in the background");
    puppet.set_all(Rule::Pass);
    soon(election.wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn a_start_after_a_stop_that_hangs_in_the_store_ends_with_a_sentence() {
    let time = Virtual::new();
    let (puppet, election) = leader(&time).await;
    puppet.set_all(Rule::Hang);
    let stopping = tokio::spawn({
        let election = election.clone();
        async move { election.stop().await }
    });
    puppet.log.until("called release", 1).await;
    let starting = tokio::spawn({
        let election = election.clone();
        async move { election.start().await }
    });
    for _ in 0..60 {
        time.go(time.boot() + Duration::from_secs(1)).await;
    }
    assert!(!stopping.is_finished() && starting.is_finished());
    let error = starting.await.unwrap().expect_err("the earlier start has not ended");
    assert!(error.to_string().contains("start again once the store answers"), "{error}");
    puppet.set_all(Rule::Pass);
    soon(stopping).await.unwrap().unwrap();
    soon(election.start()).await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn a_follower_that_lost_a_race_waits_and_makes_no_claim_if_another_wins_meanwhile() {
    let (time, memory) = (Virtual::new(), MemoryStore::default());
    let start = async |id: &str| {
        let puppet = Puppet::new(Arc::new(memory.connect(Arc::clone(&time) as Arc<dyn Clock>)));
        let store = Store::with_time(Arc::new(puppet.clone()), Arc::clone(&time) as Arc<dyn Timekeeper>);
        let election = Election::builder(NAME).backend(store).id(id).ttl(TTL).start().await.unwrap();
        time.go(time.boot()).await;
        (puppet, election)
    };
    let [(_, a), (quick, b), (slow, c)] = [start("a").await, start("b").await, start("c").await];
    let hand_over = async |leader: &Election| {
        soon(leader.step_down()).await.unwrap();
        time.go(time.boot()).await;
    };
    let both = [&quick, &slow];
    both.iter().for_each(|puppet| puppet.set_all(Rule::Hang));
    hand_over(&a).await;
    for puppet in both {
        assert_eq!(puppet.log.count("called claim"), 2, "both claim at once");
        puppet.set_all(Rule::Pass);
        time.go(time.boot()).await;
    }
    assert!(b.is_leader());

    hand_over(&b).await;
    assert!(a.is_leader(), "a has lost no race, so it claims at once");
    assert_eq!(slow.log.count("called claim"), 2);
    soon(b.stop()).await.unwrap();
    hand_over(&a).await;
    assert_eq!(slow.log.count("called claim"), 2, "c lets others go first, though there are none");
    time.go(time.boot() + Duration::from_millis(2)).await;
    assert!(c.is_leader());
}
