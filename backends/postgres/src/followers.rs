//! Who follows an election: what a follower shows of itself on the server, and what is read of it.
//!
//! A candidate that was denied holds, shared and on session C, a lock whose keys are made of the election's ([`Keys::follower`]). Together
//! with C's `application_name` it says who follows what. C is there anyway, ends with its process, and nothing is decided by it, so neither
//! the lock nor its absence can do harm: anybody may take it, and is then listed by whatever name it has.
//!
//! ```text
//!  follows a few elections ──▶ a lock for each, changed only when they change
//!  follows more than that ───▶ one lock, [`MANY_KEY`]: "I follow more than I show", so that lists say that they are not complete
//! ```
//!
//! The bound keeps followers from filling the lock table, which everybody on the server shares. Who only observes shows nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_backend::{Followers, SessionFailure};
use bellwether_core::StoreError;

use crate::connection::PgConnection;
use crate::keys::MANY_KEY;
use crate::session::{LOOK_LIMIT, PgSession};
use crate::{Keys, names};

/// The lock of whoever follows more elections than it shows.
const MANY: Keys = Keys(MANY_KEY, 0);

/// Of what the server has in store for the locks of one connection, a follower takes this part for showing itself. A follower has three
/// connections, so all followers together never take more than a twelfth of the lock table.
const PART: usize = 4;

/// How long showing may take.
const LIMIT: Duration = Duration::from_secs(5);

/// What a session C shows of its process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FollowerLocks {
    name: String,
    locks: BTreeSet<Keys>,
}

impl FollowerLocks {
    /// By a process of this name that follows these elections, on a server with room for `lock_share` locks per connection.
    fn of(name: String, followed: Vec<Keys>, lock_share: usize) -> FollowerLocks {
        let few = followed.len() <= (lock_share / PART).max(1);
        let locks = if few { followed.into_iter().map(Keys::follower).collect() } else { [MANY].into() };
        FollowerLocks { name, locks }
    }

    /// The statements that make this of what was shown `before`; `None` where it is the same.
    fn statements(&self, before: &FollowerLocks) -> Option<String> {
        if self == before {
            return None;
        }
        let gone = before.locks.difference(&self.locks).map(|keys| (keys, "pg_advisory_unlock_shared"));
        let new = self.locks.difference(&before.locks).map(|keys| (keys, "pg_try_advisory_lock_shared"));
        let calls: String = gone
            .chain(new)
            .map(|(Keys(one, two), function)| format!("; SELECT {function}({one}, {two})"))
            .collect();
        Some(format!("SET application_name = '{}'{calls}", self.name))
    }
}

impl FollowerLocks {
    /// Has C, whose name is this, show what this process follows, if that is not what it shows already.
    pub(crate) async fn update(
        &mut self,
        c: &PgConnection,
        name: String,
        followed: Vec<Keys>,
        lock_share: usize,
    ) {
        let wanted = FollowerLocks::of(name, followed, lock_share);
        if let Some(statements) = wanted.statements(self) {
            // Where it fails it is not tried again before something changes: it is for people, and would fail again.
            let _ = c.execute(LIMIT, &statements).await;
            *self = wanted;
        }
    }
}

/// Who follows it, as the server shows.
pub(crate) async fn followers(through: &PgSession, keys: Keys) -> Result<Followers, StoreError> {
    let asked = through.connection.ask(through.limit(LOOK_LIMIT), &query(keys)).await;
    let rows = asked.map_err(SessionFailure::error)?;
    Ok(read(rows.iter().map(|row| (row.get(0), row.get(1)))))
}

/// What a lock that [`query`] finds says of its session.
const HOLDS: &str = "holds";
const FOLLOWS: &str = "follows";
const FOLLOWS_MANY: &str = "many";

/// The names of the sessions that hold the election, follow it, or follow more elections than they show, each with which of the three.
fn query(keys: Keys) -> String {
    let is =
        |Keys(one, two): Keys| format!("l.classid = {}::oid AND l.objid = {}::oid", one as u32, two as u32);
    let (held, followed, many) = (is(keys), is(keys.follower()), is(MANY));
    format!(
        "SELECT name, what FROM (SELECT s.application_name AS name, CASE \
         WHEN l.mode = 'ExclusiveLock' AND {held} THEN '{HOLDS}' \
         WHEN l.mode = 'ShareLock' AND {followed} THEN '{FOLLOWS}' \
         WHEN l.mode = 'ShareLock' AND {many} THEN '{FOLLOWS_MANY}' END AS what \
         FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid \
         WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) found WHERE what IS NOT NULL"
    )
}

/// What those sessions say.
fn read<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> Followers {
    let (mut leader, mut ids, mut is_complete) = (None, BTreeSet::new(), true);
    for (name, what) in rows.filter(|(name, _)| names::is_ours(name)) {
        match (what, names::read(name).0) {
            (HOLDS, id) => leader = id,
            (FOLLOWS, Some(id)) => drop(ids.insert(id)),
            _ => is_complete = false,
        }
    }
    // Who has just taken over may still show itself as a follower.
    ids.retain(|id| Some(id) != leader.as_ref());
    Followers { ids: ids.into_iter().collect(), is_complete }
}

#[cfg(test)]
mod tests {
    use bellwether_core::CandidateId;

    use super::*;

    fn keys(count: i32) -> Vec<Keys> {
        (0..count).map(|number| Keys(0, number)).collect()
    }

    #[test]
    fn what_is_shown_changes_by_what_changed() {
        let shown = |name: &str, count| FollowerLocks::of(name.to_owned(), keys(count), 64);
        let (before, Keys(one, two)) = (shown("n", 1), Keys(0, 1).follower());
        assert_eq!(shown("n", 1).statements(&before), None);
        assert_eq!(
            shown("n", 2).statements(&before).as_deref(),
            Some(&*format!("SET application_name = 'n'; SELECT pg_try_advisory_lock_shared({one}, {two})"))
        );
        assert_eq!(
            before.statements(&shown("m", 2)).as_deref(),
            Some(&*format!("SET application_name = 'n'; SELECT pg_advisory_unlock_shared({one}, {two})"))
        );
    }

    #[test]
    fn a_follower_of_many_elections_takes_one_lock() {
        for (lock_share, most) in [(64, 16), (10, 2), (0, 1)] {
            let shown = |count| FollowerLocks::of(String::new(), keys(count), lock_share).locks;
            assert_eq!(shown(most).len(), usize::try_from(most).unwrap());
            assert_eq!(shown(most + 1), [MANY].into());
        }
    }

    #[test]
    fn the_leader_is_no_follower_and_who_cannot_be_named_is_not_forgotten() {
        let followers = |ids: &[&str], is_complete| {
            let ids = ids.iter().map(|id| CandidateId::new(*id).unwrap()).collect();
            Followers { ids, is_complete }
        };
        let all = [
            ("bellwether/c watch", FOLLOWS),
            ("bellwether/b watch", FOLLOWS),
            ("bellwether/a lock 3000ms", HOLDS),
            ("bellwether/a watch", FOLLOWS),
            ("bellwether/b watch", FOLLOWS),
            ("psql", FOLLOWS),
        ];
        assert_eq!(read(all.into_iter()), followers(&["b", "c"], true));
        for more in [("bellwether/~ watch", FOLLOWS), ("bellwether/d watch", FOLLOWS_MANY)] {
            assert_eq!(read(all.into_iter().chain([more])), followers(&["b", "c"], false));
        }
    }
}
