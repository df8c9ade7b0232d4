//! The right to act, for one epoch.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bellwether_backend::lock;
use bellwether_core::{Boot, Candidate, CandidateId, ElectionName, Epoch, Reason};
use tokio::sync::watch;

use crate::Error;
use crate::driver::{DriverCommand, DriverLink};
use crate::standing::{Standing, Standings};
use crate::time::Time;

/// The right to act, held for one epoch, and answering for that epoch only.
///
/// Cheap to clone. It ends for every clone at the same instant: when it is released or lost, and at the latest at its deadline,
/// even if this process was paused then.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// # let election = bellwether_election::Election::builder("reports").backend(backend).id("host-1").start().await?;
/// let leadership = election.wait_for_leadership().await?;
/// let work = async { /* … */ };
/// match leadership.run(work).await {
///     Ok(()) => println!("done under epoch {}", leadership.epoch()),
///     Err(over) => println!("stopped: {over}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Leadership(Arc<Term>);

/// The deadline of a leadership that has been ended.
const ENDED: Boot = Boot::from_nanos(0);

/// How a leadership ended.
///
/// ```
/// use bellwether_election::{Over, Reason};
///
/// assert!(Over::Released.is_planned());
/// assert_eq!(Over::Lost(Reason::Conflict).to_string(), "leadership lost: conflict");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Over {
    /// The leader gave it up.
    Released,
    /// It was lost.
    Lost(Reason),
    /// Its deadline passed.
    Expired,
}

impl Over {
    /// Whether the leader gave it up, by its own choice or on request: then its work may take as long to stop as the settings allow,
    /// and the record is renewed meanwhile.
    pub fn is_planned(self) -> bool {
        match self {
            Over::Released => true,
            Over::Lost(reason) => reason.is_planned(),
            Over::Expired => false,
        }
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Over::Released => f.write_str("leadership released"),
            Over::Lost(reason) => write!(f, "leadership lost: {}", reason.as_str()),
            Over::Expired => f.write_str("leadership lost: deadline"),
        }
    }
}

impl std::error::Error for Over {}

struct Term {
    election: ElectionName,
    candidate: Candidate,
    epoch: Epoch,
    /// Boot-time nanoseconds; 0 once over.
    deadline: AtomicU64,
    standing: watch::Sender<Standing>,
    time: Time,
    work: Mutex<Work>,
    driver: DriverLink,
}

#[derive(Default)]
struct Work {
    running: usize,
    over: Option<Over>,
}

impl Leadership {
    pub(crate) fn new(
        election: ElectionName,
        candidate: Candidate,
        epoch: Epoch,
        until: Boot,
        time: Time,
        driver: DriverLink,
    ) -> Leadership {
        Leadership(Arc::new(Term {
            election,
            candidate,
            epoch,
            deadline: AtomicU64::new(until.as_nanos()),
            standing: watch::Sender::new(Standing::Until(until)),
            time,
            work: Mutex::new(Work::default()),
            driver,
        }))
    }

    /// The fencing token: hand it to whatever the work writes to, and let that refuse smaller ones.
    pub fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    /// The election.
    pub fn election(&self) -> &ElectionName {
        &self.0.election
    }

    /// Who leads: this candidate.
    pub fn id(&self) -> &CandidateId {
        &self.0.candidate.id
    }

