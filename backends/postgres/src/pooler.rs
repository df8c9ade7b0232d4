//! Whether both sessions keep their server process, which a pooler in transaction or statement mode does not let them.
//!
//! There a session is granted a lock, and the next statement runs elsewhere: two candidates were seen to hold one lock, and
//! both to find it in `pg_locks`. A pooler lends whichever server process is free, and looks right for as long as everybody
//! happens to get the same one back. So the probe sees to it that this does not happen. Both sessions are in a transaction at
//! once, so two server processes are lent; both are given back, and the sessions ask in turn. A pool that lends the one that was
//! given back last lends one and the same to both; one that lends them in turn gives the second another when it asks twice.
//! All of that more than once, since others use the pool meanwhile.
//!
//! Where the server sees the ports of our own ends, there is nothing in between, and nothing is probed. A pooler's own connections
//! have other ports; that both happen to have ours is as good as impossible, and heartbeats would find it.

use std::time::Duration;

use bellwether_backend::SessionFailure;
use bellwether_core::{ErrorKind, StoreError};

use crate::connection::PgConnection;
use crate::errors::{POOLED, misconfigured};

/// How long an answer may take: where no server process is free, it hangs.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
const ROUNDS: usize = 2;

/// An error unless each of the two has a server process to itself.
pub(crate) async fn pinned(a: &PgConnection, b: &PgConnection, place: &str) -> Result<(), StoreError> {
    let refused = || misconfigured(format!("at {place} {POOLED}"));
    if a.pid() == b.pid() {
        return Err(refused());
    }
    if a.is_direct && b.is_direct {
        return Ok(());
    }
    for _ in 0..ROUNDS {
        match round(a, b).await {
            Ok(()) => {}
            Err(SessionFailure::Said(_)) => return Err(refused()),
            Err(SessionFailure::Over(error)) if error.kind() == ErrorKind::TimedOut => return Err(refused()),
            Err(failure) => return Err(failure.error()),
        }
    }
    Ok(())
}

async fn round(a: &PgConnection, b: &PgConnection) -> Result<(), SessionFailure> {
    let (in_a, in_b) = (format!("BEGIN; {}", same(a)), format!("BEGIN; {}", same(b)));
    tokio::try_join!(a.execute(PROBE_LIMIT, &in_a), b.execute(PROBE_LIMIT, &in_b))?;
    tokio::try_join!(a.execute(PROBE_LIMIT, "COMMIT"), b.execute(PROBE_LIMIT, "COMMIT"))?;
    for session in [a, b, b] {
        ask(session).await?;
    }
    Ok(())
}

async fn ask(session: &PgConnection) -> Result<(), SessionFailure> {
    session.execute(PROBE_LIMIT, &same(session)).await
}

/// A statement that fails in any other server process: in one round trip, without being prepared.
fn same(session: &PgConnection) -> String {
    format!("SELECT 1 / (pg_backend_pid() = {})::int", session.pid())
}
