//! Claiming: the lock, then the judgement whether its last leader may still believe, then presence.
//!
//! ```text
//!           denied                      somebody present, or the server restarted within the ttl
//!  free ──▶ lock and epoch ──▶ presence ────────────────────────────────▶ Waiting ──▶ Led
//!            in one statement    nobody, and quiet for a ttl ──▶ Led        the presence went, or a ttl passed
//! ```
//!
//! Who claims alone asks for presence at the same time, on the condition that the lock is ours by then: while the epoch is being
//! made durable, which is most of the time that a claim takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_core::{Bid, Boot, ElectionName, Epoch, ErrorKind, Grant, Outcome, Proof, Seen, StoreError};

use super::known::{Known, LockReservation};
use super::pair::{ClaimStage, Hold, Pair};
use super::{Shared, failed, held_by, waiting};
use crate::Fut;
use crate::session::{
    LockAnswer, LockHolder, LockSession, PresenceSession, Session, SessionFailure, WantedLock,
};
use crate::session_store::{Claimed, LockMark, LockResultOf, SessionId, SessionStore, Written};
use crate::takeover::{Condition, Taken, Takeover, Witness};

/// How long a try that is made only in case something was missed waits for others to be made with it.
const NO_HURRY: Duration = Duration::from_millis(100);

/// From one try to write a leadership that the store cannot take yet to the next.
const UNWRITTEN_PAUSE: Duration = Duration::from_millis(400);

impl<S: SessionStore> Shared<S> {
    pub(super) async fn claim(self: Arc<Self>, on: ElectionName, bid: Bid) -> Outcome<Grant> {
        let key = match self.store.key(&on) {
            Ok(key) => key,
            Err(error) => return Outcome::Refused(error),
        };
        let pair = match self.pair().await {
            Ok(pair) => pair,
            Err(error) => return failed(error),
        };
        self.leave_lingering(key, &bid.who).await;
        let _turn = pair.turn(key).await;
        let presence = pair.presence();
        match self.store.admit(pair.sessions(&presence), &on, &bid).await {
            Ok(None) => {}
            Ok(Some(seen)) => return Outcome::Denied(seen),
            Err(error) => return failed(error),
        }
        let claim = Claim { shared: &self, pair: &pair, on: &on, key, bid: &bid };
        claim.known(|known| known.candidates.insert(bid.who.incarnation));
        match pair.hold(key).map(|hold| hold.stage) {
            None => match claim.left_to_other().await {
                Some(seen) => Outcome::Denied(seen),
                None => claim.take().await,
            },
            Some(ClaimStage::Waiting { until, span }) => claim.go_on(Taken::waiting_until(until, span)).await,
            Some(ClaimStage::Unwritten { after_crash, .. }) => claim.write_again(after_crash).await,
            Some(ClaimStage::Led { who, epoch, .. }) if who.incarnation != bid.who.incarnation => {
                Outcome::Denied(held_by(&who, epoch))
            }
            // Ours, and its claim's answer was lost on the way: under a new epoch.
            Some(ClaimStage::Led { after_crash, .. }) => claim.again(true, Some(after_crash)).await,
        }
    }
}

/// One attempt under way.
pub(super) struct Claim<'a, S: SessionStore> {
    pub(super) shared: &'a Arc<Shared<S>>,
    pub(super) pair: &'a Arc<Pair<S>>,
    on: &'a ElectionName,
    pub(super) key: S::Key,
    pub(super) bid: &'a Bid,
}

