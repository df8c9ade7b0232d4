//! Session D: the tables, where the URL names a schema. Nothing here holds a lock for longer than a statement, and no statement
//! waits for a user's transaction: a row that one has locked is passed over, and tried again by whoever wants it.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_backend::{HISTORY_MAX, Past, SessionFailure};
use bellwether_core::{Bid, CandidateId, ElectionName, Epoch, Holder, Incarnation, StoreError, Wall};
use tokio_postgres::Row;

use crate::connection::{PgConnection, Values};
use crate::errors::misconfigured;
use crate::record_sql::{COOL_DOWN, COOLDOWN, FREE, HISTORY, INTEND, LIST, READ, RELEASE, REMEMBER, WRITE};
use crate::schema::{FUNCTIONS, VERSION, WHAT_IS_THERE, WHICH_VERSION};
use crate::session::LOOK_LIMIT;
use crate::{Config, Keys, Schema};

/// The session.
pub(crate) struct Records {
    pub(crate) connection: PgConnection,
}

/// What is asked on it.
const STATEMENTS: &[&str] =
    &[READ, WRITE, INTEND, FREE, RELEASE, REMEMBER, HISTORY, LIST, COOL_DOWN, COOLDOWN];

/// The row of an election.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElectionRow {
    /// The last epoch that was led.
    pub(crate) epoch: Option<Epoch>,
    /// The highest one that somebody meant to lead under and could not write yet.
    pub(crate) intent: Option<Epoch>,
    /// Who leads, or led and did not release.
    pub(crate) holder: Option<Holder>,
    /// The server's process behind its session A.
    pub(crate) session: Option<i32>,
    pub(crate) priority: Option<i32>,
    pub(crate) acquired: Option<Wall>,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// How a try to write a leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowWrite {
    Done,
    /// The row has another epoch by now, or a transaction that was fenced under the old one is still open.
    NotYet,
    /// The session of the lock does not have it, so whoever does is not replaced.
    LockLost,
}

/// A leadership as it is written.
pub(crate) struct LeadershipRow<'a> {
    pub(crate) on: &'a ElectionName,
    pub(crate) keys: Keys,
    pub(crate) bid: &'a Bid,
    pub(crate) session: i32,
    pub(crate) notice: &'a str,
}

impl Records {
    /// Opens it, and refuses tables that are not there or of another version.
    pub(crate) async fn open(
        config: &Config,
        schema: &Schema,
        host: usize,
        name: &str,
    ) -> Result<Records, StoreError> {
        let limit = config.connect_timeout();
        let session = PgConnection::open(config, host, name, None).await?;
        if let Some(advice) = outdated(schema, functions_of(&session, schema, limit).await?) {
            tracing::warn!("{advice}");
        }
        let found =
            session.ask(limit, &schema.statement(WHICH_VERSION)).await.map_err(SessionFailure::error)?;
        let version = found.first().map(|row| row.get::<_, i32>(0));
        if version != Some(VERSION) {
            return Err(misconfigured(format!(
                "the tables in schema {:?} are of version {}, and this program uses {VERSION}: use a program of that version, or \
                 another schema",
                schema.name(),
                version.unwrap_or(0)
            )));
        }
        session.prepare(STATEMENTS).await?;
        Ok(Records { connection: session })
    }

    pub(crate) async fn read(&self, on: &ElectionName) -> Result<ElectionRow, StoreError> {
        let rows = self.rows(READ, &[&on.as_str()]).await?;
        Ok(rows.first().map(record).unwrap_or_default())
    }

