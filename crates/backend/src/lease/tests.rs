//! What a lease writes, and what it makes of what it finds. Time is a number here; nothing waits.
#![cfg(feature = "conformance")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bellwether_core::{Ask, CandidateId, Epoch, Holder, Pause, Wall};
use futures_util::{FutureExt, StreamExt, stream};

use super::*;
use crate::faults::{Fault, Faults, FaultyRegister, Op};
use crate::{Change, Changes, Memory as Cell, MemoryStore, Write};

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
        self.lease.renew(&on(), grant, self.clock.boot()).await
    }

    fn bid(&self, who: &str, start: u128) -> Bid {
        Bid::new(
            Candidate { id: id(who), incarnation: Incarnation::from_bits(start) },
            TTL,
            self.clock.boot(),
        )
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
        Outcome::Done(held) => held,
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
        if watched {
            stage.lease.follow(&on());
        }
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
async fn a_request_is_told_to_its_leader_alone_and_once_though_it_is_written_again() {
    let stage = Stage::new();
    let other = stage.other();
    let mut notices = [stage.lease.signals(), other.signals()];
    stage.lease.follow(&on());
    other.follow(&on());
    let grant = stage.lead().await;
    for told in [1, 0] {
        held(stage.other().request(&on(), &step_down(grant.epoch)).await);
        assert_eq!(requests(&mut notices[0]).len(), told);
        assert_eq!(requests(&mut notices[1]), []);
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
    held(stage.lease.release(&on(), &grant, &ReleaseOptions::default()).await);
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
        let outcome = stage.lease.release(&on(), &grant, &ReleaseOptions::default()).await;
        assert!(matches!(outcome, Outcome::Denied(_)), "{outcome:?}");
    }
}

/// A register that shows what it is told to, at whatever version, and says what it is told to say of it.
#[derive(Default)]
struct Shown {
    found: Mutex<Found<u64>>,
    life: Mutex<Option<Life>>,
    takes_away: AtomicBool,
    retired: Mutex<Vec<Incarnation>>,
    announces: Mutex<Vec<Change<u64>>>,
    hangs: AtomicBool,
    loads: AtomicU64,
}

impl Shown {
    fn show(&self, record: Record, version: u64) {
        *self.found.lock().unwrap() = Some((record, version));
    }
}

impl Register for Shown {
    type Version = u64;

    fn name(&self) -> &'static str {
        "shown"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER
    }

    async fn load(&self, _: &ElectionName) -> Result<Found<u64>, StoreError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(self.found.lock().unwrap().clone())
    }

    async fn write(&self, _: &ElectionName, _: Option<&u64>, _: &Record) -> Write<u64> {
        Write::Conflict
    }

    fn follow(&self, _: &ElectionName) {}

    fn unfollow(&self, _: &ElectionName) {}

    fn changes(&self) -> Changes<u64> {
        let announced = std::mem::take(&mut *self.announces.lock().unwrap());
        Box::pin(stream::iter(announced).chain(stream::pending()))
    }

    async fn epoch(
        &self,
        _: &ElectionName,
        _: Option<(&Record, &u64)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        Ok(least)
    }

    fn unwatched(&self, _: &ElectionName) -> Option<StoreError> {
        Some(StoreError::new(ErrorKind::Unavailable, "shown", "nobody tells"))
    }

    fn life(&self, _: &ElectionName, _: &Record) -> Life {
        self.life.lock().unwrap().unwrap_or(Life::Unknown)
    }

    fn takes_away(&self, _: &ElectionName) -> bool {
        self.takes_away.load(Ordering::SeqCst)
    }

    fn retire(&self, _: &ElectionName, who: Incarnation) {
        self.retired.lock().unwrap().push(who);
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        Ok(Vec::new())
    }

    #[cfg(unix)]
    fn crash_proof(&self, _: &ElectionName, _: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        vec![std::fs::File::open("/dev/null").unwrap().into()]
    }
}

/// A follower at 100 s, which has just seen `b` lead.
async fn following() -> (Lease<Shown>, Arc<Hands>) {
    let clock = Arc::new(Hands::default());
    clock.set(100);
    let lease = Lease::new(Shown::default(), clock.clone());
    lease.register().show(led_by_b(5), 5);
    let seen = lease.observe(&on()).await.unwrap();
    assert_eq!((seen.proof, seen.free_at), (Proof::Record, Some(Boot::from_nanos(110_000_000_000))));
    (lease, clock)
}

fn led_by_b(beat: u64) -> Record {
    let holder = Some(Holder { id: id("b"), incarnation: Some(Incarnation::from_bits(2)) });
    Record { holder, epoch: Epoch::new(7), ttl: Some(TTL), beat, ..Record::default() }
}

fn free_at(seen: &Seen) -> Option<u64> {
    seen.free_at.map(|at| at.as_nanos() / 1_000_000_000)
}

#[tokio::test]
async fn a_read_of_an_older_version_that_nothing_overtook_is_a_store_that_fell_back() {
    let (lease, clock) = following().await;
    clock.set(104);
    lease.register().show(led_by_b(4), 4);
    let seen = lease.observe(&on()).await.unwrap();
    assert_eq!(free_at(&seen), Some(114));
}

