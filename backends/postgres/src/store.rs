//! The store: how sessions are opened, what they do for claims beyond locks, and what outlives them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bellwether_backend::{
    Capabilities, Claimed, Creation, Discarded, Ear, Finding, Followers, Fut, LockAnswer, LockHolder, Past,
    Probing, Session, SessionFailure, SessionLease, SessionStore, Sessions, WantedLock, Written, lock,
};
use bellwether_core::{
    Bid, Boot, Candidate, CandidateId, Clock, ElectionName, Epoch, ErrorKind, Grant, Incarnation, Proof,
    Seen, StoreError,
};

use crate::connection::{Hear, SessionIdentity};
use crate::errors::{BACKEND, misconfigured, unavailable};
use crate::followers::followers;
use crate::open::{open_both, open_presence};
use crate::session::PgSession;
use crate::watch::watch;
use crate::{Config, Keys, names, notices, sql, terminate};

/// Elections on one PostgreSQL server.
pub type Postgres = SessionLease<PgStore>;

/// Elections on the server that this URL names; see [`Config::from_url`]. Nothing is connected yet.
///
/// # Errors
/// When the URL cannot be read or asks for what this build cannot do.
pub fn from_url(url: &str, clock: Arc<dyn Clock>) -> Result<Postgres, StoreError> {
    Ok(from_config(Config::from_url(url)?, clock))
}

/// Elections on the server that libpq's variables name; see [`Config::from_env`]. Nothing is connected yet.
///
/// # Errors
/// As [`from_url`].
pub fn from_env(clock: Arc<dyn Clock>) -> Result<Postgres, StoreError> {
    Ok(from_config(Config::from_env()?, clock))
}

/// Elections on that server. Nothing is connected yet.
pub fn from_config(config: Config, clock: Arc<dyn Clock>) -> Postgres {
    SessionLease::new(PgStore {
        config,
        clock,
        half_open: Mutex::default(),
        cooldown_checked: Mutex::default(),
        only: OnceLock::new(),
        worked_before: AtomicBool::new(false),
        newest_timeline: AtomicI32::new(0),
    })
}

/// How many transaction ids a claim uses up to get above a floor. More are missing only where the database was
/// restored from a backup.
const ADVANCE_MAX: u64 = 10_000;

/// The most half-open sessions that are remembered; older ones have long been ended by their lease.
const HALF_OPEN_MAX: usize = 16;

/// A PostgreSQL server as a store of sessions.
pub struct PgStore {
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    /// Lock sessions that ended here and may be alive on the server.
    pub(crate) half_open: Mutex<Vec<SessionIdentity>>,
    /// Whose cooldown has been looked up.
    pub(crate) cooldown_checked: Mutex<HashSet<(ElectionName, Incarnation)>>,
    /// The election of the URL's one pair of keys.
    only: OnceLock<ElectionName>,
    worked_before: AtomicBool,
    /// The highest timeline of a primary that was seen: one below it was left behind by a promotion.
    newest_timeline: AtomicI32,
}

impl PgStore {
    /// What worked before is not set up wrongly: a standby will be promoted, a password put right.
    fn in_hindsight(&self, error: StoreError) -> StoreError {
        if self.worked_before.load(Ordering::Relaxed) && !error.is_retryable() {
            return unavailable("the server that held the elections does not do so now").caused_by(error);
        }
        error
    }

    /// Has the sessions say in their names whom they serve, the first time and whenever that changes. It is for people: nothing
    /// is wrong if it fails.
    async fn name_after(&self, sessions: &Sessions<PgStore>, id: &CandidateId, ttl: Duration) {
        let Sessions { lock, presence } = sessions;
        let pair = &lock.pair;
        let Some(name) = pair.names.changed_by(id, ttl) else { return };
        let setting = |name: &str| format!("SET application_name = '{name}'");
        let (on_lock, on_presence) = (setting(&name), setting(&pair.names.of(names::PRESENCE)));
        let _ = tokio::join!(
            lock.connection.execute(lock.limit(ttl), &on_lock),
            presence.connection.execute(presence.limit(ttl), &on_presence)
        );
        let records = pair.records.try_lock().ok().and_then(|records| records.clone());
        if let Some(records) = records {
            let record = setting(&pair.names.of(names::RECORD));
            let _ = records.connection.execute(lock.limit(ttl), &record).await;
        }
    }

