//! `bellwether watch`: a line for every change. Reads, and writes nothing.
//!
//! A renewal is no change: a line comes when who leads, its epoch, or what else a record says is another than in the line before.

use std::collections::BTreeMap;

use bellwether::backend::Notices;
use bellwether::core::{Clock, Seen, Signal};
use bellwether::{ElectionName, SystemClock};
use futures_util::StreamExt;

use super::signals::Signals;
use crate::args::{Format, Global, Watch};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// Prints changes until interrupted, or until nobody reads.
pub(crate) async fn watch(global: &Global, watch: &Watch) -> Result<Exit, Failure> {
    let store = backend::connect(global)?;
    let mut leave = Signals::new()?;
    let names = match backend::election_named(global, watch.election.as_ref())? {
        Some(on) => vec![on],
        None => store.elections().await?,
    };
    if names.is_empty() {
        return Err(Failure::new(Exit::None, "there are no elections here yet: name the one to wait for"));
    }
    let mut signals = store.backend().signals();
    let mut shown = BTreeMap::new();
    let mut print = |on: &ElectionName, seen: &Seen| {
        let (told, text) = line(global, on, seen);
        // False only when nobody reads any more.
        shown.insert(on.clone(), told.clone()) == Some(told) || output::line(&text)
    };
    for on in &names {
        store.backend().follow(on, true);
        let seen = store.backend().observe(on).await?;
        if !print(on, &seen) {
            return Ok(Exit::Clean);
        }
    }
    loop {
        let notice = tokio::select! {
            notice = signals.next() => notice,
            () = leave.leave() => return Ok(Exit::Clean),
            () = output::unread() => return Ok(Exit::Clean),
        };
        let Some(notice) = notice else {
            return Err(Failure::new(Exit::Unavailable, "the store tells of no more changes"));
        };
        let (Some(on), Signal::Changed(seen)) = (notice.election, notice.signal) else { continue };
        if !print(&on, &seen) {
            return Ok(Exit::Clean);
        }
    }
}

/// The next change of this election.
pub(super) async fn next_change(signals: &mut Notices, on: &ElectionName) -> Option<Seen> {
    loop {
        let notice = signals.next().await?;
        if let (Some(election), Signal::Changed(seen)) = (notice.election, notice.signal)
            && election == *on
        {
            return Some(seen);
        }
    }
}

/// What a line tells, by which it is compared with the one before, and the line itself.
fn line(global: &Global, on: &ElectionName, seen: &Seen) -> (String, String) {
    if global.output == Format::Json {
        let mut record = output::record_json(on, seen);
        let text = record.to_string();
        if let (Some(fields), Some(_)) = (record.as_object_mut(), seen.leader()) {
            // Other at every renewal.
            fields.remove("renewed");
            fields.remove("proof");
        }
        return (record.to_string(), text);
    }
    let epoch = seen.epoch.map_or_else(String::new, |epoch| format!(" (epoch {epoch})"));
    let told = match (seen.leader(), &seen.reserved_for, &seen.holder) {
        (Some(leader), _, _) => format!("{on}: {leader} leads{epoch}"),
        (None, Some(id), _) => format!("{on}: nobody leads; the lead is kept for {id}"),
        (None, None, Some(holder)) => format!("{on}: nobody leads; {} is dead", holder.id),
        (None, None, None) => format!("{on}: nobody leads"),
    };
    let text = format!("{}  {told}", SystemClock.wall());
    (told, text)
}
