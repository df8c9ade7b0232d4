//! Ending sessions of one's own that the server still has: half-open ones of this process, and those of an earlier start.
//!
//! A connection that broke on this side lives on at the server until its lease ends it, with its locks. Its process has
//! nothing more to say on it, so the next connection ends it: by number and start, which no other session shares. That frees
//! the lock and not the lead, since the presence is the other session's; the second one is ended only when every
//! candidate whose work it stood for has come back or left.

use std::time::Duration;

use bellwether_backend::{LockHolder, SessionFailure};
use bellwether_core::{ErrorKind, StoreError};

use crate::connection::SessionIdentity;
use crate::errors::{BACKEND, unavailable};
use crate::lock_session::PgLockSession;
use crate::presence_session::PgPresenceSession;
use crate::sql;
use crate::store::{PgStore, lock};

/// How long a session may take to end that was told to.
const ENDING: Duration = Duration::from_secs(2);
/// From one look whether it ended to the next.
const PAUSE: Duration = Duration::from_millis(1);
/// So many are remembered; older ones have long been ended by their lease.
const HALF_OPEN_MAX: usize = 16;

impl PgStore {
    pub(crate) fn remember_half_open(&self, session: SessionIdentity) {
        let mut all = lock(&self.half_open);
        all.push(session);
        let excess = all.len().saturating_sub(HALF_OPEN_MAX);
        all.drain(..excess);
    }

    /// Ends what this process left behind on that server. What cannot be ended is ended by its lease.
    pub(crate) async fn end_half_open(&self, beside: &PgLockSession, through: &PgPresenceSession) {
        let left = std::mem::take(&mut *lock(&self.half_open));
        for session in left {
            if beside.connection.shares_server_with(&session) {
                let _ = end(through, &session).await;
            }
        }
    }

    /// A presence session that broke on this side and that nobody's work needs any more.
    pub(crate) async fn end_presence_of(&self, through: &PgPresenceSession, old: &SessionIdentity) {
        if through.connection.shares_server_with(old) {
            let _ = end(through, old).await;
        }
    }

    /// Ends an earlier start of a candidate by the name of its lock session, and waits until both are gone.
    pub(crate) async fn terminate_earlier(
        &self,
        through: &PgPresenceSession,
        holder: &LockHolder<i32>,
    ) -> Result<(), StoreError> {
        let connection = &through.connection;
        let statement = connection.prepare(sql::END_EARLIER).await?;
        let values: &[_] = &[&holder.session as &(dyn tokio_postgres::types::ToSql + Sync), &holder.name];
        let ended = connection.rows(through.patience(ENDING), &statement, values).await;
        let rows = ended.map_err(SessionFailure::error).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => StoreError::new(
                ErrorKind::PermissionDenied,
                BACKEND,
                "the role may not end the earlier session of this id: use the same role, or GRANT pg_signal_backend to it",
            )
            .caused_by(error),
            _ => error,
        })?;
        gone(through, rows.iter().map(|row| row.get(0)).collect()).await
    }
}

async fn end(through: &PgPresenceSession, session: &SessionIdentity) -> Result<(), StoreError> {
    let statement = through.connection.prepare(sql::END_OWN).await?;
    let ended = through
        .connection
        .rows(through.patience(ENDING), &statement, &[&session.pid, &session.started])
        .await;
    if ended.map_err(SessionFailure::error)?.is_empty() {
        return Ok(());
    }
    gone(through, vec![session.pid]).await
}

/// Waits until none of these processes is left.
async fn gone(through: &PgPresenceSession, pids: Vec<i32>) -> Result<(), StoreError> {
    let left = through.connection.prepare(sql::LEFT).await?;
    let waited = tokio::time::timeout(ENDING, async {
        loop {
            let row = through
                .connection
                .row(through.patience(ENDING), &left, &[&pids])
                .await
                .map_err(SessionFailure::error)?;
            if row.get::<_, i64>(0) == 0 {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    waited.await.unwrap_or_else(|_| Err(unavailable("the earlier session was told to end and has not yet")))
}
