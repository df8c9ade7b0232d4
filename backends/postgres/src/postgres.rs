//! The backend: what it knows, and the trait's methods, each of which runs to its end even if its caller goes away.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bellwether_backend::{
    Backend, Capabilities, Discarded, Finding, Followers, Fut, Notice, Notices, Past, Probing, Renewal,
};
use bellwether_core::{
    Bid, Boot, Candidate, Clock, ElectionName, Error, ErrorKind, Grant, Incarnation, Outcome, Parting,
    Request, Seen,
};
use tokio::sync::watch as broadcast;

use crate::errors::{BACKEND, unavailable};
use crate::followers::Standing;
use crate::hints::{Hints, look_at_hints};
use crate::link::{Beta, Link, limit};
use crate::news::News;
use crate::notices::Note;
use crate::session::{Hear, Identity};
use crate::slots::Slot;
use crate::tend::tend;
use crate::watch::watch;
use crate::{Config, Keys};

/// Elections on one PostgreSQL server.
pub struct Postgres(pub(crate) Arc<Inner>);

/// Elections on the server that this URL names; see [`Config::from_url`]. Nothing is connected yet.
///
/// # Errors
/// When the URL cannot be read or asks for what this build cannot do.
pub fn from_url(url: &str, clock: Arc<dyn Clock>) -> Result<Postgres, Error> {
    Ok(Postgres::new(Config::from_url(url)?, clock))
}

/// Elections on the server that libpq's variables name; see [`Config::from_env`]. Nothing is connected yet.
///
/// # Errors
/// As [`from_url`].
pub fn from_env(clock: Arc<dyn Clock>) -> Result<Postgres, Error> {
    Ok(Postgres::new(Config::from_env()?, clock))
}

impl Postgres {
    /// Elections on that server. Nothing is connected yet.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Postgres {
        Postgres(Arc::new(Inner {
            config,
            clock,
            link: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            lingering: Mutex::default(),
            half_open: Mutex::default(),
            followed: Mutex::default(),
            standing: Standing::default(),
            hints: Arc::default(),
            met: Mutex::default(),
            cooldown_checked: Mutex::default(),
            only: OnceLock::new(),
            news: Arc::default(),
            worked_before: AtomicBool::new(false),
            newest_timeline: AtomicI32::new(0),
            alive: broadcast::channel(()).0,
        }))
    }

    /// Connects now, so that what is wrong shows at once.
    ///
    /// # Errors
    /// When the server cannot be reached or is not fit for elections.
    pub async fn connect(&self) -> Result<(), Error> {
        self.0.link().await.map(drop)
    }
}

/// What all tasks of a backend share.
pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    link: Mutex<Option<Arc<Link>>>,
    opening: tokio::sync::Mutex<()>,
    /// Second sessions whose first one ended, kept until the work that they stand for is over.
    lingering: Mutex<Vec<Lingering>>,
    /// First sessions that ended here and may be alive on the server.
    pub(crate) half_open: Mutex<Vec<Identity>>,
    pub(crate) followed: Mutex<HashMap<Keys, ElectionName>>,
    pub(crate) standing: Standing,
    pub(crate) hints: Arc<Hints>,
    /// The ttl of the holder that was met last.
    pub(crate) met: Mutex<HashMap<Keys, Duration>>,
    /// Whose cooldown has been looked up.
    pub(crate) cooldown_checked: Mutex<HashSet<(ElectionName, Incarnation)>>,
    only: OnceLock<ElectionName>,
    pub(crate) news: Arc<News>,
    worked_before: AtomicBool,
    /// The highest timeline of a primary that was seen: one below it was left behind by a promotion.
    newest_timeline: AtomicI32,
    /// Ends with the backend; tasks listen.
    pub(crate) alive: broadcast::Sender<()>,
}

struct Lingering {
    b: Arc<Beta>,
    held: Vec<(Keys, Slot)>,
}

