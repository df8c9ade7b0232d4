//! Claiming: look, unless there is fresh news of a release; judge; write at the version that was judged.

use bellwether_core::{Bid, ElectionName, Epoch, ErrorKind, Grant, Holder, Outcome, Seen, StoreError, Wall};

use super::{Claims, Shared, TRIES};
use crate::{ClaimVerdict, Life, Note, Record, Register};

impl<R: Register> Shared<R> {
    pub(super) async fn claim(&self, on: &ElectionName, bid: &Bid) -> Outcome<Grant> {
        match self.attempt(on, bid).await {
            // Who stands by and could never lead is told now, and not when it is needed.
            Outcome::Denied(seen) => match self.register.rehearse(on).await {
                // As it is by now: a release that was told of meanwhile would go unnoticed until the ttl has passed.
                Ok(()) => Outcome::Denied(Seen { cooldown: seen.cooldown, ..self.seen(on) }),
                Err(error) => Outcome::Refused(error),
            },
            outcome => outcome,
        }
    }

    async fn attempt(&self, on: &ElectionName, bid: &Bid) -> Outcome<Grant> {
        if let Err(error) = self.register.admit(on, bid) {
            return Outcome::failed(error);
        }
        self.begin(on, bid);
        match self.cooldown(on, bid).await {
            Ok(None) => {}
            Ok(Some(seen)) => return Outcome::Denied(seen),
            Err(error) => return Outcome::failed(error),
        }
        // A candidate that has just been told of a release need not read it again: the write names the version that it was told.
        if self.memory().observations.is_fresh_release(self.clock.boot(), on)
            && let Some(outcome) = self.take(on, bid).await
        {
            return outcome;
        }
        // Lost against something that keeps nobody out, such as a record that the store took away when it had run out: once more.
        for _ in 0..TRIES {
            if let Err(error) = self.look(on).await {
                return Outcome::failed(error);
            }
            if let Some(outcome) = self.take(on, bid).await {
                return outcome;
            }
        }
        match self.look(on).await {
            Ok(()) => Outcome::Denied(self.seen(on)),
            Err(error) => Outcome::failed(error),
        }
    }

    /// Judges what was seen last and writes over it if that is free; `None` if it was not there any more.
    async fn take(&self, on: &ElectionName, bid: &Bid) -> Option<Outcome<Grant>> {
        if self.is_overtaken(on, bid) {
            return Some(Outcome::Denied(self.seen(on)));
        }
        let dead = self.life(on) == Life::Dead;
        let now = self.clock.boot();
        let (verdict, replaced) = {
            let memory = self.memory();
            let verdict = memory.observations.verdict(now, on, bid, dead);
            (verdict, memory.observations.last(on).cloned())
        };
        let (at, after_crash) = match verdict {
            ClaimVerdict::Write { at, after_crash } => (at, after_crash),
            ClaimVerdict::Wait(_) => return Some(Outcome::Denied(self.seen(on))),
        };
        let epoch = match self.next_epoch(on, bid, replaced.as_ref()).await {
            Ok(epoch) => epoch,
            Err(error) => return Some(Outcome::failed(error)),
        };
        let wall = self.clock.wall();
        let before = replaced.as_ref().map_or(0, |(record, _)| record.beat);
        let beat = self.next_beat(on, bid.who.incarnation, before);
        let record = Record {
            holder: Some(Holder { id: bid.who.id.clone(), incarnation: Some(bid.who.incarnation) }),
            epoch: Some(epoch),
            ttl: Some(bid.ttl),
            beat,
            priority: Some(bid.priority),
            acquired: Some(wall),
            renewed: Some(wall),
            metadata: bid.metadata.clone(),
            ..Record::default()
        };
        let written = self.register.write(on, at.as_ref(), &record).await.outcome()?;
        Some(written.map(|version| {
            let incarnation = bid.who.incarnation;
            self.wrote(on, incarnation, record, version);
            self.tell_siblings(on);
            Grant { epoch, incarnation, ttl: bid.ttl, counted_from: bid.sent, after_crash }
        }))
    }

