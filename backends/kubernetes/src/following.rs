//! Which elections are followed, and what their watches should ask for.
//!
//! Up to [`MANY`] elections have a watch each, by the name of the Lease, which the least of permissions allows. More share one watch
//! of the namespace, where this user may have one. Looks that a watch cannot answer wait in a [`Mailbox`], each election once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_backend::Mailbox;
use bellwether_core::{ElectionName, StoreError};
use tokio::sync::watch;

use crate::lease_object::LeaseVersion;

/// More elections than this share a watch: each watch is a connection.
const MANY: usize = 4;

/// What one watch tells of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Namespace,
    Lease(String),
}

#[derive(Default)]
pub(crate) struct Following {
    followed: Mutex<Followed>,
    /// Counts changes of what is followed.
    changed: watch::Sender<u64>,
    pub(crate) mail: Mailbox,
}

#[derive(Default)]
struct Followed {
    leases: BTreeMap<String, Entry>,
    /// Scopes that somebody sees to.
    watched: BTreeSet<Scope>,
    /// Scopes whose watch is open: it tells of changes from now on.
    open: BTreeSet<Scope>,
    /// This user may not watch the whole namespace.
    one_by_one: bool,
}

struct Entry {
    on: ElectionName,
    /// The highest version that a call has met.
    met: Option<LeaseVersion>,
    /// The highest version that the watch has told of.
    told: u64,
    /// Why changes are not announced, where that does not pass by itself.
    refused: Option<StoreError>,
}

impl Entry {
    fn met(&self) -> u64 {
        self.met.as_ref().map_or(0, LeaseVersion::number)
    }
}

