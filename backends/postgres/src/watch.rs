//! Hearing of a leader's death within a millisecond: session C parks on the key of the leader's *session*.
//!
//! Every session A holds `(SESSION_KEY, its process id)`. A follower asks for it, shared, and gets it when that session ends. One
//! such wait covers all elections of a leader's process, and nobody parks on an election's lock, where a stopped waiter would
//! be granted the lead. A parked statement pins the server's oldest snapshot, hence the limit of a second at a time;
//! whatever is missed meanwhile is found by the core's own retry.
//!
//! C is opened only while somebody else leads what is followed here. It also shows who follows what (`followers.rs`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bellwether_core::{ElectionName, Seen};
use tokio::sync::watch;

use crate::Keys;
use crate::errors::Failure;
use crate::followers::Shown;
use crate::keys::SESSION_KEY;
use crate::link::Link;
use crate::names;
use crate::postgres::{Inner, lock};
use crate::session::Session;

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

/// Runs until session A or the backend ends.
pub(crate) async fn watch(inner: Weak<Inner>, link: Arc<Link>, mut alive: watch::Receiver<()>) {
    let mut session: Option<C> = None;
    loop {
        let denied = link.denied.notified();
        let next = link.first_other();
        let Some(strong) = inner.upgrade() else { return };
        if next.is_some() && session.as_ref().is_none_or(|c| c.session.is_over()) {
            session = strong.open_c(&link).await;
        }
        if let Some(c) = &mut session {
            strong.show_followed(&link, &c.session, c.lock_share, &mut c.shown).await;
        }
        drop(strong);
        let Some(pid) = next else {
            tokio::select! {
                () = denied => {}
                () = tokio::time::sleep(IDLE) => {
                    // Long enough that nobody leads elsewhere: the connection goes back.
                    session = None;
                }
                () = link.a.session.over() => return,
                _ = alive.changed() => return,
            }
            continue;
        };
        let Some(c) = &session else {
            tokio::time::sleep(IDLE).await;
            continue;
        };
        let ended = tokio::select! {
            ended = has_ended(&c.session, pid) => ended,
            () = link.a.session.over() => return,
            _ = alive.changed() => return,
        };
        let Some(inner) = inner.upgrade() else { return };
        if ended {
            inner.ended(&link, pid);
        } else {
            link.rotate_others();
        }
    }
}

/// Session C.
struct C {
    session: Session,
    /// For how many locks of one connection the server made room.
    lock_share: usize,
    shown: Shown,
}

/// Parks for a while; true if that session is over.
///
/// The time-out is caught by the server, which would write an error into its log otherwise, once a second for every follower. What it
/// came to is asked for in the same batch.
async fn has_ended(parked: &Session, pid: i32) -> bool {
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

impl Inner {
    async fn open_c(&self, link: &Link) -> Option<C> {
        let name = link.slots.name(names::WATCH);
        let session = Session::open(&self.config, link.host, self.clock.boot(), &name, None).await.ok()?;
        let text = format!(
            "SET lock_timeout = {}; SET idle_session_timeout = {}; SHOW max_locks_per_transaction",
            PARKED.as_millis(),
            SILENT_MAX.as_millis()
        );
        let lock_share = session.said(ANSWER_LIMIT, &text).await.ok()??.parse().unwrap_or_default();
        Some(C { session, lock_share, shown: Shown::default() })
    }

    /// That session is over: whatever it held may be free.
    fn ended(&self, link: &Link, pid: i32) {
        let gone = link.forget_other(pid);
        let free: Vec<ElectionName> = {
            let followed = lock(&self.followed);
            gone.iter().filter_map(|keys| followed.get(keys).cloned()).collect()
        };
        link.tries.expect(free.len());
        for on in free {
            self.news.changed(on, Seen::nothing());
        }
    }
}

/// Sessions of others that hold what is wanted here, the next to be watched first.
#[derive(Default)]
pub(crate) struct Others {
    sessions: VecDeque<i32>,
    held: HashMap<i32, HashSet<Keys>>,
    holder: HashMap<Keys, i32>,
}

impl Others {
    /// That session has the lock; whoever was thought to have it does not.
    pub(crate) fn note(&mut self, pid: i32, keys: Keys) {
        if self.holder.get(&keys) == Some(&pid) {
            // Every denial says so again, and must not cost the session its turn.
            return;
        }
        self.released(keys);
        self.holder.insert(keys, pid);
        let held = self.held.entry(pid).or_default();
        if held.is_empty() {
            self.sessions.push_back(pid);
        }
        held.insert(keys);
    }

    pub(crate) fn has(&self, keys: Keys) -> bool {
        self.holder.contains_key(&keys)
    }

    pub(crate) fn all(&self) -> Vec<Keys> {
        self.holder.keys().copied().collect()
    }

    pub(crate) fn released(&mut self, keys: Keys) {
        let Some(pid) = self.holder.remove(&keys) else { return };
        if let Some(held) = self.held.get_mut(&pid) {
            held.remove(&keys);
            if held.is_empty() {
                self.forget(pid);
            }
        }
    }

    pub(crate) fn forget(&mut self, pid: i32) -> Vec<Keys> {
        self.sessions.retain(|other| *other != pid);
        let mut gone: Vec<Keys> = self.held.remove(&pid).unwrap_or_default().into_iter().collect();
        for keys in &gone {
            self.holder.remove(keys);
        }
        gone.sort_unstable();
        gone
    }

    /// The first one's turn is over.
    pub(crate) fn rotate(&mut self) {
        if let Some(first) = self.sessions.pop_front() {
            self.sessions.push_back(first);
        }
    }

    /// Whose turn it is.
    pub(crate) fn first(&self) -> Option<i32> {
        self.sessions.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_gets_its_turn_and_an_election_has_one_holder() {
        let mut others = Others::default();
        for (pid, keys) in [(1, Keys(0, 1)), (2, Keys(0, 2)), (1, Keys(0, 3))] {
            others.note(pid, keys);
        }
        others.rotate();
        assert_eq!(others.first(), Some(2));
        // Denials come more often than turns end.
        for turn in [1, 2, 1, 2] {
            others.note(1, Keys(0, 1));
            others.note(2, Keys(0, 2));
            others.rotate();
            assert_eq!(others.first(), Some(turn));
        }
        others.note(2, Keys(0, 3));
        assert_eq!(others.forget(2), [Keys(0, 2), Keys(0, 3)]);
        others.released(Keys(0, 1));
        assert_eq!(others.first(), None);
    }
}
