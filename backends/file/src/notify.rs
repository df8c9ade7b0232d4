//! Waking up when something happens in an election's directory, instead of looking again and again.
//!
//! Owns one kernel notification queue for all elections of a process. A notice says only "look": it may come twice, late, or for
//! nothing. A lost one is announced by [`FileNotice::Anything`]. Assumes a tokio runtime with time and I/O. Leaves to the
//! consumer to read the record, to prove a death ([`death_shows`]), and to make a directory again that has gone.
//!
//! Where the kernel's queue is not available (its limits are used up, or another system), and for each
//! directory that cannot be watched, notices degrade to [`FileNotice::Anything`] every second, with a warning: elections
//! stay correct, and only take up to a second longer to notice a change.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bellwether_core::{ElectionName, Incarnation, StoreError};
use tokio::time::{Interval, MissedTickBehavior};

#[cfg(target_os = "linux")]
pub(crate) use crate::inotify as queue;

/// How often everything is looked at where the kernel does not tell.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The kernel reports the closing of a file just *before* it drops the lock on it, so a check at the report may come
/// too early by some microseconds, and by more when the machine is busy. In milliseconds, 88 together.
const RECHECK_AFTER_MS: [u64; 7] = [0, 1, 2, 5, 10, 20, 50];

/// Something happened: look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileNotice {
    /// A record of the lease was written or removed.
    Record(ElectionName),
    /// This incarnation closed its sign of life: it may be dead.
    Closed(ElectionName, Incarnation),
    /// The directory was removed or moved away, and is no longer watched: make it again, watch it again, look.
    Gone(ElectionName),
    /// Anything may have happened in any election.
    Anything,
}

/// Adds and removes directories; cheap to clone.
#[derive(Clone, Debug)]
pub struct DirectoryWatches {
    shared: Arc<Sources>,
}

/// What happens in the watched directories.
#[derive(Debug)]
pub struct FileNotices {
    shared: Arc<Sources>,
    waiting: VecDeque<FileNotice>,
    /// Only where something must be polled.
    tick: Option<Interval>,
}

#[derive(Debug)]
pub(crate) struct Sources {
    /// `None`: the kernel's queue is not available, so everything is polled.
    queue: Option<queue::KernelQueue>,
    /// Wakes the reader when polling becomes necessary.
    poll: tokio::sync::watch::Sender<bool>,
}

/// To be called in a tokio runtime; never fails, see the module's documentation.
pub fn notices() -> (DirectoryWatches, FileNotices) {
    let queue = queue::KernelQueue::new()
        .inspect_err(|error| tracing::warn!(%error, "no kernel notification: looking every second instead"))
        .ok();
    with(queue)
}

/// Notices by polling only, as where the kernel has no queue to give.
pub fn polled_notices() -> (DirectoryWatches, FileNotices) {
    with(None)
}

fn with(queue: Option<queue::KernelQueue>) -> (DirectoryWatches, FileNotices) {
    let poll = tokio::sync::watch::Sender::new(queue.is_none());
    let shared = Arc::new(Sources { queue, poll });
    (
        DirectoryWatches { shared: shared.clone() },
        FileNotices { shared, waiting: VecDeque::new(), tick: None },
    )
}

impl DirectoryWatches {
    /// Watches the directory of an election from now on; look once after this, for what happened before. The error
    /// means that the directory is missing or unreadable, not that the kernel's limits are reached.
    pub fn watch(&self, election: &ElectionName, dir: &Path) -> Result<(), StoreError> {
        let Some(queue) = &self.shared.queue else { return Ok(()) };
        let watched = queue.watch(election, dir)?;
        if !watched && !self.shared.poll.send_replace(true) {
            tracing::warn!(
                %election,
                "the kernel's limit of watches is reached: looking every second instead; raise fs.inotify.max_user_watches"
            );
        }
        Ok(())
    }

    /// No more notices for this election, but for those on their way.
    pub fn unwatch(&self, election: &ElectionName) {
        if let Some(queue) = &self.shared.queue {
            queue.unwatch(election);
        }
    }

    /// Whether some or all directories are only looked at every second.
    pub fn is_degraded(&self) -> bool {
        *self.shared.poll.borrow()
    }
}

impl FileNotices {
    /// Waits for the next one. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> FileNotice {
        let mut degraded = self.shared.poll.subscribe();
        loop {
            if let Some(notice) = self.waiting.pop_front() {
                return notice;
            }
            if *degraded.borrow_and_update() && self.tick.is_none() {
                let mut tick = tokio::time::interval(POLL_INTERVAL);
                tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
                self.tick = Some(tick);
            }
            let polling = self.tick.is_some();
            let (tick, waiting) = (&mut self.tick, &mut self.waiting);
            let timer = async {
                match tick {
                    Some(tick) => drop(tick.tick().await),
                    None => drop(degraded.changed().await),
                }
            };
            let queue = async {
                match &self.shared.queue {
                    Some(queue) => queue.read(waiting).await,
                    None => std::future::pending().await,
                }
            };
            // The timer is asked first: a busy queue must not starve the directories that only it covers.
            if first_of(pin!(timer), pin!(queue)).await && polling {
                return FileNotice::Anything;
            }
        }
    }
}

/// Asks `is_dead` again for a short while, as long as the kernel may need from its report to the free lock.
///
/// The check makes a few system calls on a local file system, and so it is made in place.
pub async fn death_shows(is_dead: impl Fn() -> bool) -> bool {
    for millis in RECHECK_AFTER_MS {
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        if is_dead() {
            return true;
        }
    }
    false
}

/// Until one of the two is ready; true for the first.
async fn first_of(mut one: Pin<&mut impl Future>, mut other: Pin<&mut impl Future>) -> bool {
    std::future::poll_fn(|context| {
        if one.as_mut().poll(context).is_ready() {
            Poll::Ready(true)
        } else {
            other.as_mut().poll(context).map(|_| false)
        }
    })
    .await
}

/// Where there is no kernel notification that we use: everything is polled.
#[cfg(not(target_os = "linux"))]
pub(crate) mod queue {
    use std::collections::VecDeque;
    use std::path::Path;

    use bellwether_core::{ElectionName, ErrorKind, StoreError};

    use super::FileNotice;
    use crate::errors::BACKEND;

    #[derive(Debug)]
    pub(crate) struct KernelQueue;

    impl KernelQueue {
        pub(crate) fn new() -> Result<KernelQueue, StoreError> {
            Err(StoreError::new(
                ErrorKind::Unsupported,
                BACKEND,
                "this system has no notification that is used here",
            ))
        }

        pub(crate) fn watch(&self, _: &ElectionName, _: &Path) -> Result<bool, StoreError> {
            Ok(false)
        }

        pub(crate) fn unwatch(&self, _: &ElectionName) {}

        pub(crate) async fn read(&self, _: &mut VecDeque<FileNotice>) {
            std::future::pending().await
        }
    }
}
