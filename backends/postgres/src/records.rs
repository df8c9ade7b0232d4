//! Session D: the tables, where the URL names a schema. Nothing here holds a lock for longer than a statement, and no statement
//! waits for a user's transaction: a row that one has locked is passed over, and tried again by whoever wants it.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_backend::{HISTORY_MAX, Past};
use bellwether_core::{Bid, Boot, CandidateId, ElectionName, Epoch, Error, Holder, Incarnation, Wall};
use tokio_postgres::{Row, Statement};

use crate::errors::{Failure, misconfigured};
use crate::look::LOOK_LIMIT;
use crate::schema::{FUNCTIONS, VERSION, WHAT_IS_THERE, WHICH_VERSION};
use crate::session::{Session, Values};
use crate::{Config, Keys, Schema};

/// The session and its statements.
pub(crate) struct Records {
    pub(crate) session: Session,
    read: Statement,
    write: Statement,
    intend: Statement,
    free: Statement,
    release: Statement,
    remember: Statement,
    history: Statement,
    list: Statement,
    cool_down: Statement,
    cooldown: Statement,
}

/// The row of an election.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// The last epoch that was led.
    pub(crate) epoch: Option<Epoch>,
    /// The highest one that somebody meant to lead under and could not write yet.
    pub(crate) intent: Option<Epoch>,
    /// Who leads, or led and did not let go.
    pub(crate) holder: Option<Holder>,
    /// The server's process behind its session A.
    pub(crate) session: Option<i32>,
    pub(crate) priority: Option<i32>,
    pub(crate) acquired: Option<Wall>,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// How a try to write a leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Done,
    /// The row has another epoch by now, or a transaction that was fenced under the old one is still open.
    NotYet,
    /// The session of the lock does not have it, so whoever does is not replaced.
    LockLost,
}