    /// Writes a leadership over the row that has the epoch `before`, if the lock is still ours.
    pub(crate) async fn write(
        &self,
        leadership: &LeadershipRow<'_>,
        before: Option<Epoch>,
        epoch: Epoch,
    ) -> Result<RowWrite, StoreError> {
        let LeadershipRow { on, keys, bid, session, notice } = leadership;
        let (before, epoch) = (before.map_or(0, number), number(epoch));
        let (incarnation, ttl) = (bid.who.incarnation.to_string(), crate::names::millis(bid.ttl));
        // The one character that the server cannot keep.
        let kept = |text: &String| text.replace('\0', "\u{fffd}");
        let metadata: BTreeMap<_, _> =
            bid.metadata.iter().map(|(key, value)| (kept(key), kept(value))).collect();
        let metadata = serde_json::to_string(&metadata).unwrap_or_else(|_| "{}".to_owned());
        let values: Values<'_> = &[
            &on.as_str(),
            &keys.0,
            &keys.1,
            &before,
            &epoch,
            &bid.who.id.as_str(),
            &incarnation,
            session,
            &ttl,
            &bid.priority,
            &metadata,
            notice,
        ];
        let rows = self.rows(WRITE, values).await?;
        let answer = rows.first().map(|row| (row.get("done"), row.get("lost")));
        Ok(match answer {
            Some((true, _)) => RowWrite::Done,
            Some((false, true)) => RowWrite::LockLost,
            _ => RowWrite::NotYet,
        })
    }

    /// From now on no transaction is fenced under an epoch below this one, if the lock is still ours.
    pub(crate) async fn intend(
        &self,
        leadership: &LeadershipRow<'_>,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        let LeadershipRow { on, keys, session, .. } = leadership;
        let values: Values<'_> = &[&on.as_str(), &keys.0, &keys.1, &number(epoch), session];
        self.rows(INTEND, values).await.map(drop)
    }

    /// Whether no transaction keeps the row of this election from being written.
    pub(crate) async fn is_free(&self, on: &ElectionName) -> Result<bool, StoreError> {
        let rows = self.rows(FREE, &[&on.as_str()]).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Writes that exactly this leadership was released: into the row, or beside it where a transaction keeps that.
    pub(crate) async fn release(
        &self,
        on: &ElectionName,
        epoch: Epoch,
        incarnation: Incarnation,
        limit: Duration,
    ) {
        let values: Values<'_> = &[&on.as_str(), &number(epoch), &incarnation.to_string()];
        let _ = self.connection.rows(limit, RELEASE, values).await;
    }

    pub(crate) async fn remember(&self, on: &ElectionName, past: &Past) -> Result<(), StoreError> {
        let incarnation = past.incarnation.map(|incarnation| incarnation.to_string());
        let (since, until) = (past.since.to_string(), past.until.map(|until| until.to_string()));
        let most = HISTORY_MAX as i64;
        let values: Values<'_> = &[
            &on.as_str(),
            &number(past.epoch),
            &past.id.as_str(),
            &incarnation,
            &since,
            &until,
            &past.ended,
            &most,
        ];
        self.rows(REMEMBER, values).await.map(drop)
    }

    pub(crate) async fn history(&self, on: &ElectionName) -> Result<Vec<Past>, StoreError> {
        let rows = self.rows(HISTORY, &[&on.as_str(), &(HISTORY_MAX as i64)]).await?;
        Ok(rows.iter().filter_map(past).collect())
    }

    pub(crate) async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        let rows = self.rows(LIST, &[]).await?;
        Ok(rows.iter().filter_map(|row| ElectionName::new(row.get::<_, String>(0)).ok()).collect())
    }

    /// This id stays away for `span`, by the server's clock.
    pub(crate) async fn cool_down(&self, on: &ElectionName, id: &CandidateId, span: Duration) {
        let values: Values<'_> = &[&on.as_str(), &id.as_str(), &crate::names::millis(span)];
        let _ = self.rows(COOL_DOWN, values).await;
    }

    /// How long this id still stays away.
    pub(crate) async fn cooldown(&self, on: &ElectionName, id: &CandidateId) -> Result<Duration, StoreError> {
        let rows = self.rows(COOLDOWN, &[&on.as_str(), &id.as_str()]).await?;
        let left = rows.first().map_or(0, |row| row.get::<_, i64>(0));
        Ok(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    pub(crate) async fn rows(&self, text: &'static str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        self.connection.rows(LOOK_LIMIT, text, values).await.map_err(SessionFailure::error)
    }
}

/// The version of the functions, by the catalogue: it is looked at before anything in the schema is read, since what stands in
/// a table's place could be anything.
pub(crate) async fn functions_of(
    session: &PgConnection,
    schema: &Schema,
    limit: Duration,
) -> Result<Option<i32>, StoreError> {
    let found = session.ask(limit, &schema.statement(WHAT_IS_THERE)).await.map_err(SessionFailure::error)?;
    let Some(row) = found.first() else { return Ok(None) };
    if let Some(odd) = row.get::<_, Option<&str>>(0) {
        return Err(misconfigured(format!(
            "in schema {:?}, {odd} is not a table of the schema's owner: have the owner run `bellwether postgres init`, which \
             says what to do",
            schema.name()
        )));
    }
    Ok(row.get(1))
}

/// What to do where the functions of the tables are older than this program.
pub(crate) fn outdated(schema: &Schema, functions: Option<i32>) -> Option<String> {
    let name = schema.name();
    let old = functions.filter(|functions| *functions < FUNCTIONS)?;
    Some(format!(
        "the functions in schema {name:?} are of version {old}, and {FUNCTIONS} fences better: have the schema's owner run \
         `bellwether postgres init --schema {name}` again, which replaces them in place"
    ))
}

fn number(epoch: Epoch) -> i64 {
    // Below 2^53.
    epoch.get() as i64
}

fn epoch(number: Option<i64>) -> Option<Epoch> {
    Epoch::new(u64::try_from(number?).ok()?)
}

fn wall(text: Option<String>) -> Option<Wall> {
    Wall::parse(&text?)
}

fn record(row: &Row) -> ElectionRow {
    let id: Option<String> = row.get("holder");
    let incarnation: Option<String> = row.get("incarnation");
    let holder = id
        .and_then(|id| CandidateId::new(id).ok())
        .map(|id| Holder { id, incarnation: incarnation.as_deref().and_then(Incarnation::parse) });
    let metadata: Option<String> = row.get("metadata");
    ElectionRow {
        epoch: epoch(row.get("epoch")),
        intent: epoch(row.get("intent")),
        holder,
        session: row.get("session"),
        priority: row.get("priority"),
        acquired: wall(row.get("acquired")),
        metadata: metadata.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    }
}

/// A line that makes no sense is left out, as it must not hide the others.
fn past(row: &Row) -> Option<Past> {
    let incarnation: Option<String> = row.get("incarnation");
    Some(Past {
        epoch: epoch(row.get("epoch"))?,
        id: CandidateId::new(row.get::<_, String>("id")).ok()?,
        incarnation: incarnation.as_deref().and_then(Incarnation::parse),
        since: wall(row.get("since"))?,
        until: wall(row.get("until")),
        ended: row.get("ended"),
    })
}
