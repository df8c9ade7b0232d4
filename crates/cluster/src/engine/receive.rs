//! Takes the messages of other engines.
//!
//! Messages with entries are under way in numbers, and a link may deliver them in any order. They are handed to openraft in the order in
//! which they were sent. Order is for speed alone: a message that comes out of turn is a conflict to openraft, and is sent again. So a
//! missing one is waited for only briefly.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use openraft::errors::RaftError;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::timeout;

use super::codec::checksum;
use super::message::{Announcement, Append, AppendAnswer, Message, PIECE_MAX_BYTES, Place};
use super::message::{SNAPSHOT_MAX_BYTES, Step, StepAnswer};
use super::types::{Raft, Snapshot, Types};
use crate::adapter::RaftFailure;

/// How long a message waits for those before it: longer than two messages on one connection are ever apart.
const TURN_LIMIT: Duration = Duration::from_millis(50);

/// What arrives at one engine.
pub(super) struct Receiver {
    raft: Raft,
    /// What comes next of the entries that arrive now.
    next: watch::Sender<Place>,
    /// The snapshot that arrives now.
    incoming: Mutex<Option<Incoming>>,
}

struct Incoming {
    announced: Announcement,
    data: Vec<u8>,
}

impl Receiver {
    pub(super) fn new(raft: Raft) -> Receiver {
        Receiver {
            raft,
            next: watch::Sender::new(Place { stream: 0, sequence: 0 }),
            incoming: Mutex::new(None),
        }
    }

    pub(super) async fn receive(&self, message: &[u8]) -> Result<Vec<u8>, RaftFailure> {
        let message = Message::decode(message)
            .map_err(|error| RaftFailure::Refused(format!("the message of a peer: {}", error.0)))?;
        match message {
            Message::Vote(request) => encode(self.raft.vote(request).await),
            Message::PreVote(request) => encode(self.raft.pre_vote(request).await),
            Message::Append(append) => encode(self.append(append).await),
            Message::Snapshot(step) => encode(self.step(step).await),
            Message::Transfer(request) => {
                encode(self.raft.handle_transfer_leader(request).await.map_err(RaftError::Fatal))
            }
        }
    }

    async fn append(&self, append: Append) -> Result<AppendAnswer, RaftError<Types>> {
        let Some(place) = append.place else { return self.raft.append_entries(append.request).await };
        self.wait_for_turn(place).await;
        let mut taking = Box::pin(self.raft.append_entries(append.request));
        // The first poll puts it into openraft's queue. The answer comes after an fsync, and the next message need not wait for that.
        let first = poll!(&mut taking);
        self.next.send_if_modified(|next| {
            let is_next = place.sequence == 0 || *next == place;
            if is_next {
                *next = Place { sequence: place.sequence + 1, ..place };
            }
            is_next
        });
        match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => taking.await,
        }
    }

    /// Returns at once if nothing of this stream is missing, or if this stream is not the one that arrives.
    async fn wait_for_turn(&self, place: Place) {
        if place.sequence == 0 {
            return;
        }
        let mut next = self.next.subscribe();
        let is_turn = |next: &Place| next.stream != place.stream || next.sequence >= place.sequence;
        let _ = timeout(TURN_LIMIT, next.wait_for(is_turn)).await;
    }

    async fn step(&self, step: Step) -> Result<StepAnswer, RaftError<Types>> {
        let taken = match step {
            Step::Begin(announced) => self.begin(announced),
            Step::Piece { transfer, offset, data } => self.add(transfer, offset, &data),
            Step::Install { transfer } => match self.whole(transfer) {
                Some(whole) => return self.install(whole).await,
                None => None,
            },
        };
        Ok(taken.map_or(StepAnswer::OutOfPlace, |()| StepAnswer::Taken))
    }

    /// A new leader's snapshot replaces that of an old one, and not the other way round.
    fn begin(&self, announced: Announcement) -> Option<()> {
        let mut slot = self.incoming();
        let is_outdated = slot.as_ref().is_some_and(|incoming| announced.vote < incoming.announced.vote);
        if is_outdated || announced.total_bytes > SNAPSHOT_MAX_BYTES {
            return None;
        }
        *slot = Some(Incoming { announced, data: Vec::new() });
        Some(())
    }

    fn add(&self, transfer: u64, offset: u64, data: &[u8]) -> Option<()> {
        let mut slot = self.incoming();
        let incoming = slot.as_mut().filter(|incoming| incoming.announced.transfer == transfer)?;
        let follows = incoming.data.len() as u64 == offset && data.len() <= PIECE_MAX_BYTES;
        let fits = (incoming.data.len() + data.len()) as u64 <= incoming.announced.total_bytes;
        (follows && fits).then(|| incoming.data.extend_from_slice(data))
    }

    fn whole(&self, transfer: u64) -> Option<Incoming> {
        let incoming = self.incoming().take_if(|incoming| incoming.announced.transfer == transfer)?;
        let is_whole = incoming.data.len() as u64 == incoming.announced.total_bytes
            && checksum(0, &incoming.data) == incoming.announced.checksum;
        is_whole.then_some(incoming)
    }

    async fn install(&self, whole: Incoming) -> Result<StepAnswer, RaftError<Types>> {
        let Incoming { announced: Announcement { vote, meta, .. }, data } = whole;
        let snapshot = Snapshot { meta, snapshot: Arc::new(data) };
        let installed = self.raft.install_full_snapshot(vote, snapshot).await;
        installed.map(StepAnswer::Installed).map_err(RaftError::Fatal)
    }

    fn incoming(&self) -> MutexGuard<'_, Option<Incoming>> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn encode<A: Serialize>(answer: Result<A, RaftError<Types>>) -> Result<Vec<u8>, RaftFailure> {
    let answer = answer.map_err(|error| RaftFailure::Stopped(error.to_string()))?;
    postcard::to_stdvec(&answer).map_err(|error| RaftFailure::Refused(io::Error::other(error).to_string()))
}
