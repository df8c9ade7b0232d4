//! Ending sessions of one's own that the server still has: half-open ones of this process, and those of an earlier start.
//!
//! A connection that broke on this side lives on at the server until its lease ends it, with its locks. Its process has
//! nothing more to say on it, so the next connection ends it: by number and start, which no other session shares. That frees
//! the lock and not the lead, since the presence is the other session's; the second one is ended only when every
//! candidate whose work it stood for has come back or left.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Error, ErrorKind};

use crate::errors::{BACKEND, Failure, unavailable};
use crate::link::{Beta, Link};
use crate::postgres::{Inner, lock};
use crate::session::Identity;
use crate::sql;

/// How long a session may take to end that was told to.
const ENDING: Duration = Duration::from_secs(2);
/// From one look whether it ended to the next.
const PAUSE: Duration = Duration::from_millis(1);
/// So many are remembered; older ones have long been ended by their lease.
const HALF_OPEN_MAX: usize = 16;

impl Inner {
    pub(crate) fn remember_half_open(&self, session: Identity) {
        let mut all = lock(&self.half_open);
        all.push(session);
        let excess = all.len().saturating_sub(HALF_OPEN_MAX);
        all.drain(..excess);
    }

    /// Ends what this process left behind on that server. What cannot be ended is ended by its lease.
    pub(crate) async fn end_half_open(&self, link: &Link) {
        let left = std::mem::take(&mut *lock(&self.half_open));
        for session in left {
            if link.a.session.shares_server_with(&session) {
                let _ = end(&link.b(), &session).await;
            }
        }
    }

    /// A second session that broke on this side and that nobody's work needs any more.
    pub(crate) async fn end_if_over(&self, b: &Arc<Beta>) {
        let needed = self.lingers(b);
        let Some(link) = self.current().filter(|_| b.session.is_over() && !needed) else { return };
        let identity = b.session.identity();
        if link.a.session.shares_server_with(&identity) {
            let _ = end(&link.b(), &identity).await;
        }
    }

    /// Ends an earlier start of a candidate by the name of its first session, and waits until both are gone.
    pub(crate) async fn end_earlier(&self, link: &Link, pid: i32, name: &str) -> Result<(), Error> {
        let b = link.b();
        let statement = b.session.prepare(sql::END_EARLIER).await?;
        let ended = b.session.rows(b.patience(ENDING), &statement, &[&pid, &name]).await;
        let rows = ended.map_err(Failure::error).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => Error::new(
                ErrorKind::PermissionDenied,
                BACKEND,
                "the role may not end the earlier session of this id: use the same role, or GRANT pg_signal_backend to it",
            )
            .caused_by(error),
            _ => error,
        })?;
        gone(&b, rows.iter().map(|row| row.get(0)).collect()).await
    }
}

async fn end(through: &Beta, session: &Identity) -> Result<(), Error> {
    let statement = through.session.prepare(sql::END_OWN).await?;
    let ended =
        through.session.rows(through.patience(ENDING), &statement, &[&session.pid, &session.started]).await;
    if ended.map_err(Failure::error)?.is_empty() {
        return Ok(());
    }
    gone(through, vec![session.pid]).await
}

/// Waits until none of these processes is left.
async fn gone(through: &Beta, pids: Vec<i32>) -> Result<(), Error> {
    let left = through.session.prepare(sql::LEFT).await?;
    let waited = tokio::time::timeout(ENDING, async {
        loop {
            let row = through
                .session
                .row(through.patience(ENDING), &left, &[&pids])
                .await
                .map_err(Failure::error)?;
            if row.get::<_, i64>(0) == 0 {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    waited.await.unwrap_or_else(|_| Err(unavailable("the earlier session was told to end and has not yet")))
}
