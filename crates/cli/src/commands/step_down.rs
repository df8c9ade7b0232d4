//! `bellwether step-down`: ask the leader, wherever it runs, to hand over.

use std::time::Duration;

use bellwether::core::{Epoch, Proof, Seen};
use bellwether::{Boot, Error, boot_now};
use serde_json::json;

use super::signals::Signals;
use super::watch::next_change;
use crate::args::{Format, Global, StepDown};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// Asks, waits until somebody else leads, and says how long nobody did.
pub(crate) async fn step_down(global: &Global, step_down: &StepDown) -> Result<Exit, Failure> {
    let on = &backend::election(global, step_down.election.as_ref())?;
    let store = backend::connect(global)?;
    let mut leave = Signals::new()?;
    let watched = store.backend();
    let mut signals = watched.signals();
    watched.follow(on, true);
    let before = watched.observe(on).await?;
    let old = match (before.leader(), before.proof) {
        (Some(id), _) => id.to_string(),
        // It lives, and the store does not show its id.
        (None, Proof::Alive) => "the leader".to_owned(),
        (None, _) => {
            return Err(Failure::new(Exit::NotLed, format!("nobody leads {on}: there is nobody to ask")));
        }
    };
    let epoch = store.ask_to_step_down(on, step_down.to.clone()).await.map_err(|error| {
        match (&error, &step_down.to) {
            (Error::AlreadyLeader, Some(to)) => {
                Failure::new(Exit::Usage, format!("{to} leads {on} already: there is nothing to hand over"))
            }
            _ => error.into(),
        }
    })?;
    let asked_at = boot_now();
    let limit = before.ttl.unwrap_or(Duration::from_secs(15)) * 2;
    let mut free_since = None;
    let handed_over = async {
        loop {
            let seen = next_change(&mut signals, on).await?;
            if let Some(next) = follow_up(&seen, epoch, &mut free_since) {
                return Some((next, seen.epoch, boot_now()));
            }
        }
    };
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(limit, handed_over) => outcome.ok().flatten(),
        () = leave.leave() => None,
    };
    match (outcome, free_since) {
        (Some((next, new, at)), free) => {
            // Where the news that it was free were overtaken by those of the next leader, it was free for less than this.
            let gap = Some(at.since(free.unwrap_or(asked_at)));
            say(global, on.as_str(), &old, Some((&next, new)), epoch, gap);
            Ok(Exit::Clean)
        }
        (None, Some(_)) => {
            say(global, on.as_str(), &old, None, epoch, None);
            Ok(Exit::Clean)
        }
        (None, None) => Err(Failure::new(
            Exit::Unavailable,
            format!("{old} was asked and has not let go within {}: is it alive?", output::span(limit)),
        )),
    }
}

/// Notes when the record came free; the id of the next leader once there is one.
fn follow_up(seen: &Seen, asked: Epoch, free_since: &mut Option<Boot>) -> Option<String> {
    if matches!(seen.proof, Proof::Released | Proof::Absent | Proof::Dead) {
        free_since.get_or_insert_with(boot_now);
        return None;
    }
    let later = seen.epoch.is_some_and(|epoch| epoch > asked);
    seen.leader().filter(|_| later).map(|id| id.to_string())
}

fn say(
    global: &Global,
    on: &str,
    old: &str,
    next: Option<(&String, Option<Epoch>)>,
    asked: Epoch,
    gap: Option<Duration>,
) {
    let text = match global.output {
        Format::Json => json!({
            "election": on,
            "from": old,
            "from_epoch": asked.get(),
            "to": next.map(|(id, _)| id),
            "to_epoch": next.and_then(|(_, epoch)| epoch).map(Epoch::get),
            "gap_ms": gap.map(|gap| gap.as_secs_f64() * 1_000.0),
        })
        .to_string(),
        Format::Table => match (next, gap) {
            (Some((id, _)), Some(gap)) => format!("{old} handed over to {id}; nobody led for {gap:.1?}"),
            (Some((id, _)), None) => format!("{old} handed over to {id}"),
            (None, _) => format!("{old} has let go; nobody has taken over yet"),
        },
    };
    let _ = output::line(&text);
}
