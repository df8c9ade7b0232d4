//! Elections with tables: what is read from them and written to them, and when.
//!
//! A leadership is believed only when its row is written, under an epoch above the row's. The row is replaced only at the
//! epoch that was read after the lock was ours: whoever writes late, and was replaced meanwhile, finds another epoch there.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Finding, Past};
use bellwether_core::{
    Bid, Boot, CandidateId, ElectionName, Epoch, Error, Grant, Incarnation, Outcome, Proof, Seen,
};

use crate::errors::{Failure, misconfigured, unavailable};
use crate::link::Link;
use crate::look::LOOK_LIMIT;
use crate::notices::Note;
use crate::postgres::{Inner, lock};
use crate::records::{Claimed, Record, Records, Write, functions_of, outdated};
use crate::{Config, Keys, Schema, hosts, names};

/// From the first try to write a row that a transaction has locked to the next: twice as long each time.
const PAUSE: Duration = Duration::from_millis(2);

/// How long making the tables may take: others may be making them.
const INIT_LIMIT: Duration = Duration::from_secs(60);

/// How a leadership was written.
pub(crate) enum Written {
    /// Under this epoch; the last leader had not let go if `unreleased`.
    Done { epoch: Epoch, unreleased: bool },
    /// A transaction that was fenced under the last epoch is still open, or others keep writing.
    NotYet,
}

impl Inner {
    /// The session of the tables; `None` where the URL names no schema.
    pub(crate) async fn records(&self, link: &Link) -> Result<Option<Arc<Records>>, Error> {
        let Some(schema) = self.config.schema_used() else { return Ok(None) };
        let mut current = link.records.lock().await;
        if let Some(records) = current.as_ref().filter(|records| !records.session.is_over()) {
            return Ok(Some(Arc::clone(records)));
        }
        let opened = self.clock.boot();
        let name = link.slots.name(names::RECORD);
        let records = Arc::new(Records::open(&self.config, schema, link.host, opened, &name).await?);
        link.a.session.same_server(&records.session)?;
        *current = Some(Arc::clone(&records));
        Ok(Some(records))
    }

    /// The same, for what can only be asked where there are tables.
    async fn tables(self: &Arc<Self>) -> Result<Option<Arc<Records>>, Error> {
        if self.config.schema_used().is_none() {
            return Ok(None);
        }
        let link = self.link().await?;
        self.records(&link).await
    }

