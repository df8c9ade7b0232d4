//! The statements of presence, the shared lock on session B that says that a process of ours works in an election, with why they are written
//! so. As in `sql.rs`, materialised steps and `CASE`s run in order.

use crate::sql::timeline;

/// On B: whether others are present and how long nothing has freed locks early, and with that, or by force, presence.
/// What this session has already is not taken again: each time it is taken it must be unlocked once.
/// $3: for how many milliseconds the server must have been quiet; $4: by force; $5: the lease. $6: only if that session, the first
/// of this process, has the lock $7, $8; 0 if that is known. So it can be asked while the claim is still being made durable.
///
/// Quiet counts from the start of the server, the last crash of a backend (it resets `pg_stat_wal`), and on a timeline
/// above the first from the last checkpoint, since a promotion ends in one and leaves no other date. That date is cut
/// off to whole seconds, hence the second on top.
macro_rules! presence {
    ($promoted:literal) => {
        concat!(
    "WITH locks AS MATERIALIZED (SELECT coalesce(bool_or(present AND pid <> pg_backend_pid()), false) AS others, \
     coalesce(bool_or(present AND pid = pg_backend_pid()), false) AS mine, \
     coalesce(bool_or(NOT present AND pid = $6::int4), false) AS first FROM (SELECT l.pid, \
     l.classid = ($1::int4::int8 & 4294967295)::oid AND l.objid = ($2::int4::int8 & 4294967295)::oid AS present, \
     l.mode = 'ExclusiveLock' AND l.classid = ($7::int4::int8 & 4294967295)::oid \
     AND l.objid = ($8::int4::int8 & 4294967295)::oid AS lock \
     FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) l WHERE present OR lock), \
     seen AS MATERIALIZED (SELECT locks.*, pg_is_in_recovery() AS standby, CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
    timeline!(),
    " END AS timeline FROM locks), dated AS MATERIALIZED (SELECT seen.*, \
     (extract(epoch FROM clock_timestamp() - greatest(pg_postmaster_start_time(), \
     (SELECT stats_reset FROM pg_stat_wal), CASE WHEN timeline > 1 THEN ",
            $promoted,
            " END)) * 1000)::int8 AS quiet_ms FROM seen), \
     verdict AS MATERIALIZED (SELECT dated.*, \
     NOT standby AND ($6::int4 = 0 OR first) AND ($4::bool OR (NOT others AND quiet_ms >= $3::int8)) AS go FROM dated) \
     SELECT standby, others, timeline, quiet_ms, go, \
     CASE WHEN NOT go THEN false WHEN mine THEN true ELSE pg_try_advisory_lock_shared($1, $2) END AS present, \
     CASE WHEN go THEN set_config('idle_session_timeout', $5, false) END FROM verdict"
)
    };
}

macro_rules! presence_all {
    ($promoted:literal) => {
        concat!(
            "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::int4[], $2::int4[], $3::int8[], $4::bool[]) \
             WITH ORDINALITY AS w(one, two, need, force, place)), \
             held AS MATERIALIZED (SELECT l.classid, l.objid, bool_or(l.pid <> pg_backend_pid()) AS others, \
             bool_or(l.pid = pg_backend_pid()) AS mine FROM pg_locks l \
             WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             GROUP BY l.classid, l.objid), \
             line AS MATERIALIZED (SELECT pg_is_in_recovery() AS standby, CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
            timeline!(),
            " END AS timeline), dated AS MATERIALIZED (SELECT line.*, \
             (extract(epoch FROM clock_timestamp() - greatest(pg_postmaster_start_time(), \
             (SELECT stats_reset FROM pg_stat_wal), CASE WHEN timeline > 1 THEN ",
            $promoted,
            " END)) * 1000)::int8 AS quiet_ms FROM line), \
             verdict AS MATERIALIZED (SELECT wanted.*, dated.*, coalesce(held.mine, false) AS mine, \
             coalesce(held.others, false) AS others, \
             NOT standby AND (force OR (NOT coalesce(held.others, false) AND quiet_ms >= need)) AS go \
             FROM wanted CROSS JOIN dated LEFT JOIN held \
             ON held.classid = (one::int8 & 4294967295)::oid AND held.objid = (two::int8 & 4294967295)::oid), \
             leased AS MATERIALIZED (SELECT CASE WHEN bool_or(go) THEN \
             set_config('idle_session_timeout', $5, false) END AS lease FROM verdict) \
             SELECT timeline, quiet_ms, others, CASE WHEN NOT go THEN false WHEN mine THEN true \
             ELSE pg_try_advisory_lock_shared(one, two) END AS present, leased.lease \
             FROM verdict CROSS JOIN leased ORDER BY place"
        )
    };
}

/// When the last promotion was.
macro_rules! promoted {
    ($statement:ident) => {
        $statement!(
            "(SELECT CASE WHEN c.timeline_id = timeline THEN c.checkpoint_time + interval '1 second' \
             ELSE clock_timestamp() END FROM pg_control_checkpoint() c)"
        )
    };
}

pub(crate) const PRESENCE: &str = promoted!(presence);

/// As [`PRESENCE`], for arrays of keys ($1, $2), of the quiet that each needs ($3) and of force ($4).
pub(crate) const PRESENCE_ALL: &str = promoted!(presence_all);

/// As [`PRESENCE_UNDATED`], for arrays.
pub(crate) const PRESENCE_ALL_UNDATED: &str = presence_all!("clock_timestamp()");

/// For a role that may not call `pg_control_checkpoint()`: as if the promotion had been this moment, so that only a session that
/// has seen a whole ttl of its timeline takes over at once.
pub(crate) const PRESENCE_UNDATED: &str = presence!("clock_timestamp()");

/// On B: this process's work in that election is over.
pub(crate) const ABSENCE: &str = "SELECT pg_advisory_unlock_shared($1, $2), \
     set_config('idle_session_timeout', $3, false)";
