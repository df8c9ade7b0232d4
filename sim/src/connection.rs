//! The store as one process sees it: a [`Register`] whose calls are answered by the world.
//!
//! A call puts a [`OutgoingCall`] into the outbox and waits on its [`Slot`]; the world decides when, whether and how
//! often the call arrives, and when the slot is filled. News comes the same way, through the inbox.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bellwether_backend::{
    Capabilities, Change, Changes, Found, FoundNote, Life, Note, Record, Register, Write,
};
use bellwether_core::{ElectionName, Epoch, ErrorKind, Incarnation, StoreError};
use futures_util::stream;

use crate::call::{OutgoingCall, Purpose, RegisterAnswer, RegisterCall, Slot};
use crate::invariants::exclusion::{Knowledge, SimLeadership};
use crate::time::Nanos;

/// Both directions of one process's connection.
#[derive(Debug)]
pub struct Connection {
    /// Calls that the process has made and the world has not yet taken.
    pub outbox: Vec<OutgoingCall>,
    /// News that the process has not yet read.
    pub inbox: VecDeque<Change<u64>>,
    /// On behalf of what the process is running just now.
    pub purpose: Purpose,
    /// Whether news is wanted.
    pub followed: bool,
    /// What this process knows: the leadership whose held record it read last, those whose record it saw vanish or fall back,
    /// and the highest epoch of all that it read. A leadership that it saw succeeded, as far as it could tell, is not among them.
    pub known: Knowledge,
    /// The instant in true time at which the process runs. The process does not look at it; the judges do.
    pub now: Nanos,
    /// What was read last.
    latest: Option<Latest>,
    /// Counts what was read and told.
    learnt: u64,
}

/// A record that was read.
#[derive(Clone, Debug)]
struct Latest {
    version: u64,
    /// The leadership in it, if it was held.
    held: Option<SimLeadership>,
    epoch: Option<Epoch>,
    beat: u64,
    /// When its beat was first read, or read again after a gap.
    since: Nanos,
}

impl Latest {
    /// Whether this is the same sign of life.
    fn is(&self, record: &Record) -> bool {
        self.held == leadership_of(record) && self.beat == record.beat && self.epoch == record.epoch
    }
}

impl Connection {
    /// Whoever stops following forgets what it saw, and is a newcomer when it comes back.
    fn follow(&mut self, followed: bool) {
        self.followed = followed;
        self.known = Knowledge::default();
        self.latest = None;
    }

    /// Since when the process has known this state of the record; `None` if it does not.
    pub fn since_beat(&self, found: Option<&Record>) -> Option<Nanos> {
        match (&self.latest, found) {
            (None, None) => Some(0),
            (Some(latest), Some(record)) => latest.is(record).then_some(latest.since),
            _ => None,
        }
    }

    /// That of a process which knows the same and has made no call and heard nothing.
    pub fn cloned(&self) -> SharedConnection {
        Arc::new(Mutex::new(Connection {
            outbox: Vec::new(),
            inbox: VecDeque::new(),
            purpose: Purpose::Look,
            followed: self.followed,
            known: self.known.clone(),
            now: self.now,
            latest: self.latest.clone(),
            learnt: self.learnt,
        }))
    }

    /// Whether a connection is back and the process has not heard of it.
    pub fn is_back(&self) -> bool {
        self.inbox.iter().any(|change| matches!(change, Change::Restored))
    }

    /// `certain` is a read that nothing overtook; news and other reads may be old.
    fn saw(&mut self, found: Option<(&Record, u64)>, certain: bool) {
        self.learnt += 1;
        let Some((record, version)) = found else {
            self.latest = None;
            return;
        };
        let held = leadership_of(record);
        let mut since = self.now;
        match &self.latest {
            Some(latest) if !certain && version < latest.version => return,
            Some(Latest { version: before, held: Some(leadership), .. })
                // An older epoch is no succession: the store fell back.
                if version > *before && held != Some(*leadership) && record.epoch.is_none_or(|epoch| epoch >= leadership.epoch) =>
            {
                self.known.leaderships.remove(leadership);
            }
            Some(latest) if version >= latest.version && latest.is(record) => {
                since = latest.since;
            }
            _ => {}
        }
        self.latest = Some(Latest { version, held, epoch: record.epoch, beat: record.beat, since });
        self.known.leaderships.extend(held);
        self.known.highest = self.known.highest.max(record.epoch.unwrap_or(Epoch::ZERO));
    }
}

/// The leadership that a record stands for, if it is held by one of ours.
pub fn leadership_of(record: &Record) -> Option<SimLeadership> {
    let holder = record.holder.as_ref()?;
    Some(SimLeadership { who: holder.incarnation?, epoch: record.epoch? })
}

/// A shared [`Connection`].
pub type SharedConnection = Arc<Mutex<Connection>>;

/// A connection to which nothing has happened.
pub fn new_connection() -> SharedConnection {
    Arc::new(Mutex::new(Connection {
        outbox: Vec::new(),
        inbox: VecDeque::new(),
        purpose: Purpose::Look,
        followed: false,
        known: Knowledge::default(),
        now: 0,
        latest: None,
        learnt: 0,
    }))
}

