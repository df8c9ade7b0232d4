//! A process's connections to the server: what is asked, and where answers are waited for.
//!
//! A statement goes into the outbox and its answer is waited for on a [`ReplySlot`]; the world decides what becomes of it.
//! Waiting is bounded by the process's own clock, and an answer that does not come in time costs the session.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bellwether_backend::{Condition, LockHolder, Presence, SessionNotice};
use bellwether_core::{Boot, CandidateId, Clock, Epoch};

use crate::call::Purpose;
use crate::clock::ClockReading;
use crate::connection::{SharedConnection, lock};
use crate::key::ElectionKey;

/// A session, of all sessions that there ever were.
pub type SessionNumber = u64;

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// A: has the lock.
    Lock,
    /// B: has the presence, and hears news.
    Presence,
}

/// What is asked of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Let me in.
    Open(SessionKind),
    /// The client's end was closed.
    Close,
    /// On A: these locks, each with an epoch; and how much silence to bear from then on.
    Claim(Vec<LockWish>, Duration),
    /// On A: which locks are there? On B: which presences?
    Beat,
    /// On A: release once, and tell everybody; and how much silence to bear from then on, none if nothing is left.
    Unlock(ElectionKey, Duration),
    /// On A: release once, and say nothing.
    Undo(ElectionKey),
    /// On B: become present where this is met; and how much silence to bear from then on.
    Appear(Vec<PresenceWish>, Duration),
    /// On B: be present no more; and how much silence to bear from then on, none if nothing is left.
    Leave(ElectionKey, Duration),
    /// Tell everybody.
    Tell(SessionNotice<ElectionKey>),
    /// On B: who has these locks?
    Look(Vec<ElectionKey>),
}

/// A lock that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWish {
    /// Of which election.
    pub key: ElectionKey,
    /// For whom.
    pub id: CandidateId,
    /// It is there, and what is wanted is another epoch.
    pub again: bool,
}

/// A presence that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceWish {
    /// In which election.
    pub key: ElectionKey,
    /// What has to be found there.
    pub condition: Condition,
    /// The session that has to have the lock.
    pub first: Option<SessionNumber>,
}

/// What the server says.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementAnswer {
    /// Done, or as a yes or no.
    Yes(bool),
    /// To [`Statement::Claim`] and [`Statement::Look`]: of each lock.
    Locks(Vec<LockState>),
    /// To [`Statement::Beat`].
    Has(BTreeSet<ElectionKey>),
    /// To [`Statement::Appear`]: of each wish.
    Appeared(Vec<Presence>),
}

/// How a lock stands with a session.
#[derive(Clone, Debug, PartialEq)]
pub enum LockState {
    /// It is this session's, under that epoch.
    Granted(Epoch),
    /// Who has it.
    HeldBy(LockHolder<SessionNumber>),
    /// Nobody has it; to a claim for another epoch, that it is not there.
    Free,
}

/// How a statement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementFailure {
    /// The server said so, and the session stands; the statement may have taken effect.
    Error,
    /// The session is over.
    Over,
}

/// Where an answer arrives.
pub type ReplySlot = Arc<Mutex<Option<Result<StatementAnswer, StatementFailure>>>>;

/// Something that leaves a process.
#[derive(Clone, Debug)]
pub struct SentStatement {
    /// On which session.
    pub session: SessionNumber,
    /// What.
    pub statement: Statement,
    /// On behalf of what.
    pub purpose: Purpose,
    /// Where the answer goes.
    pub reply: ReplySlot,
}

/// News from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerNews {
    /// What that session told.
    Notice(SessionNumber, SessionNotice<ElectionKey>),
    /// That session, which had the lock, is over.
    Ended(SessionNumber),
}

