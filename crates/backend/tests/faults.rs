//! The wrappers do what they say, and the lease above them stays right.

mod bidding;

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::faults::{Fault, Faults, FaultyRegister, Gate, Op};
use bellwether_backend::{
    Backend, Capabilities, Change, Changes, Found, Lease, MemoryStore, Record, Register, Write,
};
use bellwether_core::{
    Bid, Clock, ElectionName, Epoch, ErrorKind, Outcome, ReleaseOptions, Signal, StoreError,
};
use bellwether_deadman::SystemClock;
use bidding::on;
use futures_util::{StreamExt, stream};

fn bid(id: &str, start: u128) -> Bid {
    bidding::bid(id, start, Duration::from_secs(10))
}

fn faulty(store: &MemoryStore) -> (FaultyRegister<bellwether_backend::Memory>, Faults) {
    let faults = Faults::new();
    (FaultyRegister::new(store.register(), faults.clone()), faults)
}

#[tokio::test]
async fn each_fault_does_what_it_says_to_the_store_and_to_the_caller() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    let record = Record::default();

    faults.next(Op::Write, Fault::Fails(ErrorKind::Unavailable));
    assert!(matches!(register.write(&on(), None, &record).await, Write::Unknown(_)));
    assert_eq!(store.writes(), 0);

    faults.next(Op::Write, Fault::Fails(ErrorKind::PermissionDenied));
    assert!(matches!(register.write(&on(), None, &record).await, Write::Refused(_)));
    assert_eq!(store.writes(), 0);

    faults.next(Op::Write, Fault::LosesAnswer);
    assert!(matches!(register.write(&on(), None, &record).await, Write::Unknown(_)));
    assert_eq!(store.writes(), 1);

    faults.next(Op::Write, Fault::Twice);
    assert!(matches!(register.write(&on(), Some(&1), &record).await, Write::Conflict));
    assert_eq!(store.writes(), 2);
    assert_eq!(faults.calls(Op::Write), 4);
}

#[tokio::test]
async fn planned_faults_come_in_order_and_then_the_standing_one_until_it_is_healed() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    faults.always(Op::Read, Fault::Fails(ErrorKind::Unavailable));
    faults.next(Op::Read, Fault::None);
    faults.next(Op::Read, Fault::Fails(ErrorKind::Exhausted));
    assert!(register.load(&on()).await.is_ok());
    assert_eq!(register.load(&on()).await.unwrap_err().kind(), ErrorKind::Exhausted);
    for _ in 0..3 {
        assert_eq!(register.load(&on()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    faults.heal();
    assert!(register.load(&on()).await.is_ok());
}

#[tokio::test]
async fn a_gate_holds_an_answer_or_a_delivery_until_it_is_opened() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    let register = Arc::new(register);

    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsAnswer(gate.clone()));
    let call = tokio::spawn({
        let register = Arc::clone(&register);
        async move { register.write(&on(), None, &Record::default()).await }
    });
    gate.reached().await;
    assert_eq!(store.writes(), 1);
    assert!(!call.is_finished());
    gate.open();
    assert!(matches!(call.await.unwrap(), Write::Done(1)));

    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsDelivery(gate.clone()));
    assert!(matches!(register.write(&on(), Some(&1), &Record::default()).await, Write::Unknown(_)));
    gate.reached().await;
    assert_eq!(store.writes(), 1);
    gate.open();
    gate.done().await;
    assert_eq!(store.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_nobody_opens_opens_by_itself() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    faults.next(Op::Write, Fault::HoldsAnswer(Gate::new()));
    assert!(matches!(register.write(&on(), None, &Record::default()).await, Write::Done(_)));
}

#[tokio::test]
async fn a_claim_whose_look_fails_is_unknown_and_writes_nothing() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    let lease = Lease::new(register, Arc::new(SystemClock));
    faults.next(Op::Read, Fault::Fails(ErrorKind::Unavailable));
    assert!(matches!(lease.claim(&on(), &bid("a", 1)).await, Outcome::Unknown(_)));
    assert_eq!(store.writes(), 0);
    assert!(matches!(lease.claim(&on(), &bid("a", 1)).await, Outcome::Done(_)));
}

