//! The two sessions of a process: A holds the locks, B shows others what this process leads, listens, and looks.
//!
//! Many claims are made in one statement. The arrays are explicit, since in a condition the planner may run the lock first. The transaction
//! id is assigned after the last lock of the statement was tried, so that it is above whatever others were given meanwhile, and one
//! id serves all: epochs are compared within an election only.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{
    LockAnswer, LockHolder, LockResult, Presence, Session, SessionFailure, SessionNotice, WantedLock,
    WantedPresence, lock,
};
use bellwether_core::{Boot, Clock, Epoch, StoreError, TTL_RANGE};
use tokio_postgres::Row;

use crate::connection::{PgConnection, Values};
use crate::epoch::{self, is_claiming, marked_epoch};
use crate::errors::{misconfigured, unavailable};
use crate::names::{self, SessionNames, SessionTtl, millis};
use crate::records::Records;
use crate::{Keys, notices, presence_sql, sql};

/// Most elections of one process: the server's lock table is shared, and with it full nobody can even connect. On a server with
/// little room it is fewer, so that one process never has more than a quarter of it.
const ELECTIONS_MAX: usize = 1_000;
/// The election's own, the presence, and what marks it.
const LOCKS_PER_ELECTION: usize = 3;

/// How long a look may take.
pub(crate) const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// One of the two sessions of a process.
pub struct PgSession {
    pub(crate) connection: PgConnection,
    pub(crate) pair: Arc<PairState>,
    /// When it was there, on our clock, read after it was opened: a server that restarts ends it, so it proves that there was
    /// no restart since.
    pub(crate) opened: Boot,
    role: SessionRole,
    /// For the longest ttl of these nothing ends it before its lease does.
    tuned: Mutex<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionRole {
    /// Session A.
    Lock,
    /// Session B.
    Presence,
}

/// What both sessions share, and what stands and falls with the lock session.
pub(crate) struct PairState {
    pub(crate) clock: Arc<dyn Clock>,
    /// Which of the hosts is the primary.
    pub(crate) host: usize,
    /// How many elections this process may hold there.
    pub(crate) elections_max: usize,
    /// What its sessions are called.
    pub(crate) names: SessionNames,
    /// The session of the tables, where there are any.
    pub(crate) records: tokio::sync::Mutex<Option<Arc<Records>>>,
    /// Claims are told by the statement that makes them; with tables, by the one that writes the row.
    tells_claims: bool,
    /// The timeline of the server, and since when: a promotion under a living session shows as another.
    timeline: Mutex<Option<(i32, Boot)>>,
    /// The ttl of the holder that was met last.
    met: Mutex<HashMap<Keys, Duration>>,
}

impl PairState {
    pub(crate) fn new(clock: Arc<dyn Clock>, host: usize, lock_room: i64, tells_claims: bool) -> PairState {
        PairState {
            clock,
            host,
            elections_max: elections_max(lock_room),
            names: SessionNames::default(),
            records: tokio::sync::Mutex::default(),
            tells_claims,
            timeline: Mutex::default(),
            met: Mutex::default(),
        }
    }

    /// The timeline was seen on a session that was opened then; the next look knows whether it was still the same.
    fn saw_timeline(&self, opened: Boot, timeline: i32) {
        let mut known = lock(&self.timeline);
        match *known {
            Some((same, _)) if same == timeline => {}
            Some(_) => *known = Some((timeline, self.clock.boot())),
            None => *known = Some((timeline, opened)),
        }
    }

    /// Warns of a holder's ttl that is not ours, as in the middle of a deployment that changes it.
    fn meet(&self, wanted: &WantedLock<Keys, i64>, theirs: SessionTtl) {
        let before = lock(&self.met).insert(wanted.key, theirs.ttl);
        let other = theirs.is_only && millis(theirs.ttl) != millis(wanted.ttl);
        if other && before != Some(theirs.ttl) {
            tracing::warn!(
                "{}: the holder's ttl is {:?} and this candidate's {:?}: it waits until the holder is gone, for the longer of the two; \
                 give all candidates of an election one ttl",
                wanted.on,
                theirs.ttl,
                wanted.ttl
            );
        }
    }
}

impl PgSession {
    pub(crate) fn new(
        connection: PgConnection,
        role: SessionRole,
        opened: Boot,
        pair: Arc<PairState>,
    ) -> PgSession {
        PgSession { connection, pair, opened, role, tuned: Mutex::default() }
    }