    /// Whether it still holds. No lock, no system call beyond reading the clock.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.time().boot() < self.deadline()
    }

    /// The fencing token, if it still holds; otherwise why not. For code that hands errors on.
    ///
    /// # Errors
    /// [`Error::NotLeader`] when it was released, [`Error::EpochMismatch`] when the record is of another leadership, and
    /// [`Error::LeaseExpired`] when it ended in any other way.
    pub fn check(&self) -> Result<Epoch, Error> {
        if self.is_valid() {
            return Ok(self.epoch());
        }
        let over = lock(&self.0.work).over;
        Err(match over {
            Some(Over::Released) => Error::NotLeader,
            Some(Over::Lost(Reason::Conflict | Reason::Validation)) => {
                Error::EpochMismatch { ours: self.epoch(), holder: None }
            }
            Some(Over::Lost(_) | Over::Expired) | None => Error::LeaseExpired,
        })
    }

    /// The time until the deadline, which each renewal moves; zero once over.
    pub fn remaining(&self) -> Duration {
        self.deadline().since(self.time().boot())
    }

    /// When it ends, unless it is renewed.
    pub fn deadline(&self) -> Boot {
        Boot::from_nanos(self.0.deadline.load(Ordering::Acquire))
    }

    /// Waits until it is over, at the latest until its deadline.
    pub async fn lost(&self) -> Over {
        let mut standing = self.standing();
        let mut timer = self.time().timer().ok();
        loop {
            let deadline = match standing.now() {
                Standing::Over { how, .. } => return how,
                Standing::Until(deadline) => deadline,
            };
            if self.time().boot() >= deadline {
                return Over::Expired;
            }
            tokio::select! {
                () = standing.changed() => {}
                () = self.time().until(timer.as_mut(), deadline) => {}
            }
        }
    }

    /// Follows every renewal and the end, for whatever enforces the deadline from outside this process.
    pub fn standing(&self) -> Standings {
        Standings::new(self.0.standing.subscribe())
    }

    /// Holds the release back for work that is not a future: it is written only when the guard has been dropped.
    ///
    /// Nothing stops that work when the leadership is over; whoever holds the guard sees to it, by the instant that
    /// [`standing`](Self::standing) then gives. A guard dropped by a panic ends the leadership.
    ///
    /// # Errors
    /// How the leadership ended, if it is over: then there must be no work.
    pub fn hold(&self) -> Result<WorkGuard, Over> {
        let mut work = lock(&self.0.work);
        if let Some(over) = work.over {
            return Err(over);
        }
        // The driver may not have got round to ending it.
        if !self.is_valid() {
            return Err(Over::Expired);
        }
        work.running += 1;
        Ok(WorkGuard(self.clone()))
    }

    /// Runs work for as long as this leadership lasts, and drops it the moment it is over.
    ///
    /// A release waits until the work has been dropped: there is no instant at which it still runs and somebody else
    /// may already lead. Work that blocks its thread cannot be dropped: it delays the release, and nothing stops it at the
    /// deadline. Work that panics ends the leadership.
    ///
    /// # Errors
    /// How the leadership ended, if it ended before the work did.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Over> {
        let _guard = self.hold()?;
        // Made after the guard, so dropped before it, also when unwinding.
        self.during(work).await
    }

    /// Polls `work` only while this leadership holds, and drops it when it is over.
    pub(crate) async fn during<F: Future>(&self, work: F) -> Result<F::Output, Over> {
        let mut work = pin!(work);
        let mut over = pin!(self.lost());
        poll_fn(|context| {
            if let Poll::Ready(over) = over.as_mut().poll(context) {
                return Poll::Ready(Err(over));
            }
            // A timer is heard when the runtime gets round to it, which after a pause may be many polls late. The
            // clock is not late.
            let deadline = self.deadline();
            if self.time().boot() < deadline {
                work.as_mut().poll(context).map(Ok)
            } else if deadline == ENDED {
                Poll::Pending
            } else {
                Poll::Ready(Err(Over::Expired))
            }
        })
        .await
    }

    pub(crate) fn extend(&self, until: Boot) {
        self.0.deadline.store(until.as_nanos(), Ordering::Release);
        self.0.standing.send_replace(Standing::Until(until));
    }

    /// It is over, and the work must be gone by then. True when no work is running. Said twice, the first way it
    /// ended and the earlier instant count.
    pub(crate) fn end(&self, how: Over, by: Boot) -> bool {
        self.0.deadline.store(ENDED.as_nanos(), Ordering::Release);
        let idle = {
            let mut work = lock(&self.0.work);
            work.over.get_or_insert(how);
            work.running == 0
        };
        self.0.standing.send_if_modified(|standing| {
            let before = *standing;
            *standing = match before {
                Standing::Until(_) => Standing::Over { how, by },
                Standing::Over { how, by: earlier } => Standing::Over { how, by: by.min(earlier) },
            };
            *standing != before
        });
        idle
    }

    pub(crate) fn time(&self) -> &Time {
        &self.0.time
    }

    /// It is over, and was renewed while its work stops: the work must be gone by then.
    pub(crate) fn extend_stop(&self, until: Boot) {
        self.0.standing.send_if_modified(|standing| match standing {
            Standing::Over { by, .. } if *by < until => {
                *by = until;
                true
            }
            _ => false,
        });
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Leadership({} {:?} as {}, {:?} left)",
            self.election(),
            self.epoch(),
            self.id(),
            self.remaining()
        )
    }
}

/// A piece of running work: the release of its leadership waits until it is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// # let election = bellwether_election::Election::builder("reports").backend(backend).id("host-1").start().await?;
/// let leadership = election.wait_for_leadership().await?;
/// if let Ok(guard) = leadership.hold() {
///     // … work that is not a future, such as a thread …
///     drop(guard);
/// }
/// # Ok(())
/// # }
/// ```
pub struct WorkGuard(Leadership);

impl Drop for WorkGuard {
    fn drop(&mut self) {
        let last = {
            let mut work = lock(&self.0.0.work);
            work.running -= 1;
            work.running == 0 && work.over.is_some()
        };
        // Without a driver nobody renews either: the deadline ends the leadership.
        let driver = &self.0.0.driver;
        if last {
            driver.tell(DriverCommand::WorkGone(self.0.epoch()));
        }
        if std::thread::panicking() {
            driver.tell(DriverCommand::Panicked(self.0.epoch()));
        }
    }
}

impl fmt::Debug for WorkGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkGuard of {:?}", self.0)
    }
}
