//! Claiming: the lock on A, then the judgement whether its last leader may still believe, with presence on B.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Taken, Takeover, Witness};
use bellwether_core::{Bid, Bug, Epoch, ErrorKind, Grant, Outcome};

use super::backend::{Inner, Link, Slot, held_by, limit, seen, unavailable, waiting};
use super::wire::{Failure, Said, Statement};
use crate::port::{lock, trouble};

/// How long a claim looks out for a presence that is just going.
const JUST_GOING: Duration = Duration::from_millis(60);

impl Inner {
    pub(super) async fn claim(&self, bid: &Bid) -> Outcome<Grant> {
        let link = match self.link().await {
            Ok(link) => link,
            Err(error) => return Outcome::Unknown(error),
        };
        self.leave_lingering(&bid.who).await;
        let _turn = link.turn().await;
        let claim = Claim { inner: self, link: &link, bid };
        match link.slot() {
            None => claim.take().await,
            Some(Slot::Waiting(taken)) => claim.go_on(taken).await,
            Some(Slot::Held { who, .. }) if who.incarnation != bid.who.incarnation => {
                Outcome::Denied(held_by(&who))
            }
            Some(Slot::Held { .. }) => claim.once_more().await,
        }
    }
}

struct Claim<'a> {
    inner: &'a Inner,
    link: &'a Arc<Link>,
    bid: &'a Bid,
}

impl Claim<'_> {
    async fn take(&self) -> Outcome<Grant> {
        if self.inner.has(Bug::EpochBeforeLock) && lock(&self.inner.early).is_none() {
            let early = self.on_a(Statement::Number).await;
            *lock(&self.inner.early) = early.ok().and_then(|said| said.epoch());
        }
        let asked = Statement::Try(self.bid.who.id.clone(), self.bid.ttl);
        let answer = match self.inner.has(Bug::LateLockKept) {
            true => {
                let wire = &self.inner.wire;
                wire.ask_only(&self.link.a, self.bid.ttl / 10, asked).await.unwrap_or(Err(Failure::Error))
            }
            false => self.on_a(asked).await,
        };
        match answer {
            Ok(Said::Granted(epoch)) => {
                let epoch = lock(&self.inner.early).take().unwrap_or(epoch);
                let taken = Taken::new(self.inner.wire.now(), self.bid.ttl).with(self.inner.planted);
                self.link.put(Some(Slot::Waiting(taken)));
                self.judge(taken, epoch).await
            }
            Ok(Said::HeldBy(by, name, silent)) => {
                *lock(&self.inner.witness) = Some(Witness { at: self.inner.wire.now(), silent });
                Outcome::Denied(seen(self.link, by, name))
            }
            Ok(_) => Outcome::Unknown(trouble(ErrorKind::Bug, "an answer to another question")),
            Err(Failure::Error) => {
                self.undo().await;
                Outcome::Unknown(unavailable(Failure::Error))
            }
            Err(Failure::Over) => Outcome::Unknown(unavailable(Failure::Over)),
        }
    }

    /// Waits a moment for a presence that is just going.
    async fn judge(&self, taken: Taken, epoch: Epoch) -> Outcome<Grant> {
        let longest = JUST_GOING.min(self.bid.ttl / 10);
        let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(1));
        loop {
            match self.takeover(taken).await {
                Ok(Takeover::Lead { after_crash }) => return self.lead(epoch, after_crash),
                Ok(Takeover::Wait(until)) if waited >= longest => return Outcome::Denied(waiting(until)),
                Ok(Takeover::Wait(_)) => {}
                Err(failure) => return Outcome::Unknown(unavailable(failure)),
            }
            self.inner.wire.pause(pause).await;
            waited += pause;
            pause *= 2;
        }
    }

    /// The lock is ours and its last leader may have believed: is that over?
    async fn go_on(&self, taken: Taken) -> Outcome<Grant> {
        match self.takeover(taken).await {
            Ok(Takeover::Lead { after_crash }) => self.again(after_crash).await,
            Ok(Takeover::Wait(until)) => Outcome::Denied(waiting(until)),
            Err(failure) => Outcome::Unknown(unavailable(failure)),
        }
    }

    async fn takeover(&self, taken: Taken) -> Result<Takeover, Failure> {
        let (b, now) = (self.link.b(), self.inner.wire.now());
        let condition = taken.condition(now, self.link.a.since.max(b.since));
        let met = self.inner.wire.ask(&b, limit(taken.ttl()), Statement::Appear(condition, taken.ttl()));
        let met = met.await? == Said::Yes(true);
        let last = if met { lock(&self.inner.witness).take() } else { None };
        Ok(taken.takeover(self.inner.wire.now(), met, last))
    }

    /// Ours, and its claim's answer was lost on the way: under a new epoch, if presence stands too.
    async fn once_more(&self) -> Outcome<Grant> {
        let b = self.link.b();
        match self.inner.wire.ask(&b, limit(self.bid.ttl), Statement::Beat).await {
            Ok(Said::Yes(true)) => self.again(false).await,
            Ok(_) => {
                self.inner.appear(&b, self.bid.ttl).await;
                Outcome::Unknown(trouble(ErrorKind::Unavailable, "the second session is not there yet"))
            }
            Err(failure) => Outcome::Unknown(unavailable(failure)),
        }
    }

    async fn again(&self, after_crash: bool) -> Outcome<Grant> {
        match self.on_a(Statement::Again).await {
            Ok(Said::Granted(epoch)) => self.lead(epoch, after_crash),
            Ok(_) => {
                self.link.put(None);
                Outcome::Unknown(trouble(ErrorKind::Unavailable, "the lock was gone"))
            }
            Err(failure) => Outcome::Unknown(unavailable(failure)),
        }
    }

    fn lead(&self, epoch: Epoch, after_crash: bool) -> Outcome<Grant> {
        let Bid { who, ttl, sent, .. } = self.bid.clone();
        let incarnation = who.incarnation;
        self.link.put(Some(Slot::Held { who, epoch, ttl }));
        Outcome::Held(Grant { epoch, incarnation, ttl, counted_from: sent, after_crash })
    }

    /// After an error nobody knows whether the lock was taken before it.
    async fn undo(&self) {
        if !self.inner.has(Bug::LateLockKept) && self.on_a(Statement::Unlock(false)).await.is_err() {
            self.inner.wire.throw_away(&self.link.a);
        }
    }

    async fn on_a(&self, statement: Statement) -> Result<Said, Failure> {
        self.inner.wire.ask(&self.link.a, limit(self.bid.ttl), statement).await
    }
}
