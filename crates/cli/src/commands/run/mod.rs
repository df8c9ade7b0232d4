//! `bellwether run`: take part until interrupted; with a COMMAND, run it only while leading.

mod address;
mod backoff;
mod command;
mod events;
mod health;
#[cfg(feature = "http")]
mod http;
mod live_line;
mod shell;
mod standing;
pub(crate) mod why_not_leading;

use std::time::Duration;

use bellwether::{CandidateId, Election, Error, Leadership, Over, Proof, Settings, StateName, Status, Store};
use futures_util::future::OptionFuture;

pub(crate) use self::command::grace;
use self::health::HealthCommand;
use super::signals::Signals;
use crate::args::{Global, Run};
use crate::backend;
use crate::exit::{Exit, Failure};
use crate::id::id;
use crate::systemd::Systemd;

/// How long the screen may hold up the end of the command.
const LAST_SCREEN: Duration = Duration::from_millis(500);

/// Takes part.
pub(crate) async fn run(global: &Global, run: &Run, live: bool) -> Result<Exit, Failure> {
    // First of all: what follows takes its time, and a signal must find us listening.
    let mut signals = Signals::new()?;
    let systemd = Systemd::from_env();
    let on = backend::election(global, run.election.as_ref())?;
    let mut options = backend::options(global)?;
    options.auto_reacquire = !run.once;
    run.timing.apply(&mut options);
    run.standing.apply(&mut options);
    command::apply(run, &mut options);
    // Mistakes in flags are reported before anything is started.
    let store = backend::connect(global)?;
    let settings = Settings::new(options.clone()).map_err(Error::from)?;
    if let Some(sentence) = backend::rounded_ttl(&options, &settings) {
        tracing::info!("{on}: {sentence}");
    }
    let id = CandidateId::new(id(global)).map_err(Error::from)?;
    let companion = super::companion(&store, &on, &id)?;
    #[cfg(feature = "http")]
    let mut listening = http::listen(run, &store, &on)?;
    // Before competing: a node that cannot run the command must not win.
    let work = tokio::select! {
        work = command::SupervisedCommand::prepare(run, &options) => work?,
        () = signals.leave() => return Ok(Exit::Clean),
    };
    tokio::spawn(bellwether_supervise::reap_orphans());
    let mut builder = Election::builder(&on).backend(store.clone()).id(id).options(options);
    let mut checked = None;
    if let Some(command) = &run.health.health_cmd {
        let (with_check, health) = health::check(builder, command, &run.health);
        (builder, checked) = (with_check, Some(health));
    }
    let mut watching = Vec::new();
    if let Some(file) = &run.events {
        let told = builder.subscribe();
        let told = if run.events_renewals { told.with_renewals() } else { told };
        watching.push(events::print(told, file)?);
    }
    if let Some(command) = &run.hook {
        watching.push(events::run_hook(builder.subscribe(), command.clone(), run.hook_on.clone()));
    }
    let seen = live.then(|| builder.subscribe());
    #[cfg(feature = "http")]
    if let Some(listening) = &mut listening {
        builder = listening.watch(builder);
    }
    let election = builder.build()?;
    #[cfg(feature = "http")]
    let agent = listening.map(|listening| listening.serve(&election, &store)).transpose()?;
    let companion = companion.map(|begin| begin(&election));
    let driver = store.clone();
    // Before the first candidate there is nothing to be stuck.
    let _heartbeat = systemd.heartbeat(move || {
        let driver = driver.clone();
        async move { matches!(driver.driver_answers().await, Ok(()) | Err(Error::NotStarted)) }
    });
    let telling = systemd.is_there().then(|| standing::tell(systemd.clone(), election.clone()));
    let begun = tokio::select! {
        started = election.start() => { started?; true }
        // It may lead already.
        () = signals.leave() => false,
    };
    let screen = seen.filter(|_| begun).map(|events| live_line::show(election.clone(), events));
    let candidacy = Candidacy { election: &election, store: &store, run, health: checked.as_ref() };
    let outcome = match &work {
        _ if !begun => Ok(Exit::Clean),
        Some(work) => work.lead(&candidacy, &mut signals).await,
        None => tokio::select! {
            outcome = candidacy.take_part() => outcome,
            () = signals.leave() => Ok(Exit::Clean),
        },
    };
    if let Some(telling) = telling {
        telling.abort();
        // It holds the election.
        let _ = telling.await;
    }
    systemd.stopping(&format!("leaves {on}"));
    // After a second signal, do not wait for the store; the record then expires by itself.
    if !work.as_ref().is_some_and(command::SupervisedCommand::is_unkillable) {
        tokio::select! {
            stopped = election.stop() => stopped?,
            () = signals.leave() => {}
        }
    }
    if let Some(screen) = screen {
        let _ = tokio::time::timeout(LAST_SCREEN, screen).await;
    }
    if let Some(companion) = companion {
        companion.abort();
        let _ = companion.await;
    }
    // It holds the election, too.
    #[cfg(feature = "http")]
    if let Some(agent) = agent {
        agent.stop().await;
    }
    drop(election);
    for mut watcher in watching {
        tokio::select! {
            _ = &mut watcher.task => continue,
            () = tokio::time::sleep(watcher.patience) => {}
            () = signals.leave() => {}
        }
        tracing::warn!("{} did not take the last events in time", watcher.what);
        // A hook that hangs is killed, with its process group, when its task ends.
        watcher.task.abort();
        let _ = watcher.task.await;
    }
    outcome
}

