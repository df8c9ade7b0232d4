//! Which elections are followed, and the news of them.
//!
//! Owns the way from kernel notices to "look at this election". Looks wait in a [`Mailbox`], each election once, so a
//! slow reader gets the latest and no backlog. Every directory is watched *before* it is looked at, so nothing falls in
//! between. A directory that does not exist yet, or was removed, is asked for twice a second until it can be watched;
//! a candidate's own claim makes it, so this concerns only those who watch an election that nobody stands in. Else an
//! idle follower makes no system call here.
//!
//! A closed sign of life becomes a look once the death shows in its lock, which the kernel frees a moment after
//! it reports the closing.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{Change, Changes, Fut, Life, Mailbox, lock};
use bellwether_core::{ElectionName, Incarnation};
use futures_util::StreamExt;
use futures_util::stream::{self, FuturesUnordered};
use tokio::sync::Notify;

use crate::liveness::life;
use crate::names::file_name;
use crate::notify::{DirectoryWatches, FileNotice, FileNotices, death_shows, notices};
use crate::threads::Threads;
use crate::value::Version;

/// How often a directory that cannot be watched is asked for.
const MISSING_INTERVAL: Duration = Duration::from_millis(500);
/// Closed signs of life that are looked into at a time; beyond it somebody plays with the files, and the ttl decides.
const RECHECKS_MAX: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Following {
    root: PathBuf,
    boot_id: Option<String>,
    threads: Arc<Threads>,
    followed: Mutex<Followed>,
    mail: Mailbox,
    /// Something is followed and not watched.
    unwatched: Notify,
}

#[derive(Debug, Default)]
struct Followed {
    elections: HashMap<ElectionName, WatchState>,
    /// There once somebody takes the news.
    watches: Option<DirectoryWatches>,
}

/// What is known of an election's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchState {
    /// It has not been asked for.
    New,
    /// It cannot be watched, most likely because there is none.
    Missing,
    On,
}

impl Following {
    pub(crate) fn new(root: &Path, boot_id: Option<String>, threads: Arc<Threads>) -> Following {
        Following {
            root: root.to_owned(),
            boot_id,
            threads,
            followed: Mutex::default(),
            mail: Mailbox::default(),
            unwatched: Notify::new(),
        }
    }

    /// Touches no file: whoever takes the news does, on a thread that may wait for a disk.
    pub(crate) fn follow(&self, on: &ElectionName) {
        lock(&self.followed).elections.entry(on.clone()).or_insert(WatchState::New);
        self.unwatched.notify_one();
    }

    pub(crate) fn unfollow(&self, on: &ElectionName) {
        let mut followed = lock(&self.followed);
        if followed.elections.remove(on).is_some()
            && let Some(watches) = &followed.watches
        {
            watches.unwatch(on);
        }
    }

    /// Watches the directory if the election is followed, also anew if another directory is in its place now.
    pub(crate) fn watch(&self, on: &ElectionName) {
        let watches = {
            let followed = lock(&self.followed);
            if !followed.elections.contains_key(on) {
                return;
            }
            let Some(watches) = followed.watches.clone() else { return };
            watches
        };
        // Not under the lock: a disk may take its time, and whoever follows must not wait for it.
        let now = if watches.watch(on, &self.dir(on)).is_ok() { WatchState::On } else { WatchState::Missing };
        let mut followed = lock(&self.followed);
        let Some(watch) = followed.elections.get_mut(on) else { return watches.unwatch(on) };
        if *watch != now {
            // What happened before went unnoticed, also if it was that the directory went away.
            self.mail.put(on.clone());
        }
        if *watch == WatchState::On && now == WatchState::Missing {
            self.unwatched.notify_one();
        }
        *watch = now;
    }

    /// The news, until the stream is dropped.
    pub(crate) fn changes(self: Arc<Self>) -> Changes<Version> {
        Box::pin(stream::unfold(ChangeStream::Untaken(self), |news| async {
            let mut driver = match news {
                ChangeStream::Untaken(following) => Box::new(WatchTask::start(following)),
                ChangeStream::Taken(driver) => driver,
            };
            let on = driver.next().await;
            Some((Change::Look(on), ChangeStream::Taken(driver)))
        }))
    }

