//! `bellwether acquire`: one attempt, by the rule of `run -n`.

use bellwether::{Election, Status};
use serde_json::json;

use super::run::{out_of_reach, somebody_lives, why_not_leading};
use super::signals::Signals;
use crate::args::{Acquire, Format, Global};
use crate::exit::{Exit, Failure};
use crate::id::id;
use crate::{backend, output};

/// Becomes leader if no living leader is there, prints the epoch, and releases.
pub(crate) async fn acquire(global: &Global, acquire: &Acquire) -> Result<Exit, Failure> {
    let on = backend::election(global, acquire.election.as_ref())?;
    let mut options = backend::options(global)?;
    acquire.timing.apply(&mut options);
    let store = backend::connect(global)?;
    let mut leave = Signals::new()?;
    let builder = Election::builder(&on).backend(store.clone()).id(id(global));
    let election = builder.options(options).build()?;
    let attempt = async {
        election.start().await?;
        tokio::select! {
            biased;
            leadership = election.wait_for_leadership() => leadership.map(Some),
            Ok(_) = election.wait_until(somebody_lives) => Ok(None),
            Ok(_) = election.wait_until(why_not_leading::is_kept_out) => Ok(None),
            Ok(_) = election.wait_until(has_failed) => Ok(None),
        }
    };
    let leadership = tokio::select! {
        biased;
        leadership = attempt => leadership.map_err(Failure::from),
        () = leave.leave() => Err(match election.status().last_success {
            Some(_) => Failure::new(Exit::NotLed, "not acquired: interrupted"),
            None => out_of_reach(&election),
        }),
    };
    let outcome = match leadership {
        Err(failure) => Err(failure),
        Ok(None) if has_failed(&election.status()) => Err(out_of_reach(&election)),
        Ok(Some(leadership)) => {
            let epoch = leadership.epoch().get();
            let text = match global.output {
                Format::Table => epoch.to_string(),
                Format::Json => json!({ "election": on.as_str(), "epoch": epoch }).to_string(),
            };
            match output::line(&text) {
                Ok(true) if acquire.hold => tokio::select! {
                    _ = leadership.lost() => Ok(Exit::Lost),
                    () = leave.leave() => Ok(Exit::Clean),
                },
                printed => printed.map(|_| Exit::Clean),
            }
        }
        Ok(None) => Err(Failure::new(
            Exit::NotLed,
            why_not_leading::sentence(&store, &election, "not acquired").await,
        )),
    };
    // After a second signal, do not wait for the store; the record then expires by itself.
    let stopped = tokio::select! {
        stopped = election.stop() => stopped,
        () = leave.leave() => Ok(()),
    };
    let exit = outcome?;
    stopped?;
    Ok(exit)
}

/// Whether the one attempt has failed because the store did not answer.
fn has_failed(status: &Status) -> bool {
    status.last_success.is_none() && status.last_error.is_some()
}
