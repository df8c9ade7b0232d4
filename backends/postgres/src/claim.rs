//! Claiming: the lock on A, then the judgement whether its last leader may still believe, then presence on B.
//!
//! ```text
//!           denied                       somebody present, or the server restarted within the ttl
//!  free ──▶ A: lock and epoch ──▶ B: ────────────────────────────────▶ Waiting ──▶ Held
//!              in one statement      nobody, and quiet for a ttl ──▶ Held   the presence went, or a ttl passed
//! ```
//!
//! Who claims alone asks B at the same time, on the condition that A has the lock: while the epoch is being made durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_backend::Condition;
use bellwether_core::{Bid, Boot, ElectionName, Epoch, Error, ErrorKind, Grant, Outcome, Proof, Seen};
use tokio_postgres::Row;

use crate::errors::{BACKEND, Failure, outcome, unavailable};
use crate::hints::Reservation;
use crate::link::{Link, limit};
use crate::look::{held_by, waiting};
use crate::many::Try;
use crate::names::{self, Lease, millis};
use crate::notices::claimed;
use crate::postgres::{Inner, lock};
use crate::session::Values;
use crate::slots::Slot;
use crate::{Keys, sql};

/// How long a try that is only the net waits for others to be made with it.
const NO_HURRY: Duration = Duration::from_millis(100);

/// From one try to write a row that a user's transaction keeps to the next, once it has kept it for long.
const FENCED_PAUSE: Duration = Duration::from_millis(400);

impl Inner {
    pub(crate) async fn claim(self: Arc<Self>, on: ElectionName, bid: Bid) -> Outcome<Grant> {
        let keys = match self.keys(&on) {
            Ok(keys) => keys,
            Err(error) => return Outcome::Refused(error),
        };
        let link = match self.link().await {
            Ok(link) => link,
            Err(error) => return outcome(error),
        };
        self.leave_lingering(keys, &bid.who).await;
        link.name_after(&bid.who.id, bid.ttl).await;
        let _turn = link.slots.turn(keys).await;
        match self.in_cooldown(&link, &on, &bid).await {
            Ok(None) => {}
            Ok(Some(denied)) => return denied,
            Err(error) => return outcome(error),
        }
        let claim = Claim { inner: &self, link: &link, on: &on, keys, bid: &bid };
        match link.slots.of(keys) {
            None => match claim.left_to_other().await {
                Some(seen) => Outcome::Denied(seen),
                None => claim.take().await,
            },
            Some(Slot::Waiting { until, .. }) => claim.go_on(until).await,
            Some(Slot::Fenced { after_crash, .. }) => claim.try_row(after_crash).await,
            Some(Slot::Held { who, epoch, .. }) if who.incarnation != bid.who.incarnation => {
                Outcome::Denied(held_by(&who, epoch))
            }
            // Ours, and its claim's answer was lost on the way: under a new epoch.
            Some(Slot::Held { .. }) => claim.again(true, Some(false)).await,
        }
    }
}

/// One attempt under way.
pub(crate) struct Claim<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) link: &'a Arc<Link>,
    pub(crate) on: &'a ElectionName,
    pub(crate) keys: Keys,
    pub(crate) bid: &'a Bid,
}

