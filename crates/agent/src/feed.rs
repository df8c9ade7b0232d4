//! Events for any number of readers, from one subscription.
//!
//! Each event becomes text once, and every reader has its own place in one bounded queue of it. A reader that falls behind by
//! more than the queue holds is told how many it missed, and the state after them. The driver knows of one subscriber, however many there
//! are.
//!
//! The last events are kept for readers who want to know how it came to this. Such a reader gets each event once: what is kept when it
//! subscribes, and what comes from then on.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use bellwether_core::Clock;
use bellwether_deadman::SystemClock;
use bellwether_election::{Connection, Election, Event, Events, candidate_json};
use futures_util::{Stream, stream};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, oneshot};

use crate::limits::{EVENTS_KEPT, EVENTS_WAITING_MAX, KEEP_ALIVE};

/// A line without meaning, which keeps a connection open.
const STILL_HERE: &[u8] = b": still here\n\n";

pub(crate) struct Feed {
    sending: std::sync::Mutex<Sending>,
    room: Arc<Semaphore>,
    streams_max: usize,
    election: Election,
}

struct Sending {
    /// Gone when there will be no more.
    sender: Option<broadcast::Sender<Bytes>>,
    /// The last events, oldest first.
    kept: VecDeque<Bytes>,
}

impl Feed {
    pub(crate) fn new(election: Election, streams_max: usize) -> Feed {
        let sender = broadcast::Sender::new(EVENTS_WAITING_MAX);
        let sending = Sending { sender: Some(sender), kept: VecDeque::new() };
        let room = Arc::new(Semaphore::new(streams_max));
        Feed { sending: std::sync::Mutex::new(sending), room, streams_max, election }
    }

    /// Hands events on until there are no more, or until it is told to stop: then those that wait are still handed on. Everything in
    /// here runs in the thread of the agent.
    pub(crate) async fn run(&self, mut events: Events, mut stop: oneshot::Receiver<()>) {
        let mut connection = self.election.status().connection;
        let mut pause = tokio::time::interval(KEEP_ALIVE);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.tell(&event),
                    None => break,
                },
                now = self.next_connection(connection) => {
                    connection = now;
                    self.sending().send(self.status());
                }
                _ = pause.tick() => self.sending().send(Bytes::from_static(STILL_HERE)),
                // Also when whoever could tell is gone.
                _ = &mut stop => break,
            }
        }
        while let Some(event) = events.try_next() {
            self.tell(&event);
        }
        // Streams end when their readers have read what waits.
        self.sending().sender.take();
    }

    fn tell(&self, event: &Event) {
        let chunk = event_chunk(event);
        let mut sending = self.sending();
        sending.keep(chunk.clone());
        sending.send(chunk);
    }

    /// Waits until the last stream has ended.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(self.streams_max).unwrap_or(u32::MAX);
        drop(self.room.acquire_many(all).await);
    }

    /// Room for one more stream, of whatever kind.
    pub(crate) fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// A stream that begins with how the candidate stands, and for those who want them goes on with the last events before; `None` when
    /// there is no room for one more.
    pub(crate) fn subscribe(
        self: &Arc<Feed>,
        from: From,
    ) -> Option<impl Stream<Item = Bytes> + Send + 'static> {
        let place = self.room()?;
        // In one look, so that no event is in both, and none in neither.
        let sending = self.sending();
        let receiver = sending.sender.as_ref()?.subscribe();
        let kept = if from == From::Kept { sending.kept.clone() } else { VecDeque::new() };
        drop(sending);
        let reader = Reader { first: true, kept, receiver, feed: Arc::clone(self), _place: place };
        Some(stream::unfold(reader, |mut reader| async { Some((reader.next().await?, reader)) }))
    }

    fn sending(&self) -> std::sync::MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    async fn next_connection(&self, before: Connection) -> Connection {
        match self.election.wait_until(|status| status.connection != before).await {
            Ok(status) => status.connection,
            Err(_) => std::future::pending().await,
        }
    }

    fn status(&self) -> Bytes {
        chunk("status", &candidate_json(&self.election).to_string())
    }

    fn missed(&self, count: u64) -> Bytes {
        let status = self.election.status();
        let event = json!({
            "time": SystemClock.wall().to_string(),
            "boot_ns": SystemClock.boot().as_nanos(),
            "election": status.election.as_str(),
            "id": status.id.as_str(),
            "incarnation": status.incarnation.to_string(),
            "event": "missed",
            "epoch": null,
            "count": count,
            "state": status.state.as_str(),
        });
        chunk("missed", &event.to_string())
    }
}