    /// Since when, at the latest, the server's timeline has been the same; `None` if it was never seen, or is a standby's.
    pub(crate) fn same_timeline_since(&self) -> Option<Boot> {
        lock(&self.pair.timeline).filter(|(timeline, _)| *timeline != 0).map(|(_, since)| since)
    }

    /// The highest timeline that was seen on it.
    pub(crate) fn newest_timeline(&self) -> i32 {
        lock(&self.pair.timeline).map_or(0, |(timeline, _)| timeline).max(self.connection.timeline)
    }

    /// How long an answer is waited for before the session is given up.
    ///
    /// On A for its ttl, past which nobody believes in it any more. On B, where every presence ends with the session, for as long as any
    /// leadership counts on them. Answers come in order, so while one is out, no renewal that left later has counted.
    pub(crate) fn limit(&self, ttl: Duration) -> Duration {
        let longest = if self.role == SessionRole::Presence { *lock(&self.tuned) } else { Duration::ZERO };
        ttl.max(longest).max(Duration::from_millis(500))
    }

    async fn row(
        &self,
        ttl: Duration,
        text: &'static str,
        values: Values<'_>,
    ) -> Result<Row, SessionFailure> {
        self.tune(ttl).await?;
        self.connection.row(self.limit(ttl), text, values).await
    }

    async fn rows(
        &self,
        ttl: Duration,
        text: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, SessionFailure> {
        self.tune(ttl).await?;
        self.connection.rows(self.limit(ttl), text, values).await
    }

    /// Makes sure that nothing ends the session before its lease does.
    async fn tune(&self, ttl: Duration) -> Result<(), SessionFailure> {
        if *lock(&self.tuned) >= ttl {
            return Ok(());
        }
        let (seconds, millis) = ((ttl.as_secs() + 2).to_string(), (millis(ttl) + 1_000).to_string());
        self.connection.row(self.limit(ttl), sql::NO_EARLIER, &[&seconds, &millis]).await?;
        *lock(&self.tuned) = ttl;
        Ok(())
    }

    /// Who holds these locks.
    async fn holders(
        &self,
        limit: Duration,
        keys: impl Iterator<Item = Keys> + Clone,
    ) -> Result<Vec<Option<LockHolder<i32>>>, StoreError> {
        let (ones, twos) = columns(keys.clone());
        let presences = columns(keys.clone().map(Keys::presence));
        let marks: Vec<i64> = keys.map(Keys::mark).collect();
        let values: Values<'_> = &[&ones, &twos, &marks, &presences.0, &presences.1];
        let rows = self.connection.rows(limit, sql::LOOK, values).await.map_err(SessionFailure::error)?;
        Ok(rows.iter().map(holder).collect())
    }

    /// An error if the session is no longer what it was.
    fn still_itself(&self, pid: i32, standby: bool) -> Result<(), StoreError> {
        let error = if pid != self.connection.pid() {
            misconfigured("the session moved to another server process: connect without a pooler")
        } else if standby {
            unavailable("the server has become a standby")
        } else {
            return Ok(());
        };
        self.connection.throw_away();
        Err(error)
    }

    /// The epoch and the mark, if the lock is ours.
    fn granted(&self, key: Keys, row: &Row) -> Result<Option<(Epoch, i64)>, StoreError> {
        self.still_itself(row.get("pid"), row.get("standby"))?;
        if !row.get::<_, bool>("got") {
            return Ok(None);
        }
        let xid: i64 = row.get("xid");
        // An epoch that cannot be issued must not leave a lock that nobody leads on.
        let epoch = epoch::epoch(row.get("timeline"), xid).inspect_err(|_| self.connection.throw_away())?;
        let marked = row.get::<_, Option<bool>>("marked").unwrap_or(false);
        Ok(Some((epoch, if marked { key.mark() | xid } else { 0 })))
    }

    /// Runs the statement of a claim; a row for each lock.
    async fn try_locks(
        &self,
        wanted: &[WantedLock<Keys, i64>],
        ttl: Duration,
        lease: Duration,
    ) -> Result<Vec<Row>, SessionFailure> {
        let mut used = (None, None);
        for one in wanted {
            used = self.pair.names.used_by(&one.id, one.ttl);
        }
        let notice = |one: &WantedLock<Keys, i64>| match self.pair.tells_claims {
            true => notices::claimed(one.key, self.connection.pid(), &one.id),
            false => String::new(),
        };
        let (lease, name) = (millis(lease).to_string(), names::write(used.0.as_ref(), used.1));
        let (ones, twos) = columns(wanted.iter().map(|one| one.key));
        let marks: Vec<i64> = wanted.iter().map(|one| one.key.mark()).collect();
        let before: Vec<Option<i64>> = wanted.iter().map(|one| one.held).collect();
        let notices: Vec<String> = wanted.iter().map(notice).collect();
        let values: Values<'_> = &[&ones, &twos, &marks, &before, &notices, &lease, &name];
        self.rows(ttl, sql::CLAIM, values).await
    }
}

impl Session for PgSession {
    type Key = Keys;
    type Id = i32;
    /// The lock that shows its epoch, or 0.
    type Mark = i64;

