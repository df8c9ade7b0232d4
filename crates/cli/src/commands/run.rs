//! `bellwether run`: take part until interrupted.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use bellwether::core::Proof;
use bellwether::{Election, Error, Events, Options, Over, StateName};

use super::signals::Leave;
use crate::args::{Global, Run};
use crate::backend;
use crate::exit::{Exit, Failure};

/// How long events that were not read may hold up the end of the command.
const LAST_EVENTS: std::time::Duration = std::time::Duration::from_millis(500);

/// Takes part.
pub(crate) async fn run(global: &Global, run: &Run) -> Result<Exit, Failure> {
    let mut options = Options { auto_reacquire: !run.once, ..Options::default() };
    run.timing.apply(&mut options);
    run.standing.apply(&mut options);
    let store = backend::connect(global)?;
    let mut leave = Leave::new()?;
    let mut builder =
        Election::builder(run.election.as_str()).backend(store).id(backend::id(global)).options(options);
    let printing = match &run.events {
        Some(file) => Some(print_events(builder.subscribe(), file)?),
        None => None,
    };
    let election = tokio::select! {
        started = builder.start() => started?,
        () = leave.asked() => return Ok(Exit::Clean),
    };
    let outcome = tokio::select! {
        outcome = take_part(&election, run) => outcome,
        () = leave.asked() => Ok(Exit::Clean),
    };
    // A second signal does not wait for the store; the record then runs out by itself.
    tokio::select! {
        stopped = election.stop() => stopped?,
        () = leave.asked() => {}
    }
    drop(election);
    if let Some(printing) = printing {
        let _ = tokio::time::timeout(LAST_EVENTS, printing).await;
    }
    outcome
}

async fn take_part(election: &Election, run: &Run) -> Result<Exit, Failure> {
    let not_led = Exit::NotLedAs(run.code);
    let first = tokio::select! {
        first = election.wait_for_leadership() => first,
        () = patience(run.wait) => {
            let reached = election.status().last_success.is_some();
            return if reached { Ok(not_led) } else { Err(out_of_reach(election)) };
        }
        _ = election.wait_until(|status| status.leader_proof == Some(Proof::Alive)
            && status.leader.is_some()
            && matches!(status.state, StateName::Follower)), if run.nonblock => return Ok(not_led),
    };
    let mut leadership = first.map_err(|error| stopped(election, error))?;
    loop {
        let over = leadership.lost().await;
        if run.once {
            return Ok(if over == Over::Released { Exit::Clean } else { Exit::Lost });
        }
        leadership = election.wait_for_leadership().await.map_err(|error| stopped(election, error))?;
    }
}

async fn patience(limit: Option<std::time::Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// The election ended by itself.
fn stopped(election: &Election, error: Error) -> Failure {
    match (error, election.status().last_error) {
        (Error::NotStarted, Some(last)) => last.into(),
        (error, _) => error.into(),
    }
}

fn out_of_reach(election: &Election) -> Failure {
    let said = election.status().last_error.map_or_else(|| "it did not answer".to_owned(), |e| e.to_string());
    Failure::new(Exit::Unavailable, format!("the store could not be reached in the time given: {said}"))
}

/// Prints events as they come, whole lines in single writes, from a thread that may be stuck without harm: what it
/// does not read is dropped in the middle and counted.
fn print_events(mut events: Events, file: &Path) -> Result<tokio::task::JoinHandle<()>, Failure> {
    let mut out: Box<dyn Write + Send> = if file.as_os_str() == "-" {
        Box::new(std::io::stdout())
    } else {
        let opened = OpenOptions::new().create(true).append(true).open(file);
        Box::new(opened.map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot write events to {}: {error}", file.display()))
        })?)
    };
    Ok(tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let mut line = event.to_json_line();
            line.push('\n');
            let written = tokio::task::spawn_blocking(move || {
                let result = out.write_all(line.as_bytes()).and_then(|()| out.flush());
                (result.is_ok(), out)
            });
            match written.await {
                Ok((true, back)) => out = back,
                // Nobody reads any more; the leadership goes on.
                _ => return,
            }
        }
    }))
}
