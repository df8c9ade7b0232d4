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

/// The transaction id in the marks of one session that begin alike. Two such marks, of two elections of one session, tell nothing.
/// −1 ([`UNFINISHED`]) stands for a transaction that the server has not completed: any role can take any lock, and nobody leads before that.
macro_rules! marked_xid {
    ($mark:literal) => {
        concat!(
            "CASE WHEN count(*) <> 1 THEN NULL WHEN max((",
            $mark,
            "classid::int8 & 255) << 32 | ",
            $mark,
            "objid::int8) < pg_snapshot_xmax(pg_current_snapshot())::text::int8 THEN max((",
            $mark,
            "classid::int8 & 255) << 32 | ",
            $mark,
            "objid::int8) ELSE -1 END"
        )
    };
}

/// In place of the transaction id of a claim that is being made durable.
pub(crate) const UNFINISHED: i64 = -1;

/// The sentence of a claim that looks at the holder of the lock $1, $2, with the transaction id of its epoch; `$tag` stands for what
/// its marks begin with. It leads if the second session of the same process, which is known by the lock on the first one's number,
/// has the presence, whose keys are `$one` and `$two`. The lock table is read once: each reading locks all of it.
macro_rules! holder {
    ($tag:literal, $one:literal, $two:literal, $condition:literal) => {
        concat!(
            "WITH known AS MATERIALIZED (SELECT pid, classid, objid, objsubid, mode FROM pg_locks \
             WHERE locktype = 'advisory' AND granted \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) \
             SELECT l.pid AS holder, s.application_name AS name, s.usename = session_user AS same_role, \
             (extract(epoch FROM clock_timestamp() - s.state_change) * 1000)::int8 AS idle_ms, \
             (SELECT ",
            marked_xid!("m."),
            " FROM known m WHERE m.objsubid = 1 AND m.pid = l.pid AND m.classid::int8 >> 8 = (",
            $tag,
            "::int8 >> 40) & 16777215) AS marked_xid, \
             CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
            timeline!(),
            " END AS marked_timeline, \
             EXISTS (SELECT FROM known p JOIN known b ON b.pid = p.pid \
             WHERE p.objsubid = 2 AND b.objsubid = 2 AND p.classid = (",
            $one,
            "::int4::int8 & 4294967295)::oid AND p.objid = (",
            $two,
            "::int4::int8 & 4294967295)::oid AND b.classid = ",
            second_of!(),
            " AND b.objid = l.pid::oid) AS leads \
             FROM known l LEFT JOIN pg_stat_activity s ON s.pid = l.pid WHERE l.mode = 'ExclusiveLock' AND l.objsubid = 2 \
             AND l.classid = ($1::int4::int8 & 4294967295)::oid AND l.objid = ($2::int4::int8 & 4294967295)::oid ",
            $condition,
            " LIMIT 1"
        )
    };
}

/// The same for many, of the locks that are `known`.
macro_rules! holders {
    () => {
        concat!(
            "held AS MATERIALIZED (SELECT l.classid, l.objid, l.pid, s.application_name AS name, s.usename = session_user AS same_role, \
             (extract(epoch FROM clock_timestamp() - s.state_change) * 1000)::int8 AS idle_ms \
             FROM known l LEFT JOIN pg_stat_activity s ON s.pid = l.pid \
             WHERE l.mode = 'ExclusiveLock' AND l.objsubid = 2), \
             marks AS MATERIALIZED (SELECT pid, classid::int8 >> 8 AS tag, ",
            marked_xid!(""),
            " AS xid FROM known WHERE objsubid = 1 GROUP BY pid, classid::int8 >> 8), \
             seconds AS MATERIALIZED (SELECT pid, objid FROM known WHERE objsubid = 2 AND classid = ",
            second_of!(),
            "), leaders AS MATERIALIZED (SELECT DISTINCT p.classid, p.objid, b.objid AS session FROM seconds b \
             JOIN known p ON p.pid = b.pid WHERE p.objsubid = 2)"
        )
    };
}

/// What [`holders`] shows of each.
macro_rules! holder_columns {
    () => {
        concat!(
            "held.pid AS holder, held.name, held.same_role, held.idle_ms, marks.xid AS marked_xid, \
             CASE WHEN pg_is_in_recovery() THEN 0 ELSE ",
            timeline!(),
            " END AS marked_timeline, leaders.session IS NOT NULL AS leads"
        )
    };
}

