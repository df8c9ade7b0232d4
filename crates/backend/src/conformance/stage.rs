//! The stage of a case: an election of its own, and candidates with connections of their own.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether_core::{
    Bid, Boot, Candidate, CandidateId, Clock, ElectionName, Grant, Incarnation, Outcome, ReleaseOptions, Rng,
    Seen, Wall,
};

use tokio::task::JoinHandle;

use super::Harness;
use super::case::{Stop, ensure};
use crate::faults::Faults;
use crate::{Backend, Capabilities};

/// Where a case is played.
pub(super) struct Stage {
    pub(super) harness: Arc<dyn Harness>,
    pub(super) on: ElectionName,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ttl: Duration,
    pub(super) slack: Duration,
    pub(super) can: Capabilities,
    seed: u64,
    drawn: AtomicU64,
}

impl Stage {
    pub(super) fn set(harness: &Arc<dyn Harness>, can: Capabilities, case: &str, seed: u64) -> Stage {
        let name = format!("conformance-{:08x}-{}", seed >> 32, case.replace(' ', "-"));
        Stage {
            harness: Arc::clone(harness),
            on: ElectionName::new(name).expect("the suite's names are well-formed"),
            clock: harness.clock(),
            ttl: harness.ttl(),
            slack: harness.slack(),
            can,
            seed,
            drawn: AtomicU64::new(0),
        }
    }

    /// A ttl that outlasts a story with many calls; where all candidates share one, that one.
    pub(super) fn long_ttl(&self) -> Duration {
        if self.can.ttl_visible { 5 * self.ttl } else { self.ttl }
    }

    /// A candidate of this id with a connection of its own.
    pub(super) async fn candidate(&self, id: &str) -> Result<Actor, Stop> {
        self.candidate_by(id, Arc::clone(&self.clock)).await
    }

    /// The same on a machine whose clock is this one.
    pub(super) async fn candidate_by(&self, id: &str, clock: Arc<dyn Clock>) -> Result<Actor, Stop> {
        let backend = self.harness.connect(Arc::clone(&clock)).await?;
        Ok(self.actor(id, backend, clock))
    }

    /// A candidate whose connection misbehaves on demand.
    pub(super) async fn faulty(&self, id: &str) -> Result<(Actor, Faults), Stop> {
        let faults = Faults::new();
        let backend = self.harness.connect_faulty(Arc::clone(&self.clock), faults.clone()).await?;
        Ok((self.actor(id, backend, Arc::clone(&self.clock)), faults))
    }

    /// A candidate on a connection that is there already.
    pub(super) fn actor(&self, id: &str, backend: Arc<dyn Backend>, clock: Arc<dyn Clock>) -> Actor {
        let who = Candidate {
            id: CandidateId::new(id).expect("the suite's ids are well-formed"),
            incarnation: self.incarnation(),
        };
        Actor {
            backend,
            clock,
            on: self.on.clone(),
            bid: Bid::new(who, self.ttl, Boot::default()),
            slack: self.slack,
        }
    }

    /// One that no other candidate of this run has.
    pub(super) fn incarnation(&self) -> Incarnation {
        let mut rng = Rng::new(self.seed.wrapping_add(self.drawn.fetch_add(1, Ordering::Relaxed)));
        Incarnation::from_bits(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()))
    }

    /// Another election of this case.
    pub(super) fn election(&self, suffix: impl std::fmt::Display) -> ElectionName {
        ElectionName::new(format!("{}-{suffix}", self.on)).expect("the suite's names are well-formed")
    }

    /// Part of names that are this run's alone.
    pub(super) fn nonce(&self) -> String {
        format!("{:08x}", self.seed >> 32)
    }

    /// Removes the record behind everybody's back.
    pub(super) async fn delete(&self) -> Result<(), Stop> {
        match self.harness.delete(&self.on).await? {
            true => Ok(()),
            false => Err(Stop::skipped("the harness cannot remove a record")),
        }
    }

    /// The outcome of something that has to happen promptly.
    pub(super) async fn promptly<T>(&self, what: &str, event: impl Future<Output = T>) -> Result<T, Stop> {
        let bound = self.slack;
        let overdue = |_| Stop::failed(format!("{what}: not within {bound:?}"));
        tokio::time::timeout(bound, event).await.map_err(overdue)
    }
}

