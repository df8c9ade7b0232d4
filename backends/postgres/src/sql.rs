//! Every statement but those of presence (`presence_sql.rs`) and of the tables (`record_sql.rs`), with why it is written so.
//!
//! Explicit keys only: in `WHERE NOT EXISTS (…) AND pg_try_advisory_lock(…)` the planner may run the lock first, hence the
//! materialised steps and the `CASE`s, which run in order.

/// The channel of all releases in this database. Each session filters: a channel per election would cost a statement per
/// election at every reconnect, and releases are rare.
pub(crate) const CHANNEL: &str = "bellwether";

macro_rules! second_of {
    // [`SECOND_KEY`](crate::keys::SECOND_KEY), as the catalogue shows it.
    () => {
        "1113017410::oid"
    };
}

/// What a new session is set to before anything else, whatever a role or a database sets: nothing but the lease ends it or a
/// statement of it. `transaction_timeout` is not known before 17. Generic plans: each statement is planned once, when the session is
/// opened, instead of in the middle of a handover. `synchronous_commit`: an epoch must survive the server's crash.
/// `search_path`: the functions are the server's own. The date's style and zone: a process is known again by when it began.
pub(crate) const PREPARE_SESSION: &str = "SET search_path = pg_catalog; SET synchronous_commit = on; \
     SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
     SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'; \
     SET default_transaction_read_only = off; SET default_transaction_isolation = 'read committed'; \
     SET client_min_messages = error; SET jit = off; SET datestyle = 'ISO'; SET timezone = 'UTC'; \
     SET plan_cache_mode = force_generic_plan";

/// Around the first planning of the statements for many elections: the planner cannot know how many locks there are, and thinks of
/// a few. Where it chose nested loops, a thousand elections among a hundred processes would be a hundred million steps.
pub(crate) const PLAN_FOR_MANY: &str = "SET enable_nestloop = off";
/// The end of [`PLAN_FOR_MANY`].
pub(crate) const PLAN_AS_EVER: &str = "RESET enable_nestloop";

/// On B: ends a session, if it is still the one that began then. $1: its process, $2: when it began.
pub(crate) const END_OWN: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE pid = $1::int4 AND backend_start::text = $2::text";

/// On B: ends the holder of that name and the second session of the same process, and says which they are. $1: its process,
/// $2: its name.
pub(crate) const END_EARLIER: &str = concat!(
    "SELECT s.pid, pg_terminate_backend(s.pid) FROM pg_stat_activity s JOIN pg_stat_activity h \
     ON h.pid = $1::int4 AND h.application_name = $2::text WHERE s.pid = h.pid OR s.pid IN (SELECT b.pid FROM pg_locks b \
     WHERE b.locktype = 'advisory' AND b.objsubid = 2 AND b.granted AND b.database = s.datid AND b.classid = ",
    second_of!(),
    " AND b.objid = h.pid::oid)"
);

/// On B: how many of these processes are left. $1: their numbers.
pub(crate) const LEFT: &str = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1::int4[])";

/// Nothing may end the session before `idle_session_timeout` does: keepalives of 2/1/3 were seen to free the lock of
/// a cut-off leader after 4 s that believed for the whole ttl. $1: seconds, $2: milliseconds.
pub(crate) const NO_EARLIER: &str = "SELECT set_config('tcp_keepalives_idle', $1, false), \
     set_config('tcp_user_timeout', $2, false)";

macro_rules! timeline {
    () => {
        "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4"
    };
}
pub(crate) use timeline;

/// What the server is, and what this role may do there.
pub(crate) const WHERE_AM_I: &str = concat!(
    "SELECT pg_backend_pid() AS pid, inet_client_port() AS client_port, pg_is_in_recovery() AS standby, current_setting('server_version_num') AS version, \
     pg_postmaster_start_time() AS server_started, \
     (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) AS started, \
     CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
    timeline!(),
    " END AS timeline, has_function_privilege('pg_control_checkpoint()', 'EXECUTE') AS may_date, \
     current_setting('max_locks_per_transaction')::int8 * \
     (current_setting('max_connections')::int8 + current_setting('max_prepared_transactions')::int8) AS lock_room"
);

