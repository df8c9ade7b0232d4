//! Opening both sessions of a process, in few round trips: what needs no answer is asked at once.
//!
//! ```text
//!  A: log in ─ set up ─┐            ┌ prepare ┐
//!                      ├─ one server? ─ no pooler? ─ own keys ─ plan every statement
//!  B: log in ─ set up ─ prepare, LISTEN ┘
//! ```

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::SessionFailure;
use bellwether_core::{Clock, StoreError};

use crate::connection::{Hear, PgConnection, Values};
use crate::errors::unavailable;
use crate::keys::{SECOND_KEY, SESSION_KEY};
use crate::lock_session::{LockStatements, PgLockSession, ServerTimeline};
use crate::pooler::pinned;
use crate::presence_session::{PgPresenceSession, PresenceStatements};
use crate::transport::place;
use crate::{Config, hosts, names, presence_sql, sql};

/// Opens both on the primary among the hosts. `newest`: the highest timeline that was seen before.
pub(crate) async fn open_both(
    config: &Config,
    clock: &Arc<dyn Clock>,
    notes: Hear,
    newest: i32,
) -> Result<(PgLockSession, PgPresenceSession), StoreError> {
    let (opened, limit) = (clock.boot(), config.connect_timeout());
    let (lock, presence) = (names::of_nobody(names::LOCK), names::of_nobody(names::PRESENCE));
    let primary = hosts::primary(config, opened, &lock, newest);
    let ((host, mut a), (mut b, on_b)) = if config.server.get_hosts().len() == 1 {
        tokio::try_join!(primary, connect_presence(config, 0, clock, &presence, notes))?
    } else {
        let (host, session) = primary.await?;
        let b = connect_presence(config, host, clock, &presence, notes).await?;
        ((host, session), b)
    };
    // Only now: while they were being opened the server may have restarted, and they would not prove that it did not.
    let opened = clock.boot();
    (a.opened, b.opened) = (opened, opened);
    a.same_server(&b)?;
    let place = place(config, host);
    // At once: where there is a pooler, the statements are of no use, and nothing else was done yet.
    let ((), on_a) = tokio::try_join!(pinned(&a, &b, &place), lock_statements(&a))?;
    own_keys(&a, &b, limit).await.map_err(SessionFailure::error)?;
    warm_up((&a, &on_a), (&b, &on_b), limit).await.map_err(SessionFailure::error)?;
    let lock = PgLockSession::new(a, on_a, host, config.schema_used().is_none());
    let presence = presence_beside(b, on_b, clock, &lock.timeline);
    Ok((lock, presence))
}

/// Opens another presence session beside a lock session that goes on.
pub(crate) async fn open_presence(
    config: &Config,
    clock: &Arc<dyn Clock>,
    beside: &PgLockSession,
    notes: Hear,
) -> Result<PgPresenceSession, StoreError> {
    let name = beside.names.of(names::PRESENCE);
    let (mut b, statements) = connect_presence(config, beside.host, clock, &name, notes).await?;
    b.opened = clock.boot();
    beside.connection.same_server(&b)?;
    let belongs = belongs_to(&beside.connection);
    b.execute(config.connect_timeout(), &belongs).await.map_err(SessionFailure::error)?;
    Ok(presence_beside(b, statements, clock, &beside.timeline))
}

fn presence_beside(
    connection: PgConnection,
    statements: PresenceStatements,
    clock: &Arc<dyn Clock>,
    timeline: &Arc<ServerTimeline>,
) -> PgPresenceSession {
    let (clock, timeline) = (Arc::clone(clock), Arc::clone(timeline));
    PgPresenceSession { connection, statements, tuned: Default::default(), clock, timeline }
}