    /// Uses up transaction ids where this candidate has seen a higher epoch than the server's counter gives.
    async fn above_floor(
        &self,
        sessions: &Sessions<PgStore>,
        claimed: &Claimed<'_, PgStore>,
    ) -> Result<(Epoch, i64), StoreError> {
        let (epoch, floor) = (claimed.epoch, claimed.bid.floor);
        if epoch > floor {
            return Ok((epoch, claimed.mark));
        }
        let missing = floor.get() - epoch.get() + 1;
        let Sessions { lock, presence } = sessions;
        if missing > ADVANCE_MAX {
            lock.connection.throw_away();
            return Err(misconfigured(format!(
                "the server's next epoch is {epoch}, and {floor} was seen before: it was restored from a backup or is another one; \
                 start every candidate anew to accept it"
            )));
        }
        let (ttl, id) = (claimed.bid.ttl, claimed.bid.who.id.clone());
        let advanced = presence.connection.execute(presence.limit(ttl), &sql::advance(missing)).await;
        advanced.map_err(SessionFailure::error)?;
        let (key, on) = (claimed.key, claimed.on.clone());
        let wanted = WantedLock { key, on, id, ttl, held: Some(claimed.mark) };
        let mut again = lock.claim(&[wanted], claimed.lease).await.map_err(SessionFailure::error)?;
        match again.pop().transpose()? {
            Some(LockAnswer::Granted(epoch, mark)) if epoch > floor => Ok((epoch, mark)),
            _ => Err(unavailable("the server issued no epoch above those before it")),
        }
    }
}

/// Brings what a connection is notified of.
fn hear(ear: Ear<PgStore>) -> Hear {
    Arc::new(move |sender: i32, payload: &str| {
        if let Some(notice) = notices::read(payload) {
            ear.heard(sender, notice);
        }
    })
}

impl SessionStore for PgStore {
    type Key = Keys;
    type Session = PgSession;

