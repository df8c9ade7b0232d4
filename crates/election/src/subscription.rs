//! Subscribers to events, none of whom can hold anybody up.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bellwether_backend::lock;
use bellwether_core::StateName;
use futures_util::Stream;

use crate::event::{Event, What};

/// Most events that wait for one subscriber. Beyond it the middle is replaced by one `missed` event: the oldest tell
/// how it began, the newest how it stands.
pub const EVENTS_WAITING_MAX: usize = 1_024;

/// Events of one election, in order, from the moment of subscribing.
///
/// A [`Stream`] that ends when the last handle of the election is gone and the candidate has stopped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// let mut builder = bellwether_election::Election::builder("reports").backend(backend).id("host-1");
/// let mut events = builder.subscribe();
/// let election = builder.start().await?;
/// if let Some(event) = events.next().await {
///     println!("{}", event.to_json_line());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Events(Arc<EventQueue>);

#[derive(Debug, Default)]
pub(crate) struct EventQueue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    oldest: VecDeque<Event>,
    missed: u64,
    newest: VecDeque<Event>,
    state: StateName,
    waker: Option<Waker>,
    closed: bool,
    wants_renewals: bool,
}

impl Events {
    pub(crate) fn new() -> (Events, Arc<EventQueue>) {
        let queue = Arc::new(EventQueue::default());
        (Events(Arc::clone(&queue)), queue)
    }

    /// Also [`What::Renewed`], from now on: one with every renewal, and one at the begin of a leadership.
    #[must_use]
    pub fn with_renewals(self) -> Events {
        lock(&self.0.0).wants_renewals = true;
        self
    }

    /// The next event; `None` when there will be no more.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.0.poll_take(context)).await
    }

    /// The next event if one is waiting.
    pub fn try_next(&mut self) -> Option<Event> {
        lock(&self.0.0).take()
    }
}

impl Stream for Events {
    type Item = Event;
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_take(context)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl EventQueue {
    /// Adds an event; false when nobody listens any more.
    pub(crate) fn put(&self, event: Event) -> bool {
        let mut waiting = lock(&self.0);
        if waiting.closed {
            return false;
        }
        waiting.put(event);
        if let Some(waker) = waiting.waker.take() {
            drop(waiting);
            waker.wake();
        }
        true
    }

    /// Whether its reader asked for renewals.
    pub(crate) fn wants_renewals(&self) -> bool {
        lock(&self.0).wants_renewals
    }

    /// Whether nobody listens any more, or nothing more comes.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// No more events: what waits can still be taken.
    pub(crate) fn close(&self) {
        let mut waiting = lock(&self.0);
        waiting.closed = true;
        if let Some(waker) = waiting.waker.take() {
            drop(waiting);
            waker.wake();
        }
    }

    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut waiting = lock(&self.0);
        match waiting.take() {
            Some(event) => Poll::Ready(Some(event)),
            None if waiting.closed => Poll::Ready(None),
            None => {
                waiting.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Waiting {
    fn put(&mut self, event: Event) {
        const HALF: usize = EVENTS_WAITING_MAX / 2;
        if let What::StateChanged { to, .. } = event.what {
            self.state = to;
        }
        if self.missed == 0 && self.newest.is_empty() && self.oldest.len() < HALF {
            self.oldest.push_back(event);
            return;
        }
        self.newest.push_back(event);
        // One place is kept for the `missed` event itself.
        if self.newest.len() > HALF - 1 {
            self.newest.pop_front();
            self.missed += 1;
        }
    }

    fn take(&mut self) -> Option<Event> {
        if let Some(event) = self.oldest.pop_front() {
            return Some(event);
        }
        let next = self.newest.front()?;
        if self.missed > 0 {
            let what = What::Missed { count: self.missed, state: self.state };
            let missed = Event { what, epoch: None, ..next.clone() };
            self.missed = 0;
            return Some(missed);
        }
        self.newest.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::{Boot, Candidate, CandidateId, ElectionName, Incarnation, Wall};

    fn event(attempt: u64) -> Event {
        Event {
            time: Wall::default(),
            boot: Boot::default(),
            election: ElectionName::new("e").unwrap(),
            candidate: Candidate {
                id: CandidateId::new("a").unwrap(),
                incarnation: Incarnation::from_bits(1),
            },
            epoch: None,
            attempt,
            what: What::Stopped,
        }
    }

    fn drain(events: &mut Events) -> Vec<Result<u64, u64>> {
        let one = |event: Event| match event.what {
            What::Missed { count, .. } => Err(count),
            _ => Ok(event.attempt),
        };
        std::iter::from_fn(|| events.try_next().map(one)).collect()
    }

    #[test]
    fn a_slow_subscriber_gets_the_oldest_the_newest_and_the_count_between() {
        let (mut events, queue) = Events::new();
        for attempt in 0..10_000 {
            assert!(queue.put(event(attempt)));
        }
        let got = drain(&mut events);
        assert_eq!(got.len(), EVENTS_WAITING_MAX);
        assert_eq!((got[0], got[511]), (Ok(0), Ok(511)));
        let missed = got[512].unwrap_err();
        assert_eq!(missed, 10_000 - (EVENTS_WAITING_MAX as u64 - 1));
        assert_eq!((got[513], *got.last().unwrap()), (Ok(512 + missed), Ok(9_999)));
    }

    #[test]
    fn a_subscriber_that_keeps_up_misses_nothing() {
        let (mut events, queue) = Events::new();
        for attempt in 0..5_000 {
            queue.put(event(attempt));
            if attempt % 500 == 499 {
                assert_eq!(drain(&mut events).len(), 500);
            }
        }
        drop(events);
        assert!(!queue.put(event(0)), "nobody listens");
    }
}