    fn id(&self) -> i32 {
        self.connection.pid()
    }

    fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    async fn over(&self) {
        self.connection.over().await;
    }

    fn throw_away(&self) {
        self.connection.throw_away();
    }

    async fn beat(&self, ttl: Duration) -> Result<HashSet<Keys>, StoreError> {
        let row = self.row(ttl, sql::BEAT, &[]).await.map_err(SessionFailure::error)?;
        self.still_itself(row.get(0), row.get(1))?;
        let (classes, objects): (Vec<i64>, Vec<i64>) = (row.get(2), row.get(3));
        let both = classes.into_iter().zip(objects);
        Ok(both.map(|(class, object)| Keys::from_catalogue(class, object)).collect())
    }

    async fn tell(&self, ttl: Duration, notice: &SessionNotice<Keys>) -> Result<(), SessionFailure> {
        self.row(ttl, sql::TELL, &[&notices::write(notice)]).await.map(drop)
    }

    /// Who holds the others is asked afterwards: all that a claim does while others wait is what decides.
    async fn claim(
        &self,
        wanted: &[WantedLock<Keys, i64>],
        lease: Duration,
    ) -> Result<Vec<LockResult<i32, i64>>, SessionFailure> {
        let ttl = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        let rows = self.try_locks(wanted, ttl, lease).await?;
        let granted = |(one, row): (&WantedLock<Keys, i64>, &Row)| self.granted(one.key, row);
        let granted: Vec<_> = wanted.iter().zip(&rows).map(granted).collect();
        let is_denied = |granted: &Result<_, StoreError>| matches!(granted, Ok(None));
        let denied = wanted.iter().zip(&granted).filter(|(_, granted)| is_denied(granted));
        let denied: Vec<Keys> = denied.map(|(one, _)| one.key).collect();
        let looked = match &denied[..] {
            [] => Ok(Vec::new()),
            some => self.holders(self.limit(ttl), some.iter().copied()).await,
        };
        let mut holders = match looked {
            Ok(holders) => holders.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); denied.len()],
        }
        .into_iter();
        let answer = |(one, granted): (&WantedLock<Keys, i64>, Result<_, StoreError>)| {
            if let Some((epoch, mark)) = granted? {
                return Ok(LockAnswer::Granted(epoch, mark));
            }
            let Some(holder) = holders.next().transpose()?.flatten() else {
                return Ok(LockAnswer::JustFreed);
            };
            if let Some(theirs) = names::read(&holder.name).1 {
                self.pair.meet(one, theirs);
            }
            Ok(LockAnswer::HeldBy(holder))
        };
        Ok(wanted.iter().zip(granted).map(answer).collect())
    }

