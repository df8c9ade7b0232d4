//! A COMMAND that lives exactly as long as a leadership, and an address that does.
//!
//! Without a COMMAND, an address has a process that only waits in its place, so that the same guard holds it.

use std::cell::Cell;
use std::time::Duration;

use bellwether::{Election, Leadership, Options, Over, StateName, What, boot_now};
use bellwether_deadman::Pid1Deadline;
use bellwether_supervise::{
    Child, CommandEnd, CommandSpec, Containment, EndCause, Signal, StartError, Supervisor, Survivor,
    find_command,
};

use super::address;
use super::backoff::Backoff;
use super::shell::not_inherited;
use super::{Candidacy, stopped};
use crate::args::Run;
use crate::commands::signals::{Signals, is_typed};
use crate::exit::{Exit, Failure};
use crate::id::is_this_process;
use crate::output::span;

/// The shortest grace that is worth a TERM.
const GRACE_MIN: Duration = Duration::from_millis(100);

/// The time between TERM and KILL when the deadline forces the end.
pub(crate) fn grace(given: Option<Duration>, ttl: Duration) -> Duration {
    given.unwrap_or((ttl / 10).max(GRACE_MIN))
}

/// The settings of a command, if there is one, into the library's options.
pub(super) fn apply(run: &Run, options: &mut Options) {
    if !run.command_line().is_empty() || run.vip.is_some() {
        options.timing.work_grace = grace(run.grace, options.timing.rounded_ttl());
        options.stop_timeout = run.stop_timeout;
    }
    // The work of clients is theirs to stop: before the deadline, which they know.
    #[cfg(feature = "http")]
    if run.http.http.is_some() {
        options.stop_timeout = run.stop_timeout;
    }
}

/// What is to be run, and the guard that will run it.
pub(super) struct SupervisedCommand {
    supervisor: Supervisor,
    unkillable: Cell<bool>,
    /// There is no command, only an address.
    is_idle: bool,
}

/// What comes after a command has ended.
enum AfterCommand {
    Stand,
    /// The command ended by itself, with this code.
    Ended(u8),
    /// The command could not be started.
    StayOut(StartError),
    Leave(Exit),
}

impl SupervisedCommand {
    /// Looks the command up, starts its guard, and rehearses a start; `None` without a command and an address.
    pub(super) async fn prepare(run: &Run, options: &Options) -> Result<Option<SupervisedCommand>, Failure> {
        let command = run.command_line();
        let is_idle = command.is_empty();
        let mut spec = match command.first() {
            Some(name) => {
                let program = find_command(name, std::env::var_os("PATH").as_deref())
                    .map_err(|error| Failure::new(Exit::Command(error.code()), error.to_string()))?;
                CommandSpec::new(program, command)
            }
            None if run.vip.is_none() => return Ok(None),
            None => CommandSpec::idle(),
        };
        if let Some(vip) = &run.vip {
            address::check(vip, options)?;
            spec = spec.address(vip.clone());
        }
        spec = spec.grace(options.timing.work_grace).stop_timeout(options.stop_timeout);
        if sockets_were_passed() && !is_idle {
            spec = spec.listening();
        }
        if run.no_pid_namespace {
            spec = spec.without_namespace();
        }
        spec = not_inherited().fold(spec, CommandSpec::without_env);
        let supervisor = Supervisor::new(spec).map_err(|error| not_startable(StartError::Guard(error)))?;
        let containment = supervisor.rehearse().await.map_err(not_startable)?;
        if !is_idle {
            announce(containment);
        }
        Ok(Some(SupervisedCommand { supervisor, unkillable: Cell::new(false), is_idle }))
    }

    /// Whether a process of the command runs on that cannot be killed. The election then never stops entirely.
    pub(super) fn is_unkillable(&self) -> bool {
        self.unkillable.get()
    }

    /// Runs the command, leadership after leadership.
    pub(super) async fn lead(
        &self,
        candidacy: &Candidacy<'_>,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let &Candidacy { election, run, .. } = candidacy;
        let mut first = true;
        let mut start_backoff = Backoff::of_starts(election.settings().timing().ttl());
        loop {
            let leadership = tokio::select! {
                leadership = next_leadership(candidacy, first) => leadership?,
                () = signals.leave() => return Ok(Exit::Clean),
            };
            first = false;
            match self.lead_once(candidacy, &leadership, signals, &mut start_backoff).await? {
                AfterCommand::Leave(exit) => return Ok(exit),
                AfterCommand::Ended(code) => return Ok(Exit::Command(code)),
                AfterCommand::Stand if run.once => return Ok(Exit::Lost),
                AfterCommand::Stand => {}
                AfterCommand::StayOut(error) if run.once => return Err(not_startable(error)),
                AfterCommand::StayOut(error) => tokio::select! {
                    back = self.stay_out(election, &mut start_backoff, error) => back?,
                    () = signals.leave() => return Ok(Exit::Clean),
                },
            }
        }
    }