/// What a process may know of the store without a round trip.
#[derive(Debug, Default)]
pub struct Facts {
    /// How many writes the store has taken, as far as it remembers.
    pub sequence: AtomicU64,
    /// Incarnations whose death can be proven, where the store has such proof.
    pub dead: Mutex<BTreeSet<Incarnation>>,
}

/// The register that the lease under test is put on.
#[derive(Debug)]
pub struct SimRegister {
    connection: SharedConnection,
    facts: Arc<Facts>,
    crash_proof: bool,
}

impl SimRegister {
    /// The register behind this connection.
    pub fn new(connection: SharedConnection, facts: Arc<Facts>, crash_proof: bool) -> SimRegister {
        SimRegister { connection, facts, crash_proof }
    }

    fn send(&self, ask: RegisterCall) -> Slot {
        let slot = Slot::new(ask.clone());
        let mut connection = lock(&self.connection);
        let purpose = connection.purpose;
        let known = matches!(purpose, Purpose::Claim(_)).then(|| connection.known.clone());
        connection.outbox.push(OutgoingCall { ask, slot: slot.clone(), purpose, known });
        slot
    }

    async fn call(&self, ask: RegisterCall) -> RegisterAnswer {
        let slot = self.send(ask);
        std::future::poll_fn(move |context| slot.take(context.waker())).await
    }
}

/// An error that trying again can mend.
pub fn trouble(kind: ErrorKind, what: &'static str) -> StoreError {
    StoreError::new(kind, "sim", what)
}

fn confused() -> StoreError {
    StoreError::new(ErrorKind::Bug, "sim", "an answer of another kind than the question")
}

impl Register for SimRegister {
    type Version = u64;

    fn name(&self) -> &'static str {
        "sim"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER.with(|can| {
            (can.crash_proof, can.history, can.lists) = (self.crash_proof, false, false);
        })
    }

    async fn load(&self, _: &ElectionName) -> Result<Found<u64>, StoreError> {
        let learnt = lock(&self.connection).learnt;
        let RegisterAnswer::Loaded(result) = self.call(RegisterCall::Load).await else {
            return Err(confused());
        };
        if let Ok(found) = &result {
            let found = found.as_ref().map(|(record, version)| (record, *version));
            let mut connection = lock(&self.connection);
            let certain = connection.learnt == learnt;
            connection.saw(found, certain);
        }
        result
    }

    async fn write(&self, _: &ElectionName, at: Option<&u64>, new: &Record) -> Write<u64> {
        let ask = RegisterCall::Write { at: at.copied(), record: Box::new(new.clone()) };
        let RegisterAnswer::Written(write) = self.call(ask).await else { return Write::Refused(confused()) };
        if let Write::Done(version) = &write {
            lock(&self.connection).saw(Some((new, *version)), false);
        }
        write
    }

    fn follow(&self, _: &ElectionName) {
        lock(&self.connection).follow(true);
    }

    fn unfollow(&self, _: &ElectionName) {
        lock(&self.connection).follow(false);
    }

    fn changes(&self) -> Changes<u64> {
        let connection = Arc::clone(&self.connection);
        Box::pin(stream::poll_fn(move |_| {
            let mut connection = lock(&connection);
            let Some(change) = connection.inbox.pop_front() else { return Poll::Pending };
            match (&change, connection.now) {
                (Change::Now(_, found), _) => {
                    connection.saw(found.as_ref().map(|(record, version)| (record, *version)), false);
                }
                (Change::Restored, now) => connection.latest.iter_mut().for_each(|latest| latest.since = now),
                (Change::Doubt | Change::Look(_), _) => {}
            }
            Poll::Ready(Some(change))
        }))
    }

    /// Read together with the sending of the write that uses it. A store that is asked for the number in a
    /// round trip of its own could hear of a deletion in between and would have to compare for that as well.
    async fn epoch(
        &self,
        _: &ElectionName,
        _: Option<(&Record, &u64)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        let used = Epoch::new(self.facts.sequence.load(Ordering::Relaxed) + 1).unwrap_or(Epoch::MAX);
        Ok(least.max(used))
    }

    fn life(&self, _: &ElectionName, record: &Record) -> Life {
        let holder = record.holder.as_ref().and_then(|holder| holder.incarnation);
        let dead = holder.is_some_and(|incarnation| lock(&self.facts.dead).contains(&incarnation));
        if self.crash_proof && dead { Life::Dead } else { Life::Unknown }
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        Ok(Vec::new())
    }

    async fn read_note(&self, _: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        match self.call(RegisterCall::ReadNote(note.clone())).await {
            RegisterAnswer::NoteRead(result) => result,
            _ => Err(confused()),
        }
    }

    async fn write_note(&self, _: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        match self.call(RegisterCall::WriteNote(note.clone(), at, bytes.to_vec())).await {
            RegisterAnswer::Written(write) => write,
            _ => Write::Refused(confused()),
        }
    }
}

/// Locks what only one thread ever uses; the lock is there because the traits ask for `Send`.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
