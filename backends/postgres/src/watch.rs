//! Hearing of a leader's death within a millisecond: session C parks on the key of the leader's *session*.
//!
//! Every session A holds `(SESSION_KEY, its process id)`. A follower asks for it, shared, and gets it when that session ends. One
//! such wait covers all elections of a leader's process, and nobody parks on an election's lock, where a stopped waiter would
//! be granted the lead. A parked statement pins the server's oldest snapshot, hence the limit of a second at a time;
//! whatever is missed meanwhile is found by the core's own retry.
//!
//! C is opened only while somebody else leads what is followed here. It also shows who follows what (`followers.rs`).

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Ear, SessionFailure};

use crate::connection::PgConnection;
use crate::followers::FollowerLocks;
use crate::keys::SESSION_KEY;
use crate::session::PgSession;
use crate::store::PgStore;
use crate::{Config, names};

/// How long one statement stays parked: not as long as it takes until the server looks for a deadlock, a second by default, since it
/// then writes a line into its log where `log_lock_waits` is on.
const PARKED: Duration = Duration::from_millis(900);
/// How long nothing is asked while nobody else leads; a denial ends it.
const IDLE: Duration = Duration::from_secs(1);
/// How long the server keeps a session C that asks nothing, as that of a process which is stopped or cut off: it would be listed as a
/// follower, and cost a connection, for hours.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take on top of the parking.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Runs until the lock session or the backend ends.
pub(crate) async fn watch(config: Config, lock: Arc<PgSession>, ear: Ear<PgStore>) {
    tokio::select! {
        biased;
        () = ear.backend_ended() => {}
        () = lock.connection.over() => {}
        () = watch_others(&config, &lock, &ear) => {}
    }
}

async fn watch_others(config: &Config, lock: &PgSession, ear: &Ear<PgStore>) {
    let (mut watching, mut last): (Option<C>, _) = (None, None);
    loop {
        let next = ear.other(last);
        if next.is_some() && watching.as_ref().is_none_or(|c| c.connection.is_over()) {
            watching = open(config, lock).await;
        }
        if let Some(c) = &mut watching {
            let (name, followed) = (lock.pair.names.of(names::WATCH), ear.led_by_others());
            c.shown.update(&c.connection, name, followed, c.lock_share).await;
        }
        let Some(pid) = next else {
            tokio::select! {
                () = ear.other_found() => {}
                // Long enough that nobody leads elsewhere: the connection goes back.
                () = tokio::time::sleep(IDLE) => watching = None,
            }
            continue;
        };
        let Some(c) = &watching else {
            tokio::time::sleep(IDLE).await;
            continue;
        };
        if has_ended(&c.connection, pid).await {
            ear.ended(pid);
        } else {
            last = Some(pid);
        }
    }
}

/// Session C.
struct C {
    connection: PgConnection,
    /// For how many locks of one connection the server made room.
    lock_share: usize,
    shown: FollowerLocks,
}

async fn open(config: &Config, lock: &PgSession) -> Option<C> {
    let name = lock.pair.names.of(names::WATCH);
    let connection = PgConnection::open(config, lock.pair.host, &name, None).await.ok()?;
    let text = format!(
        "SET lock_timeout = {}; SET idle_session_timeout = {}; SHOW max_locks_per_transaction",
        PARKED.as_millis(),
        SILENT_MAX.as_millis()
    );
    let lock_share = connection.said(ANSWER_LIMIT, &text).await.ok()??.parse().unwrap_or_default();
    Some(C { connection, lock_share, shown: FollowerLocks::default() })
}

/// Parks for a while; true if that session is over.
///
/// The time-out is caught by the server, which would write an error into its log otherwise, once a second for every follower. What it
/// came to is asked for in the same batch.
async fn has_ended(parked: &PgConnection, pid: i32) -> bool {
    let text = format!(
        "DO $$ BEGIN PERFORM pg_advisory_lock_shared({SESSION_KEY}, {pid}), pg_advisory_unlock_shared({SESSION_KEY}, {pid}); \
         EXCEPTION WHEN lock_not_available THEN NULL; END $$; \
         SELECT CASE WHEN pg_try_advisory_lock_shared({SESSION_KEY}, {pid}) \
         THEN pg_advisory_unlock_shared({SESSION_KEY}, {pid}) ELSE false END"
    );
    let failed = match parked.said(PARKED + ANSWER_LIMIT, &text).await {
        Ok(said) => return said.as_deref() == Some("t"),
        // As where the language of the block was taken away from this role: then the core's own retry has to do.
        Err(SessionFailure::Said(_)) => IDLE,
        Err(SessionFailure::Over(_)) => Duration::from_millis(50),
    };
    tokio::time::sleep(failed).await;
    false
}