/// A claim under way.
pub(super) type Claiming = JoinHandle<Outcome<Grant>>;

/// A candidate with its connection and its bid.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) on: ElectionName,
    pub(super) bid: Bid,
    slack: Duration,
}

impl Actor {
    /// The same candidate in another election.
    pub(super) fn in_election(&self, on: &ElectionName) -> Actor {
        Actor { on: on.clone(), ..self.clone() }
    }

    pub(super) async fn claim(&self) -> Outcome<Grant> {
        let bid = Bid { sent: self.clock.boot(), ..self.bid.clone() };
        self.backend.claim(&self.on, &bid).await
    }

    /// Claims in a task of its own.
    pub(super) fn spawn_claim(&self) -> Claiming {
        let actor = self.clone();
        tokio::spawn(async move { actor.claim().await })
    }

    /// Claims once, and has to get it.
    pub(super) async fn lead(&self) -> Result<Grant, Stop> {
        let grant = held(&format!("the claim of {}", self.bid.who.id), self.claim().await)?;
        ensure!(grant.incarnation == self.bid.who.incarnation, "the grant is of another incarnation");
        ensure!(grant.epoch > self.bid.floor, "{:?} is not above {:?}", grant.epoch, self.bid.floor);
        Ok(grant)
    }

    /// Leads although an earlier claim of its own may have been written: a denial by that one is followed by another claim.
    pub(super) async fn lead_over_own_claim(&self) -> Result<Grant, Stop> {
        match self.claim().await {
            Outcome::Done(grant) => Ok(grant),
            Outcome::Denied(_) | Outcome::Unknown(_) => self.lead().await,
            Outcome::Refused(error) => Err(error.into()),
        }
    }

    /// Leads and releases, so that there is a record: a store may take two writes to make one.
    pub(super) async fn lead_once(&self) -> Result<(), Stop> {
        let grant = self.lead().await?;
        self.release_done(&grant).await
    }

    /// Claims once, and must not get it.
    pub(super) async fn denied(&self) -> Result<Seen, Stop> {
        match self.claim().await {
            Outcome::Denied(seen) => Ok(seen),
            other => Err(Stop::failed(format!("{} was to be denied: {other:?}", self.bid.who.id))),
        }
    }

    /// Claims again and again until it is in; also says when the answer had come. Gives up at `by`.
    pub(super) async fn lead_by(&self, by: Boot) -> Result<(Grant, Boot), Stop> {
        loop {
            let outcome = self.claim().await;
            let now = self.clock.boot();
            match outcome {
                Outcome::Done(grant) => return Ok((grant, now)),
                Outcome::Refused(error) => return Err(error.into()),
                Outcome::Denied(_) | Outcome::Unknown(_) if now < by => {}
                other => {
                    return Err(Stop::failed(format!("{} is still kept out: {other:?}", self.bid.who.id)));
                }
            }
            // Often enough to notice a door that opens too early.
            tokio::time::sleep((self.bid.ttl / 25).max(Duration::from_millis(2))).await;
        }
    }

    /// Is denied once, and then [succeeds](Self::succeed) a leader who fell silent.
    pub(super) async fn take_over(&self, from: &Grant) -> Result<Grant, Stop> {
        self.denied().await?;
        self.succeed(from).await
    }

    /// Leads after a leader who fell silent: not before its grant has run out, and not much later.
    pub(super) async fn succeed(&self, from: &Grant) -> Result<Grant, Stop> {
        let by = self.clock.boot() + from.ttl + self.slack;
        let (grant, now) = self.lead_by(by).await?;
        let end = from.counted_from + from.ttl;
        ensure!(
            now >= end,
            "{} got in {:?} before the leader's ttl was over",
            self.bid.who.id,
            end.since(now)
        );
        ensure!(grant.epoch > from.epoch, "{:?} followed {:?}", grant.epoch, from.epoch);
        Ok(grant)
    }

