//! Opening both sessions of a process, in few round trips: what needs no answer is asked at once.
//!
//! ```text
//!  A: log in ─ set up ─┐            ┌ prepare ┐
//!                      ├─ one server? ─ no pooler? ─ own keys ─ plan every statement
//!  B: log in ─ set up ─ prepare, LISTEN ┘
//! ```

use std::time::Duration;

use bellwether_core::{Clock, Error};
use tokio_postgres::Statement;

use crate::errors::{Failure, unavailable};
use crate::keys::{SECOND_KEY, SESSION_KEY};
use crate::link::{Alpha, Beta, Link};
use crate::pooler::pinned;
use crate::session::{Hear, Session, Values};
use crate::transport::place;
use crate::{Config, hosts, names, presence_sql, sql};

impl Link {
    /// Opens both on the primary among the hosts. `newest`: the highest timeline that was seen before.
    pub(crate) async fn open(
        config: &Config,
        clock: &dyn Clock,
        notes: Hear,
        newest: i32,
    ) -> Result<Link, Error> {
        let (opened, limit) = (clock.boot(), config.connect_timeout());
        let (lock, presence) = (names::of_nobody(names::LOCK), names::of_nobody(names::PRESENCE));
        let primary = hosts::primary(config, opened, &lock, newest);
        let ((host, mut session), mut b) = if config.server.get_hosts().len() == 1 {
            tokio::try_join!(primary, Beta::open(config, 0, opened, &presence, notes))?
        } else {
            let (host, session) = primary.await?;
            let b = Beta::open(config, host, opened, &presence, notes).await?;
            ((host, session), b)
        };
        // Only now: while they were being opened the server may have restarted, and they would not prove that it did not.
        let opened = clock.boot();
        (session.opened, b.session.opened) = (opened, opened);
        session.same_server(&b.session)?;
        let place = place(config, host);
        // At once: where there is a pooler, the statements are of no use, and nothing else was done yet.
        let ((), (claim, claim_all, again, beat, release, tell)) =
            tokio::try_join!(pinned(&session, &b.session, &place), statements(&session))?;
        own_keys(&session, &b.session, limit).await.map_err(Failure::error)?;
        warm_up(&session, &b, (&claim, &claim_all), limit).await.map_err(Failure::error)?;
        let a = Alpha { session, claim, claim_all, again, beat, release, tell, tuned: Default::default() };
        Ok(Link::new(a, b, host))
    }
}

impl Beta {
    pub(crate) async fn open(
        config: &Config,
        host: usize,
        opened: bellwether_core::Boot,
        name: &str,
        notes: Hear,
    ) -> Result<Beta, Error> {
        let session = Session::open(config, host, opened, name, Some(notes)).await?;
        let (dated, listen) = (session.may_date, format!("LISTEN {}", sql::CHANNEL));
        let listens =
            async { session.execute(config.connect_timeout(), &listen).await.map_err(Failure::error) };
        let (presence, presence_all, absence, beat, look, tell, ()) = tokio::try_join!(
            session.prepare(if dated { presence_sql::PRESENCE } else { presence_sql::PRESENCE_UNDATED }),
            session.prepare(if dated {
                presence_sql::PRESENCE_ALL
            } else {
                presence_sql::PRESENCE_ALL_UNDATED
            }),
            session.prepare(presence_sql::ABSENCE),
            session.prepare(sql::BEAT),
            session.prepare(sql::LOOK),
            session.prepare(sql::TELL),
            listens,
        )?;
        let tuned = Default::default();
        Ok(Beta { session, presence, presence_all, absence, beat, look, tell, tuned })
    }

    /// Marks it as the second session of that first one, so that everybody can tell whose presence it is.
    pub(crate) async fn belong_to(&self, first: &Session, limit: Duration) -> Result<(), Failure> {
        self.session.execute(limit, &belongs_to(first)).await
    }
}

/// The statements of session A, in the order of its fields.
async fn statements(
    session: &Session,
) -> Result<(Statement, Statement, Statement, Statement, Statement, Statement), Error> {
    tokio::try_join!(
        session.prepare(sql::CLAIM),
        session.prepare(sql::CLAIM_ALL),
        session.prepare(sql::AGAIN),
        session.prepare(sql::BEAT),
        session.prepare(sql::RELEASE),
        session.prepare(sql::TELL),
    )
}

fn belongs_to(first: &Session) -> String {
    format!("SELECT pg_try_advisory_lock_shared({SECOND_KEY}, {})", first.pid)
}

/// Each takes the key of its own number: others park on A's to hear of its end, and B's is the one that [`warm_up`] tries. And B is
/// marked as the second session of A.
async fn own_keys(a: &Session, b: &Session, limit: Duration) -> Result<(), Failure> {
    let own = format!("SELECT pg_try_advisory_lock({SESSION_KEY}, pg_backend_pid())");
    let on_b = format!("{}; {own}", belongs_to(a));
    let ((), got) = tokio::try_join!(a.execute(limit, &own), b.said(limit, &on_b))?;
    // Whoever had it before was given the same number by the server and is not gone yet.
    if got.as_deref() == Some("t") {
        return Ok(());
    }
    Err(Failure::Over(unavailable("another session still has this one's own lock")))
}

/// Has every statement of a takeover planned, which takes milliseconds and would be part of the first handover. A lock that B
/// has is denied to A, and presence is not asked for: nothing is written. All are sent at once.
async fn warm_up(
    a: &Session,
    b: &Beta,
    (claim, claim_all): (&Statement, &Statement),
    limit: Duration,
) -> Result<(), Failure> {
    let (key, pid) = (SESSION_KEY, b.session.pid);
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
        a.row(limit, claim, one),
        a.execute(limit, sql::PLAN_FOR_MANY),
        a.rows(limit, claim_all, many),
        a.execute(limit, sql::PLAN_AS_EVER),
        b.session.row(limit, &b.presence, presence),
        b.session.execute(limit, sql::PLAN_FOR_MANY),
        b.session.rows(limit, &b.presence_all, presences),
        b.session.rows(limit, &b.look, look),
        b.session.execute(limit, sql::PLAN_AS_EVER),
    )?;
    Ok(())
}
