//! A lease on locks that belong to sessions: every such store becomes a [`Backend`](crate::Backend) here.
//!
//! A process has two sessions. The *lock session* holds the locks of its elections, the *presence session* shows others what it leads.
//! What holds, and why:
//!
//! - **Who has the lock may try; who also has presence leads.** A renewal counts only when both sessions answered, from the instant
//!   before either was asked. So a session that the server ends for its silence ends after belief in it did.
//! - **A freed lock proves only that the lock session ended.** Its taker leads at once only if nobody's presence is left and the server
//!   has ended no sessions of its own accord within the ttl ([`Taken`](crate::Taken)). Else it keeps the lock, is denied with the
//!   instant at which the ttl is over, and leads then, or when the presence goes.
//! - **A leadership is released after its work has ended**, so presence and lock go at once.
//! - **Notices are hints** ([`known`]): before anything is done on the word of another, the server is asked.
//! - **A presence session whose lock session ended stays** until the work that it stands for is over, or its ttl.
//!
//! What the process holds is in its pair of sessions ([`pair`]), what it knows of each election is in [`known`]; nothing else is remembered.
//! The clock, timers and tasks are the store's.

mod appear;
mod backend;
mod claim;
mod claiming;
mod heartbeat;
mod known;
mod maintain;
mod pair;
mod release;
mod renew;

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bellwether_core::{
    Boot, CandidateId, ElectionName, ErrorKind, Grant, Holder, Outcome, Proof, Request, Seen, Signal,
    StoreError,
};
use known::{KnownElections, LockReservation};
use pair::{ClaimStage, Hold, Pair};
use tokio::sync::{Notify, watch};

use crate::lock;
use crate::notice_queue::NoticeQueue;
use crate::session::{LockHolder, Session, SessionNotice};
use crate::session_store::{LockMark, SessionId, SessionStore};

/// How long a look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// A [`Backend`](crate::Backend) on a [`SessionStore`].
pub struct SessionLease<S: SessionStore>(Arc<Shared<S>>);

struct Shared<S: SessionStore> {
    store: Arc<S>,
    pair: Mutex<Option<Arc<Pair<S>>>>,
    opening: tokio::sync::Mutex<()>,
    /// Presence sessions whose lock session ended, kept until the work that they stand for is over.
    lingering: Mutex<Vec<Lingering<S>>>,
    known: Mutex<KnownElections<S::Key, SessionId<S>>>,
    /// Something was doubted.
    doubted: Arc<Notify>,
    /// Another session was found to hold what is wanted here.
    other_found: Arc<Notify>,
    notices: Arc<NoticeQueue>,
    /// Ends with the backend; tasks listen.
    alive: watch::Sender<()>,
}

struct Lingering<S: SessionStore> {
    presence: Arc<S::Session>,
    led: Vec<(S::Key, Hold<LockMark<S>>)>,
}

impl<S: SessionStore> SessionLease<S> {
    /// Elections on this store. Nothing is connected yet.
    pub fn new(store: S) -> SessionLease<S> {
        SessionLease(Arc::new(Shared {
            store: Arc::new(store),
            pair: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            lingering: Mutex::default(),
            known: Mutex::default(),
            doubted: Arc::default(),
            other_found: Arc::default(),
            notices: Arc::default(),
            alive: watch::channel(()).0,
        }))
    }

    /// Connects now, so that what is wrong shows at once.
    ///
    /// # Errors
    /// When the server cannot be reached or is not fit for elections.
    pub async fn connect(&self) -> Result<(), StoreError> {
        self.0.pair().await.map(drop)
    }

    /// The store below.
    pub fn store(&self) -> &S {
        &self.0.store
    }
}

/// Where a store brings what it hears. Does not keep the backend alive.
pub struct Ear<S: SessionStore>(Weak<Shared<S>>);

impl<S: SessionStore> Clone for Ear<S> {
    fn clone(&self) -> Ear<S> {
        Ear(Weak::clone(&self.0))
    }
}

impl<S: SessionStore> Ear<S> {
    fn new(shared: &Arc<Shared<S>>) -> Ear<S> {
        Ear(Arc::downgrade(shared))
    }

    /// A notice, and the session that sent it, as the server says.
    pub fn heard(&self, sender: SessionId<S>, notice: SessionNotice<S::Key>) {
        if let Some(shared) = self.0.upgrade() {
            shared.heard(sender, notice);
        }
    }

    /// Another process's session that holds what is wanted here: the next one after that, or the first. `None` if there is none, or if the
    /// backend has ended.
    pub fn other(&self, after: Option<SessionId<S>>) -> Option<SessionId<S>> {
        self.0.upgrade()?.known().other_after(after)
    }

    /// The elections that candidates here wait for while others have them.
    pub fn led_by_others(&self) -> Vec<S::Key> {
        self.0.upgrade().map(|shared| shared.known().led_by_others()).unwrap_or_default()
    }

    /// Waits until another session may have been found; for ever once the backend has ended.
    pub async fn other_found(&self) {
        let Some(found) = self.0.upgrade().map(|shared| Arc::clone(&shared.other_found)) else {
            return std::future::pending().await;
        };
        found.notified().await;
    }