    pub(super) async fn renew(&self, grant: &Grant) -> Outcome<Grant> {
        self.backend.renew(&self.on, grant, self.clock.boot()).await
    }

    /// Renews, and has to get it.
    pub(super) async fn keep(&self, grant: &Grant) -> Result<Grant, Stop> {
        let before = self.clock.boot();
        let new = held(&format!("the renewal of {}", self.bid.who.id), self.renew(grant).await)?;
        ensure!(new.epoch == grant.epoch, "a renewal changed {:?} to {:?}", grant.epoch, new.epoch);
        // A session's heartbeat that another election asked for a moment ago renews this one too, from when it left.
        let shared = self.backend.capabilities().session_bound && new.counted_from > grant.counted_from;
        ensure!(
            (new.counted_from >= before || shared) && new.counted_from <= self.clock.boot(),
            "a renewed grant counts from the start of its call"
        );
        Ok(new)
    }

    pub(super) async fn release(&self, grant: &Grant) -> Outcome<()> {
        self.release_as(grant, &ReleaseOptions::default()).await
    }

    pub(super) async fn release_as(&self, grant: &Grant, how: &ReleaseOptions) -> Outcome<()> {
        self.backend.release(&self.on, grant, how).await
    }

    /// Releases, and has to get it done.
    pub(super) async fn release_done(&self, grant: &Grant) -> Result<(), Stop> {
        held("the release", self.release(grant).await)
    }

    pub(super) async fn observe(&self) -> Result<Seen, Stop> {
        Ok(self.backend.observe(&self.on).await?)
    }
}

/// What has to have been done.
pub(super) fn held<T: Debug>(what: &str, outcome: Outcome<T>) -> Result<T, Stop> {
    match outcome {
        Outcome::Done(value) => Ok(value),
        other => Err(Stop::failed(format!("{what} was to be done: {other:?}"))),
    }
}

/// What must not have been done, for certain. A connection that has just died may need to be asked again.
pub(super) async fn certainly_not<T, F>(what: &str, mut call: impl FnMut() -> F) -> Result<(), Stop>
where
    T: Debug,
    F: Future<Output = Outcome<T>>,
{
    let mut last = None;
    for _ in 0..10 {
        match call().await {
            Outcome::Denied(_) | Outcome::Refused(_) => return Ok(()),
            Outcome::Done(value) => return Err(Stop::failed(format!("{what} was done: {value:?}"))),
            Outcome::Unknown(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(Stop::failed(format!("{what} stays unknown: {last:?}")))
}

/// Nobody knows how it ended.
pub(super) fn unknown<T: Debug>(what: &str, outcome: Outcome<T>) -> Result<(), Stop> {
    match outcome {
        Outcome::Unknown(_) => Ok(()),
        other => Err(Stop::failed(format!("{what} was to be unknown: {other:?}"))),
    }
}

/// Whether a release whose answer was held back is known to be done: a backend may find out by itself.
pub(super) fn released_after_all(what: &str, outcome: Outcome<()>) -> Result<bool, Stop> {
    match outcome {
        Outcome::Done(()) => Ok(true),
        Outcome::Unknown(_) => Ok(false),
        other => Err(Stop::failed(format!("{what} was to be unknown, or done: {other:?}"))),
    }
}

/// The clock of a machine that booted at another time and whose wall clock is wrong.
pub(super) struct OtherClock {
    pub(super) inner: Arc<dyn Clock>,
    pub(super) booted_earlier: Duration,
    pub(super) wall_ahead_seconds: i64,
}

impl Clock for OtherClock {
    fn boot(&self) -> Boot {
        self.inner.boot() + self.booted_earlier
    }

    fn wall(&self) -> Wall {
        Wall::from_unix_nanos(self.inner.wall().as_unix_nanos() + self.wall_ahead_seconds * 1_000_000_000)
    }
}
