//! Elections with tables: what is read from them and written to them, and when.
//!
//! A leadership is believed only when its row is written, under an epoch above the row's. The row is replaced only at the
//! epoch that was read after the lock was ours: whoever writes late, and was replaced meanwhile, finds another epoch there.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Claimed, Finding, SessionFailure, Written, lock};
use bellwether_core::{Bid, ElectionName, Epoch, Proof, Seen, StoreError};

use crate::errors::{misconfigured, unavailable};
use crate::records::{ElectionRow, LeadershipRow, Records, RowWrite, functions_of, outdated};
use crate::session::{LOOK_LIMIT, PgSession};
use crate::store::PgStore;
use crate::{Config, Schema, hosts, names, notices};

/// From the first try to write a row that a transaction has locked to the next: twice as long each time.
const PAUSE: Duration = Duration::from_millis(2);

/// How long making the tables may take: others may be making them.
const INIT_LIMIT: Duration = Duration::from_secs(60);

impl PgStore {
    /// The session of the tables; `None` where the URL names no schema.
    pub(crate) async fn records(&self, beside: &PgSession) -> Result<Option<Arc<Records>>, StoreError> {
        let Some(schema) = self.config.schema_used() else { return Ok(None) };
        let mut current = beside.pair.records.lock().await;
        if let Some(records) = current.as_ref().filter(|records| !records.connection.is_over()) {
            return Ok(Some(Arc::clone(records)));
        }
        let name = beside.pair.names.of(names::RECORD);
        let records = Arc::new(Records::open(&self.config, schema, beside.pair.host, &name).await?);
        beside.connection.same_server(&records.connection)?;
        *current = Some(Arc::clone(&records));
        Ok(Some(records))
    }

    /// Writes a leadership, under an epoch that is at least that of its claim and above everything before it.
    pub(crate) async fn write_record(
        &self,
        beside: &PgSession,
        claimed: &Claimed<'_, PgStore>,
        records: &Records,
    ) -> Result<Written<i64>, StoreError> {
        let Claimed { on, key, bid, mark, .. } = *claimed;
        let session = beside.connection.pid();
        let by = self.clock.boot() + bid.ttl / 10;
        let (mut intended, mut pause) = (None, PAUSE);
        loop {
            let before = records.read(on).await?;
            let epoch = above(claimed.epoch, &before, bid.floor)?;
            let notice = format!("{}{epoch}", notices::claimed(key, session, &bid.who.id));
            let leadership = LeadershipRow { on, keys: key, bid, session, notice: &notice };
            match records.write(&leadership, before.epoch, epoch).await? {
                RowWrite::Done => {
                    let other = |incarnation| incarnation != Some(bid.who.incarnation);
                    let unreleased = before.holder.is_some_and(|holder| other(holder.incarnation));
                    return Ok(Written::Done { epoch, mark, unreleased });
                }
                RowWrite::NotYet => {}
                RowWrite::LockLost => {
                    return Err(unavailable("the lock was lost before the leadership was written"));
                }
            }
            if intended != Some(epoch) {
                records.intend(&leadership, epoch).await?;
                intended = Some(epoch);
            }
            if self.clock.boot() + pause >= by {
                tracing::warn!(
                    election = %on,
                    "a transaction that called fence under an earlier epoch is still open; nobody leads before it has ended"
                );
                return Ok(Written::NotYet);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// Whether this id stepped down not long ago, perhaps before it was started anew. Only a candidate's first claim can meet a
    /// cooldown that it did not cause, and it is never longer than one from then.
    pub(crate) async fn in_cooldown(
        &self,
        beside: &PgSession,
        on: &ElectionName,
        bid: &Bid,
    ) -> Result<Option<Seen>, StoreError> {
        let key = (on.clone(), bid.who.incarnation);
        let Some(longest) = bid.cooldown.filter(|_| !lock(&self.cooldown_checked).contains(&key)) else {
            return Ok(None);
        };
        let Some(records) = self.records(beside).await? else { return Ok(None) };
        let left = records.cooldown(on, &bid.who.id).await?.min(longest);
        lock(&self.cooldown_checked).insert(key);
        let seen = Seen { proof: Proof::Record, cooldown: Some(left), ..Seen::nothing() };
        Ok((!left.is_zero()).then_some(seen))
    }

    /// Whether the functions beside the tables are as new as this program, where the URL names tables.
    pub(crate) async fn tables_found(&self, beside: &PgSession) -> Result<Option<Finding>, StoreError> {
        const WHAT: &str = "tables";
        let (Some(schema), Some(records)) = (self.config.schema_used(), self.records(beside).await?) else {
            return Ok(None);
        };
        let functions = functions_of(&records.connection, schema, LOOK_LIMIT).await?;
        Ok(Some(match outdated(schema, functions) {
            Some(advice) => Finding::warning(WHAT, advice),
            None => Finding::good(WHAT, format!("schema {} is as this program made it", schema.name())),
        }))
    }
}

/// The epoch to lead under. An epoch that was only intended was led under by nobody.
fn above(least: Epoch, before: &ElectionRow, floor: Epoch) -> Result<Epoch, StoreError> {
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
pub async fn init(config: &Config, schema: &Schema, roles: &[String]) -> Result<(), StoreError> {
    let sql = schema.sql(roles)?;
    let (_, session) = hosts::primary(config, &names::of_nobody("init"), 0).await?;
    session.execute(INIT_LIMIT, &sql).await.map_err(SessionFailure::error)
}
