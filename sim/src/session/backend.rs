//! The backend of a process in a world with a session store: its two sessions, and the trait's methods.
//!
//! It asks what the PostgreSQL backend asks, in the same order, and leaves the judgement to the same pure types.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellwether_backend::{Backend, Capabilities, Fut, Notice, Notices, Past, Renewal, Taken, Witness};
use bellwether_core::{
    Bid, Boot, Bug, Candidate, ElectionName, Epoch, Error, ErrorKind, Grant, Holder, Outcome, Parting,
    Planted, Proof, Request, Seen, Signal,
};
use futures_util::stream;

use super::wire::{Connection, Failure, Kind, Said, Statement, Wire};
use crate::parcel::Purpose;
use crate::port::{lock, trouble};

/// What became of a lock that this process has.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// Ours, and its last leader may still believe.
    Waiting(Taken),
    /// Led, or to be led.
    Held { who: Candidate, epoch: Epoch, ttl: Duration },
}

impl Slot {
    pub(super) fn is(&self, grant: &Grant) -> bool {
        matches!(self, Slot::Held { who, epoch, .. }
            if who.incarnation == grant.incarnation && *epoch == grant.epoch)
    }

    pub(super) fn ttl(&self) -> Duration {
        match self {
            Slot::Waiting(taken) => taken.ttl(),
            Slot::Held { ttl, .. } => *ttl,
        }
    }
}

/// The two sessions, with what is held on them.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) a: Arc<Connection>,
    b: Mutex<Arc<Connection>>,
    slot: Mutex<Option<Slot>>,
    busy: AtomicBool,
}

impl Link {
    pub(super) fn b(&self) -> Arc<Connection> {
        Arc::clone(&lock(&self.b))
    }

    pub(super) fn replace_b(&self, new: Arc<Connection>) {
        *lock(&self.b) = new;
    }

    pub(super) fn slot(&self) -> Option<Slot> {
        lock(&self.slot).clone()
    }

    pub(super) fn put(&self, slot: Option<Slot>) {
        *lock(&self.slot) = slot;
    }

    /// One call at a time works on the election; the oldest is polled first.
    pub(super) async fn turn(&self) -> Turn<'_> {
        std::future::poll_fn(|_| match self.busy.swap(true, Ordering::Relaxed) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        Turn(&self.busy)
    }
}

impl Link {
    /// The turn, unless somebody has it.
    pub(super) fn try_turn(&self) -> Option<Turn<'_>> {
        (!self.busy.swap(true, Ordering::Relaxed)).then(|| Turn(&self.busy))
    }
}

pub(super) struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A second session whose first one ended, kept while the work that it stands for may be going on.
#[derive(Debug)]
pub(super) struct Lingering {
    pub(super) b: Arc<Connection>,
    pub(super) who: Candidate,
    pub(super) ttl: Duration,
    pub(super) until: Boot,
}

/// What all calls of a process share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) wire: Wire,
    pub(super) planted: Planted,
    link: Mutex<Option<Arc<Link>>>,
    opening: AtomicBool,
    pub(super) lingering: Mutex<Vec<Lingering>>,
    pub(super) witness: Mutex<Option<Witness>>,
    /// Candidates that take part no more.
    pub(super) retiring: Mutex<Vec<Candidate>>,
    pub(super) news: Mutex<VecDeque<Signal>>,
    /// The ttl that all candidates share.
    pub(super) ttl: Duration,
    /// An epoch that was assigned before the lock was granted, as none may be.
    pub(super) early: Mutex<Option<Epoch>>,
    /// A session is opened within this.
    pub(super) connect_limit: Duration,
}

/// Elections on the world's server.
#[derive(Debug)]
pub struct SimSessions(Arc<Inner>);

impl SimSessions {
    /// A process that has not connected yet.
    pub fn new(wire: Wire, ttl: Duration, planted: Planted) -> SimSessions {
        SimSessions(Arc::new(Inner {
            wire,
            planted,
            link: Mutex::default(),
            opening: AtomicBool::new(false),
            lingering: Mutex::default(),
            witness: Mutex::default(),
            retiring: Mutex::default(),
            news: Mutex::default(),
            ttl,
            connect_limit: ttl * 3 / 2,
            early: Mutex::default(),
        }))
    }
}

impl Inner {
    pub(super) fn has(&self, bug: Bug) -> bool {
        self.planted.has(bug)
    }

    /// The sessions, if the first one stands.
    pub(super) fn current(&self) -> Option<Arc<Link>> {
        lock(&self.link).as_ref().filter(|link| !link.a.is_over()).map(Arc::clone)
    }

    /// The sessions, even if they are over and nobody has noticed.
    pub(super) fn latest(&self) -> Option<Arc<Link>> {
        lock(&self.link).clone()
    }

    pub(super) fn forget(&self, link: &Arc<Link>) {
        lock(&self.link).take_if(|current| Arc::ptr_eq(current, link));
    }