    /// One leadership: the command, again where that is wanted, and the lease for as long as it is to be kept.
    async fn lead_once(
        &self,
        candidacy: &Candidacy<'_>,
        leadership: &Leadership,
        signals: &mut Signals,
        start_backoff: &mut Backoff,
    ) -> Result<AfterCommand, Failure> {
        let &Candidacy { election, run, .. } = candidacy;
        let kept_until = run.keep_for.map(|span| boot_now() + span);
        let mut restart_backoff = Backoff::of_restarts();
        loop {
            let begun = boot_now();
            let code = match self.run_once(candidacy, leadership, signals, start_backoff).await? {
                AfterCommand::Ended(code) => code,
                next => return Ok(next),
            };
            if !run.restart.after(code) {
                if let Some(until) = kept_until.filter(|until| *until > boot_now()) {
                    let (on, left) = (election.name(), span(until.since(boot_now())));
                    tracing::info!("{on}: the leadership is kept for another {left} (--keep-for)");
                    tokio::select! {
                        () = tokio::time::sleep(until.since(boot_now())) => {}
                        _ = leadership.lost() => {}
                        () = signals.leave() => {}
                    }
                }
                return Ok(AfterCommand::Ended(code));
            }
            let pause = restart_backoff.next_after(boot_now().since(begun));
            tracing::warn!(code, "the command ended and is restarted in {pause:?}");
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = leadership.lost() => return Ok(AfterCommand::Stand),
                () = signals.leave() => return Ok(AfterCommand::Leave(Exit::Clean)),
            }
        }
    }

    /// From a start of the command to its end.
    async fn run_once(
        &self,
        candidacy: &Candidacy<'_>,
        leadership: &Leadership,
        signals: &mut Signals,
        start_backoff: &mut Backoff,
    ) -> Result<AfterCommand, Failure> {
        let &Candidacy { election, store, run, .. } = candidacy;
        let epoch = leadership.epoch();
        let proofs = store.backend().crash_proof(election.name(), &election.candidate());
        let mut child = match self.supervisor.start(leadership, proofs).await {
            Ok(child) => child,
            Err(StartError::Over(_)) => return Ok(AfterCommand::Stand),
            Err(StartError::NotRunnable(error)) => {
                return Err(Failure::new(Exit::Command(error.code()), error.to_string()));
            }
            // Nothing runs. Another candidate may be able to start it.
            Err(error @ (StartError::Guard(_) | StartError::Address(_))) => {
                return Ok(AfterCommand::StayOut(error));
            }
        };
        start_backoff.reset();
        if let Some(vip) = &run.vip {
            tracing::info!("{}: holding {vip}", election.name());
        }
        if self.is_idle {
            let (ended, leaving) = wait_idle(&mut child, signals).await;
            return self.after_idle(candidacy, ended, leaving).await;
        }
        election.report(epoch, What::ChildStarted { pid: child.pid() });
        let has_terminal = child.has_terminal();
        let (ended, leaving) = wait(&mut child, signals).await;
        election.report(epoch, What::ChildExited { code: ended.exit.code() });
        Ok(match ended.why {
            EndCause::Unkillable(survivor) => {
                // It counts as work, so that nothing is released: its end, or that of the leadership, is all there is to wait for.
                self.unkillable.set(true);
                tokio::select! {
                    biased;
                    () = child.outlived() => self.unkillable.set(false),
                    _ = election.stop() => return Err(unkillable(survivor)),
                    _ = election.wait_until(|status| status.state == StateName::Stopped) => {
                        return Err(unkillable(survivor));
                    }
                }
                AfterCommand::Leave(if leaving { Exit::Clean } else { Exit::Command(ended.exit.code()) })
            }
            _ if leaving => AfterCommand::Leave(Exit::Clean),
            // Nobody but the command hears what is typed, and whoever types it wants all of this to end.
            EndCause::ByItself if has_terminal && is_interruption(ended.exit.code()) => {
                AfterCommand::Leave(Exit::Command(ended.exit.code()))
            }
            EndCause::ByItself => AfterCommand::Ended(ended.exit.code()),
            EndCause::Asked | EndCause::Over(_) => AfterCommand::Stand,
            EndCause::Overdue | EndCause::GuardDied => {
                let on = election.name();
                if ended.why == EndCause::GuardDied {
                    tracing::warn!(
                        "{on}: the guard of the command died, and the command was killed; stepping down"
                    );
                } else {
                    tracing::warn!(
                        "{on}: no renewal reached the guard in time, and it stopped the command; stepping down"
                    );
                }
                let _ = election.step_down().await;
                AfterCommand::Stand
            }
        })
    }

    /// What comes after a leadership without a command.
    async fn after_idle(
        &self,
        candidacy: &Candidacy<'_>,
        ended: CommandEnd,
        leaving: bool,
    ) -> Result<AfterCommand, Failure> {
        let &Candidacy { election, run, .. } = candidacy;
        Ok(match ended.why {
            _ if leaving => AfterCommand::Leave(Exit::Clean),
            EndCause::Over(Over::Released) if run.once => AfterCommand::Leave(Exit::Clean),
            EndCause::Over(_) => AfterCommand::Stand,
            // Somebody killed a process of the guard, or no renewal came: the address is gone.
            _ => {
                tracing::warn!("{}: the guard of the address ended; stepping down", election.name());
                let _ = election.step_down().await;
                AfterCommand::Stand
            }
        })
    }

    /// After a start of the command that failed: leaves the election, so that a node which cannot start anything does not win again
    /// and again while others could work. Returns to it after a while, once a rehearsal has succeeded.
    async fn stay_out(
        &self,
        election: &Election,
        start_backoff: &mut Backoff,
        mut error: StartError,
    ) -> Result<(), Failure> {
        election.stop().await?;
        loop {
            let span = start_backoff.next();
            let shown = bellwether::duration::print(span);
            tracing::error!(%error, "{}; this candidate stays out of the election for {shown}", cannot(&error));
            tokio::time::sleep(span).await;
            match self.supervisor.rehearse().await {
                Ok(_) => return Ok(election.start().await?),
                Err(again) => error = again,
            }
        }
    }
}

