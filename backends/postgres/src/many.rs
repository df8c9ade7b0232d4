//! Claims and presences of many elections in one statement each.
//!
//! The arrays are explicit, since in a condition the planner may run the lock first. The transaction id is assigned after the
//! last lock of the statement was tried, so that it is above whatever others were given meanwhile, and one id serves all: epochs
//! are compared within an election only.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::CandidateId;
use tokio_postgres::Row;

use crate::Keys;
use crate::errors::Failure;
use crate::gather::AskAll;
use crate::link::Link;
use crate::names::{self, millis};

/// A claim among others.
pub(crate) struct Try {
    pub(crate) keys: Keys,
    pub(crate) ttl: Duration,
    pub(crate) id: CandidateId,
}

/// Presence that is asked for among others.
pub(crate) struct Appearance {
    pub(crate) presence: Keys,
    pub(crate) ttl: Duration,
    pub(crate) need: i64,
    pub(crate) force: bool,
}

/// On A: as `CLAIM`, for arrays of keys ($1, $2). $3: the lease; $4: the name.
pub(crate) const CLAIM_ALL: &str = "WITH wanted AS MATERIALIZED (\
     SELECT * FROM unnest($1::int4[], $2::int4[]) WITH ORDINALITY AS w(one, two, place)), \
     tried AS MATERIALIZED (SELECT wanted.*, CASE WHEN pg_is_in_recovery() THEN false \
     ELSE pg_try_advisory_lock(one, two) END AS got FROM wanted), \
     won AS MATERIALIZED (SELECT coalesce(bool_or(got), false) AS any_got, coalesce(bool_and(got), true) AS all_got FROM tried), \
     issued AS MATERIALIZED (SELECT all_got, \
     CASE WHEN any_got THEN pg_current_xact_id()::text::int8 END AS xid, \
     CASE WHEN any_got THEN pg_logical_emit_message(true, 'bellwether', 'claim')::text END AS durable, \
     CASE WHEN any_got THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4 END AS timeline, \
     CASE WHEN any_got THEN set_config('idle_session_timeout', $3, false) END AS lease, \
     CASE WHEN any_got THEN set_config('application_name', $4, false) END AS named FROM won), \
     held AS MATERIALIZED (SELECT l.classid, l.objid, l.pid AS holder, s.application_name AS name, \
     (extract(epoch FROM clock_timestamp() - s.state_change) * 1000)::int8 AS idle_ms \
     FROM issued, pg_locks l LEFT JOIN pg_stat_activity s ON s.pid = l.pid \
     WHERE NOT issued.all_got AND l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.mode = 'ExclusiveLock' \
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) \
     SELECT tried.got, pg_backend_pid() AS pid, pg_is_in_recovery() AS standby, \
     CASE WHEN tried.got THEN issued.xid END AS xid, CASE WHEN tried.got THEN issued.timeline END AS timeline, \
     issued.durable, issued.lease, issued.named, held.holder, held.name, held.idle_ms \
     FROM tried CROSS JOIN issued LEFT JOIN held ON NOT tried.got \
     AND held.classid = (tried.one::int8 & 4294967295)::oid AND held.objid = (tried.two::int8 & 4294967295)::oid \
     ORDER BY tried.place";