    fn begin(&self, on: &ElectionName, bid: &Bid) {
        let mut memory = self.memory();
        memory.own_ttl = Some(bid.ttl);
        memory.takes_part(on, bid.who.incarnation);
        let new = Claims { first: bid.sent, latest: bid.sent };
        let claims = memory.claims.entry((on.clone(), bid.who.incarnation)).or_insert(new);
        claims.latest = bid.sent.max(claims.latest);
        // From here on a record in this candidate's name is compared with what it has written: nothing so far.
        memory.beats.entry((on.clone(), bid.who.incarnation)).or_default();
    }

    /// Whether the same candidate has claimed again since. This claim hung meanwhile, nobody waits for it any more,
    /// and a record in its own name need not be a leftover: the candidate may be about to lead on it.
    fn is_overtaken(&self, on: &ElectionName, bid: &Bid) -> bool {
        let memory = self.memory();
        memory.claims.get(&(on.clone(), bid.who.incarnation)).is_some_and(|claims| claims.latest > bid.sent)
    }

    /// Above everything that the record, the bidder and the store know of.
    async fn next_epoch(
        &self,
        on: &ElectionName,
        bid: &Bid,
        replaced: Option<&(Record, R::Version)>,
    ) -> Result<Epoch, StoreError> {
        let least = self.least_epoch(on, bid.floor)?;
        let replaced = replaced.map(|(record, version)| (record, version));
        let epoch = self.register.epoch(on, replaced, least).await?;
        Ok(epoch.max(least))
    }

    /// The next after everything that was seen of this election, and after `floor`.
    pub(super) fn least_epoch(&self, on: &ElectionName, floor: Epoch) -> Result<Epoch, StoreError> {
        let highest = self.memory().observations.epoch(on).max(floor);
        highest.next().ok_or_else(|| {
            let sentence = "the epochs of this election are used up: the store holds the largest number there is; \
                            remove the record by hand, or use another name";
            StoreError::new(ErrorKind::Misconfigured, self.register.name(), sentence)
        })
    }

    /// Whether this id stepped down not long ago, perhaps before it was started anew.
    async fn cooldown(&self, on: &ElectionName, bid: &Bid) -> Result<Option<Seen>, StoreError> {
        let kept = self.register.capabilities().cooldown;
        let Some(longest) = bid.cooldown.filter(|_| kept) else { return Ok(None) };
        let key = (on.clone(), bid.who.incarnation);
        if self.memory().cooldown_checked.contains(&key) {
            return Ok(None);
        }
        let found = self.register.read_note(on, &Note::Cooldown(bid.who.id.clone())).await?;
        let until = found.and_then(|(bytes, _)| parse_cooldown(&bytes));
        // Somebody's wall clock wrote it; ours reads it. Nothing but politeness hangs on it, and it is never
        // longer than one cooldown from our first claim, which came after it, however wrong either clock is.
        let first = self.memory().claims.get(&key).map_or(bid.sent, |claims| claims.first);
        let longest = longest.saturating_sub(self.clock.boot().since(first));
        let left = until.map(|until| until.as_unix_nanos().saturating_sub(self.clock.wall().as_unix_nanos()));
        let left = std::time::Duration::from_nanos(left.unwrap_or(0).max(0).unsigned_abs()).min(longest);
        if left.is_zero() {
            self.memory().cooldown_checked.insert(key);
            return Ok(None);
        }
        self.look(on).await?;
        // Only now, when nothing can fail any more: an error before the denial must not end the cooldown.
        self.memory().cooldown_checked.insert(key);
        Ok(Some(Seen { cooldown: Some(left), ..self.seen(on) }))
    }
}

/// Decimal Unix milliseconds.
pub(super) fn print_cooldown(until: Wall) -> Vec<u8> {
    (until.as_unix_nanos() / 1_000_000).to_string().into_bytes()
}

fn parse_cooldown(bytes: &[u8]) -> Option<Wall> {
    let millis: i64 = std::str::from_utf8(bytes).ok()?.trim().parse().ok()?;
    Some(Wall::from_unix_nanos(millis.checked_mul(1_000_000)?))
}