/// A leadership as it is written.
pub(crate) struct Claimed<'a> {
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
        opened: Boot,
        name: &str,
    ) -> Result<Records, Error> {
        let limit = config.connect_timeout();
        let session = Session::open(config, host, opened, name, None).await?;
        if let Some(advice) = outdated(schema, functions_of(&session, schema, limit).await?) {
            tracing::warn!("{advice}");
        }
        let found = session.ask(limit, &schema.statement(WHICH_VERSION)).await.map_err(Failure::error)?;
        let version = found.first().map(|row| row.get::<_, i32>(0));
        if version != Some(VERSION) {
            return Err(misconfigured(format!(
                "the tables in schema {:?} are of version {}, and this program uses {VERSION}: use a program of that version, or \
                 another schema",
                schema.name(),
                version.unwrap_or(0)
            )));
        }
        let prepare = |text: &'static str| {
            let text = schema.statement(text);
            let session = &session;
            async move { session.prepare(&text).await }
        };
        let (read, write, intend, free, release, remember, history, list, cool_down, cooldown) = tokio::try_join!(
            prepare(READ),
            prepare(WRITE),
            prepare(INTEND),
            prepare(FREE),
            prepare(RELEASE),
            prepare(REMEMBER),
            prepare(HISTORY),
            prepare(LIST),
            prepare(COOL_DOWN),
            prepare(COOLDOWN),
        )?;
        let all = Records {
            session,
            read,
            write,
            intend,
            free,
            release,
            remember,
            history,
            list,
            cool_down,
            cooldown,
        };
        Ok(all)
    }

    pub(crate) async fn read(&self, on: &ElectionName) -> Result<Record, Error> {
        let rows = self.rows(&self.read, &[&on.as_str()]).await?;
        Ok(rows.first().map(record).unwrap_or_default())
    }

    /// Writes a leadership over the row that has the epoch `before`, if the lock is still ours.
    pub(crate) async fn write(
        &self,
        claimed: &Claimed<'_>,
        before: Option<Epoch>,
        epoch: Epoch,
    ) -> Result<Write, Error> {
        let Claimed { on, keys, bid, session, notice } = claimed;
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
        let rows = self.rows(&self.write, values).await?;
        let answer = rows.first().map(|row| (row.get("done"), row.get("lost")));
        Ok(match answer {
            Some((true, _)) => Write::Done,
            Some((false, true)) => Write::LockLost,
            _ => Write::NotYet,
        })
    }

    /// From now on no transaction is fenced under an epoch below this one, if the lock is still ours.
    pub(crate) async fn intend(&self, claimed: &Claimed<'_>, epoch: Epoch) -> Result<(), Error> {
        let Claimed { on, keys, session, .. } = claimed;
        let values: Values<'_> = &[&on.as_str(), &keys.0, &keys.1, &number(epoch), session];
        self.rows(&self.intend, values).await.map(drop)
    }

    /// Whether no transaction keeps the row of this election from being written.
    pub(crate) async fn is_free(&self, on: &ElectionName) -> Result<bool, Error> {
        let rows = self.rows(&self.free, &[&on.as_str()]).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Writes that this very leadership was let go: into the row, or beside it where a transaction keeps that.
    pub(crate) async fn release(
        &self,
        on: &ElectionName,
        epoch: Epoch,
        incarnation: Incarnation,
        limit: Duration,
    ) {
        let values: Values<'_> = &[&on.as_str(), &number(epoch), &incarnation.to_string()];
        let _ = self.session.rows(limit, &self.release, values).await;
    }

    pub(crate) async fn remember(&self, on: &ElectionName, past: &Past) -> Result<(), Error> {
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
        self.rows(&self.remember, values).await.map(drop)
    }

    pub(crate) async fn history(&self, on: &ElectionName) -> Result<Vec<Past>, Error> {
        let rows = self.rows(&self.history, &[&on.as_str(), &(HISTORY_MAX as i64)]).await?;
        Ok(rows.iter().filter_map(past).collect())
    }

    pub(crate) async fn elections(&self) -> Result<Vec<ElectionName>, Error> {
        let rows = self.rows(&self.list, &[]).await?;
        Ok(rows.iter().filter_map(|row| ElectionName::new(row.get::<_, String>(0)).ok()).collect())
    }

    /// This id stays away for so long, by the server's clock.
    pub(crate) async fn cool_down(&self, on: &ElectionName, id: &CandidateId, span: Duration) {
        let values: Values<'_> = &[&on.as_str(), &id.as_str(), &crate::names::millis(span)];
        let _ = self.rows(&self.cool_down, values).await;
    }

    /// For how long this id still stays away.
    pub(crate) async fn cooldown(&self, on: &ElectionName, id: &CandidateId) -> Result<Duration, Error> {
        let rows = self.rows(&self.cooldown, &[&on.as_str(), &id.as_str()]).await?;
        let left = rows.first().map_or(0, |row| row.get::<_, i64>(0));
        Ok(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    async fn rows(&self, statement: &Statement, values: Values<'_>) -> Result<Vec<Row>, Error> {
        self.session.rows(LOOK_LIMIT, statement, values).await.map_err(Failure::error)
    }
}

/// The version of the functions, by the catalogue: it is looked at before anything in the schema is read, since what stands in
/// a table's place could be anything.
pub(crate) async fn functions_of(
    session: &Session,
    schema: &Schema,
    limit: Duration,
) -> Result<Option<i32>, Error> {
    let found = session.ask(limit, &schema.statement(WHAT_IS_THERE)).await.map_err(Failure::error)?;
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

fn record(row: &Row) -> Record {
    let id: Option<String> = row.get("holder");
    let incarnation: Option<String> = row.get("incarnation");
    let holder = id
        .and_then(|id| CandidateId::new(id).ok())
        .map(|id| Holder { id, incarnation: incarnation.as_deref().and_then(Incarnation::parse) });
    let metadata: Option<String> = row.get("metadata");
    Record {
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

/// RFC 3339 in UTC.
macro_rules! printed {
    ($column:literal) => {
        concat!("to_char(", $column, " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS ", $column)
    };
}

const READ: &str = concat!(
    "SELECT e.epoch, e.holder, e.incarnation, e.session, e.priority, e.metadata::text AS metadata, ",
    printed!("acquired"),
    ", (SELECT i.epoch FROM {schema}.intents i WHERE i.name = $1) AS intent \
     FROM (SELECT) one LEFT JOIN {schema}.elections e ON e.name = $1"
);

/// Whether the session of that process has the lock $2, $3 at this instant: the catalogue of locks knows no snapshots.
macro_rules! has_lock {
    ($session:literal) => {
        concat!(
            "EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
             AND l.mode = 'ExclusiveLock' AND l.pid = ",
            $session,
            " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             AND l.classid = ($2::int4::int8 & 4294967295)::oid AND l.objid = ($3::int4::int8 & 4294967295)::oid)"
        )
    };
}

/// $4: the epoch before, 0 where there is no row; $5: the new one; $8: the session of the lock; $12: the notice.
///
/// The lock is proven with the row in hand: whoever has lost it finds the row of its successor, which it would otherwise read and
/// replace. The proof is in a `CASE` and refers to the row, so that it is made neither before nor without it.
const WRITE: &str = concat!(
    "WITH free AS MATERIALIZED (SELECT e.name, $8::int4 AS session FROM {schema}.elections e \
     WHERE e.name = $1 AND e.epoch = $4 FOR NO KEY UPDATE SKIP LOCKED), \
     proven AS MATERIALIZED (SELECT free.name FROM free WHERE CASE WHEN free.session <> 0 THEN ",
    has_lock!("free.session"),
    " ELSE false END), \
     changed AS (UPDATE {schema}.elections e SET key1 = $2, key2 = $3, epoch = $5, holder = $6, incarnation = $7, \
     session = $8, ttl_ms = $9, priority = $10, metadata = $11::text::jsonb, acquired = clock_timestamp(), \
     released = NULL FROM proven WHERE e.name = proven.name RETURNING 1), \
     made AS (INSERT INTO {schema}.elections (name, key1, key2, epoch, holder, incarnation, session, ttl_ms, priority, \
     metadata, acquired) SELECT $1, $2, $3, $5, $6, $7, $8, $9, $10, $11::text::jsonb, clock_timestamp() \
     WHERE $4 = 0 AND ",
    has_lock!("$8"),
    " ON CONFLICT DO NOTHING RETURNING 1), \
     written AS MATERIALIZED (SELECT (SELECT count(*) FROM changed) + (SELECT count(*) FROM made) > 0 AS done) \
     SELECT done, CASE WHEN done THEN false ELSE NOT ",
    has_lock!("$8"),
    " END AS lost, CASE WHEN done THEN pg_notify('bellwether', $12)::text END FROM written"
);

/// $4: the epoch; $5: the session of the lock.
const INTEND: &str = concat!(
    "INSERT INTO {schema}.intents AS i (name, epoch) SELECT $1::text, $4::int8 WHERE ",
    has_lock!("$5"),
    " ON CONFLICT (name) DO UPDATE SET epoch = greatest(i.epoch, excluded.epoch)"
);

/// Also where somebody removed the row.
const FREE: &str = "WITH free AS MATERIALIZED (SELECT FROM {schema}.elections e WHERE e.name = $1 \
     FOR NO KEY UPDATE SKIP LOCKED) SELECT EXISTS (SELECT FROM free) \
     OR NOT EXISTS (SELECT FROM {schema}.elections e WHERE e.name = $1)";

/// A transaction that is fenced keeps the row, and those after it are to be refused all the same: then it is said beside the row that the
/// epoch is over. After a crash of the server nobody has the lock, and `fence` refuses by that, so nobody waits for the disk.
const RELEASE: &str = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), \
     free AS MATERIALIZED (SELECT e.name FROM quick, {schema}.elections e \
     WHERE e.name = $1 AND e.epoch = $2 AND e.incarnation = $3 FOR NO KEY UPDATE OF e SKIP LOCKED), \
     changed AS (UPDATE {schema}.elections e SET holder = NULL, session = NULL, released = clock_timestamp() \
     FROM free WHERE e.name = free.name RETURNING 1) \
     INSERT INTO {schema}.intents AS i (name, epoch) SELECT e.name, e.epoch + 1 FROM {schema}.elections e \
     WHERE e.name = $1 AND e.epoch = $2 AND e.incarnation = $3 AND NOT EXISTS (SELECT FROM changed) \
     ON CONFLICT (name) DO UPDATE SET epoch = greatest(i.epoch, excluded.epoch)";

/// Beginning and end are written by two calls that may overtake each other: the end stays.
const REMEMBER: &str = "WITH added AS (INSERT INTO {schema}.history AS h \
     (election, epoch, id, incarnation, since, until, ended) \
     VALUES ($1, $2, $3, $4, $5::text::timestamptz, $6::text::timestamptz, $7) \
     ON CONFLICT (election, epoch) DO UPDATE SET id = excluded.id, incarnation = excluded.incarnation, \
     since = excluded.since, until = excluded.until, ended = excluded.ended \
     WHERE h.until IS NULL OR excluded.until IS NOT NULL) \
     DELETE FROM {schema}.history WHERE election = $1 AND epoch < (SELECT min(epoch) FROM \
     (SELECT epoch FROM {schema}.history WHERE election = $1 ORDER BY epoch DESC LIMIT $8) kept)";

/// What was added by a statement under way is deleted by the next one, so a line too many is not shown.
const HISTORY: &str = concat!(
    "SELECT epoch, id, incarnation, ended, ",
    printed!("since"),
    ", ",
    printed!("until"),
    " FROM (SELECT * FROM {schema}.history WHERE election = $1 ORDER BY epoch DESC LIMIT $2) kept ORDER BY epoch"
);

const LIST: &str = "SELECT name FROM {schema}.elections ORDER BY name";

const COOL_DOWN: &str = "WITH old AS (DELETE FROM {schema}.cooldowns c WHERE c.election = $1 AND c.id <> $2 \
     AND c.until < clock_timestamp()) \
     INSERT INTO {schema}.cooldowns (election, id, until) \
     VALUES ($1, $2, clock_timestamp() + $3::int8 * interval '1 millisecond') \
     ON CONFLICT (election, id) DO UPDATE SET until = excluded.until";

const COOLDOWN: &str = "SELECT ceil(extract(epoch FROM until - clock_timestamp()) * 1000)::int8 \
     FROM {schema}.cooldowns WHERE election = $1 AND id = $2";