/// In place of the transaction id of a claim that is being made durable.
pub(crate) const UNFINISHED: i64 = -1;

/// The locks of this session.
macro_rules! own {
    () => {
        "FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
         AND l.pid = pg_backend_pid() \
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    };
}

/// On A: tries locks, and issues an epoch for those that it got. For arrays of keys ($1, $2), of what their marks begin with ($3), of
/// the marks before ($4) and of notices but for the epoch, or nothing ($5). $6: the lease; $7: the session's name. A row for each.
///
/// A standby would grant every lock, so none is tried there. A lock that this session has already, by its mark before or 0, is not
/// tried again, which would have to be undone twice: that it is there is proven instead. The transaction id is assigned after the
/// last lock was granted, and the message makes it durable. The mark shows the epoch to others, and the notice tells of it.
pub(crate) const CLAIM: &str = concat!(
    "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::int4[], $2::int4[], $3::int8[], $4::int8[], $5::text[]) \
     WITH ORDINALITY AS w(one, two, mark, before, notice, place)), \
     tried AS MATERIALIZED (SELECT wanted.*, CASE WHEN pg_is_in_recovery() THEN false \
     WHEN before IS NOT NULL THEN EXISTS (SELECT ",
    own!(),
    " AND l.mode = 'ExclusiveLock' AND l.classid = (one::int8 & 4294967295)::oid \
     AND l.objid = (two::int8 & 4294967295)::oid) \
     ELSE pg_try_advisory_lock(one, two) END AS got FROM wanted), \
     won AS MATERIALIZED (SELECT coalesce(bool_or(got), false) AS any_got FROM tried), \
     issued AS MATERIALIZED (SELECT CASE WHEN any_got THEN pg_current_xact_id()::text::int8 END AS xid, \
     CASE WHEN any_got THEN pg_logical_emit_message(true, 'bellwether', 'claim')::text END AS durable, \
     CASE WHEN any_got THEN ",
    timeline!(),
    " END AS timeline, \
     CASE WHEN any_got THEN set_config('idle_session_timeout', $6, false) END AS lease, \
     CASE WHEN any_got THEN set_config('application_name', $7, false) END AS named FROM won) \
     SELECT got, pg_backend_pid() AS pid, pg_is_in_recovery() AS standby, issued.*, \
     CASE WHEN got THEN pg_try_advisory_lock(mark | xid) END AS marked, \
     CASE WHEN got AND before <> 0 THEN pg_advisory_unlock(before) END AS unmarked, \
     CASE WHEN got AND notice <> '' THEN pg_notify('bellwether', notice || (timeline::int8 << 40 | xid)::text)::text END AS told \
     FROM tried CROSS JOIN issued ORDER BY place"
);

/// On A and B: primary still, the same backend still, and every lock of this session. The lock table is read once.
pub(crate) const BEAT: &str = concat!(
    "SELECT pg_backend_pid(), pg_is_in_recovery(), coalesce(array_agg(l.classid::int8), '{}'), \
     coalesce(array_agg(l.objid::int8), '{}') ",
    own!()
);

/// On A: releases a lock, and notifies everybody in the same statement. $3: the lease from now on; $4: the notice, without which nothing happens;
/// $5: its mark, or 0.
pub(crate) const RELEASE: &str = "SELECT pg_advisory_unlock($1, $2), \
     set_config('idle_session_timeout', $3, false), pg_notify('bellwether', $4), \
     CASE WHEN $5::int8 <> 0 THEN pg_advisory_unlock($5::int8) END WHERE $4::text <> ''";

/// Notifies everybody.
pub(crate) const TELL: &str = "SELECT pg_notify('bellwether', $1)";

