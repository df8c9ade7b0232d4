//! Opening both sessions of a process, in few round trips: what needs no answer is asked at once.
//!
//! ```text
//!  A: log in ─ set up ─┐            ┌ prepare ┐
//!                      ├─ one server? ─ no pooler? ─ own keys ─ plan every statement
//!  B: log in ─ set up ─ prepare, LISTEN ┘
//! ```

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{SessionFailure, Sessions};
use bellwether_core::{Clock, StoreError};

use crate::connection::{Hear, PgConnection, Values};
use crate::errors::unavailable;
use crate::keys::{SECOND_KEY, SESSION_KEY};
use crate::pooler::pinned;
use crate::session::{PairState, PgSession, SessionRole};
use crate::store::PgStore;
use crate::transport::place;
use crate::{Config, hosts, names, presence_sql, sql};

/// Opens both on the primary among the hosts. `newest`: the highest timeline that was seen before.
pub(crate) async fn open_both(
    config: &Config,
    clock: &Arc<dyn Clock>,
    hear: Hear,
    newest: i32,
) -> Result<Sessions<PgStore>, StoreError> {
    let limit = config.connect_timeout();
    let (lock, presence) = (names::of_nobody(names::LOCK), names::of_nobody(names::PRESENCE));
    let primary = hosts::primary(config, &lock, newest);
    let ((host, a), b) = if config.server.get_hosts().len() == 1 {
        tokio::try_join!(primary, connect_presence(config, 0, &presence, hear))?
    } else {
        let (host, a) = primary.await?;
        ((host, a), connect_presence(config, host, &presence, hear).await?)
    };
    // Only now: while they were being opened the server may have restarted, and they would not prove that it did not.
    let opened = clock.boot();
    a.same_server(&b)?;
    let place = place(config, host);
    // At once: where there is a pooler, the statements are of no use, and nothing else was done yet.
    tokio::try_join!(pinned(&a, &b, &place), a.prepare(LOCK_STATEMENTS))?;
    own_keys(&a, &b, limit).await.map_err(SessionFailure::error)?;
    warm_up(&a, &b, limit).await.map_err(SessionFailure::error)?;
    let tells_claims = config.schema_used().is_none();
    let pair = Arc::new(PairState::new(Arc::clone(clock), host, a.lock_room, tells_claims));
    let session = |connection, role| Arc::new(PgSession::new(connection, role, opened, Arc::clone(&pair)));
    Ok(Sessions { lock: session(a, SessionRole::Lock), presence: session(b, SessionRole::Presence) })
}

/// Opens another presence session beside a lock session that goes on.
pub(crate) async fn open_presence(
    config: &Config,
    beside: &PgSession,
    hear: Hear,
) -> Result<PgSession, StoreError> {
    let PairState { clock, host, names, .. } = &*beside.pair;
    let b = connect_presence(config, *host, &names.of(names::PRESENCE), hear).await?;
    let opened = clock.boot();
    beside.connection.same_server(&b)?;
    let belongs = belongs_to(&beside.connection);
    b.execute(config.connect_timeout(), &belongs).await.map_err(SessionFailure::error)?;
    Ok(PgSession::new(b, SessionRole::Presence, opened, Arc::clone(&beside.pair)))
}

async fn connect_presence(
    config: &Config,
    host: usize,
    name: &str,
    hear: Hear,
) -> Result<PgConnection, StoreError> {
    let b = PgConnection::open(config, host, name, Some(hear)).await?;
    let presence = presence_sql::presence(b.may_date);
    let texts = [presence, presence_sql::ABSENCE, sql::BEAT, sql::LOOK, sql::TELL, sql::NO_EARLIER];
    let listen = format!("LISTEN {}", sql::CHANNEL);
    let listens = async { b.execute(config.connect_timeout(), &listen).await.map_err(SessionFailure::error) };
    tokio::try_join!(b.prepare(&texts), listens)?;
    Ok(b)
}

/// What is asked on A.
const LOCK_STATEMENTS: &[&str] =
    &[sql::CLAIM, sql::LOOK, sql::BEAT, sql::RELEASE, sql::TELL, sql::UNDO, sql::NO_EARLIER];

/// Marks a session as the second one of that first one, so that everybody can tell whose presence it is.
fn belongs_to(first: &PgConnection) -> String {
    format!("SELECT pg_try_advisory_lock_shared({SECOND_KEY}, {})", first.pid())
}

/// Each takes the key of its own number: others park on A's to hear of its end. And B is marked as the second session of A.
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

/// Has every statement of a handover planned, which takes milliseconds and would be part of the first one. Nothing is asked for and nothing
/// released, so nothing is written. All are sent at once.
async fn warm_up(a: &PgConnection, b: &PgConnection, limit: Duration) -> Result<(), SessionFailure> {
    let (lease, name): (&str, &str) = ("0", "bellwether");
    let (keys, longs, texts, bools): (&[i32], &[i64], &[&str], &[bool]) = (&[], &[], &[], &[]);
    let claim: Values<'_> = &[&keys, &keys, &longs, &longs, &texts, &lease, &name];
    let presence: Values<'_> = &[&keys, &keys, &longs, &bools, &keys, &keys, &keys, &lease];
    let look: Values<'_> = &[&keys, &keys, &longs, &keys, &keys];
    let release: Values<'_> = &[&SESSION_KEY, &0_i32, &"", &"", &0_i64];
    let absence: Values<'_> = &[&SESSION_KEY, &0_i32, &""];
    tokio::try_join!(
        a.execute(limit, sql::PLAN_FOR_MANY),
        a.rows(limit, sql::CLAIM, claim),
        a.rows(limit, sql::LOOK, look),
        a.execute(limit, sql::PLAN_AS_EVER),
        a.rows(limit, sql::RELEASE, release),
        b.execute(limit, sql::PLAN_FOR_MANY),
        b.rows(limit, presence_sql::presence(b.may_date), presence),
        b.rows(limit, sql::LOOK, look),
        b.execute(limit, sql::PLAN_AS_EVER),
        b.rows(limit, presence_sql::ABSENCE, absence),
    )?;
    Ok(())
}
