//! Why a candidate that gave up does not lead, in one line.

use std::time::Duration;

use bellwether::{Clock, Election, StateName, Status, Store, SystemClock, Wall, boot_now};

use crate::output;

/// How long the store may take to tell since when another leads.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// `done` says what did not happen: "not run".
pub(crate) async fn sentence(store: &Store, election: &Election, done: &str) -> String {
    let on = election.name();
    let looked = tokio::time::timeout(LOOK_MAX, store.backend().observe(on)).await;
    let seen = looked.ok().and_then(Result::ok);
    if let Some(seen) = &seen
        && let Some(paused) = seen.paused.as_ref().filter(|_| seen.leader().is_none())
    {
        return format!("{done}: {on} is {}", output::paused(paused));
    }
    if let Some((holder, seen)) = seen.as_ref().and_then(|seen| Some((seen.holder.as_ref()?, seen))) {
        let since = seen.acquired.map(|since| format!(" since {since}")).unwrap_or_default();
        let epoch = seen.epoch.map(|epoch| format!(" (epoch {epoch})")).unwrap_or_default();
        return format!("{done}: {} leads {on}{since}{epoch}", holder.id);
    }
    if let Some(until) = cooldown(election) {
        return format!("{done}: {} stepped down and is in cooldown until {until}", election.candidate().id);
    }
    match election.status().leader.filter(|_| seen.is_none()) {
        Some(leader) => format!("{done}: {leader} leads {on}"),
        None => format!("{done}: nobody leads {on}, and it could not be acquired in the time given"),
    }
}

/// Until when this candidate stays away, if it does.
pub(crate) fn cooldown(election: &Election) -> Option<Wall> {
    let left = election.status().cooldown_until?.since(boot_now());
    let nanos = i64::try_from(left.as_nanos()).ok().filter(|nanos| *nanos > 0)?;
    Some(Wall::from_unix_nanos(SystemClock.wall().as_unix_nanos().saturating_add(nanos)))
}

/// Whether this candidate stays away, or is kept out by a pause.
pub(crate) fn is_kept_out(status: &Status) -> bool {
    let until = status.cooldown_until.max(status.paused_until);
    status.state != StateName::Leader && until.is_some_and(|until| boot_now() < until)
}
