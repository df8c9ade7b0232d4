//! What an election looks like from inside, and what a record looks like from outside.

use std::fmt;
use std::time::Duration;

use bellwether_core::{
    Boot, Candidate, CandidateId, ElectionName, Epoch, Incarnation, Proof, Seen, StateName,
};

use crate::connection::Connection;
use crate::time::Time;

/// Leading, standing by, or neither.
///
/// ```
/// assert_eq!(bellwether_election::Role::Primary.to_string(), "PRIMARY");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The leader.
    Primary,
    /// Standing by.
    Passive,
    /// Not taking part.
    Unknown,
}

impl Role {
    /// Leading.
    pub fn is_primary(self) -> bool {
        self == Role::Primary
    }

    /// Standing by.
    pub fn is_passive(self) -> bool {
        self == Role::Passive
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Primary => "PRIMARY",
            Role::Passive => "PASSIVE",
            Role::Unknown => "UNKNOWN",
        })
    }
}

/// How an election stands for this candidate.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// # let election = bellwether_election::Election::builder("reports").backend(backend).id("host-1").start().await?;
/// let status = election.status();
/// println!("{} is {} after {} claims", status.id, status.state.as_str(), status.attempts);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The election.
    pub election: ElectionName,
    /// This candidate's id.
    pub id: CandidateId,
    /// This start of it.
    pub incarnation: Incarnation,
    /// The state when this was taken. Leadership is better asked of [`Election::is_leader`](crate::Election::is_leader).
    pub state: StateName,
    /// The leader, as far as the store shows.
    pub leader: Option<CandidateId>,
    /// What is known about the life of the one who leads.
    pub leader_proof: Option<Proof>,
    /// The epoch of the present leadership, while leading.
    pub epoch: Option<Epoch>,
    /// The highest epoch seen in this election.
    pub highest_epoch: Epoch,
    /// When the leadership ends, unless renewed; while leading.
    pub deadline: Option<Boot>,
    /// When the store last confirmed anything, by the boot-time clock.
    pub last_success: Option<Boot>,
    /// When the state last changed, by the boot-time clock.
    pub last_transition: Option<Boot>,
    /// The last error.
    pub last_error: Option<bellwether_core::StoreError>,
    /// Why the store does not announce changes to this candidate, so that it notices a free lead late; `None` where it does, or where the
    /// store cannot tell. Asked when [`Election::status`](crate::Election::status) is called.
    pub unwatched: Option<bellwether_core::StoreError>,
    /// Whether the store answers.
    pub connection: Connection,
    /// Until when this candidate stays out after stepping down.
    pub cooldown_until: Option<Boot>,
    /// Until when nobody is elected, as far as the store shows: the election is paused.
    pub paused_until: Option<Boot>,
    /// Claims so far.
    pub attempts: u64,
    /// Leaderships so far.
    pub leaderships: u64,
}

impl Status {
    /// Whether the candidate takes part, and the store has answered once. A follower is as ready as a leader, and an outage of the store makes
    /// nobody unready.
    pub fn is_ready(&self) -> bool {
        self.state != StateName::Stopped && self.last_success.is_some()
    }

    pub(crate) fn new(election: &ElectionName, who: &Candidate) -> Status {
        Status {
            election: election.clone(),
            id: who.id.clone(),
            incarnation: who.incarnation,
            state: StateName::Stopped,
            leader: None,
            leader_proof: None,
            epoch: None,
            highest_epoch: Epoch::ZERO,
            deadline: None,
            last_success: None,
            last_transition: None,
            last_error: None,
            unwatched: None,
            connection: Connection::Unknown,
            cooldown_until: None,
            paused_until: None,
            attempts: 0,
            leaderships: 0,
        }
    }
}

/// A record as an observer sees it, judged by the observer's own clock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// let view = bellwether_election::Store::from(backend).observe(&"reports".parse()?).await?;
/// assert!(view.is_expired() && view.holder().is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LeaseView {
    seen: Seen,
    time: Time,
}

impl LeaseView {
    pub(crate) fn new(time: Time, seen: Seen) -> LeaseView {
        LeaseView { seen, time }
    }

    /// The holder's id; `None` when nobody holds it.
    pub fn holder(&self) -> Option<&CandidateId> {
        self.seen.holder.as_ref().map(|holder| &holder.id)
    }

    /// The epoch, where the store can tell.
    pub fn epoch(&self) -> Option<Epoch> {
        self.seen.epoch
    }

    /// Everything that was seen.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Held, and not expired by this observer's clock.
    pub fn is_valid(&self) -> bool {
        self.seen.leader().is_some() && !self.is_expired()
    }

    /// Not held, or unchanged for so long that a candidate here could take over.
    pub fn is_expired(&self) -> bool {
        self.seen.leader().is_none() || self.seen.free_at.is_some_and(|free_at| self.time.boot() >= free_at)
    }

    /// How long until a candidate here could take over, if no renewal comes; zero if it could now.
    pub fn time_until_expiry(&self) -> Duration {
        match (self.seen.leader(), self.seen.free_at) {
            (Some(_), Some(free_at)) => free_at.since(self.time.boot()),
            _ => Duration::ZERO,
        }
    }
}
