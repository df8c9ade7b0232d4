//! What can be asked: status, role, leader, the record as an observer sees it, requests and history.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_deadman::boot_now;
use bellwether_election::{Epoch, Error, Over, Reason, Role, StateName, Store};
use common::*;

#[tokio::test]
async fn status_tells_what_happened_last() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set_all(Rule::Fail);
    let began = boot_now();
    let election = builder.cooldown(ms(60_000)).start().await.unwrap();
    let status = election.status();
    assert_eq!((status.id.as_str(), status.election.as_str()), ("a", NAME));
    assert!(status.last_error.is_some() && status.last_success.is_none());
    assert_eq!((status.attempts, status.leaderships, status.highest_epoch), (1, 0, Epoch::ZERO));
    assert_eq!((election.epoch(), election.leader(), election.role()), (None, None, Role::Passive));
    puppet.set_all(Rule::Pass);
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let status = election.status();
    assert_eq!((status.state, status.epoch), (StateName::Leader, Some(leadership.epoch())));
    assert_eq!((status.highest_epoch, status.deadline), (leadership.epoch(), Some(leadership.deadline())));
    assert!(status.last_success.is_some_and(|at| at >= began && at <= boot_now()));
    assert!(status.last_transition.is_some_and(|at| at >= began && at <= boot_now()));
    assert!(status.attempts >= 2 && status.leaderships == 1 && status.cooldown_until.is_none());
    assert_eq!((election.role(), election.leader().unwrap().as_str()), (Role::Primary, "a"));
    soon(election.step_down()).await.unwrap();
    let status = election.status();
    assert!(status.cooldown_until.is_some_and(|until| until > boot_now()));
    assert_eq!((status.state, status.epoch, status.deadline), (StateName::Follower, None, None));
    assert_eq!((election.role(), election.leader()), (Role::Passive, None));
    assert!(matches!(election.step_down().await, Err(Error::InCooldown)));
}

#[tokio::test]
async fn an_observer_sees_a_lease_that_is_held_and_then_runs_out() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let observer = Store::new(connect(&store));
    assert!(observer.observe(&name()).await.unwrap().is_expired());
    let election = builder.ttl(ms(600)).metadata("zone", "north").start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let writes = store.writes();
    let lease = observer.observe(&name()).await.unwrap();
    assert!(lease.is_valid() && !lease.is_expired());
    assert_eq!((lease.holder().unwrap().as_str(), lease.epoch()), ("a", Some(leadership.epoch())));
    assert!(lease.time_until_expiry() > ms(0) && lease.time_until_expiry() <= ms(600));
    assert_eq!(lease.seen().metadata["zone"], "north");
    assert!(lease.seen().acquired.is_some() && lease.seen().renewed.is_some());
    assert!(store.writes() - writes <= 1, "looking writes nothing; a history line may have come meanwhile");
    // Never renewed again, and nobody takes it: the same view runs out by this observer's own clock.
    puppet.set_all(Rule::Hang);
    eventually("expired", || lease.is_expired()).await;
    assert!(!lease.is_valid());
    assert_eq!(lease.time_until_expiry(), ms(0));
    assert!(!election.is_leader(), "long over for its holder");
    puppet.set_all(Rule::Pass);
}

#[tokio::test]
async fn a_released_lease_is_free_at_once() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    assert!(election.observe().await.unwrap().is_valid());
    soon(election.stop()).await.unwrap();
    let lease = election.observe().await.unwrap();
    assert!(lease.is_expired() && !lease.is_valid() && lease.holder().is_none());
}

#[tokio::test]
async fn somebody_far_away_asks_the_leader_to_hand_over() {
    let store = MemoryStore::default();
    let first = candidate(&store, "a").start().await.unwrap();
    let leadership = soon(first.wait_for_leadership()).await.unwrap();
    let second = candidate(&store, "b").start().await.unwrap();
    let third = candidate(&store, "c").start().await.unwrap();
    let admin = Store::new(connect(&store));
    let asked = soon(admin.ask_to_step_down(&name(), Some(third.id().clone()))).await.unwrap();
    assert_eq!(asked, leadership.epoch());
    assert_eq!(soon(leadership.lost()).await, Over::Lost(Reason::Admin));
    soon(third.wait_for_leadership()).await.unwrap();
    assert_eq!(second.status().leaderships, 0);
    soon(third.stop()).await.unwrap();
    soon(second.stop()).await.unwrap();
    soon(first.stop()).await.unwrap();
    let nobody = admin.ask_to_step_down(&name(), None).await;
    assert!(matches!(nobody, Err(Error::NotLeader)));
}

#[tokio::test]
async fn who_leads_already_has_nothing_handed_over() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let admin = Store::new(connect(&store));
    let asked = soon(admin.ask_to_step_down(&name(), Some(election.id().clone()))).await;
    assert!(matches!(asked, Err(Error::AlreadyLeader)), "{asked:?}");
    let handed = soon(election.step_down_to(election.id().clone())).await;
    assert!(matches!(handed, Err(Error::AlreadyLeader)), "{handed:?}");
    assert!(leadership.is_valid() && soon(election.validate()).await.unwrap(), "it was asked to let go");
    soon(election.stop()).await.unwrap();
    let handed = soon(election.step_down_to(election.id().clone())).await;
    assert!(matches!(handed, Err(Error::NotStarted)), "{handed:?}");
}

#[tokio::test]
async fn history_tells_who_led_and_how_it_ended() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let observer = Store::new(connect(&store));
    let first = builder.ttl(ms(600)).start().await.unwrap();
    let epochs = {
        let a = soon(first.wait_for_leadership()).await.unwrap();
        puppet.log.until("answered remember", 1).await;
        let now = observer.history(&name()).await.unwrap();
        assert_eq!((now.len(), now[0].epoch, now[0].ended.clone()), (1, a.epoch(), None));
        puppet.set(Op::Renew, Rule::Hang);
        soon(a.lost()).await;
        puppet.set(Op::Renew, Rule::Pass);
        let again = soon(first.wait_for_leadership()).await.unwrap();
        [a.epoch(), again.epoch()]
    };
    soon(first.stop()).await.unwrap();
    // Stopped means that the history is written, too.
    let past = observer.history(&name()).await.unwrap();
    let told: Vec<_> = past.iter().map(|one| (one.epoch, one.id.as_str(), one.ended.as_deref())).collect();
    assert_eq!(told, [(epochs[0], "a", Some("deadline")), (epochs[1], "a", Some("released"))]);
    assert!(past.iter().all(|one| one.until.is_some_and(|until| until >= one.since)));
}

#[tokio::test]
async fn the_end_of_a_leadership_is_not_overwritten_by_its_late_beginning() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set(Op::Remember, Rule::Hang);
    let election = builder.start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    puppet.log.until("called remember", 1).await;
    puppet.set_next(Op::Remember, Rule::Pass);
    let stopping = tokio::spawn(async move { election.stop().await });
    puppet.log.until("answered remember", 1).await;
    assert!(!stopping.is_finished(), "stopped means that the history is written, too");
    puppet.free_oldest(Op::Remember);
    puppet.log.until("answered remember", 2).await;
    soon(stopping).await.unwrap().unwrap();
    let past = connect(&store).history(&name()).await.unwrap();
    assert_eq!(past[0].ended.as_deref(), Some("released"));
}