/// What passes between a process and the world.
#[derive(Debug, Default)]
pub struct SessionMail {
    /// What the world has not yet taken.
    pub outbox: Vec<SentStatement>,
    /// News that the process has not yet read.
    pub inbox: VecDeque<ServerNews>,
    /// When the process wants to be woken.
    pub alarms: Vec<Boot>,
    /// Sessions whose end has reached this process.
    pub hung_up: Vec<SessionNumber>,
    opened: u64,
}

/// A shared [`SessionMail`].
pub type SharedSessionMail = Arc<Mutex<SessionMail>>;

/// One connection, as its process sees it.
#[derive(Debug)]
pub struct SessionConnection {
    /// Which.
    pub id: SessionNumber,
    /// What for.
    pub kind: SessionKind,
    /// When it was there.
    pub since: Boot,
    over: AtomicBool,
}

impl SessionConnection {
    /// Whether the process knows that it is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits until the process knows that it is over.
    pub async fn over(&self) {
        std::future::poll_fn(|_| if self.is_over() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    pub(super) fn end(&self) -> bool {
        !self.over.swap(true, Ordering::Relaxed)
    }
}

/// The process's end of all its connections.
#[derive(Debug)]
pub struct Wire {
    /// Which process.
    pub node: usize,
    /// Its clock.
    pub clock: Arc<ClockReading>,
    /// What passes.
    pub mail: SharedSessionMail,
    /// For whose sake it runs just now, and whether news is wanted.
    pub connection: SharedConnection,
}

impl Wire {
    /// The present, by this process's clock.
    pub fn now(&self) -> Boot {
        self.clock.boot()
    }

    /// Opens a session; `None` when that failed or took too long.
    pub async fn open(&self, kind: SessionKind, limit: Duration) -> Option<Arc<SessionConnection>> {
        let id = {
            let mut mail = lock(&self.mail);
            mail.opened += 1;
            (self.node as u64) << 32 | mail.opened
        };
        let reply = self.send(id, Statement::Open(kind));
        let (answer, since) = (self.wait(limit, || lock(&reply).clone()).await, self.now());
        if let Some(Ok(_)) = answer {
            return Some(Arc::new(SessionConnection { id, kind, since, over: AtomicBool::new(false) }));
        }
        self.send(id, Statement::Close);
        None
    }

    /// Asks, and gives the session up when no answer comes within `limit`.
    pub async fn ask(
        &self,
        on: &SessionConnection,
        limit: Duration,
        statement: Statement,
    ) -> Result<StatementAnswer, StatementFailure> {
        if on.is_over() {
            return Err(StatementFailure::Over);
        }
        let reply = self.send(on.id, statement);
        let heard = || {
            // An answer that came before the end of the session is still read.
            let answer = lock(&reply).clone();
            answer.or_else(|| on.is_over().then_some(Err(StatementFailure::Over)))
        };
        match self.wait(limit, heard).await {
            Some(answer) => answer,
            None => {
                self.throw_away(on);
                Err(StatementFailure::Over)
            }
        }
    }

    /// Closes the process's end, without waiting for anything.
    pub fn throw_away(&self, connection: &SessionConnection) {
        if connection.end() {
            self.send(connection.id, Statement::Close);
        }
    }

    /// Lets time pass.
    pub async fn pause(&self, span: Duration) {
        self.wait(span, || None::<()>).await;
    }

    /// Waits for something to be there, at most this long.
    pub async fn wait<T>(&self, limit: Duration, ready: impl Fn() -> Option<T>) -> Option<T> {
        let until = self.now() + limit;
        lock(&self.mail).alarms.push(until);
        std::future::poll_fn(|_| match ready() {
            Some(value) => Poll::Ready(Some(value)),
            None if self.now() >= until => Poll::Ready(None),
            None => Poll::Pending,
        })
        .await
    }

    fn send(&self, session: SessionNumber, statement: Statement) -> ReplySlot {
        let reply = ReplySlot::default();
        let purpose = lock(&self.connection).purpose;
        let sent = SentStatement { session, statement, purpose, reply: Arc::clone(&reply) };
        lock(&self.mail).outbox.push(sent);
        reply
    }
}