    async fn unlock(
        &self,
        key: Keys,
        mark: i64,
        ttl: Duration,
        lease: Duration,
    ) -> Result<bool, SessionFailure> {
        let (rest, notice) = (millis(lease).to_string(), notices::write(&SessionNotice::Released(key)));
        let values: Values<'_> = &[&key.0, &key.1, &rest, &notice, &mark];
        Ok(self.row(ttl, sql::RELEASE, values).await?.get(0))
    }

    async fn undo(&self, key: Keys, ttl: Duration) -> Result<(), SessionFailure> {
        self.connection.rows(self.limit(ttl), sql::UNDO, &[&key.0, &key.1, &key.mark()]).await.map(drop)
    }

    async fn appear(
        &self,
        wanted: &[WantedPresence<Keys, i32>],
        lease: Duration,
    ) -> Result<Vec<Presence>, SessionFailure> {
        let ttl = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        let (ones, twos) = columns(wanted.iter().map(|one| one.key.presence()));
        let needs: Vec<i64> = wanted.iter().map(|one| millis(one.condition.quiet)).collect();
        let forces: Vec<bool> = wanted.iter().map(|one| one.condition.by_force).collect();
        let firsts: Vec<Option<i32>> = wanted.iter().map(|one| one.if_locked_by).collect();
        let locks = columns(wanted.iter().map(|one| one.key));
        let lease = millis(lease).to_string();
        let values: Values<'_> = &[&ones, &twos, &needs, &forces, &firsts, &locks.0, &locks.1, &lease];
        let rows = self.rows(ttl, presence_sql::presence(self.connection.may_date), values).await?;
        let read = |row: &Row| {
            self.pair.saw_timeline(self.opened, row.get("timeline"));
            let quiet = Duration::from_millis(u64::try_from(row.get::<_, i64>("quiet_ms")).unwrap_or(0));
            Presence { present: row.get("present"), others: row.get("others"), quiet }
        };
        Ok(rows.iter().map(read).collect())
    }

    async fn leave(&self, key: Keys, ttl: Duration, lease: Duration) {
        let (presence, lease) = (key.presence(), millis(lease).to_string());
        let _ = self.row(ttl, presence_sql::ABSENCE, &[&presence.0, &presence.1, &lease]).await;
    }

    async fn look(&self, keys: &[Keys]) -> Result<Vec<Option<LockHolder<i32>>>, StoreError> {
        self.holders(self.limit(LOOK_LIMIT), keys.iter().copied()).await
    }
}

/// The holder that a row of a look shows.
fn holder(row: &Row) -> Option<LockHolder<i32>> {
    let session = row.get::<_, Option<i32>>("holder")?;
    let name = row.get::<_, Option<String>>("name").unwrap_or_default();
    let (id, lease) = names::read(&name);
    let same_role = row.get::<_, Option<bool>>("same_role").unwrap_or(false);
    let silent = row.get::<_, Option<i64>>("idle_ms").and_then(|ms| u64::try_from(ms).ok());
    Some(LockHolder {
        session,
        is_ours: names::is_ours(&name),
        id,
        // A holder that has no epoch yet does not lead.
        leads: row.get::<_, bool>("leads") && !is_claiming(row),
        // Among several it is not known which is this election's; and everybody can call a session whatever it likes.
        ttl: lease.filter(|lease| lease.is_only && same_role).map(|lease| lease.ttl.min(TTL_RANGE.1)),
        silent: silent.map(Duration::from_millis),
        epoch: marked_epoch(row),
        name,
    })
}

fn columns(keys: impl Iterator<Item = Keys>) -> (Vec<i32>, Vec<i32>) {
    keys.map(|keys| (keys.0, keys.1)).unzip()
}

/// Most elections of one process on a server with room for this many locks.
fn elections_max(room: i64) -> usize {
    let quarter = usize::try_from(room / 4).unwrap_or(0);
    (quarter / LOCKS_PER_ELECTION).clamp(1, ELECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_never_has_more_than_a_quarter_of_the_lock_table() {
        // As a server is set up by default, a small one, and a large one.
        for (room, most) in [(64 * 100, 533), (10 * 20, 16), (128 * 1_000, ELECTIONS_MAX), (0, 1)] {
            assert_eq!(elections_max(room), most);
        }
    }
}