/// Whose `$wanted` rows are joined with them, on that condition.
macro_rules! join_holders {
    ($wanted:literal, $condition:literal) => {
        concat!(
            " LEFT JOIN held ON ",
            $condition,
            "held.classid = (",
            $wanted,
            ".one::int8 & 4294967295)::oid AND held.objid = (",
            $wanted,
            ".two::int8 & 4294967295)::oid LEFT JOIN marks ON marks.pid = held.pid AND marks.tag = (",
            $wanted,
            ".mark >> 40) & 16777215 LEFT JOIN leaders ON leaders.session = held.pid::oid AND leaders.classid = (",
            $wanted,
            ".presence_one::int8 & 4294967295)::oid AND leaders.objid = (",
            $wanted,
            ".presence_two::int8 & 4294967295)::oid ORDER BY ",
            $wanted,
            ".place"
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
    ", held.holder, held.name, held.same_role, held.idle_ms, held.marked_xid, held.marked_timeline, held.leads \
     FROM lock LEFT JOIN LATERAL (",
    holder!("$5", "$8", "$9", "AND NOT lock.got"),
    ") held ON true"
);

/// On A: as [`CLAIM`], for arrays of keys ($1, $2), of what marks begin with ($5), of notices ($6) and of presence keys ($7, $8).
/// The transaction id is assigned after the last lock was tried. $3: the lease; $4: the name.
pub(crate) const CLAIM_ALL: &str = concat!(
    "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::int4[], $2::int4[], $5::int8[], $6::text[], $7::int4[], \
     $8::int4[]) WITH ORDINALITY AS w(one, two, mark, notice, presence_one, presence_two, place)), \
     tried AS MATERIALIZED (SELECT wanted.*, CASE WHEN pg_is_in_recovery() THEN false \
     ELSE pg_try_advisory_lock(one, two) END AS got FROM wanted), \
     won AS MATERIALIZED (SELECT coalesce(bool_or(got), false) AS any_got, coalesce(bool_and(got), true) AS all_got \
     FROM tried), \
     issued AS MATERIALIZED (SELECT all_got, CASE WHEN any_got THEN pg_current_xact_id()::text::int8 END AS xid, \
     CASE WHEN any_got THEN pg_logical_emit_message(true, 'bellwether', 'claim')::text END AS durable, \
     CASE WHEN any_got THEN ",
    timeline!(),
    " END AS timeline, \
     CASE WHEN any_got THEN set_config('idle_session_timeout', $3, false) END AS lease, \
     CASE WHEN any_got THEN set_config('application_name', $4, false) END AS named FROM won), \
     known AS MATERIALIZED (SELECT pid, classid, objid, objsubid, mode FROM issued, pg_locks \
     WHERE NOT issued.all_got AND locktype = 'advisory' AND granted \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), \
     ",
    holders!(),
    " SELECT tried.got, pg_backend_pid() AS pid, pg_is_in_recovery() AS standby, \
     CASE WHEN tried.got THEN issued.xid END AS xid, CASE WHEN tried.got THEN issued.timeline END AS timeline, \
     issued.durable, issued.lease, issued.named, \
     CASE WHEN tried.got THEN pg_try_advisory_lock(tried.mark | issued.xid) END AS marked, \
     CASE WHEN tried.got AND tried.notice <> '' THEN pg_notify('bellwether', tried.notice || \
     (issued.timeline::int8 << 40 | issued.xid)::text)::text END AS told, \
     ",
    holder_columns!(),
    " FROM tried CROSS JOIN issued",
    join_holders!("tried", "NOT tried.got AND ")
);

/// On A: a new epoch under a lock that is already there, which is proven on the way.
pub(crate) const AGAIN: &str = concat!(
    "WITH lock AS MATERIALIZED (SELECT NOT pg_is_in_recovery() AND EXISTS (SELECT ",
    own!(),
    " AND l.mode = 'ExclusiveLock' AND l.classid = ($1::int4::int8 & 4294967295)::oid \
     AND l.objid = ($2::int4::int8 & 4294967295)::oid) AS got) SELECT ",
    once_held!(),
    ", $8::int4, $9::int4 FROM lock"
);

/// On A and B: primary still, the same backend still, and every lock of this session. The lock table is read once.
pub(crate) const BEAT: &str = concat!(
    "SELECT pg_backend_pid(), pg_is_in_recovery(), coalesce(array_agg(l.classid::int8), '{}'), \
     coalesce(array_agg(l.objid::int8), '{}') ",
    own!()
);

/// On A: lets go, and tells everybody in the same statement. $3: the lease from now on; $4: the notice.
/// $5: its mark, or 0.
pub(crate) const RELEASE: &str = "SELECT pg_advisory_unlock($1, $2), \
     set_config('idle_session_timeout', $3, false), pg_notify('bellwether', $4), \
     CASE WHEN $5::int8 <> 0 THEN pg_advisory_unlock($5::int8) END";

/// Tells everybody.
pub(crate) const TELL: &str = "SELECT pg_notify('bellwether', $1)";

/// On B: who holds these locks, and whether it leads, for arrays of keys ($1, $2), of what marks begin with ($3) and of presence keys
/// ($4, $5). A row for each.
pub(crate) const LOOK: &str = concat!(
    "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::int4[], $2::int4[], $3::int8[], $4::int4[], $5::int4[]) \
     WITH ORDINALITY AS w(one, two, mark, presence_one, presence_two, place)), \
     known AS MATERIALIZED (SELECT pid, classid, objid, objsubid, mode FROM pg_locks WHERE locktype = 'advisory' AND granted \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), ",
    holders!(),
    " SELECT ",
    holder_columns!(),
    " FROM wanted",
    join_holders!("wanted", "")
);

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_key_of_second_sessions_is_written_as_the_catalogue_shows_it() {
        assert_eq!(second_of!(), format!("{}::oid", crate::keys::SECOND_KEY));
    }
}
