//! Sends openraft's messages through the [`PeerLink`].
//!
//! Entries are pipelined: several messages are under way to a follower at the same time, numbered, so that it takes them in order whatever
//! the link does ([`super::receive`]). Answers are handed to openraft in the order of the messages.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_deadman::random_bits;
use futures_util::future::{Either, select};
use futures_util::{Stream, StreamExt};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult};
use openraft::raft::{TransferLeaderRequest, VoteRequest};
use openraft::{OptionalSend, raft::StreamAppendError};
use serde::de::DeserializeOwned;

use super::codec::{checksum, decode};
use super::message::{Announcement, Append, AppendAnswer, Message, PIECE_MAX_BYTES, Place, Step, StepAnswer};
use super::message::{TransferAnswer, VoteAnswer};
use super::types::{LogId, RaftNode, Snapshot, SnapshotData, Types, Vote};
use crate::adapter::{Lane, PeerLink};
use crate::member::Member;
use crate::names::NodeId;

/// Messages with entries under way to one follower: one on its way while it writes the other. Under load, what waits meanwhile goes with the
/// next one, so messages are fewer and larger.
const IN_FLIGHT: usize = 2;
/// How long a message with entries may take. Longer than a slow fsync; a silent connection is noticed by heartbeats, not by this.
const APPEND_LIMIT: Duration = Duration::from_secs(1);
/// How long the steps of a snapshot may take: its announcement, a piece of it on a slow network, and its way to a slow disk.
const BEGIN_LIMIT: Duration = Duration::from_secs(1);
const PIECE_LIMIT: Duration = Duration::from_secs(5);
const INSTALL_LIMIT: Duration = Duration::from_secs(30);

/// Makes clients, one for each member and purpose.
pub(super) struct Network {
    link: Arc<dyn PeerLink>,
    addresses: Addresses,
}

impl Network {
    pub(super) fn new(link: Arc<dyn PeerLink>, addresses: Addresses) -> Network {
        Network { link, addresses }
    }

    fn client(&self, target: u64, node: &RaftNode, lane: Lane) -> Client {
        let (link, addresses) = (self.link.clone(), self.addresses.clone());
        Client { link, member: node.member(target), addresses, lane }
    }
}

/// Where the members are by the latest configuration. openraft keeps a client for as long as it leads, and a member may move.
#[derive(Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<BTreeMap<NodeId, Member>>>);

impl Addresses {
    pub(super) fn replace(&self, members: impl Iterator<Item = Member>) {
        *self.known() = members.map(|member| (member.node, member)).collect();
    }

    fn latest(&self, member: &Member) -> Member {
        self.known().get(&member.node).unwrap_or(member).clone()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<NodeId, Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Client;

    async fn new_client(&mut self, target: u64, node: &RaftNode) -> Client {
        self.client(target, node, Lane::Replication)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &RaftNode) -> Client {
        self.client(target, node, Lane::Heartbeat)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &RaftNode) -> Client {
        self.client(target, node, Lane::Snapshot)
    }
}

/// The way to one member.
pub(super) struct Client {
    link: Arc<dyn PeerLink>,
    /// As it was when openraft asked for the client.
    member: Member,
    addresses: Addresses,
    /// Of messages with entries, or with none.
    lane: Lane,
}

type Failed = RPCError<Types>;

impl Client {
    /// The link is told to begin when this is called, so that messages leave in the order of the calls.
    fn call<A: DeserializeOwned>(
        &self,
        lane: Lane,
        message: &Message,
        limit: Duration,
    ) -> impl Future<Output = Result<A, Failed>> + Send + use<'_, A> {
        let member = self.addresses.latest(&self.member);
        let answer = message.encode().map(|bytes| self.link.call(&member, lane, bytes, limit));
        async move {
            let answer = answer.map_err(|error| broken(&error.0))?;
            let bytes = answer.await.map_err(|error| Failed::Unreachable(Unreachable::new(&error)))?;
            decode(&bytes).map_err(|error| broken(&format!("the answer of {member}: {}", error.0)))
        }
    }

    fn append_limit(&self, option: &RPCOption) -> Duration {
        match self.lane {
            Lane::Heartbeat => option.soft_ttl(),
            Lane::Replication | Lane::Snapshot => option.soft_ttl().max(APPEND_LIMIT),
        }
    }

    async fn send_snapshot(&self, vote: Vote, snapshot: Snapshot) -> Result<SnapshotResponse<Types>, Failed> {
        let Snapshot { meta, snapshot: data } = snapshot;
        let transfer = random_bits() as u64;
        let (total_bytes, checksum) = (data.len() as u64, checksum(0, &data));
        self.step(Step::Begin(Announcement { transfer, vote, meta, total_bytes, checksum }), BEGIN_LIMIT)
            .await?;
        for (number, piece) in data.chunks(PIECE_MAX_BYTES).enumerate() {
            let offset = (number * PIECE_MAX_BYTES) as u64;
            self.step(Step::Piece { transfer, offset, data: piece.to_vec() }, PIECE_LIMIT).await?;
        }
        let installed = self.step(Step::Install { transfer }, INSTALL_LIMIT).await?;
        installed.ok_or_else(|| broken("the snapshot was taken whole, but not installed"))
    }

    async fn step(&self, step: Step, limit: Duration) -> Result<Option<SnapshotResponse<Types>>, Failed> {
        match self.call(Lane::Snapshot, &Message::Snapshot(step), limit).await? {
            StepAnswer::Taken => Ok(None),
            StepAnswer::Installed(response) => Ok(Some(response)),
            StepAnswer::OutOfPlace => Err(broken("another snapshot came in between")),
        }
    }
}

