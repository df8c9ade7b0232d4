//! The two sessions of a process, A and B, that stand and fall together, with what is held on them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::{Boot, Clock, Error};
use tokio::sync::Notify;
use tokio_postgres::{Row, Statement};

use crate::beats::Beats;
use crate::errors::{Failure, misconfigured, unavailable};
use crate::gather::Gather;
use crate::many::{Appearance, Try};
use crate::names::millis;
use crate::notices::Note;
use crate::pooler::pinned;
use crate::records::Records;
use crate::session::{Hear, Session, Values, only};
use crate::slots::Slots;
use crate::transport::place;
use crate::watch::Others;
use crate::{Config, Keys, sql};

/// Most elections of one process: the server's lock table is shared, and with it full nobody can even connect. On a server with
/// little room it is fewer, so that one process never has more than a quarter of it.
const ELECTIONS_MAX: usize = 1_000;
/// The election's own, the presence, and what marks it.
const LOCKS_PER_ELECTION: usize = 3;

/// Both sessions.
pub(crate) struct Link {
    pub(crate) a: Alpha,
    b: Mutex<Arc<Beta>>,
    pub(crate) slots: Slots,
    pub(crate) beats: Beats,
    pub(crate) tries: Gather<Try>,
    pub(crate) presences: Gather<Appearance>,
    others: Mutex<Others>,
    /// The session of the tables, where there are any.
    pub(crate) records: tokio::sync::Mutex<Option<Arc<Records>>>,
    /// Somebody else was found to have a lock.
    pub(crate) denied: Notify,
    /// Which of the hosts is the primary.
    pub(crate) host: usize,
    /// How many elections this process may hold there.
    pub(crate) elections_max: usize,
    /// The timeline when it was opened; a promotion under a living session shows as another.
    timeline: Mutex<(i32, Boot)>,
}

/// The session of the locks, with its statements.
pub(crate) struct Alpha {
    pub(crate) session: Session,
    pub(crate) claim: Statement,
    pub(crate) claim_all: Statement,
    pub(crate) again: Statement,
    pub(crate) beat: Statement,
    pub(crate) release: Statement,
    tell: Statement,
    tuned: Mutex<Duration>,
}

/// The session of presence and news, with its statements.
pub(crate) struct Beta {
    pub(crate) session: Session,
    pub(crate) presence: Statement,
    pub(crate) presence_all: Statement,
    pub(crate) absence: Statement,
    pub(crate) beat: Statement,
    pub(crate) look: Statement,
    tell: Statement,
    tuned: Mutex<Duration>,
}

impl Link {
    /// Opens both on the first host that is a primary.
    pub(crate) async fn open(config: &Config, clock: &dyn Clock, notes: Hear) -> Result<Link, Error> {
        let mut last = None;
        for host in 0..config.server.get_hosts().len() {
            match Link::open_at(config, host, clock, notes.clone()).await {
                Ok(link) => return Ok(link),
                // A server that cannot be reached may come back as the primary: that counts for more than a standby.
                Err(error) => match &last {
                    Some(last) if Error::is_retryable(last) => {}
                    _ => last = Some(error),
                },
            }
        }
        Err(last.unwrap_or_else(|| misconfigured("no host is named")))
    }

    async fn open_at(config: &Config, host: usize, clock: &dyn Clock, notes: Hear) -> Result<Link, Error> {
        let limit = config.connect_timeout();
        let opened = clock.boot();
        let (mut session, mut b) = tokio::try_join!(
            Session::open(config, host, opened, limit, None),
            Beta::open(config, host, opened, notes),
        )?;
        // Only now: while they were being opened the server may have restarted, and they would not prove that it did not.
        let opened = clock.boot();
        (session.opened, b.session.opened) = (opened, opened);
        session.same_server(&b.session)?;
        pinned(&session, &b.session, &place(config, host)).await?;
        let (claim, claim_all, again, beat, release, tell) = tokio::try_join!(
            session.prepare(sql::CLAIM),
            session.prepare(sql::CLAIM_ALL),
            session.prepare(sql::AGAIN),
            session.prepare(sql::BEAT),
            session.prepare(sql::RELEASE),
            session.prepare(sql::TELL),
        )?;
        warm_up(&session, &b, (&claim, &claim_all), limit).await.map_err(Failure::error)?;
        // Others park on it to hear of this session's end. Without it they hear later, no more.
        let own = format!("SELECT pg_try_advisory_lock({}, {})", crate::keys::SESSION_KEY, session.pid);
        let belongs = b.belong_to(&session, limit);
        let (_, room, ()) =
            tokio::try_join!(session.ask(limit, &own), session.ask(limit, sql::LOCK_ROOM), belongs)
                .map_err(Failure::error)?;
        let elections_max = elections_max(room.first().map_or(0, |row| row.get(0)));
        let a = Alpha { session, claim, claim_all, again, beat, release, tell, tuned: Mutex::default() };
        let timeline = Mutex::new((0, opened));
        Ok(Link {
            a,
            b: Mutex::new(Arc::new(b)),
            slots: Slots::default(),
            beats: Beats::default(),
            tries: Gather::default(),
            presences: Gather::default(),
            others: Mutex::default(),
            records: tokio::sync::Mutex::default(),
            denied: Notify::new(),
            host,
            elections_max,
            timeline,
        })
    }

