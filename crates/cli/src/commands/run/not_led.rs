//! Why a candidate that gave up does not lead, in one line.

use std::time::Duration;

use bellwether::{Election, Store};

/// How long the store may take to tell since when another leads.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// `done` says what did not happen: "not run".
pub(crate) async fn sentence(store: &Store, election: &Election, done: &str) -> String {
    let on = election.name();
    let looked = tokio::time::timeout(LOOK_MAX, store.backend().observe(on)).await;
    let seen = looked.ok().and_then(Result::ok);
    if let Some((holder, seen)) = seen.as_ref().and_then(|seen| Some((seen.holder.as_ref()?, seen))) {
        let since = seen.acquired.map(|since| format!(" since {since}")).unwrap_or_default();
        let epoch = seen.epoch.map(|epoch| format!(" (epoch {epoch})")).unwrap_or_default();
        return format!("{done}: {} leads {on}{since}{epoch}", holder.id);
    }
    match election.status().leader.filter(|_| seen.is_none()) {
        Some(leader) => format!("{done}: {leader} leads {on}"),
        None => format!("{done}: nobody leads {on}, and it could not be taken in the time given"),
    }
}