impl Sending {
    fn send(&self, chunk: Bytes) {
        if let Some(sender) = &self.sender {
            // That nobody reads is no failure.
            let _ = sender.send(chunk);
        }
    }

    fn keep(&mut self, chunk: Bytes) {
        if self.kept.len() == EVENTS_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(chunk);
    }
}

/// Which events a reader gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Those from now on.
    Now,
    /// Those that are kept, and those from now on.
    Kept,
}

/// One who reads.
struct Reader {
    first: bool,
    kept: VecDeque<Bytes>,
    receiver: broadcast::Receiver<Bytes>,
    feed: Arc<Feed>,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.first) {
            return Some(self.feed.status());
        }
        if let Some(chunk) = self.kept.pop_front() {
            return Some(chunk);
        }
        match self.receiver.recv().await {
            Ok(chunk) => Some(chunk),
            Err(RecvError::Lagged(count)) => Some(self.feed.missed(count)),
            Err(RecvError::Closed) => None,
        }
    }
}

fn event_chunk(event: &Event) -> Bytes {
    chunk(event.what.as_str(), &event.to_json_line())
}

/// JSON has no line break in it.
fn chunk(word: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {word}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use bellwether_backend::MemoryStore;
    use futures_util::StreamExt;

    use super::*;

    fn feed(streams_max: usize) -> Arc<Feed> {
        let backend = MemoryStore::default().connect(Arc::new(SystemClock));
        let election = Election::builder("job").backend(backend).id("a").build().expect("settings");
        Arc::new(Feed::new(election, streams_max))
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_how_many_it_missed_and_others_miss_nothing() {
        let feed = feed(2);
        let (mut slow, mut quick) =
            (Box::pin(feed.subscribe(From::Now).unwrap()), Box::pin(feed.subscribe(From::Now).unwrap()));
        for number in 0..EVENTS_WAITING_MAX + 7 {
            feed.sending().send(Bytes::from(number.to_string()));
            if number == 0 {
                assert!(quick.next().await.unwrap().starts_with(b"event: status\n"));
            }
            assert_eq!(quick.next().await.unwrap(), number.to_string());
        }
        assert!(slow.next().await.unwrap().starts_with(b"event: status\n"));
        let missed = String::from_utf8(slow.next().await.unwrap().to_vec()).unwrap();
        assert!(missed.starts_with("event: missed\n") && missed.contains("\"count\":7,"), "{missed}");
        assert!(missed.contains("\"state\":\"stopped\""), "{missed}");
        assert_eq!(slow.next().await.unwrap(), "7");
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_streams_and_a_place_that_is_left_is_free() {
        let feed = feed(1);
        let stream = feed.subscribe(From::Now).unwrap();
        assert!(feed.subscribe(From::Now).is_none());
        drop(stream);
        assert!(feed.subscribe(From::Now).is_some());
    }

    #[tokio::test]
    async fn streams_end_with_the_candidate() {
        let feed = feed(1);
        let mut stream = Box::pin(feed.subscribe(From::Now).unwrap());
        feed.sending().sender.take();
        assert!(stream.next().await.is_some(), "the status");
        assert!(stream.next().await.is_none());
        drop(stream);
        assert!(feed.subscribe(From::Now).is_none(), "there is nothing more to tell");
    }

    #[tokio::test]
    async fn whoever_asks_for_the_last_events_gets_each_once() {
        let feed = feed(2);
        let tell = |number: usize| {
            let chunk = Bytes::from(number.to_string());
            feed.sending().keep(chunk.clone());
            feed.sending().send(chunk);
        };
        (0..EVENTS_KEPT + 3).for_each(tell);
        let mut late = Box::pin(feed.subscribe(From::Kept).unwrap());
        let mut later = Box::pin(feed.subscribe(From::Now).unwrap());
        tell(EVENTS_KEPT + 3);
        assert!(late.next().await.unwrap().starts_with(b"event: status\n"));
        for number in 3..EVENTS_KEPT + 4 {
            assert_eq!(late.next().await.unwrap(), number.to_string());
        }
        assert!(later.next().await.unwrap().starts_with(b"event: status\n"));
        assert_eq!(later.next().await.unwrap(), (EVENTS_KEPT + 3).to_string());
    }
}