    pub(crate) fn b(&self) -> Arc<Beta> {
        Arc::clone(&self.b.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace_b(&self, new: Beta) {
        *self.b.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        self.beats.forget();
    }

    /// Since when, at the latest, this link has seen one and the same server without restart or promotion.
    pub(crate) fn unchanged_since(&self, now: Boot, timeline: i32) -> Boot {
        let mut known = self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != timeline {
            let first = known.0 == 0;
            *known = (timeline, if first { self.a.session.opened } else { now });
        }
        known.1
    }
}

impl Link {
    /// Since when both sessions have stood, on a server that was not promoted meanwhile as far as was seen.
    pub(crate) fn stood_since(&self, now: Boot) -> Boot {
        let (timeline, since) = *self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.a.session.opened.max(self.b().session.opened);
        if timeline == 0 { now } else { opened.max(since) }
    }
}

/// Whose end is waited for.
impl Link {
    pub(crate) fn held_by_other(&self, pid: i32, keys: Keys) {
        self.with_others(|others| others.note(pid, keys));
        self.denied.notify_one();
    }

    pub(crate) fn released_by_other(&self, keys: Keys) {
        self.with_others(|others| others.released(keys));
    }

    /// Whose end is waited for next.
    pub(crate) fn first_other(&self) -> Option<i32> {
        self.with_others(|others| others.first())
    }

    /// Whether somebody else was found to have it and nothing was heard of its end.
    pub(crate) fn is_held_by_other(&self, keys: Keys) -> bool {
        self.with_others(|others| others.has(keys))
    }

    pub(crate) fn forget_other(&self, pid: i32) -> Vec<Keys> {
        self.with_others(|others| others.forget(pid))
    }

    pub(crate) fn rotate_others(&self) {
        self.with_others(Others::rotate);
    }

    fn with_others<T>(&self, work: impl FnOnce(&mut Others) -> T) -> T {
        work(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Alpha {
    /// Runs a statement on A, within the ttl that belief in its answer could last at most.
    pub(crate) async fn row(
        &self,
        ttl: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Row, Failure> {
        self.rows(ttl, statement, values).await.and_then(only)
    }

    /// As [`Alpha::row`], for any number of rows.
    pub(crate) async fn rows(
        &self,
        ttl: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Row>, Failure> {
        tune(&self.session, &self.tuned, ttl).await?;
        self.session.rows(limit(ttl), statement, values).await
    }
}

impl Alpha {
    /// Tells every session that listens, as the one that holds the lock; answered when it was told.
    pub(crate) async fn tell(&self, ttl: Duration, note: &Note) -> Result<(), Failure> {
        self.row(ttl, &self.tell, &[&note.write()]).await.map(drop)
    }
}

impl Beta {
    pub(crate) async fn open(config: &Config, host: usize, opened: Boot, notes: Hear) -> Result<Beta, Error> {
        let limit = config.connect_timeout();
        let session = Session::open(config, host, opened, limit, Some(notes)).await?;
        let dated = session.ask(limit, sql::MAY_DATE).await.map_err(Failure::error)?;
        let dated = dated.first().is_some_and(|row| row.get(0));
        let (presence, presence_all, absence, beat, look, tell) = tokio::try_join!(
            session.prepare(if dated { sql::PRESENCE } else { sql::PRESENCE_UNDATED }),
            session.prepare(if dated { sql::PRESENCE_ALL } else { sql::PRESENCE_ALL_UNDATED }),
            session.prepare(sql::ABSENCE),
            session.prepare(sql::BEAT),
            session.prepare(sql::LOOK),
            session.prepare(sql::TELL),
        )?;
        let setting = format!("LISTEN {}; SET application_name = 'bellwether presence'", sql::CHANNEL);
        session.execute(limit, &setting).await.map_err(Failure::error)?;
        Ok(Beta { session, presence, presence_all, absence, beat, look, tell, tuned: Mutex::default() })
    }

    /// Marks it as the second session of that first one, so that everybody can tell whose presence it is.
    pub(crate) async fn belong_to(&self, first: &Session, limit: Duration) -> Result<(), Failure> {
        let mark = format!("SELECT pg_try_advisory_lock_shared({}, {})", crate::keys::SECOND_KEY, first.pid);
        self.session.ask(limit, &mark).await.map(drop)
    }

    /// As [`Alpha::row`].
    pub(crate) async fn row(
        &self,
        ttl: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Row, Failure> {
        self.rows(ttl, statement, values).await.and_then(only)
    }

    /// How long an answer is waited for before the session is given up, and every presence on it with it: as long as any
    /// leadership counts on them. Answers come in order, so while one is out, no renewal that left later has counted.
    pub(crate) fn patience(&self, ttl: Duration) -> Duration {
        limit(ttl.max(*self.tuned.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// As [`Beta::row`], for any number of rows.
    pub(crate) async fn rows(
        &self,
        ttl: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Row>, Failure> {
        tune(&self.session, &self.tuned, ttl).await?;
        self.session.rows(self.patience(ttl), statement, values).await
    }

    /// Tells every session that listens; answered when it was told.
    pub(crate) async fn tell(&self, ttl: Duration, note: &Note) -> Result<(), Failure> {
        self.row(ttl, &self.tell, &[&note.write()]).await.map(drop)
    }

    /// This process's work in that election is over; the presence goes, as far as the session still can.
    pub(crate) async fn leave(&self, keys: Keys, ttl: Duration, lease: Duration) {
        let presence = keys.presence();
        let lease = millis(lease).to_string();
        let _ = self.row(ttl, &self.absence, &[&presence.0, &presence.1, &lease]).await;
    }
}

/// The keys of every lock that a heartbeat shows; an error if the session is no longer what it was.
pub(crate) fn locks_of(row: &Row, session: &Session) -> Result<Vec<Keys>, Error> {
    let (pid, standby): (i32, bool) = (row.get(0), row.get(1));
    if pid != session.pid {
        session.throw_away();
        return Err(misconfigured("the session moved to another server process: connect without a pooler"));
    }
    if standby {
        session.throw_away();
        return Err(unavailable("the server has become a standby"));
    }
    let (classes, objects): (Vec<i64>, Vec<i64>) = (row.get(2), row.get(3));
    Ok(classes.into_iter().zip(objects).map(|(class, object)| Keys::from_catalogue(class, object)).collect())
}

/// Most elections of one process on a server with room for so many locks.
fn elections_max(room: i64) -> usize {
    let quarter = usize::try_from(room / 4).unwrap_or(0);
    (quarter / LOCKS_PER_ELECTION).clamp(1, ELECTIONS_MAX)
}

/// How long an answer is waited for: past the ttl nobody believes in it any more.
pub(crate) fn limit(ttl: Duration) -> Duration {
    ttl.max(Duration::from_millis(500))
}

/// Makes sure that nothing ends the session before its lease does.
async fn tune(session: &Session, tuned: &Mutex<Duration>, ttl: Duration) -> Result<(), Failure> {
    if *tuned.lock().unwrap_or_else(PoisonError::into_inner) >= ttl {
        return Ok(());
    }
    let (seconds, millis) = (ttl.as_secs() + 2, millis(ttl) + 1_000);
    let text = sql::NO_EARLIER.replace("$1", &format!("'{seconds}'")).replace("$2", &format!("'{millis}'"));
    session.ask(limit(ttl), &text).await?;
    *tuned.lock().unwrap_or_else(PoisonError::into_inner) = ttl;
    Ok(())
}

/// Has every statement of a takeover planned, which takes milliseconds and would be part of the first handover. A lock that B
/// has is denied to A, and presence is not asked for: nothing is written.
async fn warm_up(
    a: &Session,
    b: &Beta,
    (claim, claim_all): (&Statement, &Statement),
    limit: Duration,
) -> Result<(), Failure> {
    let key = crate::keys::SESSION_KEY;
    let pid = b.session.pid;
    let (own, lease, name) = (format!("SELECT pg_try_advisory_lock({key}, {pid})"), "0", "bellwether");
    let (mark, before, notice) = (0_i64, 0_i64, "");
    b.session.ask(limit, &own).await?;
    let (never, force) = (i64::MAX, false);
    let (nobody, none): (&[i32], &[i64]) = (&[], &[]);
    let on_a = async {
        let row =
            a.row(limit, claim, &[&key, &pid, &lease, &name, &mark, &before, &notice, &key, &pid]).await?;
        let texts: &[&str] = &[];
        a.execute(limit, sql::PLAN_FOR_MANY).await?;
        a.rows(limit, claim_all, &[&nobody, &nobody, &lease, &name, &none, &texts, &nobody, &nobody]).await?;
        a.execute(limit, sql::PLAN_AS_EVER).await?;
        // Whoever had it before was given the same number by the server and is not gone yet.
        if row.get("got") {
            Err(Failure::Over(unavailable("the session's own lock was not to be had")))
        } else {
            Ok(())
        }
    };
    let on_b = async {
        b.session.row(limit, &b.presence, &[&key, &pid, &never, &force, &lease, &0, &key, &pid]).await?;
        let unforced: &[bool] = &[];
        b.session.execute(limit, sql::PLAN_FOR_MANY).await?;
        b.session.rows(limit, &b.presence_all, &[&nobody, &nobody, &none, &unforced, &lease]).await?;
        b.session.rows(limit, &b.look, &[&nobody, &nobody, &none, &nobody, &nobody]).await?;
        b.session.execute(limit, sql::PLAN_AS_EVER).await
    };
    tokio::try_join!(on_a, on_b)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_never_has_more_than_a_quarter_of_the_lock_table() {
        // As a server is set up by default, a small one, and a large one.
        for (room, most) in [(64 * 100, 533), (10 * 20, 16), (128 * 1_000, ELECTIONS_MAX), (0, 1)] {
            assert_eq!(elections_max(room), most);
        }
    }
}
