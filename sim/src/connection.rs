//! The store as one process sees it: a [`Register`] whose calls are answered by the world.
//!
//! A call puts a [`OutgoingCall`] into the outbox and waits on its [`Slot`]; the world decides when, whether and how
//! often the call arrives, and when the slot is filled. News comes the same way, through the inbox.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
use crate::key::ElectionKey;
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
    /// The instant in true time at which the process runs. The process does not look at it; the judges do.
    pub now: Nanos,
    elections: BTreeMap<ElectionKey, KnownElection>,
}

/// What a process knows of one election.
#[derive(Clone, Debug, Default)]
pub struct KnownElection {
    /// How many of it want its news.
    followers: usize,
    /// The leadership whose held record it read last, those whose record it saw vanish or fall back, and the highest epoch of all that
    /// it read. A leadership that it saw succeeded, as far as it could tell, is not among them.
    pub known: Knowledge,
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
    /// One more of the process follows that election.
    pub fn follow(&mut self, key: ElectionKey) {
        let election = self.of(key);
        if election.followers == 0 {
            election.forget();
        }
        election.followers += 1;
    }

    /// One fewer does. A process that stops following forgets what it saw, and is a newcomer when it comes back.
    pub fn unfollow(&mut self, key: ElectionKey) {
        let election = self.of(key);
        election.followers = election.followers.saturating_sub(1);
        if election.followers == 0 {
            election.forget();
        }
    }

    /// Whether news of that election is wanted.
    pub fn follows(&self, key: ElectionKey) -> bool {
        self.elections.get(&key).is_some_and(|election| election.followers > 0)
    }

    /// Whether any news is wanted.
    pub fn follows_any(&self) -> bool {
        self.elections.values().any(|election| election.followers > 0)
    }

    /// What is known of that election.
    pub fn of(&mut self, key: ElectionKey) -> &mut KnownElection {
        self.elections.entry(key).or_default()
    }

    /// That of a process which knows the same and has made no call and heard nothing.
    pub fn cloned(&self) -> SharedConnection {
        Arc::new(Mutex::new(Connection {
            outbox: Vec::new(),
            inbox: VecDeque::new(),
            purpose: Purpose::Look,
            now: self.now,
            elections: self.elections.clone(),
        }))
    }

    /// Whether a connection is back and the process has not heard of it.
    pub fn is_back(&self) -> bool {
        self.inbox.iter().any(|change| matches!(change, Change::Restored))
    }
}

impl KnownElection {
    fn forget(&mut self) {
        (self.known, self.latest) = Default::default();
    }

    /// Since when the process has known this state of the record; `None` if it does not.
    pub fn since_beat(&self, found: Option<&Record>) -> Option<Nanos> {
        match (&self.latest, found) {
            (None, None) => Some(0),
            (Some(latest), Some(record)) => latest.is(record).then_some(latest.since),
            _ => None,
        }
    }

    /// `certain` is a read that nothing overtook; news and other reads may be old.
    fn saw(&mut self, now: Nanos, found: Option<(&Record, u64)>, certain: bool) {
        self.learnt += 1;
        let Some((record, version)) = found else {
            self.latest = None;
            return;
        };
        let held = leadership_of(record);
        let mut since = now;
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
        now: 0,
        elections: BTreeMap::new(),
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

    fn send(&self, key: ElectionKey, ask: RegisterCall) -> Slot {
        let slot = Slot::new(ask.clone());
        let mut connection = lock(&self.connection);
        let purpose = connection.purpose;
        let known = matches!(purpose, Purpose::Claim(_)).then(|| connection.of(key).known.clone());
        connection.outbox.push(OutgoingCall { key, ask, slot: slot.clone(), purpose, known });
        slot
    }

    async fn call(&self, on: &ElectionName, ask: RegisterCall) -> RegisterAnswer {
        let slot = self.send(ElectionKey::of(on), ask);
        std::future::poll_fn(move |context| slot.take(context.waker())).await
    }

    fn saw(&self, on: &ElectionName, found: Option<(&Record, u64)>, learnt: Option<u64>) {
        let mut connection = lock(&self.connection);
        let now = connection.now;
        let election = connection.of(ElectionKey::of(on));
        let certain = learnt == Some(election.learnt);
        election.saw(now, found, certain);
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

    async fn load(&self, on: &ElectionName) -> Result<Found<u64>, StoreError> {
        let learnt = lock(&self.connection).of(ElectionKey::of(on)).learnt;
        let RegisterAnswer::Loaded(result) = self.call(on, RegisterCall::Load).await else {
            return Err(confused());
        };
        if let Ok(found) = &result {
            let found = found.as_ref().map(|(record, version)| (record, *version));
            self.saw(on, found, Some(learnt));
        }
        result
    }

    async fn write(&self, on: &ElectionName, at: Option<&u64>, new: &Record) -> Write<u64> {
        let ask = RegisterCall::Write { at: at.copied(), record: Box::new(new.clone()) };
        let RegisterAnswer::Written(write) = self.call(on, ask).await else {
            return Write::Refused(confused());
        };
        if let Write::Done(version) = &write {
            self.saw(on, Some((new, *version)), None);
        }
        write
    }

    fn follow(&self, on: &ElectionName) {
        lock(&self.connection).follow(ElectionKey::of(on));
    }

    fn unfollow(&self, on: &ElectionName) {
        lock(&self.connection).unfollow(ElectionKey::of(on));
    }

    fn changes(&self) -> Changes<u64> {
        let connection = Arc::clone(&self.connection);
        Box::pin(stream::poll_fn(move |_| {
            let mut connection = lock(&connection);
            let Some(change) = connection.inbox.pop_front() else { return Poll::Pending };
            let now = connection.now;
            match &change {
                Change::Now(on, found) => {
                    let found = found.as_ref().map(|(record, version)| (record, *version));
                    connection.of(ElectionKey::of(on)).saw(now, found, false);
                }
                Change::Restored => {
                    let latest = connection.elections.values_mut().filter_map(|known| known.latest.as_mut());
                    latest.for_each(|latest| latest.since = now);
                }
                Change::Doubt | Change::Look(_) => {}
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

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        match self.call(on, RegisterCall::ReadNote(note.clone())).await {
            RegisterAnswer::NoteRead(result) => result,
            _ => Err(confused()),
        }
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        match self.call(on, RegisterCall::WriteNote(note.clone(), at, bytes.to_vec())).await {
            RegisterAnswer::Written(write) => write,
            _ => Write::Refused(confused()),
        }
    }
}

/// Locks what only one thread ever uses; the lock is there because the traits ask for `Send`.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
