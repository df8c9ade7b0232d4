//! Status as JSON, built here and nowhere else: the command prints it, and HTTP serves it.

use bellwether_backend::{Followers, Past};
use bellwether_core::{Boot, CandidateId, ElectionName, Epoch, Seen};
use serde_json::{Value, json};

use crate::{Election, StateName, Status};

/// A record as one JSON object, in the shape that scripts rely on. What the store cannot tell is null.
///
/// ```
/// use bellwether_core::Seen;
/// use bellwether_election::{ElectionName, record_json};
///
/// let reports = ElectionName::new("reports").unwrap();
/// assert!(record_json(&reports, &Seen::nothing())["holder"].is_null());
/// ```
pub fn record_json(on: &ElectionName, seen: &Seen) -> Value {
    let paused = seen.paused.as_ref();
    json!({
        "election": on.as_str(),
        "holder": seen.holder.as_ref().map(|holder| holder.id.as_str()),
        "incarnation": seen.holder.as_ref().and_then(|holder| holder.incarnation).map(|one| one.to_string()),
        "epoch": seen.epoch.map(Epoch::get),
        "ttl_ms": seen.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
        "since": seen.acquired.map(|at| at.to_string()),
        "renewed": seen.renewed.map(|at| at.to_string()),
        "proof": seen.proof.as_str(),
        "priority": seen.priority,
        "reserved_for": seen.reserved_for.as_ref().map(|id| id.as_str()),
        "paused_ms": paused.map(|paused| millis(paused.left)),
        "paused_by": paused.and_then(|paused| paused.by.as_ref()).map(CandidateId::as_str),
        "paused_since": paused.and_then(|paused| paused.at).map(|at| at.to_string()),
        "metadata": seen.metadata,
    })
}

/// As [`record_json`], with who follows; null where the store does not know.
///
/// ```
/// use bellwether_core::Seen;
/// use bellwether_election::{ElectionName, status_json};
///
/// let reports = ElectionName::new("reports").unwrap();
/// assert!(status_json(&reports, &Seen::nothing(), None)["followers"].is_null());
/// ```
pub fn status_json(on: &ElectionName, seen: &Seen, followers: Option<&Followers>) -> Value {
    let mut status = record_json(on, seen);
    let ids = followers.map(|known| known.ids.iter().map(CandidateId::as_str).collect::<Vec<_>>());
    status["followers"] = ids.into();
    status["followers_complete"] = followers.map(|known| known.is_complete).into();
    status
}

/// One past leadership as a JSON object, in the shape that scripts rely on.
///
/// ```
/// use bellwether_core::Wall;
/// use bellwether_election::{CandidateId, Epoch, Past, past_json};
///
/// let id = CandidateId::new("host-1").unwrap();
/// let past = Past { epoch: Epoch::ZERO, id, incarnation: None, since: Wall::default(), until: None, ended: None };
/// assert!(past_json(&past)["ended"].is_null());
/// ```
pub fn past_json(past: &Past) -> Value {
    json!({
        "epoch": past.epoch.get(),
        "id": past.id.as_str(),
        "incarnation": past.incarnation.map(|one| one.to_string()),
        "since": past.since.to_string(),
        "until": past.until.map(|until| until.to_string()),
        "ended": past.ended,
    })
}

/// How an election stands for this candidate, as one JSON object. Asks nobody: it is what the candidate knows.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// # let election = bellwether_election::Election::builder("reports").backend(backend).id("host-1").start().await?;
/// assert_eq!(bellwether_election::candidate_json(&election)["id"], "host-1");
/// # Ok(())
/// # }
/// ```
pub fn candidate_json(election: &Election) -> Value {
    let status = election.status();
    let now = election.boot();
    let ago = |at: Option<Boot>| at.map(|at| millis(now.since(at)));
    json!({
        "id": status.id.as_str(),
        "incarnation": status.incarnation.to_string(),
        "state": status.state.as_str(),
        "is_leader": election.is_leader(),
        "epoch": status.epoch.map(Epoch::get),
        "highest_epoch": status.highest_epoch.get(),
        "valid_ms": valid_ms(election),
        "leader": status.leader.as_ref().map(CandidateId::as_str),
        "connection": status.connection.as_str(),
        "last_success_ms_ago": ago(status.last_success),
        "last_transition_ms_ago": ago(status.last_transition),
        "cooldown_ms": status.cooldown_until.map(|until| millis(until.since(now))),
        "paused_ms": status.paused_until.map(|until| millis(until.since(now))),
        "attempts": status.attempts,
        "leaderships": status.leaderships,
        "last_error": status.last_error.as_ref().map(ToString::to_string),
        "unwatched": status.unwatched.as_ref().map(ToString::to_string),
        "renewals": renewals_json(election, now),
    })
}

/// The last renewals that were answered, oldest first; null where nothing measures them.
#[cfg(feature = "metrics")]
fn renewals_json(election: &Election, now: Boot) -> Value {
    let Some(kept) = election.renewals() else { return Value::Null };
    let each = kept.iter().map(|renewal| {
        let took_ms = renewal.took.as_secs_f64() * 1e3;
        json!({ "ago_ms": millis(now.since(renewal.at)), "took_ms": took_ms, "status": renewal.how.as_str() })
    });
    each.collect()
}

#[cfg(not(feature = "metrics"))]
fn renewals_json(_: &Election, _: Boot) -> Value {
    Value::Null
}

/// Who leads, as this candidate knows it, and for how long it is certain that it leads itself: `valid_ms` is 0 while it does not.
///
/// A reader who may act on it counts `valid_ms` from before it asked, on a clock that does not stand still while the machine is suspended.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// # let election = bellwether_election::Election::builder("reports").backend(backend).id("host-1").start().await?;
/// assert_eq!(bellwether_election::leader_json(&election)["election"], "reports");
/// # Ok(())
/// # }
/// ```
pub fn leader_json(election: &Election) -> Value {
    // The time first: what comes after can only have made the answer safer.
    let valid_ms = valid_ms(election);
    let status = election.status();
    json!({
        "election": election.name().as_str(),
        "leader": status.leader.as_ref().map(CandidateId::as_str),
        "epoch": epoch_of_leader(&status).map(Epoch::get),
        "valid_ms": valid_ms,
    })
}

/// The epoch of whoever leads, where it is known.
fn epoch_of_leader(status: &Status) -> Option<Epoch> {
    let leads = status.state == StateName::Leader;
    let seen = Some(status.highest_epoch).filter(|epoch| *epoch > Epoch::ZERO && status.leader.is_some());
    if leads { status.epoch } else { seen }
}

fn valid_ms(election: &Election) -> u64 {
    election.leadership().map_or(0, |leadership| millis(leadership.remaining()))
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
