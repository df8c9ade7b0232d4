//! The session of the locks, A: claims, heartbeat, release.
//!
//! Many claims are made in one statement. The arrays are explicit, since in a condition the planner may run the lock first. The transaction
//! id is assigned after the last lock of the statement was tried, so that it is above whatever others were given meanwhile, and one
//! id serves all: epochs are compared within an election only.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{
    LockAnswer, LockHolder, LockResult, LockSession, Session, SessionFailure, SessionNotice, WantedLock,
};
use bellwether_core::{Boot, Epoch, StoreError, TTL_RANGE};
use tokio_postgres::{Row, Statement};

use crate::connection::{PgConnection, Values, only};
use crate::epoch::{self, is_claiming, marked_epoch};
use crate::errors::{misconfigured, unavailable};
use crate::names::{self, SessionTtl, millis};
use crate::notices;
use crate::records::Records;
use crate::session_names::SessionNames;
use crate::store::lock;
use crate::{Keys, sql};

/// Most elections of one process: the server's lock table is shared, and with it full nobody can even connect. On a server with
/// little room it is fewer, so that one process never has more than a quarter of it.
const ELECTIONS_MAX: usize = 1_000;
/// The election's own, the presence, and what marks it.
const LOCKS_PER_ELECTION: usize = 3;

/// The session of the locks, with its statements and what stands and falls with it.
pub struct PgLockSession {
    pub(crate) connection: PgConnection,
    pub(crate) statements: LockStatements,
    pub(crate) tuned: Mutex<Duration>,
    /// Which of the hosts is the primary.
    pub(crate) host: usize,
    /// How many elections this process may hold there.
    pub(crate) elections_max: usize,
    /// What its sessions are called.
    pub(crate) names: SessionNames,
    pub(crate) timeline: Arc<ServerTimeline>,
    /// The session of the tables, where there are any.
    pub(crate) records: tokio::sync::Mutex<Option<Arc<Records>>>,
    /// Claims are told by the statement that makes them; with tables, by the one that writes the row.
    pub(crate) tells_claims: bool,
    /// The ttl of the holder that was met last.
    met: Mutex<HashMap<Keys, Duration>>,
}

/// Its statements.
pub(crate) struct LockStatements {
    pub(crate) claim: Statement,
    pub(crate) claim_all: Statement,
    pub(crate) again: Statement,
    pub(crate) beat: Statement,
    pub(crate) release: Statement,
    pub(crate) tell: Statement,
}

/// The timeline of the server, since it was first seen: a promotion under a living session shows as another.
pub(crate) struct ServerTimeline(Mutex<(i32, Boot)>);

impl ServerTimeline {
    pub(crate) fn new(opened: Boot) -> ServerTimeline {
        ServerTimeline(Mutex::new((0, opened)))
    }

    /// It was seen; the next look knows whether it was still the same.
    pub(crate) fn saw(&self, now: Boot, timeline: i32) {
        let mut known = lock(&self.0);
        if known.0 != timeline {
            let first = known.0 == 0;
            *known = (timeline, if first { known.1 } else { now });
        }
    }

    pub(crate) fn highest(&self) -> i32 {
        lock(&self.0).0
    }

    /// Since when, at the latest, it has been the same; `None` if it was never seen.
    pub(crate) fn since(&self) -> Option<Boot> {
        let (timeline, since) = *lock(&self.0);
        (timeline != 0).then_some(since)
    }
}

impl PgLockSession {
    /// One that holds nothing yet.
    pub(crate) fn new(
        connection: PgConnection,
        statements: LockStatements,
        host: usize,
        tells_claims: bool,
    ) -> PgLockSession {
        PgLockSession {
            elections_max: elections_max(connection.lock_room),
            timeline: Arc::new(ServerTimeline::new(connection.opened)),
            connection,
            statements,
            tuned: Mutex::default(),
            host,
            names: SessionNames::default(),
            records: tokio::sync::Mutex::default(),
            tells_claims,
            met: Mutex::default(),
        }
    }

    /// The highest timeline that was seen on it.
    pub(crate) fn newest_timeline(&self) -> i32 {
        self.timeline.highest().max(self.connection.timeline)
    }

