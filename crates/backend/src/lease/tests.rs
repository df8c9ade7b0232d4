//! What a lease writes, and what it makes of what it finds. Time is a number here; nothing waits.

use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_core::{Ask, CandidateId, Epoch, Holder, Wall};
use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::faults::{Fault, Faults, FaultyRegister, Op};
use crate::{Memory as Cell, MemoryStore};

const TTL: Duration = Duration::from_secs(10);

/// A clock that stands still until it is set.
#[derive(Default)]
struct Hands(AtomicU64);

impl Hands {
    fn set(&self, seconds: u64) {
        self.0.store(seconds * 1_000_000_000, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn boot(&self) -> Boot {
        Boot::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Wall {
        Wall::from_unix_nanos(1_000_000_000_000 + self.boot().as_nanos() as i64)
    }
}

/// A store, and one process that uses it.
struct Stage {
    store: MemoryStore,
    clock: Arc<Hands>,
    faults: Faults,
    lease: Lease<FaultyRegister<Cell>>,
}

impl Stage {
    fn new() -> Stage {
        let (store, clock, faults) = (MemoryStore::default(), Arc::new(Hands::default()), Faults::new());
        clock.set(100);
        let register = FaultyRegister::new(store.register(), faults.clone());
        let lease = Lease::new(register, clock.clone());
        Stage { store, clock, faults, lease }
    }

    /// Another process.
    fn other(&self) -> Lease<Cell> {
        self.store.connect(self.clock.clone())
    }

    async fn record(&self) -> Record {
        self.store.register().load(&on()).await.unwrap().expect("there is a record").0
    }

    async fn lead(&self) -> Grant {
        held(self.lease.claim(&on(), &self.bid("a", 1)).await)
    }

    async fn renew(&self, grant: &Grant) -> Outcome<Grant> {
        self.lease.renew(self.clock.boot(), &[(on(), grant.clone())]).await.remove(0)
    }

    fn bid(&self, who: &str, start: u128) -> Bid {
        Bid {
            who: Candidate { id: id(who), incarnation: Incarnation::from_bits(start) },
            ttl: TTL,
            floor: Epoch::ZERO,
            priority: 0,
            metadata: Default::default(),
            cooldown: None,
            danger_reclaim: false,
            sent: self.clock.boot(),
        }
    }
}

fn on() -> ElectionName {
    ElectionName::new("e").unwrap()
}

fn id(text: &str) -> CandidateId {
    CandidateId::new(text).unwrap()
}

fn held<T: std::fmt::Debug>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Held(held) => held,
        other => panic!("was to be held: {other:?}"),
    }
}

fn step_down(epoch: Epoch) -> Request {
    Request { epoch, what: Ask::StepDown { to: None } }
}

/// The requests that the driver has been told of so far.
fn requests(notices: &mut Notices) -> Vec<Request> {
    let mut told = Vec::new();
    while let Some(Some(notice)) = notices.next().now_or_never() {
        if let bellwether_core::Signal::Requested(request) = notice.signal {
            told.push(request);
        }
    }
    told
}

#[tokio::test]
async fn a_request_is_told_once_and_the_next_renewal_takes_it_out_of_the_record() {
    for watched in [false, true] {
        let stage = Stage::new();
        stage.lease.follow(&on(), watched);
        let mut notices = stage.lease.signals();
        let grant = stage.lead().await;
        assert_eq!(requests(&mut notices), []);
        held(stage.other().request(&on(), &step_down(grant.epoch)).await);
        if watched {
            assert_eq!(requests(&mut notices), [step_down(grant.epoch)]);
        }
        held(stage.renew(&grant).await);
        assert_eq!(requests(&mut notices).len(), usize::from(!watched));
        assert_eq!(stage.record().await.request, None, "watched: {watched}");
        held(stage.renew(&grant).await);
        assert_eq!(requests(&mut notices), []);
    }
}

#[tokio::test]
async fn a_request_for_another_leadership_is_not_told() {
    let stage = Stage::new();
    let mut notices = stage.lease.signals();
    let grant = stage.lead().await;
    let request = Some(step_down(grant.epoch.next().unwrap()));
    stage.store.put(&on(), Record { request, ..stage.record().await });
    held(stage.renew(&grant).await);
    assert_eq!(requests(&mut notices), []);
}

#[tokio::test]
async fn a_release_leaves_of_its_holder_only_what_readers_want_to_know() {
    let stage = Stage::new();
    let grant = stage.lead().await;
    held(stage.other().request(&on(), &step_down(grant.epoch)).await);
    let before = stage.record().await;
    stage.clock.set(105);
    held(stage.lease.release(&on(), &grant, &Parting::default()).await);
    let after = stage.record().await;
    assert!(after.beat > before.beat);
    let renewed = Some(stage.clock.wall());
    let expected = Record { holder: None, beat: after.beat, renewed, request: None, ..before };
    assert_eq!(after, expected);
}

#[tokio::test]
async fn a_release_that_failed_once_is_not_confirmed_by_what_somebody_else_left_there() {
    let theirs = |holder| Record { holder, epoch: Epoch::new(9), ttl: Some(TTL), ..Record::default() };
    for found in [theirs(None), theirs(Some(Holder { id: id("b"), incarnation: None }))] {
        let stage = Stage::new();
        let grant = stage.lead().await;
        stage.store.put(&on(), found);
        stage.faults.next(Op::Write, Fault::Fails(ErrorKind::TimedOut));
        let outcome = stage.lease.release(&on(), &grant, &Parting::default()).await;
        assert!(matches!(outcome, Outcome::Denied(_)), "{outcome:?}");
    }
}
