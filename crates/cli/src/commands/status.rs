//! `bellwether status`: who leads. Reads, and writes nothing.

use bellwether::{ElectionName, Followers, Proof, Seen, Store, status_json};
use serde_json::Value;

use super::watch::next_change;
use crate::args::{Format, Global, StatusFlags};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// Shows one election, or all that the store can list.
pub(crate) async fn status(global: &Global, status: &StatusFlags) -> Result<Exit, Failure> {
    let leader_asked_for = leader_asked_for(global, status)?;
    let store = backend::connect(global)?;
    let on = match backend::election_named(global, status.election.as_ref())? {
        None if !status.confirm && status.is_leader.is_none() => return all(global, &store).await,
        named => &backend::election(global, named.as_ref())?,
    };
    let mut seen = store.backend().observe(on).await?;
    if status.confirm {
        seen = confirm(&store, on, seen).await?;
    }
    if let Some(id) = leader_asked_for {
        // Not by its holder: one that is known to be dead does not lead, though its record is still there.
        let leads = seen.leader().is_some_and(|leader| leader.as_str() == id);
        return Ok(if leads { Exit::Clean } else { Exit::None });
    }
    let followers = followers(&store, on).await;
    match global.output {
        Format::Json => {
            let mut record = status_json(on, &seen, followers.as_ref());
            if status.confirm {
                // For people, the store has said it in the log.
                record["unwatched"] = store.backend().unwatched(on).map(|error| error.to_string()).into();
            }
            output::line(&record.to_string())
        }
        Format::Table => {
            let mut lines = table(&[(on.clone(), seen.clone())]);
            lines.extend(seen.paused.as_deref().map(output::paused));
            lines.extend(followers.map(|followers| format!("followers: {followers}")));
            output::lines(&lines)
        }
    }?;
    Ok(if seen.holder.is_some() { Exit::Clean } else { Exit::None })
}

/// The candidate of `--is-leader`. The id that this very process would be given leads nothing.
fn leader_asked_for(global: &Global, status: &StatusFlags) -> Result<Option<String>, Failure> {
    let Some(asked) = &status.is_leader else { return Ok(None) };
    let sentence =
        "--is-leader needs to know which candidate is meant: name its id (--is-leader ID, or --id)";
    let id = asked.clone().or_else(|| crate::id::given(global));
    id.map(Some).ok_or_else(|| Failure::new(Exit::Usage, sentence))
}

async fn all(global: &Global, store: &Store) -> Result<Exit, Failure> {
    backend::can_list(store)?;
    let mut rows = Vec::new();
    for on in store.elections().await? {
        let seen = store.backend().observe(&on).await?;
        rows.push((on, seen));
    }
    let held = rows.iter().any(|(_, seen)| seen.holder.is_some());
    match global.output {
        Format::Json => {
            let mut records = Vec::new();
            for (on, seen) in &rows {
                records.push(status_json(on, seen, followers(store, on).await.as_ref()));
            }
            output::line(&Value::Array(records).to_string())
        }
        Format::Table if rows.is_empty() => output::line("no elections here yet"),
        Format::Table => output::lines(&table(&rows)),
    }?;
    Ok(if held { Exit::Clean } else { Exit::None })
}

/// Who follows it. That the store does not answer is as if it did not know: who leads has been found out, and is what was asked for.
pub(crate) async fn followers(store: &Store, on: &ElectionName) -> Option<Followers> {
    store.followers(on).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "the followers cannot be listed");
        None
    })
}

fn table(rows: &[(ElectionName, Seen)]) -> Vec<String> {
    let rows: Vec<_> = rows.iter().map(|(on, seen)| output::record_row(on, seen)).collect();
    output::table(&output::RECORD_HEADING, &rows)
}

/// Watches until the holder shows a sign of life, or its ttl has passed without one.
async fn confirm(store: &Store, on: &ElectionName, mut seen: Seen) -> Result<Seen, Failure> {
    let backend = store.backend();
    let mut signals = backend.signals();
    backend.follow(on);
    while seen.proof == Proof::Record {
        let left = seen.free_at.map(|free_at| free_at.since(bellwether::boot_now()));
        let Some(left) = left.filter(|left| !left.is_zero()) else { break };
        match tokio::time::timeout(left, next_change(&mut signals, on)).await {
            Ok(Some(changed)) => seen = changed,
            Ok(None) => break,
            Err(_) => seen = backend.observe(on).await?,
        }
    }
    Ok(seen)
}