async fn connect_presence(
    config: &Config,
    host: usize,
    clock: &Arc<dyn Clock>,
    name: &str,
    notes: Hear,
) -> Result<(PgConnection, PresenceStatements), StoreError> {
    let connection = PgConnection::open(config, host, clock.boot(), name, Some(notes)).await?;
    let (dated, listen) = (connection.may_date, format!("LISTEN {}", sql::CHANNEL));
    let listens =
        async { connection.execute(config.connect_timeout(), &listen).await.map_err(SessionFailure::error) };
    let (presence, presence_all, absence, beat, look, tell, ()) = tokio::try_join!(
        connection.prepare(if dated { presence_sql::PRESENCE } else { presence_sql::PRESENCE_UNDATED }),
        connection.prepare(if dated {
            presence_sql::PRESENCE_ALL
        } else {
            presence_sql::PRESENCE_ALL_UNDATED
        }),
        connection.prepare(presence_sql::ABSENCE),
        connection.prepare(sql::BEAT),
        connection.prepare(sql::LOOK),
        connection.prepare(sql::TELL),
        listens,
    )?;
    Ok((connection, PresenceStatements { presence, presence_all, absence, beat, look, tell }))
}

async fn lock_statements(connection: &PgConnection) -> Result<LockStatements, StoreError> {
    let (claim, claim_all, again, beat, release, tell) = tokio::try_join!(
        connection.prepare(sql::CLAIM),
        connection.prepare(sql::CLAIM_ALL),
        connection.prepare(sql::AGAIN),
        connection.prepare(sql::BEAT),
        connection.prepare(sql::RELEASE),
        connection.prepare(sql::TELL),
    )?;
    Ok(LockStatements { claim, claim_all, again, beat, release, tell })
}

/// Marks a session as the second one of that first one, so that everybody can tell whose presence it is.
fn belongs_to(first: &PgConnection) -> String {
    format!("SELECT pg_try_advisory_lock_shared({SECOND_KEY}, {})", first.pid)
}

/// Each takes the key of its own number: others park on A's to hear of its end, and B's is the one that [`warm_up`] tries. And B is
/// marked as the second session of A.
async fn own_keys(a: &PgConnection, b: &PgConnection, limit: Duration) -> Result<(), SessionFailure> {
    let own = format!("SELECT pg_try_advisory_lock({SESSION_KEY}, pg_backend_pid())");
    let on_b = format!("{}; {own}", belongs_to(a));
    let ((), got) = tokio::try_join!(a.execute(limit, &own), b.said(limit, &on_b))?;
    // Whoever had it before was given the same number by the server and is not gone yet.
    if got.as_deref() == Some("t") {
        return Ok(());
    }
    Err(SessionFailure::Over(unavailable("another session still has this one's own lock")))
}

/// Has every statement of a takeover planned, which takes milliseconds and would be part of the first handover. A lock that B
/// has is denied to A, and presence is not asked for: nothing is written. All are sent at once.
async fn warm_up(
    (a, on_a): (&PgConnection, &LockStatements),
    (b, on_b): (&PgConnection, &PresenceStatements),
    limit: Duration,
) -> Result<(), SessionFailure> {
    let (key, pid) = (SESSION_KEY, b.pid);
    let (lease, name, notice) = ("0", "bellwether", "");
    let (mark, before, never, force) = (0_i64, 0_i64, i64::MAX, false);
    let (nobody, none): (&[i32], &[i64]) = (&[], &[]);
    let (texts, unforced): (&[&str], &[bool]) = (&[], &[]);
    let one: Values<'_> = &[&key, &pid, &lease, &name, &mark, &before, &notice, &key, &pid];
    let many: Values<'_> = &[&nobody, &nobody, &lease, &name, &none, &texts, &nobody, &nobody];
    let presence: Values<'_> = &[&key, &pid, &never, &force, &lease, &0, &key, &pid];
    let presences: Values<'_> = &[&nobody, &nobody, &none, &unforced, &lease];
    let look: Values<'_> = &[&nobody, &nobody, &none, &nobody, &nobody];
    tokio::try_join!(
        a.row(limit, &on_a.claim, one),
        a.execute(limit, sql::PLAN_FOR_MANY),
        a.rows(limit, &on_a.claim_all, many),
        a.execute(limit, sql::PLAN_AS_EVER),
        b.row(limit, &on_b.presence, presence),
        b.execute(limit, sql::PLAN_FOR_MANY),
        b.rows(limit, &on_b.presence_all, presences),
        b.rows(limit, &on_b.look, look),
        b.execute(limit, sql::PLAN_AS_EVER),
    )?;
    Ok(())
}