/// On B: as `PRESENCE`, for arrays of keys ($1, $2), of the quiet that each needs ($3) and of force ($4). $5: the lease.
pub(crate) const PRESENCE_ALL: &str = "WITH wanted AS MATERIALIZED (SELECT * FROM \
     unnest($1::int4[], $2::int4[], $3::int8[], $4::bool[]) WITH ORDINALITY AS w(one, two, need, force, place)), \
     held AS MATERIALIZED (SELECT l.classid, l.objid, bool_or(l.pid <> pg_backend_pid()) AS others, \
     bool_or(l.pid = pg_backend_pid()) AS mine FROM pg_locks l \
     WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted \
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY l.classid, l.objid), \
     line AS MATERIALIZED (SELECT pg_is_in_recovery() AS standby, CASE WHEN pg_is_in_recovery() THEN 0 \
     ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4 END AS timeline), \
     dated AS MATERIALIZED (SELECT line.*, \
     (extract(epoch FROM clock_timestamp() - greatest(pg_postmaster_start_time(), \
     (SELECT stats_reset FROM pg_stat_wal), CASE WHEN timeline > 1 THEN \
     (SELECT CASE WHEN c.timeline_id = timeline THEN c.checkpoint_time + interval '1 second' \
     ELSE clock_timestamp() END FROM pg_control_checkpoint() c) END)) * 1000)::int8 AS quiet_ms FROM line), \
     verdict AS MATERIALIZED (SELECT wanted.*, dated.*, coalesce(held.mine, false) AS mine, \
     coalesce(held.others, false) AS others, \
     NOT standby AND (force OR (NOT coalesce(held.others, false) AND quiet_ms >= need)) AS go \
     FROM wanted CROSS JOIN dated LEFT JOIN held \
     ON held.classid = (one::int8 & 4294967295)::oid AND held.objid = (two::int8 & 4294967295)::oid), \
     leased AS MATERIALIZED (SELECT CASE WHEN bool_or(go) THEN set_config('idle_session_timeout', $5, false) END AS lease \
     FROM verdict) \
     SELECT timeline, quiet_ms, others, CASE WHEN NOT go THEN false WHEN mine THEN true \
     ELSE pg_try_advisory_lock_shared(one, two) END AS present, leased.lease \
     FROM verdict CROSS JOIN leased ORDER BY place";

impl Link {
    /// Claims all of them on A.
    pub(crate) fn claims(self: &Arc<Self>) -> AskAll<Try> {
        let link = Arc::clone(self);
        Arc::new(move |tries| {
            let link = Arc::clone(&link);
            Box::pin(async move { link.claim_all(&tries).await })
        })
    }

    /// Asks for all the presences on B.
    pub(crate) fn appearances(self: &Arc<Self>) -> AskAll<Appearance> {
        let link = Arc::clone(self);
        Arc::new(move |wanted| {
            let link = Arc::clone(&link);
            Box::pin(async move { link.appear_all(&wanted).await })
        })
    }

    async fn claim_all(&self, tries: &[Try]) -> Result<Vec<Row>, Failure> {
        let mut used = (None, None);
        for one in tries {
            used = self.slots.used_by(&one.id, one.ttl);
        }
        let ttl = longest(tries.iter().map(|one| one.ttl));
        let (lease, name) = (self.lease(ttl), names::write(used.0.as_ref(), used.1));
        let (ones, twos) = columns(tries.iter().map(|one| one.keys));
        self.a.rows(ttl, &self.a.claim_all, &[&ones, &twos, &lease, &name]).await
    }

    pub(crate) async fn appear_all(&self, wanted: &[Appearance]) -> Result<Vec<Row>, Failure> {
        let ttl = longest(wanted.iter().map(|one| one.ttl));
        let lease = self.lease(ttl);
        let (ones, twos) = columns(wanted.iter().map(|one| one.presence));
        let needs: Vec<i64> = wanted.iter().map(|one| one.need).collect();
        let forces: Vec<bool> = wanted.iter().map(|one| one.force).collect();
        let b = self.b();
        b.rows(ttl, &b.presence_all, &[&ones, &twos, &needs, &forces, &lease]).await
    }

    /// The longest ttl of what is held and of what is asked for.
    fn lease(&self, ttl: Duration) -> String {
        let held = longest(self.slots.every().iter().map(|(_, slot)| slot.ttl()));
        millis(ttl.max(held)).to_string()
    }
}

fn longest(all: impl Iterator<Item = Duration>) -> Duration {
    all.max().unwrap_or_default()
}

fn columns(keys: impl Iterator<Item = Keys>) -> (Vec<i32>, Vec<i32>) {
    keys.map(|keys| (keys.0, keys.1)).unzip()
}