    /// Waits until the backend has ended.
    pub async fn backend_ended(&self) {
        let Some(mut alive) = self.0.upgrade().map(|shared| shared.alive.subscribe()) else { return };
        let _ = alive.changed().await;
    }

    /// That session is over: whatever it held may be free.
    pub fn ended(&self, session: SessionId<S>) {
        let Some(shared) = self.0.upgrade() else { return };
        let gone = shared.known().ended(session);
        if let Some(pair) = shared.current() {
            pair.claims.expect(gone.len());
        }
        for on in gone {
            shared.notices.about(on, Signal::Changed(Seen::nothing()));
        }
    }
}

impl<S: SessionStore> Shared<S> {
    /// The sessions, opened if need be.
    async fn pair(self: &Arc<Self>) -> Result<Arc<Pair<S>>, StoreError> {
        if let Some(pair) = self.current() {
            return Ok(pair);
        }
        let _one_at_a_time = self.opening.lock().await;
        if let Some(pair) = self.current() {
            return Ok(pair);
        }
        let pair = Arc::new(Pair::new(self.store.open(Ear::new(self)).await?));
        *lock(&self.pair) = Some(Arc::clone(&pair));
        self.store.watch(&pair.lock, Ear::new(self));
        let weak = Arc::downgrade(self);
        self.store.spawn(Box::pin(maintain::look_at_doubted(Weak::clone(&weak), Arc::clone(&pair))));
        self.store.spawn(maintain::maintain(weak, Arc::clone(&pair)));
        Ok(pair)
    }

    /// The sessions, if they are there.
    fn current(&self) -> Option<Arc<Pair<S>>> {
        lock(&self.pair).as_ref().filter(|pair| !pair.lock.is_over()).map(Arc::clone)
    }

    fn forget_pair(&self, pair: &Arc<Pair<S>>) {
        lock(&self.pair).take_if(|current| Arc::ptr_eq(current, pair));
    }

