//! Two processes with one incarnation: a virtual machine that was restored from one snapshot twice. At most one goes on.

mod bidding;

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::faults::{Fault, Faults, FaultyRegister, Op};
use bellwether_backend::{Backend, Lease, Memory, MemoryStore, Register};
use bellwether_core::{Ask, Bid, Clock, ErrorKind, Grant, Outcome, ReleaseOptions, Request, Rng};
use bellwether_deadman::SystemClock;
use bidding::on;

const TTL: Duration = Duration::from_millis(300);

fn bid() -> Bid {
    bidding::bid("a", 1, TTL)
}

async fn lead(lease: &impl Backend) -> Grant {
    match lease.claim(&on(), &bid()).await {
        Outcome::Done(grant) => grant,
        other => panic!("was to lead: {other:?}"),
    }
}

async fn renew<R: Register>(lease: &Lease<R>, grant: &Grant) -> Outcome<Grant> {
    lease.renew(&on(), grant, SystemClock.boot()).await
}

fn cloned(lease: &Lease<Memory>, store: &MemoryStore) -> Lease<Memory> {
    lease.cloned(store.register(), Arc::new(SystemClock))
}

#[tokio::test]
async fn of_two_clones_only_the_first_to_renew_goes_on() {
    let store = MemoryStore::default();
    let one = store.connect(Arc::new(SystemClock));
    let grant = lead(&one).await;
    let two = cloned(&one, &store);
    for round in 0..50 {
        assert!(matches!(renew(&one, &grant).await, Outcome::Done(_)), "round {round}");
        let Outcome::Denied(seen) = renew(&two, &grant).await else { panic!("both renewed, round {round}") };
        assert!(!seen.is_held_by(&bid().who) && seen.epoch == Some(grant.epoch), "{seen:?}");
    }
}

#[tokio::test]
async fn the_clone_that_lost_takes_nothing_from_the_other_and_waits_for_its_ttl() {
    let store = MemoryStore::default();
    let one = store.connect(Arc::new(SystemClock));
    let grant = lead(&one).await;
    let two = cloned(&one, &store);
    assert!(matches!(renew(&two, &grant).await, Outcome::Done(_)));
    let from = SystemClock.boot();
    assert!(matches!(renew(&one, &grant).await, Outcome::Denied(_)));
    let writes = store.writes();
    assert!(matches!(one.release(&on(), &grant, &ReleaseOptions::default()).await, Outcome::Denied(_)));
    let Outcome::Denied(seen) = one.claim(&on(), &bid()).await else { panic!("took the other's record") };
    assert!(seen.free_at.is_some_and(|at| at >= from + TTL), "{seen:?}");
    assert_eq!(store.writes(), writes);
    tokio::time::sleep(TTL).await;
    let later = lead(&one).await;
    assert!(later.epoch > grant.epoch);
    assert!(matches!(renew(&two, &grant).await, Outcome::Denied(_)), "the other went on beside it");
}

#[tokio::test]
async fn a_clone_that_lost_takes_no_request_for_a_sign_of_life() {
    let store = MemoryStore::default();
    let one = store.connect(Arc::new(SystemClock));
    let grant = lead(&one).await;
    let two = cloned(&one, &store);
    assert!(matches!(renew(&one, &grant).await, Outcome::Done(_)));
    let Outcome::Denied(lost) = renew(&two, &grant).await else { panic!("both renewed") };
    let request = Request { epoch: grant.epoch, what: Ask::StepDown { to: None } };
    let asked = store.connect(Arc::new(SystemClock)).request(&on(), &request).await;
    assert!(matches!(asked, Outcome::Done(())), "{asked:?}");
    assert_eq!(two.observe(&on()).await.unwrap().free_at, lost.free_at, "it waits for longer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clones_that_renew_at_the_same_instant_do_not_both_go_on() {
    for round in 0..100 {
        let store = MemoryStore::default();
        let one = store.connect(Arc::new(SystemClock));
        let grant = lead(&one).await;
        let clones = [cloned(&one, &store), one];
        let renewals = clones.map(|clone| tokio::spawn(goes_on(clone, grant.clone())));
        let went_on = futures_util::future::join_all(renewals).await;
        let went_on = went_on.into_iter().filter(|went_on| *went_on.as_ref().unwrap()).count();
        assert_eq!(went_on, 1, "round {round}");
    }
}

/// Two clones that write at the same nanosecond cannot be told apart; by a later renewal they can.
async fn goes_on(clone: Lease<Memory>, grant: Grant) -> bool {
    for _ in 0..8 {
        if !matches!(renew(&clone, &grant).await, Outcome::Done(_)) {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

/// Calls that get lost, arrive twice or are answered with an error confuse neither clone about what it wrote itself.
#[tokio::test]
async fn exactly_one_clone_goes_on_whatever_becomes_of_its_calls() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let store = MemoryStore::default();
        let faults = [Faults::new(), Faults::new()];
        let register = |n: usize| FaultyRegister::new(store.register(), faults[n].clone());
        let one = Lease::new(register(0), Arc::new(SystemClock));
        let grant = lead(&one).await;
        let two = one.cloned(register(1), Arc::new(SystemClock));
        let clones = [one, two];
        let mut lost = [false, false];
        for step in 0..30 {
            let n = rng.below(2) as usize;
            if lost[n] {
                continue;
            }
            let fault = match rng.below(5) {
                0 => Fault::LosesAnswer,
                1 => Fault::Twice,
                2 => Fault::Fails(ErrorKind::TimedOut),
                _ => Fault::None,
            };
            faults[n].next(Op::Write, fault);
            lost[n] = matches!(renew(&clones[n], &grant).await, Outcome::Denied(_));
            assert!(lost != [true, true], "seed {seed}, step {step}: neither goes on");
        }
        faults.iter().for_each(Faults::heal);
        for (n, clone) in clones.iter().enumerate().filter(|(n, _)| !lost[*n]).collect::<Vec<_>>() {
            lost[n] = !matches!(renew(clone, &grant).await, Outcome::Done(_));
        }
        assert_eq!(lost.iter().filter(|lost| **lost).count(), 1, "seed {seed}: {lost:?}");
    }
}

#[tokio::test]
async fn a_clone_from_before_the_first_claim_does_not_take_the_record_for_a_leftover_of_its_own() {
    let store = MemoryStore::default();
    let one = store.connect(Arc::new(SystemClock));
    let two = cloned(&one, &store);
    two.follow(&on());
    let grant = lead(&one).await;
    two.observe(&on()).await.unwrap();
    assert!(matches!(two.claim(&on(), &bid()).await, Outcome::Denied(_)), "took the other's record");
    assert!(matches!(renew(&one, &grant).await, Outcome::Done(_)));
}

#[tokio::test]
async fn a_renewal_that_landed_without_an_answer_is_still_ones_own() {
    let store = MemoryStore::default();
    let faults = Faults::new();
    let register = FaultyRegister::new(store.register(), faults.clone());
    let lease = Lease::new(register, Arc::new(SystemClock));
    let grant = lead(&lease).await;
    faults.next(Op::Write, Fault::LosesAnswer);
    assert!(matches!(renew(&lease, &grant).await, Outcome::Unknown(_)));
    assert!(matches!(renew(&lease, &grant).await, Outcome::Done(_)));
}