#[tokio::test]
async fn the_wait_for_a_vanished_record_begins_anew_unless_the_store_took_it_away() {
    for (takes_away, until) in [(false, 114), (true, 110)] {
        let (lease, clock) = following().await;
        clock.set(104);
        *lease.register().found.lock().unwrap() = None;
        lease.register().takes_away.store(takes_away, Ordering::SeqCst);
        let seen = lease.observe(&on()).await.unwrap();
        assert_eq!(free_at(&seen), Some(until), "takes away: {takes_away}");
    }
}

#[tokio::test]
async fn what_the_store_knows_of_the_life_of_a_holder_counts_and_of_nobody_else() {
    let proofs = [(Life::Unknown, Proof::Record), (Life::Alive, Proof::Alive), (Life::Dead, Proof::Dead)];
    for (life, proof) in proofs {
        let (lease, _) = following().await;
        *lease.register().life.lock().unwrap() = Some(life);
        assert_eq!(lease.observe(&on()).await.unwrap().proof, proof);
        lease.register().show(Record { holder: None, ..led_by_b(6) }, 6);
        assert_eq!(lease.observe(&on()).await.unwrap().proof, Proof::Released);
    }
}

#[tokio::test]
async fn what_only_the_register_knows_is_handed_through() {
    let (lease, _) = following().await;
    let who = Candidate { id: id("a"), incarnation: Incarnation::from_bits(1) };
    assert_eq!(lease.name(), "shown");
    assert!(lease.unwatched(&on()).is_some_and(|error| error.to_string().contains("nobody tells")));
    #[cfg(unix)]
    assert_eq!(lease.crash_proof(&on(), &who).len(), 1);
    lease.retire(&on(), &who);
    assert_eq!(*lease.register().retired.lock().unwrap(), [who.incarnation]);
}

#[tokio::test]
async fn of_a_candidate_that_retired_nothing_is_remembered() {
    let stage = Stage::new();
    stage.lead().await;
    stage.lease.retire(&on(), &stage.bid("a", 1).who);
    let memory = stage.lease.shared.memory();
    assert!(memory.held.is_empty() && memory.beats.is_empty() && memory.claims.is_empty());
}

#[tokio::test]
async fn a_record_that_was_told_is_not_read_and_one_that_nobody_follows_is_not_taken_in() {
    let lease = Lease::new(Shown::default(), Arc::new(Hands::default()));
    let unfollowed = ElectionName::new("other").unwrap();
    let told = |on: &ElectionName| Change::Now(on.clone(), Some((led_by_b(5), 5)));
    let gone = Change::Now(unfollowed.clone(), None);
    *lease.register().announces.lock().unwrap() = vec![told(&on()), told(&unfollowed), gone];
    lease.follow(&on());
    let heard: Vec<_> = std::iter::from_fn({
        let mut notices = lease.signals();
        move || notices.next().now_or_never().flatten()
    })
    .map(|notice| notice.election)
    .collect();
    assert_eq!(heard, [Some(on())]);
    assert_eq!(lease.register().loads.load(Ordering::SeqCst), 0);
    assert!(lease.shared.memory().observations.last(&unfollowed).is_none());
}

#[tokio::test]
async fn reads_under_way_at_once_are_bounded() {
    let lease = Lease::new(Shown::default(), Arc::new(Hands::default()));
    lease.register().hangs.store(true, Ordering::SeqCst);
    for n in 0..2 * signals::LOOKS_MAX {
        let on = ElectionName::new(format!("e{n}")).unwrap();
        lease.follow(&on);
        lease.register().announces.lock().unwrap().push(Change::Look(on));
    }
    assert!(lease.signals().next().now_or_never().is_none());
    assert_eq!(lease.register().loads.load(Ordering::SeqCst), signals::LOOKS_MAX as u64);
}

/// Found by the simulator: a pause that was written and seemed to conflict was written again, and began anew for those alone who had not
/// seen the first.
#[tokio::test]
async fn a_pause_that_is_there_already_is_not_written_again_and_another_one_is() {
    let stage = Stage::new();
    let grant = stage.lead().await;
    let pause = |wall| Pause::new(TTL, None, Some(Wall::from_unix_nanos(wall))).unwrap();
    for (wall, writes) in [(1_234, 1), (1_234, 0), (5_678, 1)] {
        let before = stage.store.writes();
        held(stage.other().pause(&on(), Some(&pause(wall))).await);
        assert_eq!(stage.store.writes() - before, writes, "{wall}");
    }
    held(stage.renew(&grant).await);
    assert_eq!(stage.record().await.paused, Some(pause(5_678)));
    stage.clock.set(104);
    held(stage.renew(&grant).await);
    assert_eq!(stage.record().await.paused.unwrap().span(), TTL - Duration::from_secs(4));
    let before = stage.store.writes();
    held(stage.other().pause(&on(), Some(&pause(5_678))).await);
    assert_eq!(stage.store.writes(), before, "also where less is left of it by now");
}
