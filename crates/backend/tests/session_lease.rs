//! What a lease on sessions asks while several calls work on one election, or on several elections of its sessions, on a server that
//! answers when it is told to.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{
    Backend, Capabilities, Claimed, Ear, Fut, LockAnswer, LockHolder, LockKey, LockResult, Presence, Session,
    SessionFailure, SessionLease, SessionNotice, SessionStore, Sessions, WantedLock, WantedPresence, Written,
};
use bellwether_core::{Boot, Clock, ElectionName, Epoch, Outcome, ReleaseOptions, StoreError};
use bellwether_deadman::SystemClock;
use tokio::sync::Notify;

mod bidding;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key(u8);

impl LockKey for Key {
    fn presence(self) -> Key {
        self
    }
}

/// The server: who has which lock, who is present, and what is answered when.
#[derive(Default)]
struct Server {
    opened: AtomicU32,
    locks: Mutex<HashMap<Key, u32>>,
    /// How much silence of the lock session it tolerates; zero for any.
    lease: Mutex<Duration>,
    claims_wait: AtomicBool,
    claim_granted: Notify,
    claim: Notify,
    present: Mutex<HashSet<u32>>,
    /// How often presence was asked for.
    appeared: AtomicU32,
    unlocks_wait: AtomicBool,
    unlock_asked: Notify,
    unlock: Notify,
    presence_opened: Notify,
    thrown_away: Notify,
    writes_wait: AtomicBool,
    write_asked: Notify,
    write: Notify,
}

struct OneSession {
    server: Arc<Server>,
    id: u32,
    over: tokio::sync::watch::Sender<bool>,
}

impl Session for OneSession {
    type Key = Key;
    type Id = u32;
    type Mark = ();

    fn id(&self) -> u32 {
        self.id
    }

    fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    async fn over(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    fn throw_away(&self) {
        self.server.present.lock().unwrap().remove(&self.id);
        self.over.send_replace(true);
        self.server.thrown_away.notify_one();
    }

    async fn beat(&self, _: Duration) -> Result<HashSet<Key>, StoreError> {
        let locks = self.server.locks.lock().unwrap().clone();
        let present = self.server.present.lock().unwrap().contains(&self.id);
        let has = locks.into_iter().filter(|(_, by)| present || *by == self.id);
        Ok(has.map(|(key, _)| key).collect())
    }

    async fn tell(&self, _: Duration, _: &SessionNotice<Key>) -> Result<(), SessionFailure> {
        Ok(())
    }

    async fn claim(
        &self,
        wanted: &[WantedLock<Key, ()>],
        lease: Duration,
    ) -> Result<Vec<LockResult<u32, ()>>, SessionFailure> {
        if wanted.iter().any(|one| one.held.is_some()) {
            return Ok(vec![Ok(LockAnswer::JustFreed)]);
        }
        for one in wanted {
            self.server.locks.lock().unwrap().insert(one.key, self.id);
        }
        *self.server.lease.lock().unwrap() = lease;
        if self.server.claims_wait.load(Ordering::Relaxed) {
            self.server.claim_granted.notify_one();
            self.server.claim.notified().await;
        }
        Ok(wanted.iter().map(|_| Ok(LockAnswer::Granted(Epoch::new(1).unwrap(), ()))).collect())
    }

    async fn unlock(&self, key: Key, (): (), _: Duration, lease: Duration) -> Result<bool, SessionFailure> {
        self.server.unlock_asked.notify_one();
        if self.server.unlocks_wait.load(Ordering::Relaxed) {
            self.server.unlock.notified().await;
        }
        *self.server.lease.lock().unwrap() = lease;
        Ok(self.server.locks.lock().unwrap().remove(&key) == Some(self.id))
    }

    async fn undo(&self, _: Key, _: Duration) -> Result<(), SessionFailure> {
        Ok(())
    }

    async fn appear(
        &self,
        wanted: &[WantedPresence<Key, u32>],
        _: Duration,
    ) -> Result<Vec<Presence>, SessionFailure> {
        self.server.appeared.fetch_add(1, Ordering::Relaxed);
        self.server.present.lock().unwrap().insert(self.id);
        let found = Presence { present: true, others: false, quiet: Duration::MAX };
        Ok(wanted.iter().map(|_| found).collect())
    }

    async fn leave(&self, _: Key, _: Duration, _: Duration) {
        self.server.present.lock().unwrap().remove(&self.id);
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<Option<LockHolder<u32>>>, StoreError> {
        Ok(keys.iter().map(|_| None).collect())
    }
}

/// How a test ends a session.
type End = Arc<Mutex<Option<tokio::sync::watch::Sender<bool>>>>;

/// Sessions of that server. A test can end those that were opened last.
#[derive(Clone, Default)]
struct Store {
    server: Arc<Server>,
    lock: End,
    presence: End,
}

impl Store {
    fn open_one(&self, end: &End) -> OneSession {
        let id = self.server.opened.fetch_add(1, Ordering::Relaxed);
        let over = tokio::sync::watch::channel(false).0;
        *end.lock().unwrap() = Some(over.clone());
        OneSession { server: Arc::clone(&self.server), id, over }
    }
}

impl SessionStore for Store {
    type Key = Key;
    type Session = OneSession;

    fn name(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::SESSION
    }

    fn now(&self) -> Boot {
        SystemClock.boot()
    }

    async fn pause(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn spawn(&self, task: Fut<'static, ()>) {
        tokio::spawn(task);
    }

    async fn finish<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        Ok(tokio::spawn(call).await.unwrap())
    }

    fn key(&self, on: &ElectionName) -> Result<Key, StoreError> {
        Ok(Key(on.as_str().as_bytes()[0]))
    }

    async fn open(&self, _: Ear<Store>) -> Result<Sessions<Store>, StoreError> {
        let (lock, presence) = (self.open_one(&self.lock), self.open_one(&self.presence));
        Ok(Sessions { lock: Arc::new(lock), presence: Arc::new(presence) })
    }

    async fn open_presence(&self, _: &OneSession, _: Ear<Store>) -> Result<OneSession, StoreError> {
        let session = self.open_one(&self.presence);
        self.server.presence_opened.notify_one();
        Ok(session)
    }

    fn stood_since(&self, _: &Sessions<Store>) -> Boot {
        Boot::default()
    }

    async fn write(
        &self,
        _: &Sessions<Store>,
        claimed: Claimed<'_, Store>,
    ) -> Result<Written<()>, StoreError> {
        if self.server.writes_wait.load(Ordering::Relaxed) {
            self.server.write_asked.notify_one();
            self.server.write.notified().await;
        }
        Ok(Written::Done { epoch: claimed.epoch, mark: (), unreleased: false })
    }
}

#[tokio::test]
async fn a_renewal_under_way_does_not_make_a_leader_present_again_that_is_letting_go() {
    let store = Store::default();
    let (server, presence) = (Arc::clone(&store.server), Arc::clone(&store.presence));
    let lease = Arc::new(SessionLease::new(store));
    let (on, bid) = (bidding::on(), bidding::bid("a", 1, Duration::from_secs(10)));
    let Outcome::Done(grant) = lease.claim(&on, &bid).await else { panic!("nobody else claims") };
    // The presence session ends and is replaced by one that is present nowhere.
    let replace = async || {
        presence.lock().unwrap().take().unwrap().send_replace(true);
        server.present.lock().unwrap().clear();
        server.presence_opened.notified().await;
    };
    replace().await;
    let Outcome::Done(grant) = lease.renew(&on, &grant, SystemClock.boot()).await else {
        panic!("a renewal makes it present")
    };
    // Once more, and now it lets go while that is found out.
    replace().await;
    server.unlocks_wait.store(true, Ordering::Relaxed);
    let (releasing, released_on, held) = (Arc::clone(&lease), on.clone(), grant.clone());
    let release =
        tokio::spawn(async move { releasing.release(&released_on, &held, &ReleaseOptions::default()).await });
    server.unlock_asked.notified().await;
    let before = server.appeared.load(Ordering::Relaxed);
    let renewed = lease.renew(&on, &grant, SystemClock.boot()).await;
    assert!(matches!(renewed, Outcome::Unknown(_)), "{renewed:?}");
    assert_eq!(server.appeared.load(Ordering::Relaxed), before, "it is letting go");
    server.unlock.notify_one();
    assert!(matches!(release.await.unwrap(), Outcome::Done(())));
    assert!(server.present.lock().unwrap().is_empty(), "nobody waits for nobody");
}

#[tokio::test]
async fn a_claim_whose_session_ended_before_it_was_written_is_not_led_on() {
    let store = Store::default();
    let (server, lock) = (Arc::clone(&store.server), Arc::clone(&store.lock));
    server.writes_wait.store(true, Ordering::Relaxed);
    let lease = SessionLease::new(store);
    let (on, bid) = (bidding::on(), bidding::bid("a", 1, Duration::from_secs(10)));
    let ending = async {
        server.write_asked.notified().await;
        lock.lock().unwrap().take().unwrap().send_replace(true);
        // Whoever looks after the sessions gives up the presence, which stands for nobody's work.
        server.thrown_away.notified().await;
        assert!(server.present.lock().unwrap().is_empty());
        server.write.notify_one();
    };
    let (claimed, ()) = tokio::join!(lease.claim(&on, &bid), ending);
    assert!(matches!(claimed, Outcome::Unknown(_)), "nobody would wait for it: {claimed:?}");
}

/// Else nobody would end the session of a process that is gone, and nobody could lead what it was granted last.
#[tokio::test]
async fn a_release_leaves_its_lease_to_a_session_that_has_just_been_granted_another_lock() {
    let store = Store::default();
    let server = Arc::clone(&store.server);
    let lease = Arc::new(SessionLease::new(store));
    let ttl = Duration::from_secs(10);
    let (on, other) = (bidding::on(), ElectionName::new("other").unwrap());
    let Outcome::Done(grant) = lease.claim(&on, &bidding::bid("a", 1, ttl)).await else {
        panic!("nobody else claims")
    };
    server.claims_wait.store(true, Ordering::Relaxed);
    let claiming = Arc::clone(&lease);
    let claim = tokio::spawn(async move { claiming.claim(&other, &bidding::bid("a", 2, ttl)).await });
    server.claim_granted.notified().await;
    let released = lease.release(&on, &grant, &ReleaseOptions::default()).await;
    assert!(matches!(released, Outcome::Done(())), "{released:?}");
    assert_eq!(*server.lease.lock().unwrap(), ttl, "the answer to the claim is on its way");
    server.claim.notify_one();
    let Outcome::Done(grant) = claim.await.unwrap() else { panic!("the lock was granted") };
    let (on, how) = (ElectionName::new("other").unwrap(), ReleaseOptions::default());
    let released = lease.release(&on, &grant, &how).await;
    assert!(matches!(released, Outcome::Done(())), "{released:?}");
    assert_eq!(*server.lease.lock().unwrap(), Duration::ZERO, "nothing is held any more");
}