    /// True if all that is followed is watched.
    fn watch_all(&self) -> bool {
        let missing: Vec<ElectionName> = {
            let followed = lock(&self.followed);
            followed
                .elections
                .iter()
                .filter(|(_, watch)| **watch != WatchState::On)
                .map(|(on, _)| on.clone())
                .collect()
        };
        for on in missing {
            self.watch(&on);
        }
        lock(&self.followed).elections.values().all(|watch| *watch == WatchState::On)
    }

    fn dir(&self, on: &ElectionName) -> PathBuf {
        self.root.join(file_name(on.as_str()))
    }
}

/// The kernel's queue needs a runtime, and there is one when the stream is first asked.
enum ChangeStream {
    Untaken(Arc<Following>),
    Taken(Box<WatchTask>),
}

struct WatchTask {
    following: Arc<Following>,
    notices: FileNotices,
    rechecks: FuturesUnordered<Fut<'static, (ElectionName, Incarnation, bool)>>,
    rechecking: HashSet<(ElectionName, Incarnation)>,
    all_watched: bool,
}

impl WatchTask {
    fn start(following: Arc<Following>) -> WatchTask {
        let (watches, notices) = notices();
        {
            let mut followed = lock(&following.followed);
            followed.watches = Some(watches);
            followed.elections.values_mut().for_each(|watch| *watch = WatchState::New);
        }
        following.unwatched.notify_one();
        let (rechecks, rechecking) = (FuturesUnordered::new(), HashSet::new());
        WatchTask { following, notices, rechecks, rechecking, all_watched: true }
    }

    async fn next(&mut self) -> ElectionName {
        let following = Arc::clone(&self.following);
        loop {
            tokio::select! {
                on = following.mail.take() => return on,
                notice = self.notices.next() => self.take(notice),
                Some((on, incarnation, dead)) = self.rechecks.next() => {
                    self.rechecking.remove(&(on.clone(), incarnation));
                    if dead {
                        following.mail.put(on);
                    }
                }
                () = following.unwatched.notified() => self.watch_all().await,
                () = tokio::time::sleep(MISSING_INTERVAL), if !self.all_watched => self.watch_all().await,
            }
        }
    }

    async fn watch_all(&mut self) {
        let following = Arc::clone(&self.following);
        let threads = Arc::clone(&following.threads);
        let all = threads.run(move || following.watch_all()).await;
        self.all_watched = all.unwrap_or(false);
    }

    fn take(&mut self, notice: FileNotice) {
        match notice {
            FileNotice::Record(on) => self.following.mail.put(on),
            FileNotice::Closed(on, incarnation) => self.recheck(on, incarnation),
            FileNotice::Gone(on) => {
                if let Some(watch) = lock(&self.following.followed).elections.get_mut(&on) {
                    *watch = WatchState::New;
                }
                self.following.unwatched.notify_one();
                self.following.mail.put(on);
            }
            FileNotice::Anything => {
                let all: Vec<_> = lock(&self.following.followed).elections.keys().cloned().collect();
                all.into_iter().for_each(|on| self.following.mail.put(on));
            }
        }
    }

    fn recheck(&mut self, on: ElectionName, incarnation: Incarnation) {
        let known = !self.rechecking.insert((on.clone(), incarnation));
        if known || self.rechecks.len() >= RECHECKS_MAX {
            return;
        }
        let (dir, boot_id) = (self.following.dir(&on), self.following.boot_id.clone());
        self.rechecks.push(Box::pin(async move {
            // Whether the record names it, and which boot it names, is for whoever looks then.
            let boot_id = boot_id.as_deref();
            let dead = death_shows(|| life(&dir, incarnation, boot_id, boot_id) == Life::Dead).await;
            (on, incarnation, dead)
        }));
    }
}
