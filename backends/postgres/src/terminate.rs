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
use crate::session::PgSession;
use crate::sql;

/// How long a session may take to end after it was told to.
const ENDING: Duration = Duration::from_secs(2);
/// The pause between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// Ends a session that broke on this side, if it was on the same server. What cannot be ended is ended by its lease.
pub(crate) async fn end_own(through: &PgSession, session: &SessionIdentity) {
    if !through.connection.identity.shares_server_with(session) {
        return;
    }
    let SessionIdentity { pid, started, .. } = session;
    let ended = through.connection.rows(through.limit(ENDING), sql::END_OWN, &[pid, started]).await;
    if ended.is_ok_and(|ended| !ended.is_empty()) {
        let _ = gone(through, vec![*pid]).await;
    }
}

/// Ends an earlier start of a candidate by the name of its lock session, and waits until both are gone.
pub(crate) async fn end_earlier(through: &PgSession, holder: &LockHolder<i32>) -> Result<(), StoreError> {
    let (limit, connection) = (through.limit(ENDING), &through.connection);
    let ended = connection.rows(limit, sql::END_EARLIER, &[&holder.session, &holder.name]).await;
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

/// Waits until none of these processes is left.
async fn gone(through: &PgSession, pids: Vec<i32>) -> Result<(), StoreError> {
    let waited = tokio::time::timeout(ENDING, async {
        loop {
            let left = through.connection.row(through.limit(ENDING), sql::LEFT, &[&pids]).await;
            if left.map_err(SessionFailure::error)?.get::<_, i64>(0) == 0 {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    waited.await.unwrap_or_else(|_| Err(unavailable("the earlier session was told to end and has not yet")))
}
