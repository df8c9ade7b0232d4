//! The session of presence and news, B: shows others what this process leads, listens, and looks.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{
    LockHolder, Presence, PresenceSession, Session, SessionFailure, SessionNotice, WantedPresence,
};
use bellwether_core::{Clock, StoreError};
use tokio_postgres::{Row, Statement};

use crate::Keys;
use crate::connection::{PgConnection, Values, only};
use crate::lock_session::{ServerTimeline, columns, holder, limit, locks_of, tune};
use crate::names::millis;
use crate::notices;
use crate::store::lock;

/// How long a look may take.
pub(crate) const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// The session of presence and news, with its statements.
pub struct PgPresenceSession {
    pub(crate) connection: PgConnection,
    pub(crate) statements: PresenceStatements,
    pub(crate) tuned: Mutex<Duration>,
    pub(crate) clock: Arc<dyn Clock>,
    /// As the lock session beside it has seen it.
    pub(crate) timeline: Arc<ServerTimeline>,
}

/// Its statements.
pub(crate) struct PresenceStatements {
    pub(crate) presence: Statement,
    pub(crate) presence_all: Statement,
    pub(crate) absence: Statement,
    pub(crate) beat: Statement,
    pub(crate) look: Statement,
    pub(crate) tell: Statement,
}

impl PgPresenceSession {
    /// Runs a statement; see [`patience`](PgPresenceSession::patience).
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
        self.connection.rows(self.patience(ttl), statement, values).await
    }

    /// How long an answer is waited for before the session is given up, and every presence on it with it: as long as any
    /// leadership counts on them. Answers come in order, so while one is out, no renewal that left later has counted.
    pub(crate) fn patience(&self, ttl: Duration) -> Duration {
        limit(ttl.max(*lock(&self.tuned)))
    }

    async fn appear_at(
        &self,
        wanted: &[WantedPresence<Keys, i32>],
        lease: Duration,
    ) -> Result<Vec<Row>, SessionFailure> {
        let lease = millis(lease).to_string();
        if let [WantedPresence { key, condition, if_locked_by, ttl }] = wanted {
            let (presence, first) = (key.presence(), if_locked_by.unwrap_or(0));
            let (need, force) = (millis(condition.quiet), condition.by_force);
            let values: Values<'_> =
                &[&presence.0, &presence.1, &need, &force, &lease, &first, &key.0, &key.1];
            return Ok(vec![self.row(*ttl, &self.statements.presence, values).await?]);
        }
        let ttl = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        let (ones, twos) = columns(wanted.iter().map(|one| one.key.presence()));
        let needs: Vec<i64> = wanted.iter().map(|one| millis(one.condition.quiet)).collect();
        let forces: Vec<bool> = wanted.iter().map(|one| one.condition.by_force).collect();
        self.rows(ttl, &self.statements.presence_all, &[&ones, &twos, &needs, &forces, &lease]).await
    }
}

impl Session for PgPresenceSession {
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

impl PresenceSession for PgPresenceSession {
    async fn appear(
        &self,
        wanted: &[WantedPresence<Keys, i32>],
        lease: Duration,
    ) -> Result<Vec<Presence>, SessionFailure> {
        let rows = self.appear_at(wanted, lease).await?;
        let read = |row: &Row| {
            self.timeline.saw(self.clock.boot(), row.get("timeline"));
            let quiet = u64::try_from(row.get::<_, i64>("quiet_ms")).unwrap_or(0);
            Presence {
                present: row.get("present"),
                others: row.get("others"),
                quiet: Duration::from_millis(quiet),
            }
        };
        Ok(rows.iter().map(read).collect())
    }

    async fn leave(&self, key: Keys, ttl: Duration, lease: Duration) {
        let (presence, lease) = (key.presence(), millis(lease).to_string());
        let _ = self.row(ttl, &self.statements.absence, &[&presence.0, &presence.1, &lease]).await;
    }

    async fn look(&self, keys: &[Keys]) -> Result<Vec<Option<LockHolder<i32>>>, StoreError> {
        let (ones, twos) = columns(keys.iter().copied());
        let presences = columns(keys.iter().map(|key| key.presence()));
        let marks: Vec<i64> = keys.iter().map(|key| key.mark()).collect();
        let values: Values<'_> = &[&ones, &twos, &marks, &presences.0, &presences.1];
        let rows = self.connection.rows(self.patience(LOOK_LIMIT), &self.statements.look, values).await;
        Ok(rows.map_err(SessionFailure::error)?.iter().map(holder).collect())
    }
}
