//! What the driver writes and handles read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bellwether_backend::lock;
use bellwether_core::{Boot, Candidate, ElectionName};
use tokio::sync::watch;

use crate::callbacks::Callbacks;
use crate::event::Event;
use crate::leadership::Leadership;
use crate::status::Status;
use crate::subscription::EventQueue;
use crate::time::Time;

/// One election as its handles see it. The driver is the only writer.
pub(crate) struct Shared {
    pub(crate) election: ElectionName,
    pub(crate) time: Time,
    /// Belief ends at this boot-time nanosecond; 0 while not leading. Alone, so that `is_leader` reads one word and
    /// one clock.
    deadline: AtomicU64,
    pub(crate) snapshot: watch::Sender<Snapshot>,
    subscribers: Mutex<Vec<Arc<EventQueue>>>,
    pub(crate) callbacks: Arc<Callbacks>,
    /// What the last start is measured by, if anybody wants to know. The driver does not ask here.
    #[cfg(feature = "metrics")]
    pub(crate) measured: Mutex<std::sync::Weak<crate::observer::Measured>>,
}

/// A consistent view of an election.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) status: Status,
    /// The present leadership; ends by itself.
    pub(crate) leadership: Option<Leadership>,
    /// Why it stopped by itself.
    pub(crate) failure: Option<bellwether_core::StoreError>,
    /// Taking part, or about to.
    pub(crate) running: bool,
    /// On its way out.
    pub(crate) stopping: bool,
    /// Work, or its demotion hook, has been told to stop and has not ended.
    pub(crate) work_ending: bool,
}

impl Snapshot {
    /// Of a candidate that does not take part.
    pub(crate) fn new(status: Status) -> Snapshot {
        Snapshot {
            status,
            leadership: None,
            failure: None,
            running: false,
            stopping: false,
            work_ending: false,
        }
    }
}

impl Shared {
    pub(crate) fn new(
        election: ElectionName,
        candidate: Candidate,
        time: Time,
        callbacks: Callbacks,
    ) -> Shared {
        let status = Status::new(&election, &candidate);
        let snapshot = Snapshot::new(status);
        Shared {
            election,
            time,
            deadline: AtomicU64::new(0),
            snapshot: watch::Sender::new(snapshot),
            subscribers: Mutex::new(Vec::new()),
            callbacks: Arc::new(callbacks),
            #[cfg(feature = "metrics")]
            measured: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn is_leader(&self) -> bool {
        // Acquire pairs with the driver's Release: whoever sees the deadline sees the epoch that goes with it.
        self.time.boot().as_nanos() < self.deadline.load(Ordering::Acquire)
    }

    /// The time until the deadline; `None` while not leading.
    #[cfg(feature = "metrics")]
    pub(crate) fn remaining(&self) -> Option<std::time::Duration> {
        let deadline = Boot::from_nanos(self.deadline.load(Ordering::Acquire));
        let now = self.time.boot();
        (now < deadline).then(|| deadline.since(now))
    }

    pub(crate) fn believe(&self, until: Boot) {
        self.deadline.store(until.as_nanos(), Ordering::Release);
    }

    pub(crate) fn disbelieve(&self) {
        self.deadline.store(0, Ordering::Release);
    }

    pub(crate) fn subscribe(&self, queue: Arc<EventQueue>) {
        lock(&self.subscribers).push(queue);
    }

    pub(crate) fn publish(&self, event: &Event) {
        lock(&self.subscribers).retain(|queue| queue.put(event.clone()));
    }

    /// A renewal, which is made an event only where somebody asked for it.
    pub(crate) fn publish_renewal(&self, event: impl Fn() -> Event) {
        lock(&self.subscribers).retain(|queue| !queue.wants_renewals() || queue.put(event()));
    }

    /// There is no driver any more.
    pub(crate) fn orphaned(&self) {
        self.disbelieve();
        self.snapshot.send_modify(|snapshot| {
            snapshot.running = false;
            snapshot.stopping = false;
            snapshot.work_ending = false;
            snapshot.leadership = None;
        });
        self.close();
    }

    /// No more events will come.
    pub(crate) fn close(&self) {
        for queue in lock(&self.subscribers).drain(..) {
            queue.close();
        }
    }
}
