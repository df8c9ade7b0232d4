//! Pausing an election: a field of the record, written by compare-and-set, which every later write of the record carries on until the
//! pause is over.
//!
//! Nobody who holds the record is touched by it: holder, epoch and beat stay, so it is no sign of life and ends no leadership.

use bellwether_core::{Ask, ElectionName, ErrorKind, Outcome, Pause, Request, StoreError};

use super::{Shared, TRIES};
use crate::{Found, Record, Register};

impl<R: Register> Shared<R> {
    pub(super) async fn pause(&self, on: &ElectionName, pause: Option<&Pause>) -> Outcome<()> {
        if !self.register.capabilities().pauses {
            return Outcome::Refused(
                self.cannot("its records are shared with candidates that know no pauses"),
            );
        }
        for _ in 0..TRIES {
            if let Err(error) = self.look(on).await {
                return Outcome::failed(error);
            }
            let found = self.memory().observations.last(on).cloned();
            let before = found.as_ref().map(|(record, _)| record);
            let old = before.and_then(|record| record.paused.as_ref());
            let is_done = match (pause, old) {
                (None, old) => old.is_none(),
                // A first try was written although it seemed to conflict. Those who saw it count from then.
                (Some(new), old) => old.is_some_and(|old| new.is_same(old)),
            };
            if is_done {
                return Outcome::Done(());
            }
            let record = match self.paused(on, &found, pause).await {
                Ok(record) => record,
                Err(error) => return Outcome::failed(error),
            };
            let at = found.as_ref().map(|(_, version)| version);
            if let Some(outcome) = self.register.write(on, at, &record).await.outcome() {
                return outcome.map(drop);
            }
        }
        Outcome::Unknown(self.overtaken())
    }

    /// The record as it was found, with this pause in it.
    async fn paused(
        &self,
        on: &ElectionName,
        found: &Found<R::Version>,
        pause: Option<&Pause>,
    ) -> Result<Record, StoreError> {
        let record = found.as_ref().map(|(record, _)| record.clone()).unwrap_or_default();
        if record.broken {
            let why =
                "its record makes no sense; a candidate replaces it once its ttl has passed: try again then";
            return Err(self.cannot(why));
        }
        if let Some(holder) = record.holder.as_ref().filter(|holder| holder.incarnation.is_none()) {
            let id = &holder.id;
            let why = format!("the leader {id} was not started by Bellwether and would not keep the pause");
            return Err(self.cannot(&why));
        }
        // One that would make the leader go for somebody who cannot take over.
        let is_moot = |asked: &Request| pause.is_some() && matches!(asked.what, Ask::Preempt { .. });
        let mut record = Record {
            paused: pause.cloned(),
            request: record.request.filter(|asked| !is_moot(asked)),
            // Readers of some stores tell by it whether a candidate that knows no pauses has written since.
            renewed: record.renewed.or(Some(self.clock.wall())),
            ..record
        };
        let is_native = record.epoch.is_some() && record.beat > 0;
        if record.holder.is_none() && !is_native {
            // What is followed by this record has to be followed by the next epoch as well.
            let least = self.least_epoch(on, bellwether_core::Epoch::ZERO)?;
            let replaced = found.as_ref().map(|(record, version)| (record, version));
            record.epoch = Some(self.register.epoch(on, replaced, least).await?.max(least));
            record.beat = 1;
        }
        Ok(record)
    }

    /// What is left of the pause in this record; `None` if there is none, or it is over.
    pub(super) fn left_of_pause(&self, on: &ElectionName, record: &Record) -> Option<Pause> {
        let now = self.clock.boot();
        record.paused.as_ref().and_then(|pause| self.memory().observations.left_of(now, on, pause))
    }

    pub(super) fn is_paused(&self, on: &ElectionName) -> bool {
        let now = self.clock.boot();
        self.memory().observations.is_paused(now, on)
    }

    fn cannot(&self, why: &str) -> StoreError {
        let sentence = format!("this election cannot be paused: {why}");
        StoreError::new(ErrorKind::Unsupported, self.register.name(), sentence)
    }
}
