//! The statements of presence, the shared lock on session B that says that a process of ours works in an election, with why they are written
//! so. As in `sql.rs`, materialised steps and `CASE`s run in order.

use crate::sql::timeline;

/// On B: whether others are present and how long nothing has freed locks early, and with that, or by force, presence. A row for each.
/// What this session has already is not taken again: each time it is taken it must be unlocked once.
/// For arrays of keys ($1, $2), of the milliseconds for which the server must have been quiet ($3), of force ($4), of the first session
/// of this process where it has to have the lock ($5), and of the lock's keys ($6, $7): so it can be asked while the claim is still
/// being made durable. $8: the lease.
///
/// Quiet counts from the start of the server, the last crash of a backend (it resets `pg_stat_wal`), and on a timeline
/// above the first from the last checkpoint, since a promotion ends in one and leaves no other date. That date is cut
/// off to whole seconds, hence the second on top.
macro_rules! presence {
    ($promoted:literal) => {
        concat!(
            "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::int4[], $2::int4[], $3::int8[], $4::bool[], $5::int4[], \
             $6::int4[], $7::int4[]) WITH ORDINALITY AS w(one, two, need, force, first, lock_one, lock_two, place)), \
             held AS MATERIALIZED (SELECT l.classid, l.objid, bool_or(l.pid <> pg_backend_pid()) AS others, \
             bool_or(l.pid = pg_backend_pid()) AS mine, max(l.pid) FILTER (WHERE l.mode = 'ExclusiveLock') AS owner \
             FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
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
             NOT standby AND (first IS NULL OR coalesce(locked.owner = first, false)) \
             AND (force OR (NOT coalesce(held.others, false) AND quiet_ms >= need)) AS go \
             FROM wanted CROSS JOIN dated LEFT JOIN held \
             ON held.classid = (one::int8 & 4294967295)::oid AND held.objid = (two::int8 & 4294967295)::oid \
             LEFT JOIN held AS locked ON locked.classid = (lock_one::int8 & 4294967295)::oid \
             AND locked.objid = (lock_two::int8 & 4294967295)::oid), \
             leased AS MATERIALIZED (SELECT CASE WHEN bool_or(go) THEN \
             set_config('idle_session_timeout', $8, false) END AS lease FROM verdict) \
             SELECT timeline, quiet_ms, others, CASE WHEN NOT go THEN false WHEN mine THEN true \
             ELSE pg_try_advisory_lock_shared(one, two) END AS present, leased.lease \
             FROM verdict CROSS JOIN leased ORDER BY place"
        )
    };
}

/// The statement for a role that may, or may not, call `pg_control_checkpoint()`.
pub(crate) fn presence(may_date: bool) -> &'static str {
    if may_date { PRESENCE } else { PRESENCE_UNDATED }
}

const PRESENCE: &str = presence!(
    "(SELECT CASE WHEN c.timeline_id = timeline THEN c.checkpoint_time + interval '1 second' \
     ELSE clock_timestamp() END FROM pg_control_checkpoint() c)"
);

/// As if the promotion had been this moment, so that only a session that
/// has seen a whole ttl of its timeline takes over at once.
const PRESENCE_UNDATED: &str = presence!("clock_timestamp()");

/// On B: this process's work in that election is over. $3: the lease from now on, without which nothing happens.
pub(crate) const ABSENCE: &str = "SELECT pg_advisory_unlock_shared($1, $2), \
     set_config('idle_session_timeout', $3, false) WHERE $3::text <> ''";
