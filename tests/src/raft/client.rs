//! Whoever writes to a cluster and reads from it.
//!
//! The only place that knows what the cluster hosts. A register is an election, and its text is what the leader publishes about itself: to
//! write is to take the lead from an earlier start of oneself, which nobody has to wait for. To read is to resign from a leadership that
//! nobody has: that is denied, and the answer shows who leads. Both go through the log.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bellwether_cluster::{AdminClient, ClientConfig, ClusterError, ErrorKind, NodeView};
use bellwether_core::{Candidate, CandidateId, ElectionName, Epoch, Incarnation, Wall};
use bellwether_deadman::random_bits;
use bellwether_raft::answer::{Answer, Refusal};
use bellwether_raft::command::{Act, Campaign, Command, Sequence, SessionId};
use futures_util::{StreamExt, stream};
use tokio::runtime::Runtime;

use crate::PATIENCE;

/// For one write or read. A leader that is cut off answers nothing, and histories are to have many operations.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// Entries that [`Client::fill`] has under way: enough for one sync of a disk to be for many.
const FILL_AT_ONCE: usize = 64;
/// Of the client's session: it sends no keepalives, and outlives every test.
const SESSION: Duration = Duration::from_secs(24 * 60 * 60);
/// Whoever writes is this candidate.
const WRITER: &str = "writer";
/// Under which the text is published.
const TEXT: &str = "text";

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has happened, as this entry of the log.
    Written {
        /// The entry.
        index: u64,
    },
    /// It has happened, as this entry of the log; this text was there.
    Done {
        /// The entry.
        index: u64,
        /// The text, `None` if there was none.
        before: Option<String>,
    },
    /// It has certainly not happened, and never will.
    Refused(String),
    /// It may have happened, or may still.
    Unknown(String),
}

impl Outcome {
    /// Whether it is said to have happened.
    pub fn is_done(&self) -> bool {
        matches!(self, Outcome::Done { .. } | Outcome::Written { .. })
    }
}

/// A client. It connects from the network of the thread that uses it.
pub struct Client {
    runtime: Runtime,
    admin: AdminClient,
    session: Cell<Option<(SessionId, u64)>>,
}

impl Client {
    /// Of the nodes at these addresses, the first of which is asked first.
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a str>, secret: Option<&Path>) -> Client {
        let addresses: Vec<&str> = addresses.into_iter().collect();
        let config = ClientConfig::from_url(&url(&addresses, secret)).expect("addresses and a secret");
        let admin = AdminClient::new(config.addresses, config.security).expect("no certificates to read");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Client { runtime, admin, session: Cell::new(None) }
    }

    /// Sets a text.
    pub fn write(&self, name: &str, text: &str) -> Outcome {
        let id = CandidateId::new(WRITER).expect("an id");
        let campaign = Campaign {
            on: register(name),
            who: Candidate { id, incarnation: Incarnation::from_bits(random_bits()) },
            floor: Epoch::ZERO,
            priority: 0,
            metadata: BTreeMap::from([(TEXT.to_owned(), text.to_owned())]),
            cooldown: None,
            danger_reclaim: true,
            wall: Wall::from_unix_nanos(0),
        };
        match self.act(Act::Campaign(campaign)) {
            Ok((index, Answer::Granted { .. })) => Outcome::Written { index },
            Ok((_, answer)) => panic!("{name} was not written: {answer:?}"),
            Err(outcome) => outcome,
        }
    }

    /// Reads a text, as of an instant between the call and its return.
    pub fn read(&self, name: &str) -> Outcome {
        let nobody = Act::Resign {
            on: register(name),
            epoch: Epoch::MAX,
            incarnation: Incarnation::from_bits(random_bits()),
            reserve_for: None,
            cooldown: None,
        };
        match self.act(nobody) {
            Ok((index, Answer::Denied(view))) => {
                let text = view.holder.and_then(|holder| holder.metadata.get(TEXT).cloned());
                Outcome::Done { index, before: text }
            }
            Ok((_, answer)) => panic!("{name} was not read: {answer:?}"),
            Err(outcome) => outcome,
        }
    }

    /// Writes so many entries that leave nothing behind, many at a time. Fails the test if one of them may be missing.
    pub fn fill(&self, entries: usize) {
        let nothing = Command::DangerDiscard { on: register("nothing-to-discard") }.encode();
        let all = stream::iter(0..entries).for_each_concurrent(FILL_AT_ONCE, |_| async {
            let written = tokio::time::timeout(PATIENCE, self.admin.propose(nothing.clone())).await;
            written.expect("the cluster answers").expect("the cluster writes");
        });
        self.runtime.block_on(all);
    }

    /// What each node says of itself.
    pub fn views(&self) -> Vec<(String, Result<NodeView, ClusterError>)> {
        self.runtime.block_on(self.admin.nodes())
    }

    fn act(&self, act: Act) -> Result<(u64, Answer), Outcome> {
        let (session, sequence) = match self.session.take() {
            Some((session, last)) => (session, Sequence(last + 1)),
            None => (self.open()?, Sequence(1)),
        };
        self.session.set(Some((session, sequence.0)));
        let answered_below = sequence;
        match self.propose(&Command::InSession { session, sequence, answered_below, act })? {
            (_, Answer::Refused(Refusal::NoSuchSession)) => {
                self.session.set(None);
                Err(Outcome::Refused("the session was lost with its cluster".to_owned()))
            }
            (_, Answer::Refused(refusal)) => Err(Outcome::Refused(refusal.to_string())),
            answered => Ok(answered),
        }
    }

    /// Nothing has happened while there is no session, whatever becomes of it.
    fn open(&self) -> Result<SessionId, Outcome> {
        let open = Command::OpenSession { nonce: random_bits(), ttl: SESSION, label: "test".to_owned() };
        match self.propose(&open) {
            Ok((_, Answer::Opened(session))) => Ok(session),
            Ok((_, answer)) => panic!("no session: {answer:?}"),
            Err(Outcome::Unknown(why)) => Err(Outcome::Refused(why)),
            Err(outcome) => Err(outcome),
        }
    }

    fn propose(&self, command: &Command) -> Result<(u64, Answer), Outcome> {
        let asked = async { tokio::time::timeout(ANSWER_LIMIT, self.admin.propose(command.encode())).await };
        match self.runtime.block_on(asked) {
            Err(_) => Err(Outcome::Unknown(format!("no answer within {ANSWER_LIMIT:?}"))),
            Ok(Ok((index, answer))) => Ok((index, Answer::decode(&answer).expect("an answer"))),
            // A node that stops may have sent the entry to others before.
            Ok(Err(error)) if matches!(error.kind(), ErrorKind::Unknown | ErrorKind::Stopped) => {
                Err(Outcome::Unknown(error.to_string()))
            }
            Ok(Err(error)) => Err(Outcome::Refused(error.to_string())),
        }
    }
}

fn register(name: &str) -> ElectionName {
    ElectionName::new(name).expect("the name of a register")
}

/// The URL of the nodes at these addresses.
pub(super) fn url(addresses: &[&str], secret: Option<&Path>) -> String {
    let secret = secret.map(|file| format!("?secret-file={}", file.display())).unwrap_or_default();
    format!("raft://{}{secret}", addresses.join(","))
}
