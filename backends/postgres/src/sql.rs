//! Every statement, with why it is written so.
//!
//! Explicit keys only: in `WHERE NOT EXISTS (…) AND pg_try_advisory_lock(…)` the planner may run the lock first, hence the
//! materialised steps and the `CASE`s, which run in order.

/// The channel of all releases in this database. Each session filters: a channel per election would cost a statement per
/// election at every reconnect, and releases are rare.
pub(crate) const CHANNEL: &str = "bellwether";

/// What a new session is set to before anything else. Generic plans: each statement is planned once, when the session is
/// opened, instead of in the middle of a handover. `synchronous_commit`: an epoch must survive the server's crash.
pub(crate) const PREPARE_SESSION: &str = "SET synchronous_commit = on; SET statement_timeout = 0; SET lock_timeout = 0; \
     SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
     SET default_transaction_read_only = off; SET client_min_messages = error; SET jit = off; \
     SET plan_cache_mode = force_generic_plan";

pub(crate) const WHERE_AM_I: &str = "SELECT pg_backend_pid(), pg_is_in_recovery(), \
     current_setting('server_version_num')::int4, \
     pg_postmaster_start_time()::text || ' ' || system_identifier::text FROM pg_control_system()";

/// Nothing may end the session before `idle_session_timeout` does: keepalives of 2/1/3 were seen to free the lock of
/// a cut-off leader after 4 s that believed for the whole ttl. $1: seconds, $2: milliseconds.
pub(crate) const NO_EARLIER: &str = "SELECT set_config('tcp_keepalives_idle', $1, false), \
     set_config('tcp_user_timeout', $2, false)";

macro_rules! timeline {
    () => {
        "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4"
    };
}

/// The sentence of every look at the holder of a lock, with the transaction id of its epoch; `$tag` stands for what its marks
/// begin with. Two marks that begin alike, of two elections of one session, tell nothing.
macro_rules! holder {
    ($tag:literal, $condition:literal) => {
        concat!(
            "SELECT l.pid AS holder, s.application_name AS name, \
             (extract(epoch FROM clock_timestamp() - s.state_change) * 1000)::int8 AS idle_ms, \
             (SELECT CASE WHEN count(*) = 1 THEN max((m.classid::int8 & 255) << 32 | m.objid::int8) END \
             FROM pg_locks m WHERE m.locktype = 'advisory' AND m.objsubid = 1 AND m.granted AND m.pid = l.pid \
             AND m.database = l.database AND m.classid::int8 >> 8 = (",
            $tag,
            "::int8 >> 40) & 16777215) AS marked_xid, \
             CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
            timeline!(),
            " END AS marked_timeline \
             FROM pg_locks l LEFT JOIN pg_stat_activity s ON s.pid = l.pid \
             WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.mode = 'ExclusiveLock' \
             AND l.classid = ($1::int4::int8 & 4294967295)::oid AND l.objid = ($2::int4::int8 & 4294967295)::oid \
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ",
            $condition,
            " LIMIT 1"
        )
    };
}

macro_rules! own {
    () => {
        "FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
         AND l.pid = pg_backend_pid() \
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    };
}

/// The epoch's parts, the lease and the session's name, once the lock is there: the transaction id is assigned after the
/// lock was granted, and the message makes it durable ($4: the name, $3: the lease). The mark shows the epoch to others ($5: what
/// it begins with, $6: the mark before it, or 0), and the notice tells of it ($7: the notice but for the epoch, or nothing).
macro_rules! once_held {
    () => {
        concat!(
            "lock.got, pg_is_in_recovery() AS standby, pg_backend_pid() AS pid, \
             CASE WHEN got THEN pg_current_xact_id()::text::int8 END AS xid, \
             CASE WHEN got THEN pg_logical_emit_message(true, 'bellwether', 'claim')::text END AS durable, \
             CASE WHEN got THEN ",
            timeline!(),
            " END AS timeline, \
             CASE WHEN got THEN set_config('idle_session_timeout', $3, false) END AS lease, \
             CASE WHEN got THEN set_config('application_name', $4, false) END AS named, \
             CASE WHEN got THEN pg_try_advisory_lock($5::int8 | pg_current_xact_id()::text::int8) END AS marked, \
             CASE WHEN got AND $6::int8 <> 0 THEN pg_advisory_unlock($6::int8) END AS unmarked, \
             CASE WHEN got AND $7::text <> '' THEN pg_notify('bellwether', $7::text || (",
            timeline!(),
            "::int8 << 40 | pg_current_xact_id()::text::int8)::text)::text END AS told"
        )
    };
}

/// On A: tries the lock; with it the epoch, without it who has it. A standby would grant it too, so it is not asked there.
pub(crate) const CLAIM: &str = concat!(
    "WITH lock AS MATERIALIZED (SELECT CASE WHEN pg_is_in_recovery() THEN false \
     ELSE pg_try_advisory_lock($1, $2) END AS got) SELECT ",
    once_held!(),
    ", held.holder, held.name, held.idle_ms, held.marked_xid, held.marked_timeline FROM lock LEFT JOIN LATERAL (",
    holder!("$5", "AND NOT lock.got"),
    ") held ON true"
);