    /// Writes a leadership, under an epoch that is at least `least` and above everything before it.
    pub(crate) async fn write_record(
        &self,
        link: &Link,
        on: &ElectionName,
        (keys, bid): (Keys, &Bid),
        records: &Records,
        least: Epoch,
    ) -> Result<Written, Error> {
        let session = link.a.session.pid;
        let by = self.clock.boot() + bid.ttl / 10;
        let (mut intended, mut pause) = (None, PAUSE);
        loop {
            let before = records.read(on).await?;
            let epoch = above(least, &before, bid.floor)?;
            let note = Note::Claimed { keys, pid: session, id: bid.who.id.clone(), epoch }.write();
            let claimed = Claimed { on, keys, bid, session, notice: &note };
            match records.write(&claimed, before.epoch, epoch).await? {
                Write::Done => {
                    let other = |incarnation| incarnation != Some(bid.who.incarnation);
                    let unreleased = before.holder.is_some_and(|holder| other(holder.incarnation));
                    return Ok(Written::Done { epoch, unreleased });
                }
                Write::NotYet => {}
                Write::LockLost => {
                    return Err(unavailable("the lock was lost before the leadership was written"));
                }
            }
            if intended != Some(epoch) {
                records.intend(&claimed, epoch).await?;
                intended = Some(epoch);
            }
            if self.clock.boot() + pause >= by {
                return Ok(Written::NotYet);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// Whether no transaction keeps the row.
    pub(crate) async fn is_row_free(&self, link: &Link, on: &ElectionName) -> Result<bool, Error> {
        match self.records(link).await? {
            Some(records) => records.is_free(on).await,
            None => Ok(true),
        }
    }

    /// What the row adds to a look. It counts for the holder only if it is of the very session that has the lock.
    pub(crate) async fn with_record(
        &self,
        link: &Link,
        on: &ElectionName,
        session: Option<i32>,
        seen: Seen,
    ) -> Result<Seen, Error> {
        let Some(records) = self.records(link).await? else { return Ok(seen) };
        let record = records.read(on).await?;
        Ok(match session {
            Some(pid) if record.session == Some(pid) && seen.proof == Proof::Alive => Seen {
                holder: record.holder,
                epoch: record.epoch,
                priority: record.priority,
                acquired: record.acquired,
                metadata: record.metadata,
                ..seen
            },
            Some(_) => seen,
            None => {
                let released = record.epoch.is_some() && record.holder.is_none();
                let proof = if released { Proof::Released } else { seen.proof };
                Seen { epoch: record.epoch, proof, ..seen }
            }
        })
    }

    /// Writes that a leadership was let go, before it is: whoever comes next reads it. Others wait for the lock meanwhile, so
    /// nothing is opened for it, and it is left out where it would take long.
    pub(crate) async fn release_record(
        &self,
        link: &Link,
        on: &ElectionName,
        (epoch, incarnation, ttl): (Epoch, Incarnation, Duration),
    ) {
        let records = link.records.try_lock().ok().and_then(|records| records.clone());
        if let Some(records) = records.filter(|records| !records.session.is_over()) {
            records.release(on, epoch, incarnation, ttl / 10).await;
        }
    }

    /// After a release: this id stays away.
    pub(crate) async fn cool_down(&self, link: &Link, on: &ElectionName, id: &CandidateId, span: Duration) {
        if let Ok(Some(records)) = self.records(link).await {
            records.cool_down(on, id, span).await;
        }
    }

    /// Whether this id stepped down not long ago, perhaps before it was started anew. Only a candidate's first claim can meet a
    /// cooldown that it did not cause, and it is never longer than one from then.
    pub(crate) async fn in_cooldown(
        &self,
        link: &Link,
        on: &ElectionName,
        bid: &Bid,
    ) -> Result<Option<Outcome<Grant>>, Error> {
        let key = (on.clone(), bid.who.incarnation);
        let Some(longest) = bid.cooldown.filter(|_| !lock(&self.cooldown_checked).contains(&key)) else {
            return Ok(None);
        };
        let Some(records) = self.records(link).await? else { return Ok(None) };
        let left = records.cooldown(on, &bid.who.id).await?.min(longest);
        lock(&self.cooldown_checked).insert(key);
        let seen = Seen { proof: Proof::Record, cooldown: Some(left), ..Seen::nothing() };
        Ok((!left.is_zero()).then_some(Outcome::Denied(seen)))
    }

    pub(crate) async fn remember(self: Arc<Self>, on: ElectionName, past: Past) -> Result<(), Error> {
        match self.tables().await? {
            Some(records) => records.remember(&on, &past).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn history(self: &Arc<Self>, on: &ElectionName) -> Result<Vec<Past>, Error> {
        match self.tables().await? {
            Some(records) => records.history(on).await,
            None => Ok(Vec::new()),
        }
    }

    pub(crate) async fn elections(self: &Arc<Self>) -> Result<Vec<ElectionName>, Error> {
        match self.tables().await? {
            Some(records) => records.elections().await,
            // Locks have numbers, not names.
            None => Ok(Vec::new()),
        }
    }
}

impl Inner {
    /// Whether the functions beside the tables are as new as this program, where the URL names tables.
    pub(crate) async fn tables_found(&self, link: &Link) -> Result<Option<Finding>, Error> {
        const WHAT: &str = "tables";
        let (Some(schema), Some(records)) = (self.config.schema_used(), self.records(link).await?) else {
            return Ok(None);
        };
        let functions = functions_of(&records.session, schema, LOOK_LIMIT).await?;
        Ok(Some(match outdated(schema, functions) {
            Some(advice) => Finding::warning(WHAT, advice),
            None => Finding::good(WHAT, format!("schema {} is as this program made it", schema.name())),
        }))
    }
}

/// The epoch to lead under. An epoch that was only intended was led under by nobody.
fn above(least: Epoch, before: &Record, floor: Epoch) -> Result<Epoch, Error> {
    let last = before.epoch.unwrap_or(Epoch::ZERO).max(floor);
    let next = last.next().ok_or_else(|| {
        misconfigured("the epochs of this election are used up: remove its row by hand, or use another name")
    })?;
    Ok(next.max(least).max(before.intent.unwrap_or(Epoch::ZERO)))
}

/// Makes the tables in this schema, unless they are there, and lets these roles take part.
///
/// # Errors
/// When the server cannot be reached, or the role of the URL may not.
pub async fn init(config: &Config, schema: &Schema, roles: &[String]) -> Result<(), Error> {
    let sql = schema.sql(roles)?;
    let (_, session) = hosts::primary(config, Boot::default(), &names::of_nobody("init"), 0).await?;
    session.execute(INIT_LIMIT, &sql).await.map_err(Failure::error)
}