impl<S: SessionStore> Claim<'_, S> {
    async fn take(&self) -> Outcome<Grant> {
        let most = self.shared.store.elections_max(&self.pair.lock);
        // Kept until the lock is known to be in hand, or not to be ours.
        let Some(_room) = self.pair.room(most).await else {
            let sentence = format!(
                "this process holds {most} elections already, as many as the server's lock table has room for: raise \
                 max_locks_per_transaction, or use another server"
            );
            return Outcome::Refused(self.error(ErrorKind::Exhausted, sentence));
        };
        let (answer, present) = match self.tried().await {
            Ok(answer) => answer,
            Err(SessionFailure::Over(error)) => return Outcome::Unknown(error),
            Err(SessionFailure::Said(error)) => {
                self.undo().await;
                return failed(error);
            }
        };
        match answer {
            Ok(LockAnswer::Granted(epoch, mark)) => self.taken(epoch, mark, present).await,
            Ok(LockAnswer::HeldBy(holder)) if self.may_reclaim(&holder) => self.reclaim(&holder).await,
            answer => self.not_taken(answer).await,
        }
    }

    /// The lock is ours since this moment: may it be led on? Where we are `present` that was judged already.
    async fn taken(&self, epoch: Epoch, mark: LockMark<S>, present: bool) -> Outcome<Grant> {
        let taken = Taken::new(self.now(), self.span());
        let stage = ClaimStage::Waiting { until: taken.until(), span: taken.ttl() };
        self.pair.put(self.key, Hold { ttl: self.bid.ttl, mark, stage });
        let met = if present { Ok(true) } else { self.judge(taken).await };
        match met {
            Ok(false) => Outcome::Denied(waiting(taken.until())),
            Ok(true) => {
                // Only now: the answer of the presence session came after everything that was told before the lock was free.
                if let Some(kept) = self.reservation_of_other() {
                    return self.leave_to_other(self.kept(kept)).await;
                }
                let (now, theirs) = (self.now(), self.known(|known| known.their_ttl()));
                let crashed = |last: Witness| last.crashed(now, theirs.unwrap_or(self.bid.ttl));
                self.lead(epoch, self.known(Known::free).map(crashed)).await
            }
            Err(error) => Outcome::Unknown(error),
        }
    }

    /// The lock is ours and its last leader may have believed: is that over?
    async fn go_on(&self, taken: Taken) -> Outcome<Grant> {
        let condition = self.condition(taken);
        match self.appear(condition).await.map(|met| taken.takeover(condition, met)) {
            Ok(Takeover::Lead { after_crash }) => self.again(false, Some(after_crash)).await,
            Ok(Takeover::Wait(until)) => Outcome::Denied(waiting(until)),
            Err(failure) => Outcome::Unknown(failure.error()),
        }
    }

    /// A new epoch for a lock that this session has; with `proof`, presence is proven too.
    async fn again(&self, proof: bool, after_crash: Option<bool>) -> Outcome<Grant> {
        let wanted = self.wanted();
        let again = self.pair.lock.claim_again(&wanted, self.lease(), self.pair.mark(self.key)).await;
        match again {
            Err(failure) => failed(failure.error()),
            Ok(None) => {
                self.pair.remove(self.key);
                Outcome::Unknown(self.unavailable("the lock was gone; somebody unlocked it"))
            }
            Ok(Some((epoch, mark))) => {
                self.pair.set_mark(self.key, mark);
                if proof && !self.is_present().await {
                    return Outcome::Unknown(self.unavailable("the second session is not there yet"));
                }
                self.lead(epoch, after_crash).await
            }
        }
    }

    /// Whether this process is present, or is now: for what is led already.
    async fn is_present(&self) -> bool {
        let beat = self.shared.heartbeat(self.pair).await;
        beat.of(self.key).presence == Some(true) || self.appear(Condition::BY_FORCE).await.unwrap_or(false)
    }

    /// The lock and presence are ours. `after_crash`: whether the last leader crashed, where that is known.
    async fn lead(&self, epoch: Epoch, after_crash: Option<bool>) -> Outcome<Grant> {
        let _ = self.known(Known::free);
        let presence = self.pair.presence();
        let claimed = Claimed {
            on: self.on,
            key: self.key,
            bid: self.bid,
            epoch,
            mark: self.pair.mark(self.key),
            lease: self.lease(),
        };
        let (epoch, mark, after_crash) =
            match self.shared.store.write(self.pair.sessions(&presence), claimed).await {
                Ok(Written::Done { epoch, mark, unreleased }) => {
                    (epoch, mark, after_crash.unwrap_or(unreleased))
                }
                Ok(Written::NotYet) => return self.unwritten(after_crash),
                Err(error) => return failed(error),
            };
        let Bid { who, ttl, sent, .. } = self.bid.clone();
        let incarnation = who.incarnation;
        // What was known before renews nothing.
        let stage = ClaimStage::Led { who, epoch, after_crash, renewed: self.now() };
        self.pair.put(self.key, Hold { ttl, mark, stage });
        // After it was put: whoever looks after sessions that end has either seen it, and keeps the presence, or is seen here.
        if self.pair.lock.is_over() {
            return Outcome::Unknown(self.unavailable("the session ended before the claim was answered"));
        }
        Outcome::Done(Grant { epoch, incarnation, ttl, counted_from: sent, after_crash })
    }

    /// The lock and presence are ours, and the store could not write the leadership when this was last asked.
    async fn write_again(&self, after_crash: Option<bool>) -> Outcome<Grant> {
        let presence = self.pair.presence();
        match self.shared.store.is_writable(self.pair.sessions(&presence), self.on).await {
            Ok(true) => self.again(true, after_crash).await,
            Ok(false) => self.unwritten(after_crash),
            Err(error) => failed(error),
        }
    }

    /// Nothing tells when it can be written, so that is asked again, and not all the time.
    fn unwritten(&self, after_crash: Option<bool>) -> Outcome<Grant> {
        let (now, ttl, mark) = (self.now(), self.bid.ttl, self.pair.mark(self.key));
        let stage = ClaimStage::Unwritten { until: now + ttl, after_crash };
        self.pair.put(self.key, Hold { ttl, mark, stage });
        Outcome::Denied(waiting(now + UNWRITTEN_PAUSE))
    }

    /// The lock is not ours.
    async fn not_taken(&self, answer: LockResultOf<S>) -> Outcome<Grant> {
        let holder = match answer {
            Ok(LockAnswer::HeldBy(holder)) => holder,
            Ok(_) => return Outcome::Denied(Seen { free_at: Some(self.now()), ..Seen::nothing() }),
            Err(error) => return failed(error),
        };
        self.shared.saw_holder(self.pair, self.key, Some(&holder));
        let seen = self.shared.seen(self.pair, self.key, Some(&holder));
        let presence = self.pair.presence();
        // Without more to tell it is the same denial.
        let sessions = self.pair.sessions(&presence);
        let told = self.shared.store.describe(sessions, self.on, Some(holder.session), seen.clone()).await;
        Outcome::Denied(told.unwrap_or(seen))
    }

    /// Tries the lock, and says whether presence came with it. Who knows that somebody has it is in no hurry: it would have heard.
    async fn tried(&self) -> Result<(LockResultOf<S>, bool), SessionFailure> {
        let is_held = self.known(|known| known.other().is_some());
        let pause = is_held.then(|| NO_HURRY.min(self.bid.ttl / 20));
        let present = AtomicBool::new(false);
        let alone = async {
            let answered = AtomicBool::new(false);
            let on_lock = async {
                let answer = self.pair.claim_all(vec![self.wanted()]).await;
                answered.store(true, Ordering::Relaxed);
                answer.and_then(|mut answers| {
                    answers.pop().ok_or_else(|| {
                        SessionFailure::Said(self.unavailable("the server answered with nothing"))
                    })
                })
            };
            let (answer, early) = tokio::join!(on_lock, self.appear_early(&answered));
            present.store(early, Ordering::Relaxed);
            answer
        };
        let all = |wanted| -> Fut<'_, _> {
            Box::pin(async {
                let answers = self.pair.claim_all(wanted).await?;
                let granted = |answer: &&Result<_, _>| matches!(answer, Ok(LockAnswer::Granted(..)));
                self.pair.appearances.expect(answers.iter().filter(granted).count());
                Ok(answers)
            })
        };
        let wait = |span| self.shared.store.pause(span);
        let answer = self.pair.claims.ask(self.wanted(), pause, wait, all, alone).await;
        let present = present.into_inner();
        if present && !matches!(answer, Ok(Ok(LockAnswer::Granted(..)))) {
            let lease = self.pair.lease_without(self.key);
            self.pair.presence().leave(self.key, self.bid.ttl, lease).await;
        }
        answer.map(|answer| (answer, present))
    }

    /// After an error nobody knows whether the lock was taken before it.
    async fn undo(&self) {
        if self.pair.lock.undo(self.key, self.bid.ttl).await.is_err() {
            self.pair.lock.throw_away();
        }
    }

    /// Whether the holder is an earlier start of this very id, and was said to be dead.
    fn may_reclaim(&self, holder: &LockHolder<SessionId<S>>) -> bool {
        let other = holder.session != self.pair.lock.id();
        self.bid.danger_reclaim && other && holder.id.as_ref() == Some(&self.bid.who.id)
    }

    /// Ends the sessions of that earlier start, and takes what they leave. Outside the guarantee.
    async fn reclaim(&self, holder: &LockHolder<SessionId<S>>) -> Outcome<Grant> {
        if let Err(error) = self.shared.store.end_earlier(&self.pair.presence(), holder).await {
            return failed(error);
        }
        let answer = match self.pair.claim_all(vec![self.wanted()]).await {
            Ok(mut answers) => answers.pop().unwrap_or(Ok(LockAnswer::JustFreed)),
            Err(failure) => return Outcome::Unknown(failure.error()),
        };
        match answer {
            Ok(LockAnswer::Granted(epoch, mark)) => self.taken(epoch, mark, false).await,
            answer => self.not_taken(answer).await,
        }
    }

    /// Without the lock in hand: whether it was released in favour of another candidate a moment ago. Whoever holds nothing can say the
    /// same, so the server is asked whether it is free.
    async fn left_to_other(&self) -> Option<Seen> {
        let kept = self.reservation_of_other()?;
        if !kept.by_holder {
            let found = self.pair.presence().look(&[self.key]).await.ok()?;
            found.first().is_some_and(Option::is_none).then_some(())?;
        }
        Some(self.kept(kept))
    }

    fn reservation_of_other(&self) -> Option<LockReservation> {
        let now = self.now();
        let kept = self.known(|known| known.reserved(now, self.bid.ttl))?;
        (kept.whom != self.bid.who.id).then_some(kept)
    }

    fn kept(&self, kept: LockReservation) -> Seen {
        let free_at = Some(kept.until(self.bid.ttl));
        Seen { proof: Proof::Released, free_at, reserved_for: Some(kept.whom), ..Seen::nothing() }
    }

    async fn leave_to_other(&self, seen: Seen) -> Outcome<Grant> {
        match self.shared.let_go(self.pair, self.key, self.bid.ttl, None).await {
            Outcome::Done(()) | Outcome::Denied(_) => Outcome::Denied(seen),
            Outcome::Unknown(error) => Outcome::Unknown(error),
            Outcome::Refused(error) => Outcome::Refused(error),
        }
    }

    /// For how long the last leader may still believe: for its own ttl, where that is known and longer than ours.
    pub(super) fn span(&self) -> Duration {
        self.bid.ttl.max(self.known(|known| known.their_ttl()).unwrap_or_default())
    }

    fn wanted(&self) -> WantedLock<S::Key> {
        WantedLock { key: self.key, on: self.on.clone(), id: self.bid.who.id.clone(), ttl: self.bid.ttl }
    }

    fn lease(&self) -> Duration {
        self.pair.lease_with(self.bid.ttl)
    }

    fn known<T>(&self, work: impl FnOnce(&mut Known<SessionId<S>>) -> T) -> T {
        work(self.shared.known().of(self.key, self.on))
    }

    pub(super) fn now(&self) -> Boot {
        self.shared.store.now()
    }

    pub(super) fn unavailable(&self, sentence: &str) -> StoreError {
        self.error(ErrorKind::Unavailable, sentence.to_owned())
    }

    fn error(&self, kind: ErrorKind, sentence: String) -> StoreError {
        StoreError::new(kind, self.shared.store.name(), sentence)
    }
}

impl<S: SessionStore> Pair<S> {
    async fn claim_all(
        &self,
        wanted: Vec<WantedLock<S::Key>>,
    ) -> Result<Vec<LockResultOf<S>>, SessionFailure> {
        let longest = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        self.lock.claim(&wanted, self.lease_with(longest)).await
    }
}
