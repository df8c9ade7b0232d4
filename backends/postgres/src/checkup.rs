//! Whether a server is fit for elections: which it is, what the role may do, how much room there is, what a crash or
//! a promotion would do. Looking writes nothing.

use std::time::Duration;

use bellwether_backend::{Finding, SessionFailure, Sessions};
use bellwether_core::{ErrorKind, StoreError};
use tokio_postgres::Row;

use crate::store::PgStore;
use crate::transport::{is_local, place};

/// How long each question may take.
const LIMIT: Duration = Duration::from_secs(5);

/// What the statements call. All are PUBLIC's by default. By name, since their arguments differ from one major to the next; none of
/// them takes bytes.
const NEEDED: &str = "'pg_try_advisory_lock', 'pg_try_advisory_lock_shared', 'pg_advisory_unlock', 'pg_advisory_unlock_shared', \
     'pg_walfile_name', 'pg_current_wal_lsn', 'pg_logical_emit_message', 'pg_notify', 'pg_postmaster_start_time'";

/// Sessions of a process that follows, and one to spare for whoever looks after the server.
const LEAST_CONNECTIONS: i64 = 4;

const SERVER: &str = "SELECT current_setting('server_version'), \
     current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8, \
     (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), \
     (SELECT count(*) FROM pg_locks), \
     current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', \
     current_setting('synchronous_standby_names'), \
     (SELECT count(*) FROM pg_stat_replication), \
     (extract(epoch FROM clock_timestamp()) * 1000)::int8, \
     (SELECT CASE WHEN ssl THEN version END FROM pg_stat_ssl WHERE pid = pg_backend_pid()), \
     current_setting('synchronous_commit'), \
     set_config('idle_session_timeout', current_setting('idle_session_timeout'), false)";

impl PgStore {
    pub(crate) async fn examine(&self, through: &Sessions<PgStore>) -> Result<Vec<Finding>, StoreError> {
        let Sessions { lock, presence } = through;
        let ask = async |text: &str| {
            presence.connection.ask(presence.limit(LIMIT), text).await.map_err(SessionFailure::error)
        };
        let before = self.clock.wall().as_unix_nanos() / 1_000_000;
        let rows = ask(SERVER).await?;
        let after = self.clock.wall().as_unix_nanos() / 1_000_000;
        let rights = ask(&rights_query()).await?;
        let (Some(row), Some(rights)) = (rows.first(), rights.first()) else {
            return Ok(Vec::new());
        };
        let host = place(&self.config, lock.pair.host);
        let mut findings = vec![
            Finding::good(
                "server",
                format!("{host} is PostgreSQL {}, and the primary", row.get::<_, String>(0)),
            ),
            Finding::good("pooling", "no pooler in between, or one that leaves a session its connection"),
            encryption(row.get(9), is_local(&self.config, lock.pair.host)),
        ];
        findings.extend(permission(rights));
        findings.extend([
            lock_table(presence.connection.lock_room, row.get(3), lock.pair.elections_max),
            connections(row.get(1), row.get(2)),
            durability(row),
            replicas(row.get(7), &row.get::<_, String>(6)),
            Finding::good(
                "lease",
                "the server ends a session that falls silent: a leader that hangs is replaced after its ttl",
            ),
            clock(row.get(8), before, after),
        ]);
        findings.extend(self.tables_found(lock).await?);
        if !self.config.watches {
            let sentence = "off: the crash of a leader is noticed at the next retry, and not at once";
            findings.push(Finding::warning("watch", sentence));
        }
        Ok(findings)
    }
}

/// The functions that the role may not call, and the other rights.
fn rights_query() -> String {
    format!(
        "SELECT ARRAY(SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace \
         AND p.proname IN ({NEEDED}) AND 'bytea'::regtype <> ALL (p.proargtypes::oid[]) \
         AND NOT has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1), \
         has_function_privilege('pg_control_checkpoint()', 'EXECUTE'), \
         has_table_privilege('pg_stat_wal', 'SELECT'), has_table_privilege('pg_locks', 'SELECT'), current_user::text"
    )
}

