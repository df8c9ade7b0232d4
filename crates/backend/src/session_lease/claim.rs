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
use super::{Shared, held_by, waiting};
use crate::session::{LockAnswer, LockHolder, Session, SessionFailure, WantedLock};
use crate::session_store::{Claimed, LockMark, LockResultOf, SessionId, SessionStore, WantedLockOf, Written};
use crate::takeover::{Condition, Proven, Taken, Witness};

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
            Err(error) => return Outcome::failed(error),
        };
        self.leave_lingering(key, &bid.who).await;
        let _turn = pair.turn(key).await;
        match self.store.admit(&pair.sessions(), &on, &bid).await {
            Ok(None) => {}
            Ok(Some(seen)) => return Outcome::Denied(seen),
            Err(error) => return Outcome::failed(error),
        }
        let claim = Claim { shared: &self, pair: &pair, on: &on, key, bid: &bid };
        claim.known(|known| known.candidates.insert(bid.who.incarnation));
        match pair.hold(key).map(|hold| hold.stage) {
            None => match claim.left_to_other().await {
                Some(seen) => Outcome::Denied(seen),
                None => claim.take().await,
            },
            Some(ClaimStage::Waiting(taken)) => claim.go_on(taken).await,
            Some(ClaimStage::Unwritten { after_crash, .. }) => claim.write_again(after_crash).await,
            Some(ClaimStage::Led(id, grant)) if grant.incarnation != bid.who.incarnation => {
                Outcome::Denied(held_by(id, &grant))
            }
            // Ours, and its claim's answer was lost on the way: under a new epoch.
            Some(ClaimStage::Led(_, grant)) => claim.again(true, Some(grant.after_crash)).await,
        }
    }

    /// Tries these locks, and says of each whether presence came with it, as it may where one is claimed alone.
    async fn claim_all(
        &self,
        pair: &Pair<S>,
        wanted: Vec<WantedLockOf<S>>,
    ) -> Result<Vec<(LockResultOf<S>, bool)>, SessionFailure> {
        let longest = wanted.iter().map(|one| one.ttl).max().unwrap_or_default();
        let is_granted = |answer: &LockResultOf<S>| matches!(answer, Ok(LockAnswer::Granted(..)));
        let claim = pair.lock.claim(&wanted, pair.lease_with(longest));
        let [one] = &wanted[..] else {
            let answers = claim.await?;
            pair.appearances.expect(answers.iter().filter(|answer| is_granted(answer)).count());
            return Ok(answers.into_iter().map(|answer| (answer, false)).collect());
        };
        let answered = AtomicBool::new(false);
        let claim = async {
            let answers = claim.await;
            answered.store(true, Ordering::Relaxed);
            answers
        };
        let (answers, present) = tokio::join!(claim, self.appear_early(pair, one, &answered));
        if present && !answers.iter().flatten().any(is_granted) {
            pair.presence().leave(one.key, one.ttl, pair.lease_without(one.key)).await;
        }
        Ok(answers?.into_iter().map(|answer| (answer, present)).collect())
    }

    /// For how long the last leader of a lock may still believe: for its own ttl, where that is known and longer than ours.
    pub(super) fn span(&self, wanted: &WantedLockOf<S>) -> Duration {
        wanted.ttl.max(self.known().of(wanted.key, &wanted.on).their_ttl().unwrap_or_default())
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
        let Some(_room) = self.pair.room(most, self.key, self.bid.ttl).await else {
            let sentence = format!(
                "this process holds {most} elections already, as many as the server's lock table has room for: raise \
                 max_locks_per_transaction, or use another server"
            );
            return Outcome::Refused(self.error(ErrorKind::Exhausted, sentence));
        };
        match self.tried().await {
            Ok((Ok(LockAnswer::Granted(epoch, mark)), present)) => self.taken(epoch, mark, present).await,
            Ok((Ok(LockAnswer::HeldBy(holder)), _)) if self.may_reclaim(&holder) => {
                self.reclaim(&holder).await
            }
            Ok((answer, _)) => self.not_taken(answer).await,
            Err(SessionFailure::Over(error)) => Outcome::Unknown(error),
            Err(SessionFailure::Said(error)) => {
                self.undo().await;
                Outcome::failed(error)
            }
        }
    }

    /// The lock is ours since this moment: may it be led on? Where we are `present` that was judged already.
    async fn taken(&self, epoch: Epoch, mark: LockMark<S>, present: bool) -> Outcome<Grant> {
        let taken = Taken::new(self.now(), self.shared.span(&self.wanted()));
        self.pair.put(self.key, Hold { ttl: self.bid.ttl, mark, stage: ClaimStage::Waiting(taken) });
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
        let condition = self.shared.condition(self.pair, taken);
        match self.appear(condition).await {
            // A presence that went before the ttl was over belonged to somebody who lived until then, so that counts as a crash.
            Ok(true) => self.again(false, Some(!condition.by_force)).await,
            Ok(false) => Outcome::Denied(waiting(taken.until())),
            Err(failure) => Outcome::Unknown(failure.error()),
        }
    }

    /// A new epoch for a lock that this session has; with `proof`, presence is proven too.
    async fn again(&self, proof: bool, after_crash: Option<bool>) -> Outcome<Grant> {
        let wanted = WantedLock { held: Some(self.pair.mark(self.key)), ..self.wanted() };
        let mut answers = match self.pair.lock.claim(&[wanted], self.lease()).await {
            Ok(answers) => answers,
            Err(failure) => return Outcome::failed(failure.error()),
        };
        match answers.pop() {
            Some(Ok(LockAnswer::Granted(epoch, mark))) => {
                self.pair.set_mark(self.key, mark);
                if proof && !self.is_present().await {
                    return Outcome::Unknown(self.unavailable("the second session is not there yet"));
                }
                self.lead(epoch, after_crash).await
            }
            Some(Err(error)) => Outcome::failed(error),
            Some(Ok(_)) | None => {
                self.pair.remove(self.key);
                Outcome::Unknown(self.unavailable("the lock was gone; somebody unlocked it"))
            }
        }
    }

    /// Whether this process is present, or is now: for what is led already.
    async fn is_present(&self) -> bool {
        let beat = self.shared.heartbeat(self.pair).await;
        beat.proves(self.key) == Proven::Held || self.appear(Condition::BY_FORCE).await.unwrap_or(false)
    }

    /// The lock and presence are ours. `after_crash`: whether the last leader crashed, where that is known.
    async fn lead(&self, epoch: Epoch, after_crash: Option<bool>) -> Outcome<Grant> {
        let _ = self.known(Known::free);
        let claimed = Claimed {
            on: self.on,
            key: self.key,
            bid: self.bid,
            epoch,
            mark: self.pair.mark(self.key),
            lease: self.lease(),
        };
        let (epoch, mark, after_crash) = match self.shared.store.write(&self.pair.sessions(), claimed).await {
            Ok(Written::Done { epoch, mark, unreleased }) => (epoch, mark, after_crash.unwrap_or(unreleased)),
            Ok(Written::NotYet) => return self.unwritten(after_crash),
            Err(error) => return Outcome::failed(error),
        };
        let Bid { who, ttl, sent, .. } = self.bid.clone();
        let grant = Grant { epoch, incarnation: who.incarnation, ttl, counted_from: sent, after_crash };
        // What was known before renews nothing.
        let stage = ClaimStage::Led(who.id, Grant { counted_from: self.now(), ..grant.clone() });
        self.pair.put(self.key, Hold { ttl, mark, stage });
        // After it was put: whoever looks after sessions that end has either seen it, and keeps the presence, or is seen here.
        if self.pair.lock.is_over() {
            return Outcome::Unknown(self.unavailable("the session ended before the claim was answered"));
        }
        Outcome::Done(grant)
    }

    /// The lock and presence are ours, and the store could not write the leadership when this was last asked.
    async fn write_again(&self, after_crash: Option<bool>) -> Outcome<Grant> {
        match self.shared.store.is_writable(&self.pair.sessions(), self.on).await {
            Ok(true) => self.again(true, after_crash).await,
            Ok(false) => self.unwritten(after_crash),
            Err(error) => Outcome::failed(error),
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
            Err(error) => return Outcome::failed(error),
        };
        self.shared.saw_holder(self.pair, self.key, Some(&holder));
        let seen = self.shared.seen(self.pair, self.key, Some(&holder));
        // Without more to tell it is the same denial.
        let (sessions, session) = (self.pair.sessions(), Some(holder.session));
        let told = self.shared.store.describe(&sessions, self.on, session, seen.clone()).await;
        Outcome::Denied(told.unwrap_or(seen))
    }

    /// Tries the lock, and says whether presence came with it. Who knows that somebody has it is in no hurry: it would have heard.
    async fn tried(&self) -> Result<(LockResultOf<S>, bool), SessionFailure> {
        let is_held = self.known(|known| known.other().is_some());
        let pause = is_held.then(|| NO_HURRY.min(self.bid.ttl / 20));
        let wait = |span| self.shared.store.pause(span);
        let call = |all| self.shared.claim_all(self.pair, all);
        self.pair.claims.ask(self.wanted(), pause, wait, call).await
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
            return Outcome::failed(error);
        }
        match self.shared.claim_all(self.pair, vec![self.wanted()]).await.map(|mut answers| answers.pop()) {
            Ok(Some((Ok(LockAnswer::Granted(epoch, mark)), present))) => {
                self.taken(epoch, mark, present).await
            }
            Ok(Some((answer, _))) => self.not_taken(answer).await,
            Ok(None) => self.not_taken(Ok(LockAnswer::JustFreed)).await,
            Err(failure) => Outcome::Unknown(failure.error()),
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
        match self.shared.release_lock(self.pair, self.key, self.bid.ttl, None).await {
            Outcome::Done(()) | Outcome::Denied(_) => Outcome::Denied(seen),
            Outcome::Unknown(error) => Outcome::Unknown(error),
            Outcome::Refused(error) => Outcome::Refused(error),
        }
    }

    fn wanted(&self) -> WantedLockOf<S> {
        let (key, on, id) = (self.key, self.on.clone(), self.bid.who.id.clone());
        WantedLock { key, on, id, ttl: self.bid.ttl, held: None }
    }

    fn lease(&self) -> Duration {
        self.pair.lease_with(self.bid.ttl)
    }

    fn known<T>(&self, work: impl FnOnce(&mut Known<SessionId<S>>) -> T) -> T {
        work(self.shared.known().of(self.key, self.on))
    }

    fn now(&self) -> Boot {
        self.shared.store.now()
    }

    fn unavailable(&self, sentence: &str) -> StoreError {
        self.error(ErrorKind::Unavailable, sentence.to_owned())
    }

    fn error(&self, kind: ErrorKind, sentence: String) -> StoreError {
        StoreError::new(kind, self.shared.store.name(), sentence)
    }
}
