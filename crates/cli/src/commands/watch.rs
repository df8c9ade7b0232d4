//! `bellwether watch`: a line for every change. Reads, and writes nothing.
//!
//! A renewal is no change. A line is printed when the leader, its epoch, or another field of the record differs from the line before.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether::backend::{Notices, Signal};
use bellwether::{Clock, ElectionName, Seen, Store, SystemClock};
use futures_util::StreamExt;
use tokio::time::MissedTickBehavior;

use super::signals::Signals;
use crate::args::{Format, Global};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// How often the store is asked for elections that are new, where none is named.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// Prints changes until interrupted, or until nobody reads.
pub(crate) async fn watch(global: &Global, named: Option<&ElectionName>) -> Result<Exit, Failure> {
    let store = backend::connect(global)?;
    let named = backend::election_named(global, named)?;
    if named.is_none() {
        backend::can_list(&store)?;
    }
    let mut leave = Signals::new()?;
    let mut signals = store.backend().signals();
    let mut shown = Shown { global, told: BTreeMap::new() };
    let names = match &named {
        Some(on) => vec![on.clone()],
        None => store.elections().await?,
    };
    for on in names {
        let seen = look(&store, &on).await?;
        if !shown.print(&on, &seen)? {
            return Ok(Exit::Clean);
        }
    }
    let mut list = tokio::time::interval(LIST_INTERVAL);
    list.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let read = tokio::select! {
            notice = signals.next() => match notice.map(|notice| (notice.election, notice.signal)) {
                Some((Some(on), Signal::Changed(seen))) => shown.print(&on, &seen)?,
                Some(_) => true,
                None => return Err(Failure::new(Exit::Unavailable, "the store reports no more changes")),
            },
            _ = list.tick(), if named.is_none() => shown.print_new(&store).await?,
            () = leave.leave() => return Ok(Exit::Clean),
            () = output::unread() => return Ok(Exit::Clean),
        };
        if !read {
            return Ok(Exit::Clean);
        }
    }
}

/// From now on the store tells of its changes.
async fn look(store: &Store, on: &ElectionName) -> Result<Seen, bellwether::StoreError> {
    store.backend().follow(on);
    store.backend().observe(on).await
}

/// What was printed last of each election.
struct Shown<'a> {
    global: &'a Global,
    told: BTreeMap<ElectionName, String>,
}

impl Shown<'_> {
    /// Prints the state of new elections; false when nobody reads any more. An error of the store may pass, so it does not end the
    /// command.
    async fn print_new(&mut self, store: &Store) -> Result<bool, Failure> {
        for on in store.elections().await.unwrap_or_default() {
            if self.told.contains_key(&on) {
                continue;
            }
            if let Ok(seen) = look(store, &on).await
                && !self.print(&on, &seen)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints a change; false when nobody reads any more.
    fn print(&mut self, on: &ElectionName, seen: &Seen) -> Result<bool, Failure> {
        let (told, text) = line(self.global, on, seen);
        if self.told.insert(on.clone(), told.clone()) == Some(told) {
            return Ok(true);
        }
        output::line(&text)
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
        let mut record = bellwether::record_json(on, seen);
        let text = record.to_string();
        if let Some(fields) = record.as_object_mut() {
            // It changes by itself.
            fields.remove("paused_ms");
            if seen.leader().is_some() {
                // These change at every renewal.
                fields.remove("renewed");
                fields.remove("proof");
            }
        }
        return (record.to_string(), text);
    }
    let epoch = seen.epoch.map_or_else(String::new, |epoch| format!(" (epoch {epoch})"));
    let told = match (seen.leader(), &seen.reserved_for, &seen.holder) {
        (Some(leader), _, _) => format!("{on}: {leader} leads{epoch}"),
        (None, Some(id), _) => format!("{on}: nobody leads; reserved for {id}"),
        (None, None, Some(holder)) => format!("{on}: nobody leads; {} is dead", holder.id),
        (None, None, None) => format!("{on}: nobody leads"),
    };
    let Some(paused) = &seen.paused else {
        let text = format!("{}  {told}", SystemClock.wall());
        return (told, text);
    };
    let text = format!("{}  {told}; {}", SystemClock.wall(), output::paused(paused));
    // Another pause is a change; that it runs out is none.
    (format!("{told}; paused by {:?} at {:?}", paused.by, paused.at), text)
}