    /// Runs a statement within the ttl that belief in its answer could last at most.
    async fn row(
        &self,
        ttl: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Row, SessionFailure> {
        self.rows(ttl, statement, values).await.and_then(only)
    }

    async fn rows(
        &self,
        ttl: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Row>, SessionFailure> {
        tune(&self.connection, &self.tuned, ttl).await?;
        self.connection.rows(limit(ttl), statement, values).await
    }

    /// Runs a statement about one lock that is to be, or is, ours.
    async fn about_one(
        &self,
        statement: &Statement,
        wanted: &WantedLock<Keys>,
        lease: Duration,
        before: i64,
    ) -> Result<Row, SessionFailure> {
        let WantedLock { key, id, ttl, .. } = wanted;
        let (id_told, lease_told) = self.names.used_by(id, *ttl);
        let (lease, name) = (millis(lease).to_string(), names::write(id_told.as_ref(), lease_told));
        let (begin, notice, presence) = (key.mark(), self.notice(wanted), key.presence());
        let values: Values<'_> =
            &[&key.0, &key.1, &lease, &name, &begin, &before, &notice, &presence.0, &presence.1];
        self.row(*ttl, statement, values).await
    }

    async fn about_all(
        &self,
        wanted: &[WantedLock<Keys>],
        lease: Duration,
    ) -> Result<Vec<Row>, SessionFailure> {
        let mut used = (None, None);
        for one in wanted {
            used = self.names.used_by(&one.id, one.ttl);
        }
        let ttl = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        let (lease, name) = (millis(lease).to_string(), names::write(used.0.as_ref(), used.1));
        let (ones, twos) = columns(wanted.iter().map(|one| one.key));
        let marks: Vec<i64> = wanted.iter().map(|one| one.key.mark()).collect();
        let notices: Vec<String> = wanted.iter().map(|one| self.notice(one)).collect();
        let presence = columns(wanted.iter().map(|one| one.key.presence()));
        let values: Values<'_> = &[&ones, &twos, &lease, &name, &marks, &notices, &presence.0, &presence.1];
        self.rows(ttl, &self.statements.claim_all, values).await
    }

    /// The notice of a claim, but for the epoch.
    fn notice(&self, wanted: &WantedLock<Keys>) -> String {
        if self.tells_claims {
            notices::claimed(wanted.key, self.connection.pid, &wanted.id)
        } else {
            String::new()
        }
    }

    /// The epoch and the mark, if the lock is ours.
    fn granted(&self, key: Keys, row: &Row) -> Result<Option<(Epoch, i64)>, StoreError> {
        if row.get::<_, i32>("pid") != self.connection.pid {
            self.connection.throw_away();
            return Err(misconfigured(
                "the session moved to another server process: connect without a pooler",
            ));
        }
        if row.get("standby") {
            self.connection.throw_away();
            return Err(unavailable("the server has become a standby"));
        }
        if !row.get::<_, bool>("got") {
            return Ok(None);
        }
        let xid: i64 = row.get("xid");
        // An epoch that cannot be issued must not leave a lock that nobody leads on.
        let epoch = epoch::epoch(row.get("timeline"), xid).inspect_err(|_| self.connection.throw_away())?;
        let marked = row.get::<_, Option<bool>>("marked").unwrap_or(false);
        Ok(Some((epoch, if marked { key.mark() | xid } else { 0 })))
    }

    fn answer(&self, wanted: &WantedLock<Keys>, row: &Row) -> LockResult<i32, i64> {
        if let Some((epoch, mark)) = self.granted(wanted.key, row)? {
            return Ok(LockAnswer::Granted(epoch, mark));
        }
        let Some(holder) = holder(row) else { return Ok(LockAnswer::JustFreed) };
        if let Some(theirs) = names::read(&holder.name).1 {
            self.meet(wanted, theirs);
        }
        Ok(LockAnswer::HeldBy(holder))
    }

    /// Warns of a holder's ttl that is not ours, as in the middle of a deployment that changes it.
    fn meet(&self, wanted: &WantedLock<Keys>, theirs: SessionTtl) {
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

impl Session for PgLockSession {
    type Key = Keys;
    type Id = i32;

    fn id(&self) -> i32 {
        self.connection.pid
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
        let row = self.row(ttl, &self.statements.beat, &[]).await.map_err(SessionFailure::error)?;
        locks_of(&row, &self.connection)
    }

    async fn tell(&self, ttl: Duration, notice: &SessionNotice<Keys>) -> Result<(), SessionFailure> {
        self.row(ttl, &self.statements.tell, &[&notices::write(notice)]).await.map(drop)
    }
}

impl LockSession for PgLockSession {
    /// The lock that shows its epoch, or 0.
    type Mark = i64;

    async fn claim(
        &self,
        wanted: &[WantedLock<Keys>],
        lease: Duration,
    ) -> Result<Vec<LockResult<i32, i64>>, SessionFailure> {
        let rows = match wanted {
            [one] => vec![self.about_one(&self.statements.claim, one, lease, 0).await?],
            all => self.about_all(all, lease).await?,
        };
        Ok(wanted.iter().zip(&rows).map(|(wanted, row)| self.answer(wanted, row)).collect())
    }

    async fn claim_again(
        &self,
        wanted: &WantedLock<Keys>,
        lease: Duration,
        mark: i64,
    ) -> Result<Option<(Epoch, i64)>, SessionFailure> {
        let row = self.about_one(&self.statements.again, wanted, lease, mark).await?;
        self.granted(wanted.key, &row).map_err(SessionFailure::Over)
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
        Ok(self.row(ttl, &self.statements.release, values).await?.get(0))
    }

    async fn undo(&self, key: Keys, ttl: Duration) -> Result<(), SessionFailure> {
        let unlock = format!("SELECT pg_advisory_unlock({}, {})", key.0, key.1);
        for text in [unlock, sql::unmark(key.mark())] {
            self.connection.ask(limit(ttl), &text).await?;
        }
        Ok(())
    }
}

/// The holder that a row of a look or of a denial shows.
pub(crate) fn holder(row: &Row) -> Option<LockHolder<i32>> {
    let session = row.get::<_, Option<i32>>("holder")?;
    let name = row.get::<_, Option<String>>("name").unwrap_or_default();
    let (id, lease) = names::read(&name);
    let same_role = row.get::<_, Option<bool>>("same_role").unwrap_or(false);
    let silent = row.get::<_, Option<i64>>("idle_ms").and_then(|ms| u64::try_from(ms).ok());
    Some(LockHolder {
        session,
        is_ours: names::is_ours(&name),
        id,
        // Nor does who has no epoch yet.
        leads: row.get::<_, bool>("leads") && !is_claiming(row),
        // Among several it is not known which is this election's; and everybody can call a session whatever it likes.
        ttl: lease.filter(|lease| lease.is_only && same_role).map(|lease| lease.ttl.min(TTL_RANGE.1)),
        silent: silent.map(Duration::from_millis),
        epoch: marked_epoch(row),
        name,
    })
}

/// The keys of every lock that a heartbeat shows; an error if the session is no longer what it was.
pub(crate) fn locks_of(row: &Row, connection: &PgConnection) -> Result<HashSet<Keys>, StoreError> {
    let (pid, standby): (i32, bool) = (row.get(0), row.get(1));
    if pid != connection.pid {
        connection.throw_away();
        return Err(misconfigured("the session moved to another server process: connect without a pooler"));
    }
    if standby {
        connection.throw_away();
        return Err(unavailable("the server has become a standby"));
    }
    let (classes, objects): (Vec<i64>, Vec<i64>) = (row.get(2), row.get(3));
    Ok(classes.into_iter().zip(objects).map(|(class, object)| Keys::from_catalogue(class, object)).collect())
}

pub(crate) fn columns(keys: impl Iterator<Item = Keys>) -> (Vec<i32>, Vec<i32>) {
    keys.map(|keys| (keys.0, keys.1)).unzip()
}

/// Most elections of one process on a server with room for so many locks.
fn elections_max(room: i64) -> usize {
    let quarter = usize::try_from(room / 4).unwrap_or(0);
    (quarter / LOCKS_PER_ELECTION).clamp(1, ELECTIONS_MAX)
}

/// How long an answer is waited for: past the ttl nobody believes in it any more.
pub(crate) fn limit(ttl: Duration) -> Duration {
    ttl.max(Duration::from_millis(500))
}

/// Makes sure that nothing ends the session before its lease does.
pub(crate) async fn tune(
    connection: &PgConnection,
    tuned: &Mutex<Duration>,
    ttl: Duration,
) -> Result<(), SessionFailure> {
    if *lock(tuned) >= ttl {
        return Ok(());
    }
    let (seconds, millis) = (ttl.as_secs() + 2, millis(ttl) + 1_000);
    let text = sql::NO_EARLIER.replace("$1", &format!("'{seconds}'")).replace("$2", &format!("'{millis}'"));
    connection.execute(limit(ttl), &text).await?;
    *lock(tuned) = ttl;
    Ok(())
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