/// On A: a new epoch under a lock that is already there, which is proven on the way.
pub(crate) const AGAIN: &str = concat!(
    "WITH lock AS MATERIALIZED (SELECT NOT pg_is_in_recovery() AND EXISTS (SELECT ",
    own!(),
    " AND l.mode = 'ExclusiveLock' AND l.classid = ($1::int4::int8 & 4294967295)::oid \
     AND l.objid = ($2::int4::int8 & 4294967295)::oid) AS got) SELECT ",
    once_held!(),
    " FROM lock"
);

/// On A and B: primary still, the same backend still, and every lock of this session.
pub(crate) const BEAT: &str = concat!(
    "SELECT pg_backend_pid(), pg_is_in_recovery(), ARRAY(SELECT l.classid::int8 ",
    own!(),
    " ORDER BY l.classid, l.objid), ARRAY(SELECT l.objid::int8 ",
    own!(),
    " ORDER BY l.classid, l.objid)"
);

/// On A: lets go, and tells everybody in the same statement. $3: the lease from now on; $4: the notice.
/// $5: its mark, or 0.
pub(crate) const RELEASE: &str = "SELECT pg_advisory_unlock($1, $2), \
     set_config('idle_session_timeout', $3, false), pg_notify('bellwether', $4), \
     CASE WHEN $5::int8 <> 0 THEN pg_advisory_unlock($5::int8) END";

/// On B: tells everybody.
pub(crate) const TELL: &str = "SELECT pg_notify('bellwether', $1)";

/// On B: whether others are present and how long nothing has freed locks early, and with that, or by force, presence.
/// What this session has already is not taken again: it would have to be let go of as often.
/// $3: for how many milliseconds the server must have been quiet; $4: by force; $5: the lease.
///
/// Quiet counts from the start of the server, the last crash of a backend (it resets `pg_stat_wal`), and on a timeline
/// above the first from the last checkpoint, since a promotion ends in one and leaves no other date. That date is cut
/// off to whole seconds, hence the second on top.
pub(crate) const PRESENCE: &str = concat!(
    "WITH seen AS MATERIALIZED (SELECT pg_is_in_recovery() AS standby, EXISTS (SELECT FROM pg_locks l \
     WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.pid <> pg_backend_pid() \
     AND l.classid = ($1::int4::int8 & 4294967295)::oid AND l.objid = ($2::int4::int8 & 4294967295)::oid \
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS others, \
     EXISTS (SELECT ",
    own!(),
    " AND l.classid = ($1::int4::int8 & 4294967295)::oid \
     AND l.objid = ($2::int4::int8 & 4294967295)::oid) AS mine, \
     CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
    timeline!(),
    " END AS timeline), dated AS MATERIALIZED (SELECT seen.*, \
     (extract(epoch FROM clock_timestamp() - greatest(pg_postmaster_start_time(), \
     (SELECT stats_reset FROM pg_stat_wal), CASE WHEN timeline > 1 THEN \
     (SELECT CASE WHEN c.timeline_id = timeline THEN c.checkpoint_time + interval '1 second' \
     ELSE clock_timestamp() END \
     FROM pg_control_checkpoint() c) END)) * 1000)::int8 AS quiet_ms FROM seen), \
     verdict AS MATERIALIZED (SELECT dated.*, \
     NOT standby AND ($4::bool OR (NOT others AND quiet_ms >= $3::int8)) AS go FROM dated) \
     SELECT standby, others, timeline, quiet_ms, go, \
     CASE WHEN NOT go THEN false WHEN mine THEN true ELSE pg_try_advisory_lock_shared($1, $2) END AS present, \
     CASE WHEN go THEN set_config('idle_session_timeout', $5, false) END FROM verdict"
);

/// On B: this process's work in that election is over.
pub(crate) const ABSENCE: &str = "SELECT pg_advisory_unlock_shared($1, $2), \
     set_config('idle_session_timeout', $3, false)";

/// On B: who holds the lock.
pub(crate) const LOOK: &str = holder!("$3", "");

/// On A: removes whatever marks of an election are left after an error.
pub(crate) fn unmark(mark: i64) -> String {
    format!(
        "SELECT count(pg_advisory_unlock(l.classid::int8 << 32 | l.objid::int8)) FROM pg_locks l \
         WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = pg_backend_pid() \
         AND l.classid::int8 >> 8 = ({mark}::int8 >> 40) & 16777215"
    )
}

/// On B: uses up so many transaction ids, each by a subtransaction that writes.
pub(crate) fn advance(count: u64) -> String {
    format!(
        "DO $$ BEGIN FOR i IN 1..{count} LOOP BEGIN PERFORM pg_logical_emit_message(true, 'bellwether', 'floor'); \
         EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$"
    )
}