/// A candidate, and how long it tries.
struct Candidacy<'a> {
    election: &'a Election,
    store: &'a Store,
    run: &'a Run,
    health: Option<&'a HealthCommand>,
}

impl Candidacy<'_> {
    async fn take_part(&self) -> Result<Exit, Failure> {
        let mut leadership = self.first_leadership().await?;
        loop {
            let over = leadership.lost().await;
            if self.run.once {
                return Ok(if over == Over::Released { Exit::Clean } else { Exit::Lost });
            }
            let next = self.election.wait_for_leadership().await;
            leadership = next.map_err(|error| stopped(self.election, error))?;
        }
    }

    /// The first leadership, or why there is none.
    async fn first_leadership(&self) -> Result<Leadership, Failure> {
        let &Candidacy { election, store, run, health } = self;
        let kept_out = || health.and_then(HealthCommand::keeps_out);
        let (kept_out, is_late) = tokio::select! {
            biased;
            first = election.wait_for_leadership() => return first.map_err(|error| stopped(election, error)),
            Some(()) = OptionFuture::from(run.wait.map(tokio::time::sleep)) => (kept_out(), true),
            Ok(_) = election.wait_until(somebody_lives), if run.nonblock => (None, false),
            Ok(_) = election.wait_until(why_not_leading::is_kept_out), if run.nonblock => (None, false),
            Some(()) = OptionFuture::from(health.map(HealthCommand::fails)), if run.nonblock => (kept_out(), false),
        };
        let done = if run.command_line().is_empty() { "not leading" } else { "not run" };
        let why = match kept_out {
            Some(why) => format!("{done}: {why}"),
            None if is_late && election.status().last_success.is_none() => {
                return Err(out_of_reach(election));
            }
            None => why_not_leading::sentence(store, election, done).await,
        };
        Err(Failure::new(Exit::NotLedAs(run.code), why))
    }
}

/// Whether a living leader is seen: one that renews, or whose process is there.
pub(super) fn somebody_lives(status: &Status) -> bool {
    let follows = matches!(status.state, StateName::Follower);
    follows && status.leader.is_some() && status.leader_proof == Some(Proof::Alive)
}

/// The election ended by itself.
fn stopped(election: &Election, error: Error) -> Failure {
    match (error, election.status().last_error) {
        (Error::NotStarted, Some(last)) => last.into(),
        (error, _) => error.into(),
    }
}

/// The store has not answered once.
pub(super) fn out_of_reach(election: &Election) -> Failure {
    let said = election.status().last_error.map_or_else(|| "it did not answer".to_owned(), |e| e.to_string());
    Failure::new(Exit::Unavailable, format!("the store could not be reached: {said}"))
}