impl Inner {
    /// The sessions, opened if need be.
    pub(crate) async fn link(self: &Arc<Self>) -> Result<Arc<Link>, Error> {
        if let Some(link) = self.current() {
            return Ok(link);
        }
        let _one_at_a_time = self.opening.lock().await;
        if let Some(link) = self.current() {
            return Ok(link);
        }
        let newest = self.newest_timeline.load(Ordering::Relaxed);
        let opened = Link::open(&self.config, &*self.clock, self.ear(), newest).await;
        let link = Arc::new(opened.map_err(|error| self.in_hindsight(error))?);
        self.newest_timeline.fetch_max(link.timeline(), Ordering::Relaxed);
        // Tables that are missing show now, not when somebody could lead.
        self.records(&link).await.map_err(|error| self.in_hindsight(error))?;
        self.worked_before.store(true, Ordering::Relaxed);
        self.end_half_open(&link).await;
        *lock(&self.link) = Some(Arc::clone(&link));
        if self.config.watches {
            tokio::spawn(watch(Arc::downgrade(self), Arc::clone(&link), self.alive.subscribe()));
        }
        tokio::spawn(look_at_hints(Arc::downgrade(self), Arc::clone(&link), self.alive.subscribe()));
        tokio::spawn(tend(Arc::downgrade(self), Arc::clone(&link), self.alive.subscribe()));
        Ok(link)
    }

    /// The sessions, if they are there.
    pub(crate) fn current(&self) -> Option<Arc<Link>> {
        lock(&self.link).as_ref().filter(|link| !link.a.session.is_over()).map(Arc::clone)
    }

    /// Hears notices on behalf of this backend for as long as it is there.
    pub(crate) fn ear(self: &Arc<Self>) -> Hear {
        let inner = Arc::downgrade(self);
        Arc::new(move |sender: i32, payload: &str| {
            if let Some(inner) = inner.upgrade() {
                inner.heard(sender, payload);
            }
        })
    }

    pub(crate) fn follows(&self, keys: Keys) -> bool {
        lock(&self.followed).contains_key(&keys)
    }

    /// The lock of this election; an error if the URL's one pair of keys is already another's.
    pub(crate) fn keys(&self, on: &ElectionName) -> Result<Keys, Error> {
        if self.config.has_one_lock() && self.only.get_or_init(|| on.clone()) != on {
            let sentence = format!(
                "key1 and key2 of the URL are the lock of {:?}; {on:?} needs a connection of its own",
                self.only.get().map_or("", ElectionName::as_str)
            );
            return Err(Error::new(ErrorKind::InvalidInput, BACKEND, sentence));
        }
        Ok(self.config.keys_of(on))
    }

    /// Session A ended: what it held is lost, but the work may still be stopping, and B says so to others.
    pub(crate) fn linger(self: &Arc<Self>, link: &Arc<Link>) {
        let mut current = lock(&self.link);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, link)) {
            *current = None;
        }
        drop(current);
        self.newest_timeline.fetch_max(link.timeline(), Ordering::Relaxed);
        self.remember_half_open(link.a.session.identity());
        let held: Vec<_> =
            link.slots.every().into_iter().filter(|(_, slot)| matches!(slot, Slot::Held { .. })).collect();
        let Some(longest) = held.iter().map(|(_, slot)| slot.ttl()).max() else { return };
        let b = link.b();
        lock(&self.lingering).push(Lingering { b: Arc::clone(&b), held });
        let inner = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(longest).await;
            if let Some(inner) = inner.upgrade() {
                lock(&inner.lingering).retain(|old| !Arc::ptr_eq(&old.b, &b));
            }
        });
    }

    /// This candidate stands again, or left: its earlier work is over, so nobody has to wait for it.
    pub(crate) async fn leave_lingering(&self, keys: Keys, who: &Candidate) {
        let mut over = Vec::new();
        for old in lock(&self.lingering).iter_mut() {
            old.held.retain(|(other, slot)| {
                let its = *other == keys
                    && matches!(slot, Slot::Held { who: leader, .. } if leader.incarnation == who.incarnation);
                if its {
                    over.push((Arc::clone(&old.b), slot.ttl()));
                }
                !its
            });
        }
        lock(&self.lingering).retain(|old| !old.held.is_empty());
        for (b, ttl) in over {
            // Where others' work needs it too, giving it up early would say that theirs is over as well.
            let leaving = async {
                b.leave(keys, ttl, ttl).await;
                let _ = b.tell(ttl, &Note::Released(keys)).await;
            };
            if self.lingers(&b) {
                leaving.await;
            } else if tokio::time::timeout(limit(ttl / 5), leaving).await.is_err() {
                b.session.throw_away();
            }
            self.end_if_over(&b).await;
        }
    }

    /// Whether that second session stands for somebody's work still.
    pub(crate) fn lingers(&self, b: &Arc<Beta>) -> bool {
        lock(&self.lingering).iter().any(|old| Arc::ptr_eq(&old.b, b))
    }

    /// What worked before is not set up wrongly: a standby will be promoted, a password put right.
    fn in_hindsight(&self, error: Error) -> Error {
        if self.worked_before.load(Ordering::Relaxed) && !error.is_retryable() {
            return unavailable("the server that held the elections does not do so now").caused_by(error);
        }
        error
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs to its end whatever becomes of the caller: a claim that nobody waits for must not leave its lock behind.
fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    failed: impl FnOnce(Error) -> T + Send + 'static,
) -> Fut<'static, T> {
    let task = tokio::spawn(work);
    Box::pin(async move {
        task.await.unwrap_or_else(|_| failed(Error::new(ErrorKind::Bug, BACKEND, "a call ended in a panic")))
    })
}