fn permission(row: &Row) -> Vec<Finding> {
    const WHAT: &str = "permission";
    let role = row.get::<_, String>(4);
    let missing: Vec<String> = row.get(0);
    let mut grants: Vec<String> =
        missing.iter().map(|function| format!("GRANT EXECUTE ON FUNCTION {function} TO {role}")).collect();
    for (view, index) in [("pg_stat_wal", 2), ("pg_locks", 3)] {
        if !row.get::<_, bool>(index) {
            grants.push(format!("GRANT SELECT ON {view} TO {role}"));
        }
    }
    if !grants.is_empty() {
        let sentence = format!("{role} lacks rights that PUBLIC has by default; run: {}", grants.join("; "));
        return vec![Finding::bad(WHAT, ErrorKind::PermissionDenied, sentence)];
    }
    if !row.get::<_, bool>(1) {
        let sentence = format!(
            "{role} cannot see when a promotion was, so on a promoted server a candidate that has just connected waits for \
             a ttl before it takes over; run: GRANT EXECUTE ON FUNCTION pg_control_checkpoint() TO {role}"
        );
        return vec![Finding::warning(WHAT, sentence)];
    }
    vec![Finding::good(WHAT, format!("{role} may do all that is needed"))]
}

fn encryption(version: Option<String>, local: bool) -> Finding {
    const WHAT: &str = "encryption";
    match version {
        Some(version) => Finding::good(WHAT, format!("the sessions are encrypted ({version})")),
        None if local => Finding::good(WHAT, "none is needed: the socket is this machine's own"),
        None => Finding::warning(
            WHAT,
            "the sessions are not encrypted: set ssl = on at the server, and sslmode=verify-full here, unless you trust the \
             network",
        ),
    }
}

fn lock_table(room: i64, used: i64, most: usize) -> Finding {
    const WHAT: &str = "lock table";
    let measured =
        format!("room for {room} locks, {used} in use; one process holds at most {most} elections");
    if used >= room / 4 {
        let advice = "with it full nobody can even connect: raise max_locks_per_transaction";
        return Finding::warning(WHAT, format!("{measured}: {advice}"));
    }
    Finding::good(WHAT, measured)
}

fn connections(most: i64, used: i64) -> Finding {
    const WHAT: &str = "connections";
    let measured = format!("{used} of {most} are in use; a process needs two, and a third while it follows");
    if most - used < LEAST_CONNECTIONS {
        return Finding::warning(WHAT, format!("{measured}: raise max_connections"));
    }
    Finding::good(WHAT, measured)
}

fn durability(row: &Row) -> Finding {
    const WHAT: &str = "durability";
    let (fsync, pages, commit): (bool, bool, String) = (row.get(4), row.get(5), row.get(10));
    if !fsync || !pages {
        let setting = if fsync { "full_page_writes" } else { "fsync" };
        return Finding::warning(
            WHAT,
            format!(
                "{setting} is off: after a crash of the machine epochs may repeat, and fencing by epoch no longer holds; turn it on"
            ),
        );
    }
    Finding::good(
        WHAT,
        format!("epochs outlive a crash (fsync on, synchronous_commit {commit} in our sessions)"),
    )
}

/// An epoch has the timeline above the transaction, so that a promotion raises it even if the last transactions are lost.
fn replicas(count: i64, synchronous: &str) -> Finding {
    const WHAT: &str = "replicas";
    if count == 0 && synchronous.is_empty() {
        return Finding::good(WHAT, "none is connected");
    }
    let kind = if synchronous.is_empty() { "asynchronous" } else { "synchronous, some at least," };
    Finding::warning(
        WHAT,
        format!(
            "{count} connected, {kind}: a promotion raises every epoch, whatever it loses, but an old primary that runs on \
             would have a leader of its own; let your failover stop it first"
        ),
    )
}

fn clock(server: i64, before: i64, after: i64) -> Finding {
    let ahead = server - before.midpoint(after);
    let sentence = format!(
        "the server's clock is {ahead} ms ahead of this machine's; nothing is decided by the difference"
    );
    Finding::good("server clock", sentence)
}
