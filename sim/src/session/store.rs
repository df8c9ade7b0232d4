//! The store that the session lease under test is given: each of its statements goes to the world's server.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use bellwether_backend::{
    Capabilities, Claimed, Ear, Fut, LockAnswer, LockHolder, LockResult, Presence, Session, SessionFailure,
    SessionNotice, SessionStore, Sessions, WantedLock, WantedPresence, Written,
};
use bellwether_core::{Boot, ElectionName, ErrorKind, StoreError};

use super::wire::{
    self, LockState, LockWish, PresenceWish, ServerNews, SessionConnection, SessionKind, SessionNumber,
    Statement, StatementAnswer, Wire,
};
use crate::call::Purpose;
use crate::connection::{lock, trouble};
use crate::key::ElectionKey;

/// What the sessions and the tasks of a process share.
pub struct SharedSessions {
    pub(super) wire: Wire,
    /// A session is opened within this.
    connect_limit: Duration,
    /// A leadership takes another round trip to be written, as it does with tables.
    has_tables: bool,
    tasks: Mutex<Vec<Fut<'static, ()>>>,
    connections: Mutex<Vec<Arc<SessionConnection>>>,
    ear: Mutex<Option<Ear<SimStore>>>,
}

impl SharedSessions {
    /// Lets what runs beside the calls go on, and takes in what has reached the process.
    pub(super) fn run(&self, waker: &Waker) {
        let before = std::mem::replace(&mut lock(&self.wire.connection).purpose, Purpose::Tend);
        self.hear();
        let mut waiting = Vec::new();
        loop {
            // A task may begin another one.
            let tasks = std::mem::take(&mut *lock(&self.tasks));
            if tasks.is_empty() {
                break;
            }
            for mut task in tasks {
                if task.as_mut().poll(&mut Context::from_waker(waker)).is_pending() {
                    waiting.push(task);
                }
            }
        }
        *lock(&self.tasks) = waiting;
        lock(&self.wire.connection).purpose = before;
    }

    fn hear(&self) {
        let (ended, heard) = {
            let mut mail = lock(&self.wire.mail);
            (std::mem::take(&mut mail.hung_up), std::mem::take(&mut mail.inbox))
        };
        lock(&self.connections).retain(|connection| {
            if ended.contains(&connection.id) {
                connection.end();
            }
            !connection.is_over()
        });
        let ear = lock(&self.ear).clone();
        let Some(ear) = ear else { return };
        for heard in heard {
            match heard {
                ServerNews::Notice(sender, notice) => ear.heard(sender, notice),
                ServerNews::Ended(session) => ear.ended(session),
            }
        }
    }

    async fn open(self: &Arc<Self>, kind: SessionKind) -> Result<SimSession, StoreError> {
        let connection = self.wire.open(kind, self.connect_limit).await;
        let connection =
            connection.ok_or_else(|| trouble(ErrorKind::Unavailable, "the server cannot be reached"))?;
        lock(&self.connections).push(Arc::clone(&connection));
        Ok(SimSession { shared: Arc::clone(self), connection })
    }
}

/// Elections on the world's server.
pub struct SimStore(pub(super) Arc<SharedSessions>);

impl SimStore {
    /// A process that has not connected yet.
    pub fn new(wire: Wire, ttl: Duration) -> SimStore {
        SimStore(Arc::new(SharedSessions {
            wire,
            connect_limit: ttl * 3 / 2,
            has_tables: ttl.as_nanos().is_multiple_of(2),
            tasks: Mutex::default(),
            connections: Mutex::default(),
            ear: Mutex::default(),
        }))
    }
}

/// One of a process's two sessions.
pub struct SimSession {
    shared: Arc<SharedSessions>,
    connection: Arc<SessionConnection>,
}

impl SimSession {
    async fn ask(&self, ttl: Duration, statement: Statement) -> Result<StatementAnswer, SessionFailure> {
        self.shared.wire.ask(&self.connection, limit(ttl), statement).await.map_err(failure)
    }
}

impl Session for SimSession {
    type Key = ElectionKey;
    type Id = SessionNumber;
    type Mark = ();

    fn id(&self) -> SessionNumber {
        self.connection.id
    }

    fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    async fn over(&self) {
        self.connection.over().await;
    }

    fn throw_away(&self) {
        self.shared.wire.throw_away(&self.connection);
    }

    async fn beat(&self, ttl: Duration) -> Result<HashSet<ElectionKey>, StoreError> {
        match self.ask(ttl, Statement::Beat).await.map_err(SessionFailure::error)? {
            StatementAnswer::Has(keys) => Ok(keys.into_iter().collect()),
            _ => Err(confused().error()),
        }
    }

    async fn tell(&self, ttl: Duration, notice: &SessionNotice<ElectionKey>) -> Result<(), SessionFailure> {
        self.ask(ttl, Statement::Tell(notice.clone())).await.map(drop)
    }

