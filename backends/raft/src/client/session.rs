//! A session of this process: its numbers, its keepalives, its end.
//!
//! One keepalive renews everything that the session leads. Renewals that come while one is under way share the next.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{Coalesce, Unanswered, lock};
use bellwether_core::{Boot, ElectionName, Epoch, StoreError};
use tokio::sync::Notify;

use super::link::Link;
use crate::command::{Sequence, SessionId};
use crate::errors::{senseless, unavailable};
use crate::limits::IN_FLIGHT_MAX;
use crate::protocol::{Led, Question, Reply};

/// How much of its ttl a keepalive may be old and still answer a renewal. Half of a renewal interval: of two groups of elections that
/// renew at different instants one is always followed by the other within that, so all end in one group.
const YOUNG: u32 = 6;
/// For a call that belongs to a session, at the shortest and longest; in between it is a third of the ttl.
const CALL_LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// An open session, as far as this process knows.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) ttl: Duration,
    numbers: Mutex<Numbers>,
    /// A number was given back.
    freed: Notify,
    beats: Coalesce<(), Beat, BeatFailure>,
    last: Mutex<Option<Beat>>,
    is_over: AtomicBool,
}

/// The answer to a keepalive.
#[derive(Clone, Debug)]
pub(crate) struct Beat {
    /// The instant before it left.
    pub(crate) left: Boot,
    /// What the session leads; `None` where there is no such session.
    led: Option<Arc<HashSet<Led>>>,
}

impl Beat {
    /// Whether the session has ended.
    pub(crate) fn is_end(&self) -> bool {
        self.led.is_none()
    }

    /// Whether the session leads that election under that epoch.
    pub(crate) fn proves(&self, on: &ElectionName, epoch: Epoch) -> bool {
        self.led.as_ref().is_some_and(|led| led.contains(&Led { on: on.clone(), epoch }))
    }

    /// Everything that the session leads.
    pub(crate) fn led(&self) -> impl Iterator<Item = &Led> {
        self.led.iter().flat_map(|led| led.iter())
    }
}

impl Session {
    pub(crate) fn new(id: SessionId, ttl: Duration) -> Session {
        Session {
            id,
            ttl,
            numbers: Mutex::new(Numbers { last: 0, in_flight: BTreeSet::new() }),
            freed: Notify::new(),
            beats: Coalesce::default(),
            last: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// For a call in this session.
    pub(crate) fn limit(&self) -> Duration {
        (self.ttl / 3).clamp(CALL_LIMITS.0, CALL_LIMITS.1)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The cluster says that there is no such session. True for the first who says so.
    pub(crate) fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::AcqRel)
    }

    /// A number for a command, when the cluster has room to remember one more answer.
    pub(crate) async fn number(self: &Arc<Self>) -> Number {
        loop {
            // Before the look, or a number that is given back in between is missed.
            let freed = self.freed.notified();
            if let Some(sequence) = lock(&self.numbers).take() {
                return Number { session: Arc::clone(self), sequence };
            }
            freed.await;
        }
    }

    /// A keepalive that left after this call, or the last one if it left after `earliest` and proves this leadership.
    pub(crate) async fn renewed(
        &self,
        link: &Link,
        (on, epoch): (&ElectionName, Epoch),
        counted_from: Boot,
        sent: Boot,
    ) -> Result<Beat, StoreError> {
        let earliest = (counted_from + Duration::from_nanos(1)).max(sent - self.ttl / YOUNG);
        let last = lock(&self.last).clone();
        match last.filter(|beat| beat.left >= earliest && beat.proves(on, epoch) && !self.is_over()) {
            Some(young) => Ok(young),
            None => self.keep_alive(link).await,
        }
    }

    /// A keepalive that left after this call.
    pub(crate) async fn keep_alive(&self, link: &Link) -> Result<Beat, StoreError> {
        let beat = async |all: Vec<()>| {
            let beat = self.beat(link).await.map_err(BeatFailure)?;
            Ok(vec![beat; all.len()])
        };
        self.beats.ask((), None, tokio::time::sleep, beat).await.map_err(|BeatFailure(error)| error)
    }

    async fn beat(&self, link: &Link) -> Result<Beat, StoreError> {
        let (left, reply) = link.ask(&Question::KeepAlive(self.id), self.limit()).await?;
        let led = match reply {
            Reply::Kept { led } => Some(Arc::new(led.into_iter().collect())),
            Reply::Ended => None,
            _ => return Err(senseless()),
        };
        let beat = Beat { left, led };
        *lock(&self.last) = Some(beat.clone());
        Ok(beat)
    }
}

/// Why a keepalive had no answer.
#[derive(Clone)]
struct BeatFailure(StoreError);

impl From<Unanswered> for BeatFailure {
    fn from(_: Unanswered) -> BeatFailure {
        BeatFailure(unavailable("the keepalive was given up by whoever sent it"))
    }
}

/// The numbers of a session's commands.
struct Numbers {
    last: u64,
    in_flight: BTreeSet<u64>,
}

impl Numbers {
    fn take(&mut self) -> Option<Sequence> {
        let next = self.last + 1;
        let lowest = self.in_flight.first().copied().unwrap_or(next);
        (next - lowest < IN_FLIGHT_MAX).then(|| {
            self.last = next;
            self.in_flight.insert(next);
            Sequence(next)
        })
    }
}

/// The number of a command that is in flight, until it is dropped: nobody sends the command again then.
pub(crate) struct Number {
    pub(crate) session: Arc<Session>,
    pub(crate) sequence: Sequence,
}

impl Number {
    /// The lowest number in flight.
    pub(crate) fn answered_below(&self) -> Sequence {
        let numbers = lock(&self.session.numbers);
        Sequence(numbers.in_flight.first().copied().unwrap_or(self.sequence.0))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        lock(&self.session.numbers).in_flight.remove(&self.sequence.0);
        self.session.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_waits_while_the_cluster_has_no_room_for_its_answer() {
        let session = Arc::new(Session::new(SessionId(7), Duration::from_secs(3)));
        let mut all = Vec::new();
        for _ in 0..IN_FLIGHT_MAX {
            all.push(session.number().await);
        }
        assert!(lock(&session.numbers).take().is_none());
        // The last ones being over makes no room: the cluster forgets answers from the first on.
        all.truncate(1);
        assert!(lock(&session.numbers).take().is_none());
        let waiting = tokio::spawn({
            let session = Arc::clone(&session);
            async move { session.number().await }
        });
        tokio::task::yield_now().await;
        all.clear();
        let next = waiting.await.unwrap();
        assert_eq!(next.sequence, Sequence(IN_FLIGHT_MAX + 1));
        assert_eq!(next.answered_below(), next.sequence);
    }
}