    /// The sessions, opened if need be.
    pub(super) async fn link(&self) -> Result<Arc<Link>, Error> {
        std::future::poll_fn(|_| match self.opening.swap(true, Ordering::Relaxed) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        let _one_at_a_time = Turn(&self.opening);
        if let Some(link) = self.current() {
            return Ok(link);
        }
        let (limit, from_asking) = (self.connect_limit, self.has(Bug::SessionAgeFromAsking));
        let (a, b) = futures_util::future::join(
            self.wire.open(Kind::Lock, limit, from_asking),
            self.wire.open(Kind::Presence, limit, from_asking),
        )
        .await;
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (one, other) => {
                for connection in one.iter().chain(&other) {
                    self.wire.throw_away(connection);
                }
                return Err(trouble(ErrorKind::Unavailable, "the server cannot be reached"));
            }
        };
        let link =
            Arc::new(Link { a, b: Mutex::new(b), slot: Mutex::default(), busy: AtomicBool::new(false) });
        *lock(&self.link) = Some(Arc::clone(&link));
        Ok(link)
    }

    /// This candidate stands again, or left: its earlier work is over, so nobody has to wait for it.
    pub(super) async fn leave_lingering(&self, who: &Candidate) {
        let over: Vec<Lingering> =
            lock(&self.lingering).extract_if(.., |old| old.who.incarnation == who.incarnation).collect();
        for old in over {
            let _ = self.wire.ask(&old.b, old.ttl, Statement::Leave(true)).await;
            self.wire.throw_away(&old.b);
        }
    }

    async fn look(&self) -> Result<Seen, Error> {
        let link = self.link().await?;
        // Answers come in order: while this one is out, no renewal that left later has counted. So a ttl is the least
        // after which nobody counts on this session.
        let patience = if self.has(Bug::PresenceGivenUpEarly) { self.ttl / 2 } else { limit(self.ttl) };
        match self.wire.ask(&link.b(), patience, Statement::Look).await {
            Ok(Said::HeldBy(by, name, _)) => Ok(seen(&link, by, name)),
            Ok(_) => Ok(Seen::nothing()),
            Err(failure) => Err(unavailable(failure)),
        }
    }
}

/// How long an answer is waited for: past the ttl nobody believes in it any more.
pub(super) fn limit(ttl: Duration) -> Duration {
    ttl.max(Duration::from_millis(500))
}

pub(super) fn unavailable(failure: Failure) -> Error {
    let said = match failure {
        Failure::Error => "the server said no",
        Failure::Over => "the session ended",
    };
    trouble(ErrorKind::Unavailable, said)
}

pub(super) fn seen(link: &Link, by: u64, name: Option<bellwether_core::CandidateId>) -> Seen {
    if by != link.a.id {
        let holder = name.map(|id| Holder { id, incarnation: None });
        return Seen { holder, proof: Proof::Alive, ..Seen::nothing() };
    }
    match link.slot() {
        Some(Slot::Held { who, .. }) => held_by(&who),
        Some(Slot::Waiting(taken)) => waiting(taken.until()),
        None => Seen { proof: Proof::Record, ..Seen::nothing() },
    }
}

pub(super) fn waiting(until: Boot) -> Seen {
    Seen { proof: Proof::Record, free_at: Some(until), ..Seen::nothing() }
}

pub(super) fn held_by(who: &Candidate) -> Seen {
    let holder = Holder { id: who.id.clone(), incarnation: Some(who.incarnation) };
    Seen { holder: Some(holder), proof: Proof::Alive, ..Seen::nothing() }
}

impl Backend for SimSessions {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            renewal: Renewal::PerSession,
            crash_proof: true,
            notifies: true,
            epoch_visible: false,
            ttl_visible: false,
            requests: false,
            history: false,
            cooldown: false,
            lists: false,
            ttl_unit: Duration::from_nanos(1),
        }
    }

    fn claim<'a>(&'a self, _: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        Box::pin(self.0.claim(bid))
    }

    fn renew<'a>(&'a self, sent: Boot, held: &'a [(ElectionName, Grant)]) -> Fut<'a, Vec<Outcome<Grant>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for (_, grant) in held {
                answers.push(self.0.renew(sent, grant).await);
            }
            answers
        })
    }

    fn release<'a>(&'a self, _: &'a ElectionName, grant: &'a Grant, _: &'a Parting) -> Fut<'a, Outcome<()>> {
        Box::pin(self.0.release(grant))
    }

    fn observe<'a>(&'a self, _: &'a ElectionName) -> Fut<'a, Result<Seen, Error>> {
        Box::pin(self.0.look())
    }

    fn request<'a>(&'a self, _: &'a ElectionName, _: &'a Request) -> Fut<'a, Outcome<()>> {
        let error = trouble(ErrorKind::Unsupported, "a leader cannot be asked here");
        Box::pin(std::future::ready(Outcome::Refused(error)))
    }

    fn follow(&self, _: &ElectionName, interested: bool) {
        lock(&self.0.wire.port).followed = interested;
    }

    fn retire(&self, _: &ElectionName, who: &Candidate) {
        self.0.retired(who);
    }

    fn signals(&self) -> Notices {
        let inner = Arc::clone(&self.0);
        let mut tending: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(super::tend::tend(Arc::clone(&inner)));
        Box::pin(stream::poll_fn(move |_| {
            let before = std::mem::replace(&mut lock(&inner.wire.port).purpose, Purpose::Tend);
            inner.hear();
            let _ = tending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            lock(&inner.wire.port).purpose = before;
            match lock(&inner.news).pop_front() {
                Some(signal) => Poll::Ready(Some(Notice { election: None, signal })),
                None => Poll::Pending,
            }
        }))
    }

    fn remember<'a>(&'a self, _: &'a ElectionName, _: &'a Past) -> Fut<'a, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn history<'a>(&'a self, _: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
