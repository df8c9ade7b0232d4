//! Hearing of a leader's death within a millisecond: session C parks on the key of the leader's *session*.
//!
//! Every session A holds `(SESSION_KEY, its process id)`. A follower asks for it, shared, and gets it when that session ends. One
//! such wait covers all elections of a leader's process, and nobody parks on an election's lock, where a stopped waiter would
//! be granted the lead. A parked statement pins the server's oldest snapshot, hence the limit of a second at a time;
//! whatever is missed meanwhile is found by the core's own retry.
//!
//! C is opened only while somebody else leads what is followed here.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Ear, Failure};
use bellwether_core::Clock;

use crate::connection::Connection;
use crate::keys::SESSION_KEY;
use crate::lock_session::PgLockSession;
use crate::store::PgStore;
use crate::{Config, names};

/// How long one statement stays parked: not as long as it takes until the server looks for a deadlock, a second by default, since it
/// then writes a line into its log where `log_lock_waits` is on.
const PARKED: Duration = Duration::from_millis(900);
/// How long nothing is asked while nobody else leads; a denial ends it.
const IDLE: Duration = Duration::from_secs(1);
/// How long an answer may take on top of the parking.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Runs until the lock session or the backend ends.
pub(crate) async fn watch(
    config: Config,
    clock: Arc<dyn Clock>,
    lock: Arc<PgLockSession>,
    ear: Ear<PgStore>,
) {
    tokio::select! {
        biased;
        () = ear.backend_ended() => {}
        () = lock.connection.over() => {}
        () = watch_others(&config, &*clock, &lock, &ear) => {}
    }
}

async fn watch_others(config: &Config, clock: &dyn Clock, lock: &PgLockSession, ear: &Ear<PgStore>) {
    let (mut session, mut last) = (None, None);
    loop {
        let Some(pid) = ear.other(last) else {
            tokio::select! {
                () = ear.other_found() => {}
                // Long enough that nobody leads elsewhere: the connection goes back.
                () = tokio::time::sleep(IDLE) => session = None,
            }
            continue;
        };
        if session.as_ref().is_none_or(Connection::is_over) {
            session = open(config, clock, lock).await;
        }
        let Some(parked) = &session else {
            tokio::time::sleep(IDLE).await;
            continue;
        };
        if has_ended(parked, pid).await {
            ear.ended(pid);
        } else {
            last = Some(pid);
        }
    }
}

async fn open(config: &Config, clock: &dyn Clock, lock: &PgLockSession) -> Option<Connection> {
    let name = lock.names.of(names::WATCH);
    let session = Connection::open(config, lock.host, clock.boot(), &name, None).await.ok()?;
    let setting = format!("SET lock_timeout = {}", PARKED.as_millis());
    session.execute(ANSWER_LIMIT, &setting).await.ok()?;
    Some(session)
}

/// Parks for a while; true if that session is over.
///
/// The time-out is caught by the server, which would write an error into its log otherwise, once a second for every follower. What it
/// came to is asked for in the same batch.
async fn has_ended(parked: &Connection, pid: i32) -> bool {
    let text = format!(
        "DO $$ BEGIN PERFORM pg_advisory_lock_shared({SESSION_KEY}, {pid}), pg_advisory_unlock_shared({SESSION_KEY}, {pid}); \
         EXCEPTION WHEN lock_not_available THEN NULL; END $$; \
         SELECT CASE WHEN pg_try_advisory_lock_shared({SESSION_KEY}, {pid}) \
         THEN pg_advisory_unlock_shared({SESSION_KEY}, {pid}) ELSE false END"
    );
    let failed = match parked.said(PARKED + ANSWER_LIMIT, &text).await {
        Ok(said) => return said.as_deref() == Some("t"),
        // As where the language of the block was taken away from this role: then the core's own retry has to do.
        Err(Failure::Said(_)) => IDLE,
        Err(Failure::Over(_)) => Duration::from_millis(50),
    };
    tokio::time::sleep(failed).await;
    false
}
