//! Renew, release and request. Each replaces a record that it has read, at that version, and only if the record is the one that
//! it means.

use std::sync::OnceLock;

use bellwether_core::{
    Ask, Boot, ElectionName, Epoch, ErrorKind, Grant, Incarnation, Outcome, ReleaseOptions, Request,
    StoreError, Timing, Wall,
};

use super::claim::print_cooldown;
use super::{Held, Shared, TRIES};
use crate::{Note, Record, Register, Reservation};

impl<R: Register> Shared<R> {
    pub(super) async fn renew(&self, on: &ElectionName, grant: &Grant, sent: Boot) -> Outcome<Grant> {
        let renewal = |held: &Held<R::Version>, now: Wall| Record {
            beat: self.next_beat(on, grant.incarnation, held.record.beat),
            renewed: Some(now),
            request: held.record.request.clone().filter(|asked| held.told.as_ref() != Some(asked)),
            paused: self.left_of_pause(on, &held.record),
            ..held.record.clone()
        };
        let written = self.rewrite(on, grant, renewal).await;
        written.map(|()| Grant { counted_from: sent, ..grant.clone() })
    }

    pub(super) fn next_beat(&self, on: &ElectionName, who: Incarnation, before: u64) -> u64 {
        let now = self.clock.boot();
        self.memory().beats.entry((on.clone(), who)).or_default().next(now, before)
    }

    pub(super) async fn release(
        &self,
        on: &ElectionName,
        grant: &Grant,
        how: &ReleaseOptions,
    ) -> Outcome<()> {
        // Taken from the record that is replaced: what we remember of it may be gone after a first try that failed.
        let id = OnceLock::new();
        let released = |held: &Held<R::Version>, now: Wall| {
            if let Some(holder) = &held.record.holder {
                id.get_or_init(|| holder.id.clone());
            }
            Record {
                holder: None,
                beat: held.record.beat.wrapping_add(1),
                renewed: Some(now),
                request: None,
                paused: self.left_of_pause(on, &held.record),
                reserved: how.reserve_for.clone().map(|candidate| {
                    let span = Timing::reservation(held.record.ttl.unwrap_or(grant.ttl));
                    Reservation { candidate, span }
                }),
                ..held.record.clone()
            }
        };
        let forget = || self.memory().held.remove(&(on.clone(), grant.incarnation));
        let mut written = self.rewrite(on, grant, &released).await;
        forget();
        if let Outcome::Unknown(_) = written {
            // It may never have left: then everybody would wait for a ttl. The second try looks first.
            written = match self.rewrite(on, grant, &released).await {
                Outcome::Denied(seen) if seen.holder.is_none() && seen.epoch == Some(grant.epoch) => {
                    Outcome::Done(())
                }
                written => written,
            };
            forget();
        }
        if let Outcome::Done(()) = written {
            self.tell_siblings(on);
        }
        if let (Outcome::Done(()), Some(span), Some(id)) = (&written, how.cooldown, id.into_inner())
            && self.register.capabilities().cooldown
        {
            // After the release, so that nobody waits for it; if it is lost, only politeness is.
            let until = self.clock.wall().as_unix_nanos().saturating_add(span.as_nanos() as i64);
            let note = Note::Cooldown(id);
            let at = self.register.read_note(on, &note).await.ok().flatten().map(|(_, version)| version);
            let until = print_cooldown(Wall::from_unix_nanos(until));
            let _ = self.register.write_note(on, &note, at, &until).await;
        }
        written
    }

    pub(super) async fn request(&self, on: &ElectionName, what: &Request) -> Outcome<()> {
        for _ in 0..TRIES {
            if let Err(error) = self.look(on).await {
                return Outcome::failed(error);
            }
            let Some((record, version)) = self.memory().observations.last(on).cloned() else {
                return Outcome::Denied(self.seen(on));
            };
            let Some(holder) = &record.holder else { return Outcome::Denied(self.seen(on)) };
            if holder.incarnation.is_none() {
                let id = &holder.id;
                let sentence = format!(
                    "the leader {id} was not started by Bellwether and cannot be asked; stop it by its own means"
                );
                let name = self.register.name();
                return Outcome::Refused(StoreError::new(ErrorKind::Unsupported, name, sentence));
            }
            let preempts = matches!(what.what, Ask::Preempt { .. });
            if record.epoch != Some(what.epoch) || preempts && self.is_paused(on) {
                return Outcome::Denied(self.seen(on));
            }
            let asked = Record { request: Some(what.clone()), ..record };
            if let Some(outcome) = self.register.write(on, Some(&version), &asked).await.outcome() {
                return outcome.map(drop);
            }
        }
        Outcome::Unknown(self.overtaken())
    }

    /// Replaces the record of exactly this grant. A conflict means look: ours still, go on at its new version;
    /// anything else, denied.
    async fn rewrite(
        &self,
        on: &ElectionName,
        grant: &Grant,
        new: impl Fn(&Held<R::Version>, Wall) -> Record,
    ) -> Outcome<()> {
        let mut held = self.held(on, grant);
        for _ in 0..TRIES {
            let current = match held.take() {
                Some(held) => held,
                None => {
                    if let Err(error) = self.look(on).await {
                        return Outcome::failed(error);
                    }
                    match self.adopt(on, grant) {
                        Some(adopted) => adopted,
                        None => return Outcome::Denied(self.seen(on)),
                    }
                }
            };
            let record = new(&current, self.clock.wall());
            let written = self.register.write(on, Some(&current.version), &record).await;
            if let Some(outcome) = written.outcome() {
                return outcome.map(|version| self.wrote(on, grant.incarnation, record, version));
            }
        }
        Outcome::Unknown(self.overtaken())
    }

    fn held(&self, on: &ElectionName, grant: &Grant) -> Option<Held<R::Version>> {
        let memory = self.memory();
        memory.held.get(&(on.clone(), grant.incarnation)).filter(|held| of(&held.record, grant)).cloned()
    }

    /// The record as it was just read, if it is still the one of this grant.
    fn adopt(&self, on: &ElectionName, grant: &Grant) -> Option<Held<R::Version>> {
        let (record, version) = self.memory().observations.last(on).cloned()?;
        if !of(&record, grant) {
            return None;
        }
        let told = self.tell_request(on, grant, &record);
        let held = Held { record, version, told };
        self.memory().held.insert((on.clone(), grant.incarnation), held.clone());
        Some(held)
    }
}

fn of(record: &Record, grant: &Grant) -> bool {
    record.is_of(grant.incarnation, grant.epoch)
}

/// A request is obeyed only if it was meant for the leadership that it met.
pub(super) fn meant_for(request: &Request, epoch: Epoch) -> bool {
    request.epoch == epoch
}