    fn lingering(&self) -> MutexGuard<'_, Vec<Lingering<S>>> {
        lock(&self.lingering)
    }

    fn known(&self) -> MutexGuard<'_, KnownElections<S::Key, SessionId<S>>> {
        lock(&self.known)
    }

    /// Tells whoever follows it.
    fn changed(&self, key: S::Key, seen: Seen) {
        let followed = self.known().followed(key);
        if let Some(on) = followed {
            self.notices.about(on, Signal::Changed(seen));
        }
    }

    /// Who holds it, and what that means.
    async fn look(self: &Arc<Self>, on: &ElectionName) -> Result<Looked<S>, StoreError> {
        let key = self.store.key(on)?;
        let pair = self.pair().await?;
        let sessions = pair.sessions();
        let holder = sessions.presence.look(&[key]).await?.pop().flatten();
        let seen = self.seen(&pair, key, holder.as_ref());
        let session = holder.as_ref().map(|holder| holder.session);
        let seen = self.store.describe(&sessions, on, session, seen).await?;
        Ok(Looked { seen, holder, key, pair })
    }

    /// What it means that this session has the lock, or none.
    fn seen(&self, pair: &Pair<S>, key: S::Key, holder: Option<&LockHolder<SessionId<S>>>) -> Seen {
        let Some(holder) = holder else { return Seen::nothing() };
        if holder.session != pair.lock.id() {
            // Who waits for an earlier leader's ttl to pass has the lock, and does not lead.
            let id = holder.id.clone().filter(|_| holder.leads);
            let leader = id.map(|id| Holder { id, incarnation: None });
            return Seen { holder: leader, epoch: holder.epoch, proof: Proof::Alive, ..Seen::nothing() };
        }
        match pair.hold(key).map(|hold| hold.stage) {
            Some(ClaimStage::Led(id, grant)) => held_by(id, &grant),
            // Ours and not led: nobody leads.
            Some(ClaimStage::Waiting(taken)) => waiting(taken.until()),
            Some(ClaimStage::Unwritten { until, .. }) => waiting(until),
            None => Seen { proof: Proof::Record, ..Seen::nothing() },
        }
    }

    /// Takes in who has the lock, as the server shows it.
    fn saw_holder(&self, pair: &Pair<S>, key: S::Key, holder: Option<&LockHolder<SessionId<S>>>) {
        let now = self.store.now();
        let mut elections = self.known();
        let Some(known) = elections.get_mut(key) else { return };
        match holder.filter(|holder| holder.session != pair.lock.id()) {
            Some(other) => {
                known.held_by(now, other);
                self.other_found.notify_one();
            }
            None => known.found_free(),
        }
        if let Some(id) = holder.filter(|holder| holder.leads).and_then(|holder| holder.id.as_ref()) {
            known.used_by(id);
        }
    }

    /// Takes in what that session told.
    fn heard(&self, sender: SessionId<S>, notice: SessionNotice<S::Key>) {
        match notice {
            SessionNotice::Released(key) => self.heard_release(key, sender),
            SessionNotice::Reserved(key, span, whom) => {
                let by_holder = self.is_from_holder(key, sender);
                let new = LockReservation::new(whom, self.store.now(), span, by_holder);
                self.known().reserve(key, new);
            }
            SessionNotice::Claimed(key, id) => self.heard_claim(key, sender, &id),
            SessionNotice::Requested(key, request) => self.heard_request(key, request),
        }
    }

    /// Who claimed and under which epoch is what the server says. That somebody used its reservation is believed: one that is kept for
    /// too long has others stay away, and one that is given up too early is only politeness lost.
    fn heard_claim(&self, key: S::Key, sender: SessionId<S>, id: &CandidateId) {
        let own = self.current().is_none_or(|pair| pair.lock.id() == sender);
        let now = self.store.now();
        let mut elections = self.known();
        let Some(known) = elections.get_mut(key) else { return };
        known.used_by(id);
        if own || known.followers == 0 {
            return;
        }
        known.claimed(now);
        if elections.doubt(key) {
            self.doubted.notify_one();
        }
    }

    fn heard_release(&self, key: S::Key, sender: SessionId<S>) {
        if !self.is_from_holder(key, sender) {
            if self.known().doubt(key) {
                self.doubted.notify_one();
            }
            return;
        }
        if let Some(pair) = self.current() {
            self.doubt_heartbeat(&pair, key);
        }
        let now = self.store.now();
        let kept = self.known().get_mut(key).and_then(|known| {
            known.releases += 1;
            known.free();
            known.reserved(now, Duration::MAX).filter(|kept| kept.by_holder)
        });
        let (reserved_for, free_at) = kept.map(|kept| (kept.whom.clone(), kept.until(Duration::MAX))).unzip();
        self.changed(key, Seen { proof: Proof::Released, reserved_for, free_at, ..Seen::nothing() });
    }

    fn is_from_holder(&self, key: S::Key, sender: SessionId<S>) -> bool {
        let own = self.current().is_some_and(|pair| pair.lock.id() == sender);
        own || self.known().get(key).is_some_and(|known| known.is_holder(sender))
    }

    /// Whoever may connect may ask. A request names the epoch that it is meant for, so a late one is obeyed by nobody. One that comes
    /// while a claim is under way may be meant for what is being claimed: the core knows when that is answered.
    fn heard_request(&self, key: S::Key, request: Request) {
        let meant = self.current().is_some_and(|pair| match pair.hold(key).map(|hold| hold.stage) {
            Some(ClaimStage::Led(_, grant)) => grant.epoch == request.epoch,
            _ => pair.try_turn(key).is_none(),
        });
        let followed = self.known().followed(key);
        if let (true, Some(on)) = (meant, followed) {
            self.notices.about(on, Signal::Requested(request));
        }
    }

    /// Tells the leader of that epoch. It names the epoch, so one that is heard late is obeyed by nobody.
    async fn request(self: Arc<Self>, on: ElectionName, what: Request) -> Outcome<()> {
        let looked = match self.look(&on).await {
            Ok(looked) => looked,
            Err(error) => return Outcome::failed(error),
        };
        let Some(holder) = looked.holder else { return Outcome::Denied(looked.seen) };
        let refused =
            |sentence| Outcome::Refused(StoreError::new(ErrorKind::Unsupported, self.store.name(), sentence));
        let LockHolder { session, name, .. } = &holder;
        if !holder.is_ours {
            return refused(format!(
                "the lock of {on} is held by server process {session} ({name:?}), which is not Bellwether's and cannot be asked; \
                 stop it by its own means"
            ));
        }
        match looked.seen.epoch {
            Some(epoch) if epoch == what.epoch => {}
            Some(_) => return Outcome::Denied(looked.seen),
            None => {
                return refused(format!(
                    "server process {session} leads {on} and does not show its epoch, so it cannot be asked; stop it instead"
                ));
            }
        }
        let notice = SessionNotice::Requested(looked.key, what);
        match looked.pair.presence().tell(LOOK_LIMIT, &notice).await {
            Ok(()) => Outcome::Done(()),
            Err(failure) => Outcome::failed(failure.error()),
        }
    }
}

/// What a look found, with what only a request needs to know.
struct Looked<S: SessionStore> {
    seen: Seen,
    holder: Option<LockHolder<SessionId<S>>>,
    key: S::Key,
    pair: Arc<Pair<S>>,
}

/// Nobody leads before then.
fn waiting(until: Boot) -> Seen {
    Seen { proof: Proof::Record, free_at: Some(until), ..Seen::nothing() }
}

/// A candidate of this process leads.
fn held_by(id: CandidateId, grant: &Grant) -> Seen {
    let holder = Holder { id, incarnation: Some(grant.incarnation) };
    Seen { holder: Some(holder), epoch: Some(grant.epoch), proof: Proof::Alive, ..Seen::nothing() }
}

/// How long an answer is waited for: past the ttl nobody believes in it any more.
fn limit(ttl: Duration) -> Duration {
    ttl.max(Duration::from_millis(500))
}