async fn next_leadership(candidacy: &Candidacy<'_>, first: bool) -> Result<Leadership, Failure> {
    if first {
        return candidacy.first_leadership().await;
    }
    let election = candidacy.election;
    election.wait_for_leadership().await.map_err(|error| stopped(election, error))
}

/// Says once, at the start, what users can rely on when `bellwether` itself is killed.
fn announce(containment: Containment) {
    match containment {
        Containment::Namespace => {
            tracing::info!("{}: it has a PID namespace of its own", containment.promise())
        }
        Containment::Sweep if Pid1Deadline::new().is_some() => tracing::info!(
            "{}: bellwether is the first process of its container",
            Containment::Namespace.promise()
        ),
        Containment::Sweep => tracing::warn!(
            "no permission to make a PID namespace: {}; to rule this out, grant CAP_SYS_ADMIN, or make bellwether the first process of a \
             container",
            containment.promise()
        ),
    }
}

/// Whether a command that ended with this code was ended by Ctrl-C or Ctrl-\: by the signal itself, or with the code that says so.
fn is_interruption(code: u8) -> bool {
    [Signal::INT, Signal::QUIT].iter().any(|signal| i32::from(code) == 128 + signal.as_raw())
}

/// `LISTEN_PID` names the process that sockets were passed to.
fn sockets_were_passed() -> bool {
    std::env::var("LISTEN_PID").is_ok_and(|pid| is_this_process(&pid))
}

fn unkillable(survivor: Survivor) -> Failure {
    let sentence = format!(
        "{survivor}, which the command started, could not be killed and has outlived the leadership; keep setuid programs (sudo) \
         out of the command"
    );
    Failure::new(Exit::Permission, sentence)
}

fn not_startable(error: StartError) -> Failure {
    let exit = match error {
        StartError::Address(_) => Exit::Misconfigured,
        _ => Exit::Command(126),
    };
    Failure::new(exit, format!("{}: {error}", cannot(&error)))
}

fn cannot(error: &StartError) -> &'static str {
    match error {
        StartError::Address(_) => "this host cannot lead",
        _ => "the command cannot be started here",
    }
}

/// Waits for the end of a leadership without a command; also whether it was a signal that asked to leave.
async fn wait_idle(child: &mut Child, signals: &mut Signals) -> (CommandEnd, bool) {
    let mut leaving = false;
    loop {
        tokio::select! {
            ended = child.wait() => return (ended, leaving),
            () = signals.leave() => {
                if leaving {
                    child.kill();
                } else {
                    child.stop(Signal::TERM);
                }
                leaving = true;
            }
        }
    }
}

/// Waits for the command's end, passing signals on; also whether it was a signal that asked to leave.
async fn wait(child: &mut Child, signals: &mut Signals) -> (CommandEnd, bool) {
    let mut leaving = false;
    loop {
        let asked = tokio::select! {
            ended = child.wait() => return (ended, leaving),
            asked = signals.next() => asked,
        };
        // What is typed reaches the whole group that is in the foreground, and so the command, if that is its group too.
        let heard = child.shares_group() && is_typed(asked);
        match asked {
            Signal::INT | Signal::TERM if leaving => child.kill(),
            Signal::INT if heard => {
                leaving = true;
                child.stop_signalled();
            }
            Signal::HUP | Signal::QUIT | Signal::WINCH if heard => {}
            Signal::INT | Signal::TERM => {
                leaving = true;
                child.stop(asked);
            }
            _ => child.signal(asked),
        }
    }
}
