//! Every statement on the tables, with why it is written so; `{schema}` stands for theirs. As in `sql.rs`, materialised steps and
//! `CASE`s run in order.

/// RFC 3339 in UTC.
macro_rules! printed {
    ($column:literal) => {
        concat!("to_char(", $column, " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS ", $column)
    };
}

pub(crate) const READ: &str = concat!(
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
pub(crate) const WRITE: &str = concat!(
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
pub(crate) const INTEND: &str = concat!(
    "INSERT INTO {schema}.intents AS i (name, epoch) SELECT $1::text, $4::int8 WHERE ",
    has_lock!("$5"),
    " ON CONFLICT (name) DO UPDATE SET epoch = greatest(i.epoch, excluded.epoch)"
);

/// Also where somebody removed the row.
pub(crate) const FREE: &str = "WITH free AS MATERIALIZED (SELECT FROM {schema}.elections e WHERE e.name = $1 \
     FOR NO KEY UPDATE SKIP LOCKED) SELECT EXISTS (SELECT FROM free) \
     OR NOT EXISTS (SELECT FROM {schema}.elections e WHERE e.name = $1)";

/// A transaction that is fenced keeps the row, and those after it are to be refused all the same: then it is said beside the row that the
/// epoch is over. After a crash of the server nobody has the lock, and `fence` refuses by that, so nobody waits for the disk.
pub(crate) const RELEASE: &str = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), \
     free AS MATERIALIZED (SELECT e.name FROM quick, {schema}.elections e \
     WHERE e.name = $1 AND e.epoch = $2 AND e.incarnation = $3 FOR NO KEY UPDATE OF e SKIP LOCKED), \
     changed AS (UPDATE {schema}.elections e SET holder = NULL, session = NULL, released = clock_timestamp() \
     FROM free WHERE e.name = free.name RETURNING 1) \
     INSERT INTO {schema}.intents AS i (name, epoch) SELECT e.name, e.epoch + 1 FROM {schema}.elections e \
     WHERE e.name = $1 AND e.epoch = $2 AND e.incarnation = $3 AND NOT EXISTS (SELECT FROM changed) \
     ON CONFLICT (name) DO UPDATE SET epoch = greatest(i.epoch, excluded.epoch)";

/// Beginning and end are written by two calls that may overtake each other: the end stays.
pub(crate) const REMEMBER: &str = "WITH added AS (INSERT INTO {schema}.history AS h \
     (election, epoch, id, incarnation, since, until, ended) \
     VALUES ($1, $2, $3, $4, $5::text::timestamptz, $6::text::timestamptz, $7) \
     ON CONFLICT (election, epoch) DO UPDATE SET id = excluded.id, incarnation = excluded.incarnation, \
     since = excluded.since, until = excluded.until, ended = excluded.ended \
     WHERE h.until IS NULL OR excluded.until IS NOT NULL) \
     DELETE FROM {schema}.history WHERE election = $1 AND epoch < (SELECT min(epoch) FROM \
     (SELECT epoch FROM {schema}.history WHERE election = $1 ORDER BY epoch DESC LIMIT $8) kept)";

/// What was added by a statement under way is deleted by the next one, so a line too many is not shown.
pub(crate) const HISTORY: &str = concat!(
    "SELECT epoch, id, incarnation, ended, ",
    printed!("since"),
    ", ",
    printed!("until"),
    " FROM (SELECT * FROM {schema}.history WHERE election = $1 ORDER BY epoch DESC LIMIT $2) kept ORDER BY epoch"
);

pub(crate) const LIST: &str = "SELECT name FROM {schema}.elections ORDER BY name";

pub(crate) const COOL_DOWN: &str = "WITH old AS (DELETE FROM {schema}.cooldowns c WHERE c.election = $1 AND c.id <> $2 \
     AND c.until < clock_timestamp()) \
     INSERT INTO {schema}.cooldowns (election, id, until) \
     VALUES ($1, $2, clock_timestamp() + $3::int8 * interval '1 millisecond') \
     ON CONFLICT (election, id) DO UPDATE SET until = excluded.until";

/// A row if this statement made it.
pub(crate) const CREATE_ONCE: &str =
    "INSERT INTO {schema}.once (name, content) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING 1";

pub(crate) const READ_ONCE: &str = "SELECT content FROM {schema}.once WHERE name = $1";

pub(crate) const COOLDOWN: &str = "SELECT ceil(extract(epoch FROM until - clock_timestamp()) * 1000)::int8 \
     FROM {schema}.cooldowns WHERE election = $1 AND id = $2";
