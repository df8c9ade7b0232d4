//! Waiting to lead, and working while leading.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_election::{Error, Over};
use common::*;

#[tokio::test]
async fn waiting_has_a_limit_and_can_be_given_up() {
    let store = MemoryStore::default();
    let leader = candidate(&store, "a").start().await.unwrap();
    soon(leader.wait_for_leadership()).await.unwrap();
    let follower = candidate(&store, "b").start().await.unwrap();
    let waited = follower.wait_for_leadership_within(ms(20)).await;
    assert!(matches!(waited, Err(Error::TimedOut)));
    let waiting = tokio::spawn({
        let follower = follower.clone();
        async move { follower.wait_for_leadership().await }
    });
    tokio::task::yield_now().await;
    waiting.abort();
    assert!(waiting.await.is_err());
    // Given up waiting is not given up standing.
    soon(leader.stop()).await.unwrap();
    soon(follower.wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn whoever_waits_is_told_when_it_is_stopped() {
    let store = MemoryStore::default();
    let leader = candidate(&store, "a").start().await.unwrap();
    soon(leader.wait_for_leadership()).await.unwrap();
    let follower = candidate(&store, "b").start().await.unwrap();
    let waiting = tokio::spawn({
        let follower = follower.clone();
        async move { follower.wait_for_leadership().await }
    });
    tokio::task::yield_now().await;
    soon(follower.stop()).await.unwrap();
    assert!(matches!(soon(waiting).await.unwrap(), Err(Error::NotStarted)));
}

#[tokio::test]
async fn whoever_waits_is_told_when_the_store_refuses_for_good() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    puppet.set_all(Rule::Fail);
    let election = soon(builder.start()).await.unwrap();
    puppet.set_all(Rule::Refuse);
    let waited = soon(election.wait_for_leadership()).await;
    assert!(matches!(waited, Err(Error::Backend(error)) if !error.is_retryable()));
}

#[tokio::test]
async fn work_is_dropped_at_the_loss_before_the_release_and_runs_again() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.retry_interval(ms(1)).start().await.unwrap();
    let log = puppet.log.clone();
    let leading = tokio::spawn({
        let election = election.clone();
        async move {
            let mut turn = 0;
            let work = move |leadership: bellwether_election::Leadership| {
                turn += 1;
                let log = log.clone();
                async move {
                    let _dropped = log.on_drop(&format!("work {turn} dropped"));
                    log.put(format!("work {turn} began"));
                    if turn < 3 {
                        std::future::pending::<()>().await;
                    }
                    (turn, leadership.epoch())
                }
            };
            election.lead(work).await
        }
    });
    for turn in 1..3 {
        puppet.log.until(&format!("work {turn} began"), 1).await;
        soon(election.step_down()).await.unwrap();
    }
    let (turn, epoch) = soon(leading).await.unwrap().unwrap();
    assert_eq!((turn, Some(epoch)), (3, election.leadership().map(|now| now.epoch())));
    let lines = puppet.log.lines();
    let order: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("work") || line.starts_with("called release"))
        .map(|line| {
            line.rsplit_once(' ')
                .map_or("", |(start, end)| if start == "called release" { "release" } else { end })
        })
        .collect();
    assert_eq!(order, ["began", "dropped", "release", "began", "dropped", "release", "began", "dropped"]);
    assert!(election.is_leader(), "work that is done leaves the leadership as it is");
}

#[tokio::test]
async fn leading_ends_with_an_error_when_it_is_stopped() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    let log = Log::default();
    let leading = tokio::spawn({
        let (election, log) = (election.clone(), log.clone());
        async move {
            let work = |_| async {
                log.put("began");
                std::future::pending::<()>().await;
            };
            election.lead(work).await
        }
    });
    log.until("began", 1).await;
    soon(election.stop()).await.unwrap();
    assert!(matches!(soon(leading).await.unwrap(), Err(Error::NotStarted)));
}

#[tokio::test]
async fn a_leadership_that_is_over_runs_nothing() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    assert_eq!(leadership.run(async { 7 }).await, Ok(7));
    soon(election.step_down()).await.unwrap();
    let polled = leadership.run(async { panic!("polled") }).await;
    assert_eq!(polled, Err::<(), _>(Over::Released));
    assert_eq!(leadership.remaining(), ms(0));
}

#[tokio::test]
async fn a_leadership_answers_for_its_own_epoch_only() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").retry_interval(ms(1)).start().await.unwrap();
    let old = soon(election.wait_for_leadership()).await.unwrap();
    soon(election.step_down()).await.unwrap();
    let new = soon(election.wait_for_leadership()).await.unwrap();
    assert!(election.is_leader() && new.is_valid() && new.epoch() > old.epoch());
    assert!(!old.is_valid());
    assert_eq!(soon(old.lost()).await, Over::Released);
    assert!(old.run(async {}).await.is_err());
    assert_eq!((new.id().as_str(), new.election().as_str()), ("a", NAME));
}

#[tokio::test]
async fn work_may_be_dropped_by_its_owner_and_the_leadership_stays() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let work = tokio::time::timeout(ms(5), leadership.run(std::future::pending::<()>())).await;
    assert!(work.is_err() && leadership.is_valid() && election.is_leader());
    // And nothing is left behind that a release would wait for.
    soon(election.step_down()).await.unwrap();
}
