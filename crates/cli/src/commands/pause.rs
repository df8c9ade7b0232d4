//! `bellwether pause` and `bellwether unpause`: nobody is elected for a while.

use bellwether::{CandidateId, ElectionName, Seen, Store};
use serde_json::json;

use crate::args::{Format, Global, Pause};
use crate::exit::{Exit, Failure};
use crate::{backend, id, output};

/// Pauses the election, and says who leads on.
pub(crate) async fn pause(global: &Global, pause: &Pause) -> Result<Exit, Failure> {
    let on = &backend::election(global, pause.election.as_ref())?;
    let store = backend::connect(global)?;
    let by = id::operator(global);
    store.pause(on, pause.span, by.clone()).await?;
    // After it was written: whoever leads by now may go on.
    let seen = look(&store, on).await;
    let leader = seen.as_ref().and_then(Seen::leader);
    if global.output == Format::Json {
        let text = json!({
            "election": on.as_str(),
            "paused_ms": pause.span.as_millis() as u64,
            "by": by.as_ref().map(CandidateId::as_str),
            "leader": leader.map(CandidateId::as_str),
            "epoch": leader.and(seen.as_ref()).and_then(|seen| seen.epoch).map(bellwether::Epoch::get),
        });
        output::line(&text.to_string())?;
    } else {
        let span = output::span(pause.span);
        let then = match leader {
            Some(leader) => format!("{leader} leads until its leadership ends; nobody is elected after that"),
            None => "nobody is elected before it ends".to_owned(),
        };
        output::line(&format!("{on} is paused for {span}: {then}"))?;
    }
    Ok(Exit::Clean)
}

/// Ends the pause, if there is one.
pub(crate) async fn unpause(global: &Global, named: Option<&ElectionName>) -> Result<Exit, Failure> {
    let on = &backend::election(global, named)?;
    let store = backend::connect(global)?;
    let before = look(&store, on).await.and_then(|seen| seen.paused);
    store.unpause(on).await?;
    if global.output == Format::Json {
        let was = before.map(|paused| paused.left.as_millis() as u64);
        output::line(&json!({ "election": on.as_str(), "was_paused_ms": was }).to_string())?;
    } else {
        output::line(&match before {
            Some(_) => format!("{on} is no longer paused"),
            None => format!("{on} was not paused"),
        })?;
    }
    Ok(Exit::Clean)
}

/// Only for what is printed: that the store does not answer now changes nothing about the pause.
async fn look(store: &Store, on: &ElectionName) -> Option<Seen> {
    store.backend().observe(on).await.ok()
}