impl Backend for Postgres {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn capabilities(&self) -> Capabilities {
        let tables = self.0.config.schema_used().is_some();
        Capabilities {
            renewal: Renewal::PerSession,
            crash_proof: true,
            notifies: true,
            epoch_visible: true,
            ttl_visible: false,
            requests: true,
            history: tables,
            cooldown: tables,
            lists: tables,
            ttl_unit: Duration::from_millis(1),
        }
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        if let Ok(keys) = self.0.keys(on) {
            self.0.standing.joined(keys, bid.who.incarnation);
        }
        to_the_end(Arc::clone(&self.0).claim(on.clone(), bid.clone()), Outcome::Unknown)
    }

    fn renew<'a>(&'a self, sent: Boot, held: &'a [(ElectionName, Grant)]) -> Fut<'a, Vec<Outcome<Grant>>> {
        let count = held.len();
        let failed = move |error: Error| (0..count).map(|_| Outcome::Unknown(error.clone())).collect();
        to_the_end(Arc::clone(&self.0).renew(sent, held.to_vec()), failed)
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a Parting,
    ) -> Fut<'a, Outcome<()>> {
        to_the_end(Arc::clone(&self.0).release(on.clone(), grant.clone(), how.clone()), Outcome::Unknown)
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, Error>> {
        Box::pin(async move { self.0.look(on).await.map(|found| found.seen) })
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, Error>> {
        Box::pin(async move { self.0.followers(on).await.map(Some) })
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        to_the_end(Arc::clone(&self.0).request(on.clone(), what.clone()), Outcome::Unknown)
    }

    fn follow(&self, on: &ElectionName, interested: bool) {
        let Ok(keys) = self.0.keys(on) else { return };
        if !interested {
            lock(&self.0.followed).remove(&keys);
            if let Some(link) = self.0.current() {
                link.released_by_other(keys);
            }
            self.0.news.forget(on);
            return;
        }
        lock(&self.0.followed).insert(keys, on.clone());
        if self.0.current().is_none() && tokio::runtime::Handle::try_current().is_ok() {
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move {
                // The claim that follows says what is wrong; this only saves it the wait.
                let _ = inner.link().await;
            });
        }
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        let Ok(keys) = self.0.keys(on) else { return };
        self.0.standing.left(keys, who.incarnation);
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (inner, on, who) = (Arc::clone(&self.0), on.clone(), who.clone());
        lock(&inner.cooldown_checked).remove(&(on.clone(), who.incarnation));
        tokio::spawn(async move { inner.retired(&on, keys, &who).await });
    }

    fn signals(&self) -> Notices {
        let (news, alive) = (Arc::clone(&self.0.news), self.0.alive.subscribe());
        Box::pin(futures_util::stream::unfold((news, alive), |(news, mut alive)| async move {
            let notice: Notice = tokio::select! {
                biased;
                notice = news.next() => notice,
                _ = alive.changed() => return None,
            };
            Some((notice, (news, alive)))
        }))
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), Error>> {
        to_the_end(Arc::clone(&self.0).remember(on.clone(), past.clone()), Err)
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, Error>> {
        Box::pin(self.0.history(on))
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, Error>> {
        Box::pin(self.0.elections())
    }

    fn checkup(&self, _: Probing) -> Fut<'_, Vec<Finding>> {
        Box::pin(self.0.checkup())
    }

    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, Error>> {
        // A lock that nobody has is nowhere; a row is.
        let left =
            self.0.config.schema_used().map(|schema| format!("the row of {on} in schema {}", schema.name()));
        Box::pin(async move { Ok(left.map_or(Discarded::Gone, Discarded::Remains)) })
    }

    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        let _ = (on, who);
        self.0.current().and_then(|link| link.b().session.duplicate()).into_iter().collect()
    }
}
