//! `bellwether watch`: a line for every change. Reads, and writes nothing.

use bellwether::ElectionName;
use bellwether::backend::Notices;
use bellwether::core::{Seen, Signal};
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
    for on in &names {
        store.backend().follow(on, true);
        let seen = store.backend().observe(on).await?;
        if !print(global, on, &seen) {
            return Ok(Exit::Clean);
        }
    }
    loop {
        let notice = tokio::select! {
            notice = signals.next() => notice,
            () = leave.leave() => return Ok(Exit::Clean),
        };
        let Some(notice) = notice else {
            return Err(Failure::new(Exit::Unavailable, "the store tells of no more changes"));
        };
        let (Some(on), Signal::Changed(seen)) = (notice.election, notice.signal) else { continue };
        if !print(global, &on, &seen) {
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

fn print(global: &Global, on: &ElectionName, seen: &Seen) -> bool {
    match global.output {
        Format::Json => output::line(&output::record_json(on, seen).to_string()),
        Format::Table => {
            let holder = seen.holder.as_ref().map_or("nobody".to_owned(), |holder| holder.id.to_string());
            let epoch = seen.epoch.map_or("-".to_owned(), |epoch| epoch.to_string());
            let renewed = seen.renewed.map_or("-".to_owned(), |at| at.to_string());
            let life = output::proof(seen);
            output::line(&format!("{renewed}  {on}  leader {holder}  epoch {epoch}  {life}"))
        }
    }
}