/// The check used to count as done before the look that belongs to it, and an error there ended the cooldown.
#[tokio::test]
async fn an_error_on_the_first_claim_does_not_end_the_cooldown() {
    let (store, minute) = (MemoryStore::default(), Duration::from_secs(60));
    let before = store.connect(Arc::new(SystemClock));
    let Outcome::Done(grant) = before.claim(&on(), &bid("a", 1)).await else { panic!("not held") };
    let options = ReleaseOptions { reserve_for: None, cooldown: Some(minute) };
    assert!(matches!(before.release(&on(), &grant, &options).await, Outcome::Done(())));

    let (register, faults) = faulty(&store);
    let after = Lease::new(register, Arc::new(SystemClock));
    let again = Bid { cooldown: Some(minute), ..bid("a", 2) };
    faults.next(Op::Read, Fault::Fails(ErrorKind::Unavailable));
    assert!(matches!(after.claim(&on(), &again).await, Outcome::Unknown(_)));
    let Outcome::Denied(seen) = after.claim(&on(), &again).await else {
        panic!("the cooldown was forgotten")
    };
    assert!(seen.cooldown.is_some());
}

/// The id used to be taken from what the first try remembered, which a failed try forgets.
#[tokio::test]
async fn a_release_that_succeeds_at_the_second_try_still_leaves_its_cooldown() {
    let (store, minute) = (MemoryStore::default(), Duration::from_secs(60));
    let (register, faults) = faulty(&store);
    let lease = Lease::new(register, Arc::new(SystemClock));
    let Outcome::Done(grant) = lease.claim(&on(), &bid("a", 1)).await else { panic!("not held") };
    let options = ReleaseOptions { reserve_for: None, cooldown: Some(minute) };
    faults.always(Op::Write, Fault::Fails(ErrorKind::Unavailable));
    assert!(matches!(lease.release(&on(), &grant, &options).await, Outcome::Unknown(_)));
    faults.always(Op::Write, Fault::None);
    assert!(matches!(lease.release(&on(), &grant, &options).await, Outcome::Done(())));

    let again = Bid { cooldown: Some(minute), ..bid("a", 2) };
    let other = store.connect(Arc::new(SystemClock));
    let Outcome::Denied(seen) = other.claim(&on(), &again).await else { panic!("no cooldown was left") };
    assert!(seen.cooldown.is_some());
}

/// Found by the simulator: the hung claim took the record in its own name for a leftover, replaced it under a new
/// epoch, and the core gave that back: the record was free while the candidate led.
#[tokio::test]
async fn a_claim_that_hung_while_a_later_one_won_leaves_that_ones_record_alone() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    let lease = Arc::new(Lease::new(register, Arc::new(SystemClock)));
    let gate = Gate::new();
    faults.next(Op::Read, Fault::HoldsAnswer(gate.clone()));
    let hung = tokio::spawn({
        let (lease, bid) = (Arc::clone(&lease), bid("a", 1));
        async move { lease.claim(&on(), &bid).await }
    });
    gate.reached().await;
    let Outcome::Done(grant) = lease.claim(&on(), &bid("a", 1)).await else { panic!("not held") };
    gate.open();
    let Outcome::Denied(seen) = hung.await.unwrap() else { panic!("not denied") };
    assert_eq!(seen.epoch, Some(grant.epoch));
    assert!(matches!(lease.renew(&on(), &grant, SystemClock.boot()).await, Outcome::Done(_)));
}

/// Found by the simulator: with the reads inside the stream, the news that the connection is back queued behind one
/// that hung, and claims were judged by what had been seen in the store's other life.
#[tokio::test]
async fn that_the_connection_is_back_does_not_wait_for_a_read_that_hangs() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    let register = Announcing { register, changes: vec![Change::Look(on()), Change::Restored] };
    let lease = Lease::new(register, Arc::new(SystemClock));
    lease.follow(&on());
    let gate = Gate::new();
    faults.next(Op::Read, Fault::HoldsAnswer(gate.clone()));
    let mut signals = lease.signals();
    let first = signals.next().await.unwrap();
    assert!(matches!(first.signal, Signal::Restored), "{first:?}");
    gate.open();
    let second = signals.next().await.unwrap();
    assert!(matches!(second.signal, Signal::Changed(_)), "{second:?}");
}