    fn name(&self) -> &'static str {
        BACKEND
    }

    fn capabilities(&self) -> Capabilities {
        let tables = self.config.schema_used().is_some();
        Capabilities::SESSION.with(|can| {
            (can.epoch_visible, can.requests) = (true, true);
            (can.history, can.cooldown, can.lists) = (tables, tables, tables);
            (can.metadata_visible, can.crash_leaves_record) = (tables, tables);
            can.create_once = tables;
            can.ttl_unit = Duration::from_millis(1);
        })
    }

    fn now(&self) -> Boot {
        self.clock.boot()
    }

    async fn pause(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn spawn(&self, task: Fut<'static, ()>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(task);
        }
    }

    async fn finish<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ended = tokio::spawn(call).await;
        ended.map_err(|_| StoreError::new(ErrorKind::Bug, BACKEND, "a call ended in a panic"))
    }

    /// An error if the URL's one pair of keys is already another's.
    fn key(&self, on: &ElectionName) -> Result<Keys, StoreError> {
        if self.config.has_one_lock() && self.only.get_or_init(|| on.clone()) != on {
            let sentence = format!(
                "key1 and key2 of the URL are the lock of {:?}; {on:?} needs a connection of its own",
                self.only.get().map_or("", ElectionName::as_str)
            );
            return Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence));
        }
        Ok(self.config.keys_of(on))
    }

    async fn open(&self, ear: Ear<PgStore>) -> Result<Sessions<PgStore>, StoreError> {
        let newest = self.newest_timeline.load(Ordering::Relaxed);
        let opened = open_both(&self.config, &self.clock, hear(ear), newest).await;
        let sessions = opened.map_err(|error| self.in_hindsight(error))?;
        let Sessions { lock: locks, presence } = &sessions;
        self.newest_timeline.fetch_max(locks.newest_timeline(), Ordering::Relaxed);
        // Tables that are missing show now, not when somebody could lead.
        self.records(locks).await.map_err(|error| self.in_hindsight(error))?;
        self.worked_before.store(true, Ordering::Relaxed);
        let left_behind = std::mem::take(&mut *lock(&self.half_open));
        for session in left_behind {
            terminate::end_own(presence, &session).await;
        }
        Ok(sessions)
    }

    async fn open_presence(&self, beside: &PgSession, ear: Ear<PgStore>) -> Result<PgSession, StoreError> {
        open_presence(&self.config, beside, hear(ear)).await
    }

    fn stood_since(&self, of: &Sessions<PgStore>) -> Boot {
        let opened = of.lock.opened.max(of.presence.opened);
        // Where the timeline was never seen, nothing is known of a promotion.
        of.lock.same_timeline_since().map_or_else(|| self.clock.boot(), |since| since.max(opened))
    }

    fn watch(&self, lock: &Arc<PgSession>, ear: Ear<PgStore>) {
        if self.config.watches {
            self.spawn(Box::pin(watch(self.config.clone(), Arc::clone(lock), ear)));
        }
    }

    fn lost(&self, session: &PgSession) {
        self.newest_timeline.fetch_max(session.newest_timeline(), Ordering::Relaxed);
        let mut all = lock(&self.half_open);
        all.push(session.connection.identity.clone());
        let excess = all.len().saturating_sub(HALF_OPEN_MAX);
        all.drain(..excess);
    }

    async fn end_presence(&self, through: &PgSession, old: &PgSession) {
        terminate::end_own(through, &old.connection.identity).await;
    }

    async fn end_earlier(&self, through: &PgSession, holder: &LockHolder<i32>) -> Result<(), StoreError> {
        terminate::end_earlier(through, holder).await
    }

    fn elections_max(&self, lock: &PgSession) -> usize {
        lock.pair.elections_max
    }

    async fn admit(
        &self,
        through: &Sessions<PgStore>,
        on: &ElectionName,
        bid: &Bid,
    ) -> Result<Option<Seen>, StoreError> {
        self.name_after(through, &bid.who.id, bid.ttl).await;
        self.in_cooldown(&through.lock, on, bid).await
    }

    async fn write(
        &self,
        through: &Sessions<PgStore>,
        claimed: Claimed<'_, PgStore>,
    ) -> Result<Written<i64>, StoreError> {
        match self.records(&through.lock).await? {
            Some(records) => self.write_record(&through.lock, &claimed, &records).await,
            None => {
                let (epoch, mark) = self.above_floor(through, &claimed).await?;
                Ok(Written::Done { epoch, mark, unreleased: false })
            }
        }
    }

    async fn is_writable(&self, through: &Sessions<PgStore>, on: &ElectionName) -> Result<bool, StoreError> {
        match self.records(&through.lock).await? {
            Some(records) => records.is_free(on).await,
            None => Ok(true),
        }
    }

    /// Before the lock is released, since the next leader reads it. Others wait for the lock meanwhile, so nothing is opened for it, and
    /// it is left out where it would take long.
    async fn releasing(&self, through: &Sessions<PgStore>, on: &ElectionName, grant: &Grant) {
        let records = through.lock.pair.records.try_lock().ok().and_then(|records| records.clone());
        if let Some(records) = records.filter(|records| !records.connection.is_over()) {
            records.release(on, grant.epoch, grant.incarnation, grant.ttl / 10).await;
        }
    }

    async fn cool_down(
        &self,
        through: &Sessions<PgStore>,
        on: &ElectionName,
        id: &CandidateId,
        span: Duration,
    ) {
        if let Ok(Some(records)) = self.records(&through.lock).await {
            records.cool_down(on, id, span).await;
        }
    }

    /// The row counts for the holder only if it is of the very session that has the lock.
    async fn describe(
        &self,
        through: &Sessions<PgStore>,
        on: &ElectionName,
        holder: Option<i32>,
        seen: Seen,
    ) -> Result<Seen, StoreError> {
        let Some(records) = self.records(&through.lock).await? else { return Ok(seen) };
        let record = records.read(on).await?;
        Ok(match holder {
            Some(pid) if record.session == Some(pid) && seen.proof == Proof::Alive => Seen {
                holder: record.holder,
                epoch: record.epoch,
                priority: record.priority,
                acquired: record.acquired,
                metadata: record.metadata,
                ..seen
            },
            Some(_) => seen,
            None => {
                let released = record.epoch.is_some() && record.holder.is_none();
                let proof = if released { Proof::Released } else { seen.proof };
                Seen { epoch: record.epoch, proof, ..seen }
            }
        })
    }

    async fn followers(
        &self,
        through: &Sessions<PgStore>,
        on: &ElectionName,
    ) -> Result<Option<Followers>, StoreError> {
        followers(&through.presence, self.key(on)?).await.map(Some)
    }

    fn retired(&self, on: &ElectionName, who: &Candidate) {
        lock(&self.cooldown_checked).remove(&(on.clone(), who.incarnation));
    }

    async fn remember(
        &self,
        through: &Sessions<PgStore>,
        on: &ElectionName,
        past: &Past,
    ) -> Result<(), StoreError> {
        match self.records(&through.lock).await? {
            Some(records) => records.remember(on, past).await,
            None => Ok(()),
        }
    }

    async fn history(&self, through: &Sessions<PgStore>, on: &ElectionName) -> Result<Vec<Past>, StoreError> {
        match self.records(&through.lock).await? {
            Some(records) => records.history(on).await,
            None => Ok(Vec::new()),
        }
    }

    async fn elections(&self, through: &Sessions<PgStore>) -> Result<Vec<ElectionName>, StoreError> {
        match self.records(&through.lock).await? {
            Some(records) => records.elections().await,
            // Locks have numbers, not names.
            None => Ok(Vec::new()),
        }
    }

    async fn create_once(&self, through: &Sessions<PgStore>, name: &ElectionName, bytes: &[u8]) -> Creation {
        self.create_note(&through.lock, name, bytes).await
    }

    async fn read_once(
        &self,
        through: &Sessions<PgStore>,
        name: &ElectionName,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_note(&through.lock, name).await
    }

    async fn checkup(&self, through: &Sessions<PgStore>, _: Probing<'_>) -> Result<Vec<Finding>, StoreError> {
        self.examine(through).await
    }

    fn danger_discard(&self, on: &ElectionName) -> Discarded {
        // A lock that nobody has is nowhere; a row is.
        let left = self.config.schema_used();
        let left = left.map(|schema| format!("the row of {on} in schema {}", schema.name()));
        left.map_or(Discarded::Gone, Discarded::Remains)
    }

    #[cfg(unix)]
    fn crash_proof(&self, presence: &PgSession) -> Vec<std::os::fd::OwnedFd> {
        presence.connection.duplicate().into_iter().collect()
    }
}