/// On A and B: who holds these locks, for arrays of keys ($1, $2), of what marks begin with ($3) and of presence keys ($4, $5). A row for
/// each. A holder leads if the second session of the same process, which is known by the lock on the first one's number, has the
/// presence. The lock table is read once: each reading locks all of it.
///
/// The epoch is in the one mark of the holder that begins as the election's. Two such marks, of two elections of one session, tell nothing.
/// −1 ([`UNFINISHED`]) stands for a transaction that the server has not completed: any role can take any lock, and nobody leads before that.
pub(crate) const LOOK: &str = concat!(
    "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::int4[], $2::int4[], $3::int8[], $4::int4[], $5::int4[]) \
     WITH ORDINALITY AS w(one, two, mark, presence_one, presence_two, place)), \
     known AS MATERIALIZED (SELECT pid, classid, objid, objsubid, mode FROM pg_locks WHERE locktype = 'advisory' AND granted \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), \
     held AS MATERIALIZED (SELECT l.classid, l.objid, l.pid, s.application_name AS name, s.usename = session_user AS same_role, \
     (extract(epoch FROM clock_timestamp() - s.state_change) * 1000)::int8 AS idle_ms \
     FROM known l LEFT JOIN pg_stat_activity s ON s.pid = l.pid WHERE l.mode = 'ExclusiveLock' AND l.objsubid = 2), \
     marks AS MATERIALIZED (SELECT pid, tag, CASE WHEN count(*) <> 1 THEN NULL \
     WHEN max(xid) < pg_snapshot_xmax(pg_current_snapshot())::text::int8 THEN max(xid) ELSE -1 END AS xid \
     FROM (SELECT pid, classid::int8 >> 8 AS tag, (classid::int8 & 255) << 32 | objid::int8 AS xid \
     FROM known WHERE objsubid = 1) each GROUP BY pid, tag), \
     seconds AS MATERIALIZED (SELECT pid, objid FROM known WHERE objsubid = 2 AND classid = ",
    second_of!(),
    "), leaders AS MATERIALIZED (SELECT DISTINCT p.classid, p.objid, b.objid AS session FROM seconds b \
     JOIN known p ON p.pid = b.pid WHERE p.objsubid = 2) \
     SELECT held.pid AS holder, held.name, held.same_role, held.idle_ms, marks.xid AS marked_xid, \
     CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
    timeline!(),
    " END AS marked_timeline, leaders.session IS NOT NULL AS leads FROM wanted \
     LEFT JOIN held ON held.classid = (one::int8 & 4294967295)::oid AND held.objid = (two::int8 & 4294967295)::oid \
     LEFT JOIN marks ON marks.pid = held.pid AND marks.tag = (mark >> 40) & 16777215 \
     LEFT JOIN leaders ON leaders.session = held.pid::oid AND leaders.classid = (presence_one::int8 & 4294967295)::oid \
     AND leaders.objid = (presence_two::int8 & 4294967295)::oid ORDER BY place"
);

/// On A: after an error, unlocks $1, $2, and whatever marks are left that begin with $3.
pub(crate) const UNDO: &str = "SELECT pg_advisory_unlock($1, $2), \
     (SELECT count(pg_advisory_unlock(l.classid::int8 << 32 | l.objid::int8)) FROM pg_locks l \
     WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid = pg_backend_pid() \
     AND l.classid::int8 >> 8 = ($3::int8 >> 40) & 16777215)";

/// On B: uses up `count` transaction ids, each by a subtransaction that writes.
pub(crate) fn advance(count: u64) -> String {
    format!(
        "DO $$ BEGIN FOR i IN 1..{count} LOOP BEGIN PERFORM pg_logical_emit_message(true, 'bellwether', 'floor'); \
         EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_key_of_second_sessions_is_written_as_the_catalogue_shows_it() {
        assert_eq!(second_of!(), format!("{}::oid", crate::keys::SECOND_KEY));
    }
}
