//! Heartbeats: one statement on each session proves every election of this process.
//!
//! ```text
//!  a beat:    left ──▶ A and B are asked ──▶ both answered
//!  a renewal: ── sent ≤ left ── counts from `left`: it waited for this beat
//!             ── left < sent, and the beat is young and newer than what the grant counts from ── counts from `left` too
//!             ── else ── waits for the next beat
//! ```
//!
//! So elections that were taken at different instants fall into step: whoever is answered by a beat that already left counts
//! from it, its next renewal is due when that of all the others is, and from then on all share one. Safe, because a grant counts
//! from the instant before its beat left, never from when somebody asked. Live, because only a beat that moves the grant's
//! deadline forward will do, and the next renewal comes so much sooner.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::Heartbeat;
use bellwether_core::{Boot, Error, Signal};
use tokio::sync::oneshot;

use crate::Keys;
use crate::errors::{Failure, unavailable};
use crate::link::{Link, locks_of};
use crate::postgres::{Inner, lock};

/// What one heartbeat showed: the locks of either session.
#[derive(Clone)]
pub(crate) struct Beat {
    /// The instant before it left.
    pub(crate) left: Boot,
    pub(crate) a: Result<Arc<HashSet<Keys>>, Error>,
    pub(crate) b: Result<Arc<HashSet<Keys>>, Error>,
}

impl Beat {
    /// What either session said of one election.
    pub(crate) fn of(&self, keys: Keys) -> Heartbeat {
        let has = |locks: &Result<Arc<HashSet<Keys>>, Error>, wanted: Keys| {
            locks.as_ref().ok().map(|locks| locks.contains(&wanted))
        };
        Heartbeat { lock: has(&self.a, keys), presence: has(&self.b, keys.presence()) }
    }
}

/// Those who wait for a heartbeat, and the last one.
#[derive(Default)]
pub(crate) struct Beats(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// For one that leaves after they asked.
    waiting: Vec<oneshot::Sender<Beat>>,
    /// The one under way, and who waits for it.
    under_way: Option<(Boot, Vec<oneshot::Sender<Beat>>)>,
    last: Option<Beat>,
    beating: bool,
}

impl Beats {
    /// Something happened that the last one does not know of.
    pub(crate) fn forget(&self) {
        let mut queue = lock(&self.0);
        queue.last = None;
        // Whoever waits for it hears of it; nobody joins any more.
        if let Some((left, _)) = &mut queue.under_way {
            *left = Boot::default();
        }
    }

    /// The last one, or the one under way, if it left no earlier than that.
    fn since(&self, earliest: Boot) -> Option<Known> {
        let mut queue = lock(&self.0);
        if let Some((left, waiting)) = &mut queue.under_way
            && *left >= earliest
        {
            let (sender, answer) = oneshot::channel();
            waiting.push(sender);
            return Some(Known::Coming(answer));
        }
        queue.last.clone().filter(|beat| beat.left >= earliest).map(Known::There)
    }
}

enum Known {
    There(Beat),
    Coming(oneshot::Receiver<Beat>),
}

impl Inner {
    /// The last heartbeat, if it left no earlier than that, or the one under way; nothing is asked of the server.
    pub(crate) async fn beat_since(&self, link: &Link, earliest: Boot) -> Option<Beat> {
        match link.beats.since(earliest)? {
            Known::There(beat) => Some(beat),
            Known::Coming(answer) => answer.await.ok(),
        }
    }

    /// The next heartbeat, shared with everybody who asks before it leaves.
    pub(crate) async fn beat(self: &Arc<Self>, link: &Arc<Link>) -> Beat {
        let (sender, answer) = oneshot::channel();
        let start = {
            let mut queue = lock(&link.beats.0);
            queue.waiting.push(sender);
            !std::mem::replace(&mut queue.beating, true)
        };
        if start {
            tokio::spawn(Arc::clone(self).beat_on(Arc::clone(link)));
        }
        let lost = || Err(unavailable("the heartbeat ended in a panic"));
        answer.await.unwrap_or_else(|_| Beat { left: self.clock.boot(), a: lost(), b: lost() })
    }

    async fn beat_on(self: Arc<Self>, link: Arc<Link>) {
        loop {
            {
                let mut queue = lock(&link.beats.0);
                if queue.waiting.is_empty() {
                    queue.beating = false;
                    return;
                }
                let waiting = std::mem::take(&mut queue.waiting);
                queue.under_way = Some((self.clock.boot(), waiting));
            }
            let beat = self.beat_once(&link).await;
            let waiting = {
                let mut queue = lock(&link.beats.0);
                let (left, waiting) = queue.under_way.take().unwrap_or_default();
                // Only what both sessions answered is worth remembering, and only if nothing happened meanwhile.
                let whole = beat.a.is_ok() && beat.b.is_ok() && left != Boot::default();
                queue.last = whole.then(|| beat.clone());
                waiting
            };
            for waiter in waiting {
                let _ = waiter.send(beat.clone());
            }
        }
    }

    async fn beat_once(&self, link: &Link) -> Beat {
        let longest = link.slots.every().iter().map(|(_, slot)| slot.ttl()).max();
        let ttl = longest.unwrap_or(Duration::from_secs(1));
        let b = link.b();
        let left = self.clock.boot();
        let both = async { tokio::join!(link.a.row(ttl, &link.a.beat, &[]), b.row(ttl, &b.beat, &[])) };
        tokio::pin!(both);
        let (on_a, on_b) = tokio::select! {
            rows = &mut both => rows,
            () = tokio::time::sleep(ttl / 4) => {
                self.news.all(Signal::Doubt);
                both.await
            }
        };
        let read = |row: Result<_, Failure>, session| {
            let locks = row.map_err(Failure::error).and_then(|row| locks_of(&row, session))?;
            Ok(Arc::new(locks.into_iter().collect()))
        };
        Beat { left, a: read(on_a, &link.a.session), b: read(on_b, &b.session) }
    }
}