impl Following {
    pub(crate) fn follow(&self, lease: String, on: &ElectionName) {
        let mut followed = self.followed();
        let entry = Entry { on: on.clone(), met: None, told: 0, refused: None };
        followed.leases.insert(lease.clone(), entry);
        if followed.open.contains(&followed.scope_of(&lease)) {
            self.mail.put(on.clone());
        }
        drop(followed);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn unfollow(&self, lease: &str) {
        self.followed().leases.remove(lease);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Scopes that need a watch and have none; the caller gives them one.
    pub(crate) fn unwatched(&self) -> Vec<Scope> {
        let mut followed = self.followed();
        let wanted: BTreeSet<Scope> = followed.leases.keys().map(|lease| followed.scope_of(lease)).collect();
        let new: Vec<Scope> = wanted.difference(&followed.watched).cloned().collect();
        followed.watched.extend(new.iter().cloned());
        new
    }

    /// Whether this watch goes on. If not, it is forgotten, and what is still followed is given another.
    pub(crate) fn is_wanted(&self, scope: &Scope) -> bool {
        let mut followed = self.followed();
        let wanted = followed.leases.keys().any(|lease| followed.scope_of(lease) == *scope);
        if !wanted {
            followed.watched.remove(scope);
            followed.open.remove(scope);
            drop(followed);
            self.changed.send_modify(|count| *count += 1);
        }
        wanted
    }

    pub(crate) fn election(&self, lease: &str) -> Option<ElectionName> {
        self.followed().leases.get(lease).map(|entry| entry.on.clone())
    }

    pub(crate) fn opened(&self, scope: &Scope) {
        let mut followed = self.followed();
        followed.open.insert(scope.clone());
        followed.within(scope).for_each(|entry| entry.refused = None);
    }

    pub(crate) fn closed(&self, scope: &Scope) {
        self.followed().open.remove(scope);
    }

    /// All that this watch should tell of is read.
    pub(crate) fn look_at(&self, scope: &Scope) {
        let all: Vec<ElectionName> = self.followed().within(scope).map(|entry| entry.on.clone()).collect();
        all.into_iter().for_each(|on| self.mail.put(on));
    }

    /// This user may not have that watch. A namespace is watched Lease by Lease instead; true where that was not known.
    pub(crate) fn refused(&self, scope: &Scope, error: &StoreError) -> bool {
        let mut followed = self.followed();
        if *scope == Scope::Namespace {
            return !std::mem::replace(&mut followed.one_by_one, true);
        }
        let mut news = false;
        followed.within(scope).for_each(|entry| news |= entry.refused.replace(error.clone()).is_none());
        news
    }

    pub(crate) fn unwatched_because(&self, lease: &str) -> Option<StoreError> {
        self.followed().leases.get(lease)?.refused.clone()
    }

    /// A call has met this version of a Lease.
    pub(crate) fn met(&self, lease: &str, version: &LeaseVersion) {
        let mut followed = self.followed();
        if let Some(entry) = followed.leases.get_mut(lease).filter(|entry| entry.met.as_ref() < Some(version))
        {
            entry.met = Some(version.clone());
        }
    }

    /// This version as a call has met it, if one has: of two copies of a Lease, one is kept.
    pub(crate) fn copy_of(&self, lease: &str, version: LeaseVersion) -> LeaseVersion {
        let followed = self.followed();
        let met = followed.leases.get(lease).and_then(|entry| entry.met.as_ref());
        met.filter(|met| **met == version).cloned().unwrap_or(version)
    }

    /// The watch has told of this version of a Lease.
    pub(crate) fn told(&self, lease: &str, version: u64) {
        if let Some(entry) = self.followed().leases.get_mut(lease) {
            entry.told = entry.told.max(version);
        }
    }

    /// The oldest of the versions that calls have met of what this watch tells of; 0 where one of them has not been met.
    pub(crate) fn oldest_met(&self, scope: &Scope) -> u64 {
        self.followed().within(scope).map(|entry| entry.met()).min().unwrap_or(0)
    }

    /// Whether calls have met versions that this watch has not told of.
    pub(crate) fn is_behind(&self, scope: &Scope) -> bool {
        self.followed().within(scope).any(|entry| entry.met() > entry.told)
    }

    /// Whoever saw to the watches is gone.
    pub(crate) fn abandoned(&self) {
        let mut followed = self.followed();
        followed.watched.clear();
        followed.open.clear();
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        // Nothing in here panics half-way through a change.
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    fn scope_of(&self, lease: &str) -> Scope {
        if self.leases.len() > MANY && !self.one_by_one {
            Scope::Namespace
        } else {
            Scope::Lease(lease.to_owned())
        }
    }

    fn within<'a>(&'a mut self, scope: &'a Scope) -> impl Iterator<Item = &'a mut Entry> {
        self.leases.iter_mut().filter_map(move |(lease, entry)| match scope {
            Scope::Namespace => Some(entry),
            Scope::Lease(only) => (only == lease).then_some(entry),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(name: &str) -> ElectionName {
        ElectionName::new(name).unwrap()
    }

    fn version(number: u64) -> LeaseVersion {
        let metadata = serde_json::json!({ "name": "e0", "resourceVersion": number.to_string() });
        let lease = serde_json::from_value(serde_json::json!({ "metadata": metadata })).unwrap();
        LeaseVersion::of(lease).unwrap()
    }

    fn follow(following: &Following, count: usize) {
        (0..count).for_each(|at| following.follow(format!("e{at}"), &on(&format!("e{at}"))));
    }

    #[test]
    fn few_elections_have_a_watch_each_and_many_share_one() {
        let following = Following::default();
        follow(&following, MANY);
        assert_eq!(following.unwatched().len(), MANY);
        assert!(following.unwatched().is_empty(), "each is given once");
        following.follow("more".into(), &on("more"));
        assert_eq!(following.unwatched(), [Scope::Namespace]);
        assert!(!following.is_wanted(&Scope::Lease("e0".into())));
        following.unfollow("more");
        assert!(!following.is_wanted(&Scope::Namespace));
        assert!(
            following.unwatched().contains(&Scope::Lease("e0".into())),
            "the watch that ended is begun again"
        );
    }

    #[test]
    fn a_user_who_may_not_watch_the_namespace_watches_one_by_one() {
        let following = Following::default();
        follow(&following, MANY + 1);
        assert_eq!(following.unwatched(), [Scope::Namespace]);
        let error = crate::errors::invalid("no");
        assert!(following.refused(&Scope::Namespace, &error));
        assert!(!following.is_wanted(&Scope::Namespace));
        assert_eq!(following.unwatched().len(), MANY + 1);
        let one = Scope::Lease("e0".into());
        assert!(following.refused(&one, &error) && !following.refused(&one, &error), "told once");
        assert!(following.unwatched_because("e0").is_some() && following.unwatched_because("e1").is_none());
        following.opened(&one);
        assert!(following.unwatched_because("e0").is_none());
    }

    #[test]
    fn what_calls_have_met_and_the_watch_has_not_told_is_known() {
        let following = Following::default();
        follow(&following, 1);
        let one = Scope::Lease("e0".into());
        assert!(!following.is_behind(&one));
        following.met("e0", &version(7));
        assert!(following.is_behind(&one));
        assert_eq!(following.oldest_met(&one), 7);
        following.follow("e1".into(), &on("e1"));
        assert_eq!(following.oldest_met(&Scope::Namespace), 0, "of e1 nothing was met");
        following.met("e0", &version(3));
        assert_eq!(following.oldest_met(&one), 7, "the highest counts");
        following.told("e0", 7);
        assert!(!following.is_behind(&one));
    }
}