/// Found by the simulator: a store that was restored from a backup counts up again, and a renewal at the version that its leader had
/// read before the restore replaced the record of another leader, which had got the same version.
#[tokio::test]
async fn after_a_reconnect_a_leader_reads_its_record_before_it_renews() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    let lease = Lease::new(Announcing { register, changes: vec![Change::Restored] }, Arc::new(SystemClock));
    let Outcome::Done(grant) = lease.claim(&on(), &bid("a", 1)).await else { panic!("not held") };
    let reads = faults.calls(Op::Read);
    assert!(matches!(lease.renew(&on(), &grant, SystemClock.boot()).await, Outcome::Done(_)));
    assert_eq!(faults.calls(Op::Read), reads, "a renewal needs no read");
    let mut signals = lease.signals();
    assert!(matches!(signals.next().await.unwrap().signal, Signal::Restored));
    assert!(matches!(lease.renew(&on(), &grant, SystemClock.boot()).await, Outcome::Done(_)));
    assert_eq!(faults.calls(Op::Read), reads + 1);
}

/// A register that announces just this.
struct Announcing<R: Register> {
    register: R,
    changes: Vec<Change<R::Version>>,
}

impl<R: Register> Register for Announcing<R> {
    type Version = R::Version;

    fn name(&self) -> &'static str {
        self.register.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.register.capabilities()
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<R::Version>, StoreError> {
        self.register.load(on).await
    }

    async fn write(&self, on: &ElectionName, at: Option<&R::Version>, new: &Record) -> Write<R::Version> {
        self.register.write(on, at, new).await
    }

    fn follow(&self, on: &ElectionName) {
        self.register.follow(on);
    }

    fn unfollow(&self, on: &ElectionName) {
        self.register.unfollow(on);
    }

    fn changes(&self) -> Changes<R::Version> {
        Box::pin(stream::iter(self.changes.clone()).chain(stream::pending()))
    }

    async fn epoch(
        &self,
        on: &ElectionName,
        replaced: Option<(&Record, &R::Version)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        self.register.epoch(on, replaced, least).await
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.register.elections().await
    }
}

#[tokio::test]
async fn a_claim_that_lost_against_what_is_free_again_is_made_once_more() {
    let store = MemoryStore::default();
    let (register, faults) = faulty(&store);
    let a = Arc::new(Lease::new(register, Arc::new(SystemClock)));
    let b = Lease::new(store.register(), Arc::new(SystemClock));
    let gate = Gate::new();
    faults.next(Op::Read, Fault::HoldsAnswer(gate.clone()));
    let claim = tokio::spawn({
        let a = Arc::clone(&a);
        async move { a.claim(&on(), &bid("a", 1)).await }
    });
    gate.reached().await;
    // It has read that nobody is there. Now somebody comes, and goes.
    let Outcome::Done(grant) = b.claim(&on(), &bid("b", 2)).await else { panic!("nobody is in the way") };
    assert!(matches!(b.release(&on(), &grant, &ReleaseOptions::default()).await, Outcome::Done(())));
    gate.open();
    let Outcome::Done(won) = claim.await.unwrap() else { panic!("nobody is in the way any more") };
    assert!(won.epoch > grant.epoch);
    assert_eq!((faults.calls(Op::Read), faults.calls(Op::Write)), (2, 2));
}

#[tokio::test]
async fn a_release_without_an_answer_is_made_once_more_and_never_twice() {
    for (fault, writes) in [(Fault::Fails(ErrorKind::TimedOut), 2), (Fault::LosesAnswer, 2)] {
        let store = MemoryStore::default();
        let (register, faults) = faulty(&store);
        let a = Lease::new(register, Arc::new(SystemClock));
        let b = Lease::new(store.register(), Arc::new(SystemClock));
        let Outcome::Done(grant) = a.claim(&on(), &bid("a", 1)).await else { panic!("nobody is in the way") };
        faults.next(Op::Write, fault.clone());
        let released = a.release(&on(), &grant, &ReleaseOptions::default()).await;
        assert!(matches!(released, Outcome::Done(())), "{fault:?}: {released:?}");
        assert_eq!(store.writes(), writes, "{fault:?}");
        assert!(matches!(b.claim(&on(), &bid("b", 2)).await, Outcome::Done(_)), "{fault:?}");
    }
}