    async fn claim(
        &self,
        wanted: &[WantedLock<ElectionKey, ()>],
        lease: Duration,
    ) -> Result<Vec<LockResult<SessionNumber, ()>>, SessionFailure> {
        let ttl = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        let wish = |one: &WantedLock<ElectionKey, ()>| LockWish {
            key: one.key,
            id: one.id.clone(),
            again: one.held.is_some(),
        };
        let wishes: Vec<LockWish> = wanted.iter().map(wish).collect();
        let StatementAnswer::Locks(states) = self.ask(ttl, Statement::Claim(wishes, lease)).await? else {
            return Err(confused());
        };
        let answer = |state| match state {
            LockState::Granted(epoch) => LockAnswer::Granted(epoch, ()),
            LockState::HeldBy(holder) => LockAnswer::HeldBy(holder),
            LockState::Free => LockAnswer::JustFreed,
        };
        Ok(states.into_iter().map(|state| Ok(answer(state))).collect())
    }

    async fn unlock(
        &self,
        key: ElectionKey,
        (): (),
        ttl: Duration,
        lease: Duration,
    ) -> Result<bool, SessionFailure> {
        Ok(self.ask(ttl, Statement::Unlock(key, lease)).await? == StatementAnswer::Yes(true))
    }

    async fn undo(&self, key: ElectionKey, ttl: Duration) -> Result<(), SessionFailure> {
        self.ask(ttl, Statement::Undo(key)).await.map(drop)
    }

    async fn appear(
        &self,
        wanted: &[WantedPresence<ElectionKey, SessionNumber>],
        lease: Duration,
    ) -> Result<Vec<Presence>, SessionFailure> {
        let ttl = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        let wish = |one: &WantedPresence<ElectionKey, SessionNumber>| PresenceWish {
            key: one.key,
            condition: one.condition,
            first: one.if_locked_by,
        };
        let wishes = wanted.iter().map(wish).collect();
        match self.ask(ttl, Statement::Appear(wishes, lease)).await? {
            StatementAnswer::Appeared(found) => Ok(found),
            _ => Err(confused()),
        }
    }

    async fn leave(&self, key: ElectionKey, ttl: Duration, lease: Duration) {
        let _ = self.ask(ttl, Statement::Leave(key, lease)).await;
    }

    async fn look(&self, keys: &[ElectionKey]) -> Result<Vec<Option<LockHolder<SessionNumber>>>, StoreError> {
        // Answers come in order: while this one is out, no renewal that left later has counted. So a ttl is the least
        // after which nobody counts on this session.
        let ttl = self.shared.connect_limit * 2 / 3;
        let looked = self.ask(ttl, Statement::Look(keys.to_vec())).await;
        let StatementAnswer::Locks(states) = looked.map_err(SessionFailure::error)? else {
            return Err(confused().error());
        };
        let holder = |state| match state {
            LockState::HeldBy(holder) => Some(holder),
            LockState::Granted(_) | LockState::Free => None,
        };
        Ok(states.into_iter().map(holder).collect())
    }
}

impl SessionStore for SimStore {
    type Key = ElectionKey;
    type Session = SimSession;

    fn name(&self) -> &'static str {
        "sim"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::SESSION
    }

    fn now(&self) -> Boot {
        self.0.wire.now()
    }

    async fn pause(&self, span: Duration) {
        self.0.wire.pause(span).await;
    }

    fn spawn(&self, task: Fut<'static, ()>) {
        lock(&self.0.tasks).push(task);
    }

    async fn finish<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        // Whoever drives a core drops no call.
        Ok(call.await)
    }

    fn key(&self, on: &ElectionName) -> Result<ElectionKey, StoreError> {
        Ok(ElectionKey::of(on))
    }

    async fn open(&self, ear: Ear<SimStore>) -> Result<Sessions<SimStore>, StoreError> {
        *lock(&self.0.ear) = Some(ear);
        let (lock, presence) =
            futures_util::future::join(self.0.open(SessionKind::Lock), self.0.open(SessionKind::Presence))
                .await;
        match (lock, presence) {
            (Ok(lock), Ok(presence)) => Ok(Sessions { lock: Arc::new(lock), presence: Arc::new(presence) }),
            (Ok(one), Err(error)) | (Err(error), Ok(one)) => {
                one.throw_away();
                Err(error)
            }
            (Err(error), Err(_)) => Err(error),
        }
    }

    async fn open_presence(&self, _: &SimSession, _: Ear<SimStore>) -> Result<SimSession, StoreError> {
        self.0.open(SessionKind::Presence).await
    }

    fn stood_since(&self, of: &Sessions<SimStore>) -> Boot {
        of.lock.connection.since.max(of.presence.connection.since)
    }

    async fn write(
        &self,
        through: &Sessions<SimStore>,
        claimed: Claimed<'_, SimStore>,
    ) -> Result<Written<()>, StoreError> {
        if self.0.has_tables {
            through.presence.look(&[claimed.key]).await?;
        }
        Ok(Written::Done { epoch: claimed.epoch, mark: (), unreleased: false })
    }
}

fn failure(failure: wire::StatementFailure) -> SessionFailure {
    match failure {
        wire::StatementFailure::Error => {
            SessionFailure::Said(trouble(ErrorKind::Unavailable, "the server said no"))
        }
        wire::StatementFailure::Over => {
            SessionFailure::Over(trouble(ErrorKind::Unavailable, "the session ended"))
        }
    }
}

fn confused() -> SessionFailure {
    SessionFailure::Over(trouble(ErrorKind::Bug, "an answer to another question"))
}

/// How long an answer is waited for: past the ttl nobody believes in it any more.
fn limit(ttl: Duration) -> Duration {
    ttl.max(Duration::from_millis(500))
}
