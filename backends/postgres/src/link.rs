//! The two sessions of a process, A and B, that stand and fall together, with what is held on them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::{Boot, CandidateId, Error};
use tokio::sync::Notify;
use tokio_postgres::{Row, Statement};

use crate::beats::Beats;
use crate::errors::{Failure, misconfigured, unavailable};
use crate::gather::Gather;
use crate::many::{Appearance, Try};
use crate::names::{self, millis};
use crate::notices::Note;
use crate::records::Records;
use crate::session::{Session, Values, only};
use crate::slots::Slots;
use crate::watch::Others;
use crate::{Keys, sql};

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
    /// What session A was called last.
    named: Mutex<String>,
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
    pub(crate) tell: Statement,
    pub(crate) tuned: Mutex<Duration>,
}

/// The session of presence and news, with its statements.
pub(crate) struct Beta {
    pub(crate) session: Session,
    pub(crate) presence: Statement,
    pub(crate) presence_all: Statement,
    pub(crate) absence: Statement,
    pub(crate) beat: Statement,
    pub(crate) look: Statement,
    pub(crate) tell: Statement,
    pub(crate) tuned: Mutex<Duration>,
}

impl Link {
    /// Two sessions that were opened at the same instant, and hold nothing yet.
    pub(crate) fn new(a: Alpha, b: Beta, host: usize) -> Link {
        let (opened, elections_max) = (a.session.opened, elections_max(a.session.lock_room));
        Link {
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
            named: Mutex::default(),
            timeline: Mutex::new((0, opened)),
        }
    }

    /// Has the sessions say in their names whom they serve, the first time and whenever that changes. It is for people: nothing
    /// is wrong if it fails.
    pub(crate) async fn name_after(&self, id: &CandidateId, ttl: Duration) {
        let (id, lease) = self.slots.used_by(id, ttl);
        let name = names::write(id.as_ref(), lease);
        {
            let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
            if *named == name {
                return;
            }
            named.clone_from(&name);
        }
        let (b, setting) = (self.b(), |name: &str| format!("SET application_name = '{name}'"));
        let (lock, presence) = (setting(&name), setting(&self.slots.name(names::PRESENCE)));
        let _ = tokio::join!(
            self.a.session.execute(limit(ttl), &lock),
            b.session.execute(b.patience(ttl), &presence)
        );
        let records = self.records.try_lock().ok().and_then(|records| records.clone());
        if let Some(records) = records {
            let record = setting(&self.slots.name(names::RECORD));
            let _ = records.session.execute(limit(ttl), &record).await;
        }
    }

    /// The highest timeline that was seen on it.
    pub(crate) fn timeline(&self) -> i32 {
        let (seen, _) = *self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        seen.max(self.a.session.timeline)
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

    /// What others were found to have.
    pub(crate) fn held_by_others(&self) -> Vec<Keys> {
        self.with_others(|others| others.all())
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
    session.execute(limit(ttl), &text).await?;
    *tuned.lock().unwrap_or_else(PoisonError::into_inner) = ttl;
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