impl RaftNetworkV2<Types> for Client {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendAnswer, Failed> {
        let append = Append { place: None, request };
        self.call(self.lane, &Message::Append(append), self.append_limit(&option)).await
    }

    fn stream_append<'s, S>(
        &'s mut self,
        requests: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<Types>, Failed>>, Failed>>
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + OptionalSend + Unpin + 'static,
    {
        let client: &'s Client = self;
        let (stream, limit) = (random_bits() as u64, client.append_limit(&option));
        let sent = requests.enumerate().map(move |(sequence, request)| {
            let prev = request.prev_log_id;
            let last = request.entries.last().map(|entry| entry.log_id).or(prev);
            let place = Place { stream, sequence: sequence as u64 };
            let append = Append { place: (client.lane == Lane::Replication).then_some(place), request };
            let answer = client.call::<AppendAnswer>(client.lane, &Message::Append(append), limit);
            async move {
                match answer.await? {
                    AppendEntriesResponse::Conflict => prev
                        .map(|prev| Err(StreamAppendError::Conflict(prev)))
                        .ok_or_else(|| broken("a conflict before the first entry")),
                    answer => Ok(answer.into_stream_result(prev, last)),
                }
            }
        });
        let answers = sent.buffered(IN_FLIGHT).scan((false, None), |(is_over, taken), answer| {
            // After a failure, what was sent behind it fails too. openraft begins again from where the follower is.
            let item = (!*is_over).then(|| not_overtaken(answer, *taken));
            match &item {
                Some(Ok(Ok(last))) => *taken = *last,
                _ => *is_over = true,
            }
            ready(item)
        });
        let answers: BoxStream<'s, _> = Box::pin(answers);
        Box::pin(ready(Ok(answers)))
    }

    async fn vote(&mut self, request: VoteRequest<Types>, option: RPCOption) -> Result<VoteAnswer, Failed> {
        self.call(Lane::Heartbeat, &Message::Vote(request), option.soft_ttl()).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteAnswer, Failed> {
        self.call(Lane::Heartbeat, &Message::PreVote(request), option.soft_ttl()).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let sending = pin!(self.send_snapshot(vote, snapshot));
        match select(pin!(cancel), sending).await {
            Either::Left((closed, _)) => Err(closed.into()),
            Either::Right((sent, _)) => sent.map_err(StreamingError::from),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferAnswer, Failed> {
        self.call(Lane::Heartbeat, &Message::Transfer(request), option.soft_ttl()).await
    }
}

/// A message that overtook the one before it conflicts, although the follower has taken that one meanwhile. To openraft this would be a
/// follower that lost what it had on disk, and the leader would stop. It only has to be sent again.
fn not_overtaken(
    answer: Result<StreamAppendResult<Types>, Failed>,
    taken: Option<LogId>,
) -> Result<StreamAppendResult<Types>, Failed> {
    match answer {
        Ok(Err(StreamAppendError::Conflict(prev))) if Some(prev) <= taken => {
            Err(broken("a message overtook the one before it"))
        }
        answer => answer,
    }
}

fn broken(what: &str) -> Failed {
    Failed::Network(NetworkError::from_string(what))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures_util::stream::iter;

    use super::super::storage_tests::{NODE, entry, id};
    use super::*;
    use crate::adapter::Unreached;

    /// Answers each message with the next of these.
    struct Answers(Mutex<VecDeque<AppendAnswer>>);

    impl PeerLink for Answers {
        fn call(
            &self,
            _: &Member,
            _: Lane,
            _: Vec<u8>,
            _: Duration,
        ) -> futures_util::future::BoxFuture<'_, Result<Vec<u8>, Unreached>> {
            let answer = self.0.lock().unwrap().pop_front().expect("an answer for each message");
            Box::pin(ready(Ok(postcard::to_stdvec(&answer).unwrap())))
        }
    }

    /// What openraft hears of messages with one entry each, the first of which follows entry 0.
    async fn heard(
        answers: impl IntoIterator<Item = AppendAnswer>,
    ) -> Vec<Result<StreamAppendResult<Types>, Failed>> {
        let answers: VecDeque<AppendAnswer> = answers.into_iter().collect();
        let request = |index| AppendEntriesRequest {
            vote: Vote::new_committed(1, NODE.number()),
            prev_log_id: Some(id(1, index - 1)),
            entries: vec![entry(1, index)],
            leader_commit: None,
        };
        let requests: Vec<_> = (1..=answers.len() as u64).map(request).collect();
        let network = Network::new(Arc::new(Answers(Mutex::new(answers))), Addresses::default());
        let mut client = network.client(8, &RaftNode::default(), Lane::Replication);
        let stream = client.stream_append(iter(requests), RPCOption::new(Duration::from_secs(5))).await;
        stream.expect("a stream").collect().await
    }

    /// To openraft, a conflict below what the follower has acknowledged is a disk that lost something, and the leader would stop for good.
    #[tokio::test]
    async fn a_conflict_below_what_was_taken_is_a_lost_message_and_not_a_lost_disk() {
        let heard = heard([AppendAnswer::Success, AppendAnswer::Conflict, AppendAnswer::Success]).await;
        assert_eq!(heard.len(), 2, "what was sent behind it fails with it: {heard:?}");
        assert_eq!(heard[0], Ok(Ok(Some(id(1, 1)))));
        assert!(matches!(heard[1], Err(Failed::Network(_))), "{heard:?}");
    }

    #[tokio::test]
    async fn a_conflict_at_the_first_message_is_one() {
        let heard = heard([AppendAnswer::Conflict, AppendAnswer::Success]).await;
        assert_eq!(heard, [Ok(Err(StreamAppendError::Conflict(id(1, 0))))]);
    }
}