impl Claim<'_> {
    async fn take(&self) -> Outcome<Grant> {
        let most = self.link.elections_max;
        // Kept until the lock has its slot, or is known not to be ours.
        let Some(_room) = self.link.slots.room(most).await else {
            let sentence = format!(
                "this process holds {most} elections already, as many as the server's lock table has room for: raise \
                 max_locks_per_transaction, or use another server"
            );
            return Outcome::Refused(Error::new(ErrorKind::Exhausted, BACKEND, sentence));
        };
        let (row, present) = match self.tried().await {
            Ok(answer) => answer,
            Err(Failure::Over(error)) => return Outcome::Unknown(error),
            Err(Failure::Said(error)) => {
                self.undo().await;
                return outcome(error);
            }
        };
        match self.granted(&row) {
            Err(error) => outcome(error),
            Ok(None) if self.may_reclaim(&row) => self.reclaim(&row).await,
            Ok(None) => self.denied(&row).await,
            Ok(Some(epoch)) => self.taken(epoch, &row, present).await,
        }
    }

    /// The lock is ours since this moment: may it be led on? Where we are `present` that was judged already.
    async fn taken(&self, epoch: Epoch, row: &Row, present: bool) -> Outcome<Grant> {
        let until = self.inner.clock.boot() + self.span();
        self.wait(until, self.mark(row));
        self.link.released_by_other(self.keys);
        let judged = if present { Ok(Some(())) } else { self.judge(until).await };
        match judged {
            Ok(None) => Outcome::Denied(waiting(until)),
            Ok(Some(())) => {
                // The answer on B came after everything that was told before the lock was free.
                if let Some(seen) = self.kept_for_other() {
                    return self.leave_to_other(seen).await;
                }
                // Only now: the answer on B came after every release that was told before the lock was free.
                let witness = self.inner.hints.take_witness(self.keys);
                let now = self.inner.clock.boot();
                let theirs = lock(&self.inner.met).get(&self.keys).copied().unwrap_or(self.bid.ttl);
                self.lead(epoch, witness.map(|last| last.crashed(now, theirs))).await
            }
            Err(error) => Outcome::Unknown(error),
        }
    }

    /// The lock is ours and its last leader may have believed: is that over?
    async fn go_on(&self, until: Boot) -> Outcome<Grant> {
        let condition = self.condition(until);
        match self.present(condition).await {
            Ok(true) => self.again(false, Some(!condition.by_force)).await,
            Ok(false) => Outcome::Denied(waiting(until)),
            Err(failure) => Outcome::Unknown(failure.error()),
        }
    }

    /// A new epoch for a lock that this session has; with `proof`, presence is proven too.
    async fn again(&self, proof: bool, after_crash: Option<bool>) -> Outcome<Grant> {
        let row = match self.on_a(&self.link.a.again).await {
            Ok(row) => row,
            Err(failure) => return outcome(failure.error()),
        };
        match self.granted(&row) {
            Err(error) => outcome(error),
            Ok(None) => {
                self.link.slots.remove(self.keys);
                Outcome::Unknown(unavailable("the lock was gone; somebody unlocked it"))
            }
            Ok(Some(epoch)) => {
                self.marked(self.mark(&row));
                if proof {
                    let present = self
                        .inner
                        .beat(self.link)
                        .await
                        .b
                        .is_ok_and(|all| all.contains(&self.keys.presence()));
                    if !present && !self.present(Condition::BY_FORCE).await.unwrap_or(false) {
                        return Outcome::Unknown(unavailable("the second session is not there yet"));
                    }
                }
                self.lead(epoch, after_crash).await
            }
        }
    }

    /// The lock and presence are ours. `after_crash`: whether the last leader crashed, where it was seen.
    async fn lead(&self, epoch: Epoch, after_crash: Option<bool>) -> Outcome<Grant> {
        let (epoch, after_crash) = match self.numbered(epoch, after_crash).await {
            Ok(Some(numbered)) => numbered,
            Ok(None) => {
                tracing::warn!(
                    election = %self.on,
                    "a transaction that called fence under an earlier epoch is still open; nobody leads before it has ended"
                );
                return self.fenced(after_crash);
            }
            Err(error) => return outcome(error),
        };
        let Bid { who, ttl, sent, .. } = self.bid.clone();
        let incarnation = who.incarnation;
        self.link.slots.put(self.keys, Slot::Held { who, epoch, ttl, mark: self.last_mark() });
        // What was known before renews nothing.
        self.link.slots.renewed(self.keys, self.inner.clock.boot());
        Outcome::Held(Grant { epoch, incarnation, ttl, counted_from: sent, after_crash })
    }

    /// The lock and presence are ours, and a user's transaction kept the row when this was last asked.
    async fn try_row(&self, after_crash: Option<bool>) -> Outcome<Grant> {
        match self.inner.is_row_free(self.link, self.on).await {
            Ok(true) => self.again(true, after_crash).await,
            Ok(false) => self.fenced(after_crash),
            Err(error) => outcome(error),
        }
    }

    /// Nothing tells of the end of a transaction, so the row is asked for again, and not all the time.
    fn fenced(&self, after_crash: Option<bool>) -> Outcome<Grant> {
        let (now, ttl, mark) = (self.inner.clock.boot(), self.bid.ttl, self.last_mark());
        self.link.slots.put(self.keys, Slot::Fenced { until: now + ttl, ttl, mark, after_crash });
        Outcome::Denied(waiting(now + FENCED_PAUSE))
    }

    async fn denied(&self, row: &Row) -> Outcome<Grant> {
        let (Some(pid), name) = (row.get::<_, Option<i32>>("holder"), row.get::<_, Option<String>>("name"))
        else {
            // Let go between the try and the look.
            return Outcome::Denied(Seen { free_at: Some(self.inner.clock.boot()), ..Seen::nothing() });
        };
        let silent = row.get::<_, Option<i64>>("idle_ms").and_then(|ms| u64::try_from(ms).ok());
        if pid != self.link.a.session.pid && self.inner.follows(self.keys) {
            self.link.held_by_other(pid, self.keys);
        }
        let now = self.inner.clock.boot();
        self.inner.hints.witness(now, self.keys, pid, silent.map(Duration::from_millis));
        if let Some(theirs) = name.as_deref().and_then(|name| names::read(name).1) {
            self.meet(theirs);
        }
        let seen = self.inner.holder(self.link, self.keys, row);
        // Without the row it is the same denial, only with less to tell.
        let told = self.inner.with_record(self.link, self.on, Some(pid), seen.clone()).await;
        Outcome::Denied(told.unwrap_or(seen))
    }

    /// Remembers the ttl of the holder, and warns of one that is not ours, as in the middle of a deployment that changes it.
    fn meet(&self, theirs: Lease) {
        let before = lock(&self.inner.met).insert(self.keys, theirs.ttl);
        let other = theirs.is_only && millis(theirs.ttl) != millis(self.bid.ttl);
        if other && before != Some(theirs.ttl) {
            tracing::warn!(
                "{}: the holder's ttl is {:?} and this candidate's {:?}: it waits until the holder is gone, for the longer of the two; \
                 give all candidates of an election one ttl",
                self.on,
                theirs.ttl,
                self.bid.ttl
            );
        }
    }

    /// For how long the last leader may still believe: for its own ttl, where that is known and longer than ours.
    pub(crate) fn span(&self) -> Duration {
        self.bid.ttl.max(lock(&self.inner.met).get(&self.keys).copied().unwrap_or_default())
    }

    /// Whether the holder is an earlier start of this very id, and was said to be dead.
    fn may_reclaim(&self, row: &Row) -> bool {
        let earlier = row.get::<_, Option<String>>("name").and_then(|name| names::read(&name).0);
        let other = row.get::<_, Option<i32>>("holder") != Some(self.link.a.session.pid);
        self.bid.danger_reclaim && other && earlier.as_ref() == Some(&self.bid.who.id)
    }

    /// Ends the sessions of that earlier start, and takes what they leave. Outside the guarantee.
    async fn reclaim(&self, row: &Row) -> Outcome<Grant> {
        let (pid, name): (i32, String) = (row.get("holder"), row.get("name"));
        if let Err(error) = self.inner.end_earlier(self.link, pid, &name).await {
            return outcome(error);
        }
        let row = match self.on_a(&self.link.a.claim).await {
            Ok(row) => row,
            Err(failure) => return Outcome::Unknown(failure.error()),
        };
        match self.granted(&row) {
            Ok(Some(epoch)) => self.taken(epoch, &row, false).await,
            Ok(None) => self.denied(&row).await,
            Err(error) => outcome(error),
        }
    }

    /// Tries the lock, and says whether presence came with it. Who knows that somebody has it is in no hurry: it would have heard.
    async fn tried(&self) -> Result<(Row, bool), Failure> {
        let Bid { who, ttl, .. } = self.bid;
        let pause = self.link.is_held_by_other(self.keys).then(|| NO_HURRY.min(*ttl / 20));
        let (keys, ttl, id) = (self.keys, *ttl, who.id.clone());
        let asked = Try { keys, ttl, id, notice: self.notice() };
        let mut present = false;
        let alone = async {
            // While A makes the epoch durable, which is most of the time that this takes, B has nothing else to do.
            let answered = AtomicBool::new(false);
            let on_a = async {
                let row = self.on_a(&self.link.a.claim).await;
                answered.store(true, Ordering::Relaxed);
                row
            };
            let (row, found) = tokio::join!(on_a, self.present_before(&answered));
            present = found;
            row
        };
        let row = self.link.tries.ask(asked, pause, self.link.claims(), alone).await;
        match row {
            Ok(row) => Ok((row, present)),
            Err(failure) => {
                if present {
                    self.link.b().leave(keys, ttl, self.link.slots.lease_without(keys)).await;
                }
                Err(failure)
            }
        }
    }

    pub(crate) async fn on_a(&self, statement: &tokio_postgres::Statement) -> Result<Row, Failure> {
        let (id, ttl) = self.link.slots.used_by(&self.bid.who.id, self.bid.ttl);
        let (lease, name) = (self.lease(), names::write(id.as_ref(), ttl));
        let (begin, before) = (self.keys.mark(), self.last_mark());
        let notice = self.notice();
        let (presence, keys) = (self.keys.presence(), self.keys);
        let values: Values<'_> =
            &[&keys.0, &keys.1, &lease, &name, &begin, &before, &notice, &presence.0, &presence.1];
        self.link.a.row(self.bid.ttl, statement, values).await
    }

    /// With tables, the row's epoch is told when it is written.
    fn notice(&self) -> String {
        let tables = self.inner.config.schema_used().is_some();
        let notice = || claimed(self.keys, self.link.a.session.pid, &self.bid.who.id);
        if tables { String::new() } else { notice() }
    }

    /// After an error nobody knows whether the lock was taken before it.
    async fn undo(&self) {
        let lock = format!("SELECT pg_advisory_unlock({}, {})", self.keys.0, self.keys.1);
        for text in [lock, sql::unmark(self.keys.mark())] {
            if self.link.a.session.ask(limit(self.bid.ttl), &text).await.is_err() {
                self.link.a.session.throw_away();
            }
        }
    }

    /// The mark that a claim left, or 0.
    pub(crate) fn mark(&self, row: &Row) -> i64 {
        let marked = row.get::<_, Option<bool>>("marked").unwrap_or(false);
        row.get::<_, Option<i64>>("xid").filter(|_| marked).map_or(0, |xid| self.keys.mark() | xid)
    }

    fn last_mark(&self) -> i64 {
        self.link.slots.of(self.keys).map_or(0, |slot| slot.mark())
    }

    fn wait(&self, until: Boot, mark: i64) {
        self.link.slots.put(self.keys, Slot::Waiting { until, ttl: self.bid.ttl, mark });
    }

    /// The slot as it is, under another mark.
    pub(crate) fn marked(&self, new: i64) {
        let Some(mut slot) = self.link.slots.of(self.keys) else { return };
        match &mut slot {
            Slot::Waiting { mark, .. } | Slot::Fenced { mark, .. } | Slot::Held { mark, .. } => *mark = new,
        }
        self.link.slots.put(self.keys, slot);
    }

    /// Whether a lock in hand was let go in favour of somebody else a moment ago.
    fn kept_for_other(&self) -> Option<Seen> {
        self.reservation_of_other().map(|kept| self.kept(kept))
    }

    /// The same without the lock in hand. Whoever holds nothing can say the same, so the server is asked whether it is free.
    async fn left_to_other(&self) -> Option<Seen> {
        let kept = self.reservation_of_other()?;
        let is_free = async || {
            let rows = self.inner.rows_of(self.link, &[self.keys]).await.ok()?;
            rows.first()?.get::<_, Option<i32>>("holder").is_none().then_some(())
        };
        if !kept.by_holder {
            is_free().await?;
        }
        Some(self.kept(kept))
    }

    fn reservation_of_other(&self) -> Option<Reservation> {
        let kept = self.inner.hints.reserved(self.inner.clock.boot(), self.keys, self.bid.ttl)?;
        (kept.whom != self.bid.who.id).then_some(kept)
    }

    fn kept(&self, kept: Reservation) -> Seen {
        let free_at = Some(kept.until(self.bid.ttl));
        Seen { proof: Proof::Released, free_at, reserved_for: Some(kept.whom), ..Seen::nothing() }
    }

    async fn leave_to_other(&self, seen: Seen) -> Outcome<Grant> {
        match self.inner.let_go(self.link, self.keys, self.bid.ttl, None).await {
            Outcome::Held(()) | Outcome::Denied(_) => Outcome::Denied(seen),
            Outcome::Unknown(error) => Outcome::Unknown(error),
            Outcome::Refused(error) => Outcome::Refused(error),
        }
    }

    pub(crate) fn lease(&self) -> String {
        millis(self.bid.ttl.max(self.link.slots.lease_without(self.keys))).to_string()
    }
}
