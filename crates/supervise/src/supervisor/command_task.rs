//! One command, watched from the supervisor.

use super::guard_limit::GuardLimit;
use super::guard_lost::{self, InitHandle, Unkilled};
use super::guard_process::GuardProcess;
use crate::guard_protocol::{CommandOrder, CommandReport, StartOrder};
use crate::kill_sequence::{GUARD_KILLS, PROCESS_1_ENDS};
use crate::{CommandEnd, CommandSpec, Containment, EndCause, ExitStatus, NotRunnable, StartError};
use bellwether_core::Boot;
use bellwether_deadman::process::{self, IgnoredSignals, Pid, Signal};
use bellwether_deadman::{BootTimer, Pid1Deadline, boot_now};
use bellwether_election::{Leadership, Over, Standing, Standings};
use rustix::process::pidfd_send_signal;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};

/// What the holder of the handle wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChildRequest {
    Signal(Signal),
    /// With the signal to send, unless it has been sent.
    Stop(Option<Signal>),
    Kill,
}

pub(super) type Started = oneshot::Sender<Result<Running, StartError>>;

/// A command that has been started.
pub(super) struct Running {
    pub(super) pid: u32,
    pub(super) containment: Containment,
    pub(super) shares_group: bool,
    pub(super) has_terminal: bool,
}

pub(super) struct CommandTask {
    guard: OwnedMutexGuard<Option<GuardProcess>>,
    spec: Arc<CommandSpec>,
    epoch: u64,
    env: Vec<(String, String)>,
    /// Whether the rehearsal had a PID namespace.
    namespace_announced: bool,
    standing: Standings,
    limit: GuardLimit,
    requests: mpsc::UnboundedReceiver<ChildRequest>,
    /// The handle is gone, and no request will come any more.
    dropped: bool,
    /// Why the tree is being stopped, once it is.
    stopping: Option<EndCause>,
    init: Option<InitHandle>,
    /// For a tree that the kernel does not kill: process 1 of a container ends it when all others are stopped.
    pid1: Option<Pid1Deadline>,
    /// The guard has been killed, or is about to be found dead.
    given_up: bool,
    /// How it ends if what cannot be killed has not ended by then.
    in_vain: Option<(CommandEnd, Boot)>,
    /// Nothing of the command is left.
    done: bool,
}

impl CommandTask {
    pub(super) fn new(
        guard: OwnedMutexGuard<Option<GuardProcess>>,
        spec: Arc<CommandSpec>,
        namespace_announced: bool,
        leadership: &Leadership,
        standing: Standings,
        deadline: Boot,
        requests: mpsc::UnboundedReceiver<ChildRequest>,
    ) -> CommandTask {
        let epoch = leadership.epoch().get();
        let env = [
            ("BELLWETHER_ELECTION", leadership.election().as_str()),
            ("BELLWETHER_ID", leadership.id().as_str()),
            ("BELLWETHER_EPOCH", &epoch.to_string()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        CommandTask {
            guard,
            spec,
            epoch,
            env,
            namespace_announced,
            standing,
            limit: GuardLimit::new(deadline),
            requests,
            dropped: false,
            done: false,
            stopping: None,
            init: None,
            pid1: Pid1Deadline::new(),
            given_up: false,
            in_vain: None,
        }
    }

    /// Runs until the command has ended. Nothing of it is left then except what is returned.
    pub(super) async fn run(
        mut self,
        proofs: Vec<OwnedFd>,
        started: Started,
    ) -> (CommandEnd, Option<Unkilled>) {
        let ended = self.watch(proofs, started).await;
        self.done = !matches!(ended.why, EndCause::Unkillable(_));
        let rest = (!self.done).then(|| Unkilled {
            epoch: self.epoch,
            // A next command gets another guard.
            guard: self.guard.take(),
            init: self.init.take(),
            standing: self.standing.clone(),
            pid1: self.pid1.take(),
        });
        (ended, rest)
    }

    async fn watch(&mut self, proofs: Vec<OwnedFd>, started: Started) -> CommandEnd {
        let mut started = Some(started);
        self.tell_pid1();
        if let Err(error) = self.order_start(&proofs) {
            let error = self.guard.as_ref().expect("there until it has died").last_word(error).await;
            return self.guard_died(started, error).await;
        }
        // The guard has its own copies, and this process whatever they were copied from.
        drop(proofs);
        let mut timer = BootTimer::new().ok();
        loop {
            let guard = self.guard.as_ref().expect("there until it has died");
            let limit = self.limit();
            tokio::select! {
                report = guard.receive() => match report {
                    Ok((epoch, report, descriptor)) if epoch == self.epoch => {
                        if let Some(ended) = self.hear(report, descriptor, &mut started) {
                            return ended;
                        }
                    }
                    // Of an earlier command.
                    Ok(_) => {}
                    Err(error) => return self.guard_died(started, error).await,
                },
                () = self.standing.changed() => self.follow(),
                () = swept(self.init.as_ref()), if self.limit.waits_for_init() => {
                    // A guard that has been stopped gets no word of renewals: its init has acted in its place.
                    self.limit.init_ended(boot_now());
                }
                request = self.requests.recv(), if !self.dropped => {
                    // Without a handle there is nobody to run it for.
                    self.dropped = request.is_none();
                    self.grant(request.unwrap_or(ChildRequest::Kill));
                }
                () = until(timer.as_mut(), limit), if boot_now() < limit => {}
                () = std::future::ready(()), if boot_now() >= limit => match self.in_vain.take() {
                    Some((ended, _)) => return ended,
                    // The guard had until well before this. If it is still there, it has been stopped or starved.
                    None => self.kill_guard(),
                },
            }
        }
    }

    /// When the guard, or init in its place, has to be done.
    fn limit(&self) -> Boot {
        if self.given_up {
            return Boot::FOREVER;
        }
        if let Some((_, until)) = self.in_vain {
            return until;
        }
        self.limit.at()
    }

    fn tell_pid1(&mut self) {
        if let Some(pid1) = &mut self.pid1 {
            pid1.set(PROCESS_1_ENDS.at(self.limit.deadline()));
        }
    }

    fn order_start(&self, proofs: &[OwnedFd]) -> io::Result<()> {
        let order = StartOrder {
            env: self.env.clone(),
            deadline: self.limit.deadline().as_nanos(),
            grace: self.spec.grace.as_nanos().try_into().unwrap_or(u64::MAX),
            namespace: self.spec.namespace,
            rehearsal: false,
            ignored: IgnoredSignals::at_start().bits(),
            listens: self.spec.listens,
            address: self.spec.address.clone(),
        };
        let stdin = io::stdin();
        let descriptors: Vec<_> =
            std::iter::once(stdin.as_fd()).chain(proofs.iter().map(AsFd::as_fd)).collect();
        let guard = self.guard.as_ref().expect("there until it has died");
        guard.send(self.epoch, CommandOrder::Start(order), &descriptors)
    }

    /// The end, if this report is about it.
    fn hear(
        &mut self,
        report: CommandReport,
        descriptor: Option<OwnedFd>,
        started: &mut Option<Started>,
    ) -> Option<CommandEnd> {
        match report {
            CommandReport::Contained { init, namespace, refused } => {
                let containment = if namespace { Containment::Namespace } else { Containment::Sweep };
                if containment == Containment::Namespace {
                    self.pid1 = None;
                } else {
                    // If guard and init are killed, their orphans become our children. It fails only on a broken kernel, where the
                    // end of init still counts as that of the tree.
                    let _ = process::adopt_orphans();
                    if let Some(error) = refused.filter(|_| self.namespace_announced) {
                        tracing::warn!(
                            epoch = self.epoch, %error, "no PID namespace could be made this time: {}", containment.promise()
                        );
                    }
                }
                self.init = descriptor.and_then(|pidfd| InitHandle::new(init, pidfd, containment));
                if self.init.is_some() {
                    self.limit.contained(containment);
                }
                None
            }
            CommandReport::Started { pid, shares_group, has_terminal } => {
                let containment = self.init.as_ref().map_or(Containment::Sweep, |init| init.containment);
                self.limit.command_started();
                tracing::debug!(epoch = self.epoch, pid, %containment, "command started");
                // If nobody waits any more, the handle is gone, and its channel with it: that kills the command.
                let pid = pid.cast_unsigned();
                let running = Running { pid, containment, shares_group, has_terminal };
                let _ = started.take().map(|started| started.send(Ok(running)));
                None
            }
            CommandReport::Failed { errno, sentence } => {
                let error = match (errno, self.stopping) {
                    (Some(errno), _) => {
                        StartError::NotRunnable(NotRunnable::from_errno(&self.spec.program, errno))
                    }
                    (None, Some(EndCause::Over(over))) => StartError::Over(over),
                    (None, _) if boot_now() >= self.limit.deadline() => StartError::Over(Over::Expired),
                    (None, _) => StartError::Guard(io::Error::other(sentence)),
                };
                let _ = started.take().map(|started| started.send(Err(error)));
                Some(CommandEnd { exit: ExitStatus::Code(126), why: EndCause::ByItself })
            }
            CommandReport::NoAddress { sentence } => {
                let error = match self.stopping {
                    Some(EndCause::Over(over)) => StartError::Over(over),
                    _ => StartError::Address(sentence),
                };
                let _ = started.take().map(|started| started.send(Err(error)));
                Some(CommandEnd { exit: ExitStatus::Code(126), why: EndCause::ByItself })
            }
            CommandReport::Address { sentence } => {
                tracing::warn!(epoch = self.epoch, "{sentence}");
                None
            }
            CommandReport::Ended { status, overdue } => {
                let exit = ExitStatus::from_wait(status);
                let why =
                    self.stopping.unwrap_or(if overdue { EndCause::Overdue } else { EndCause::ByItself });
                Some(CommandEnd { exit, why })
            }
            CommandReport::Unkillable { survivor, status } => {
                // Reported at once: nobody else leads before it has ended or the lease has run out. The guard reports its end.
                tracing::error!(
                    "{survivor} was started by the command and cannot be killed: it has more rights than bellwether. End it by \
                     hand. The leadership is not released before it has ended; others take over when the lease has run out"
                );
                let exit = status.map_or(ExitStatus::KILLED, ExitStatus::from_wait);
                self.in_vain =
                    Some((CommandEnd { exit, why: EndCause::Unkillable(survivor) }, self.limit.deadline()));
                None
            }
        }
    }

    fn follow(&mut self) {
        match self.standing.now() {
            Standing::Until(deadline) => self.extend(deadline),
            Standing::Over { how, by } => {
                let span = if how.is_planned() { self.spec.planned() } else { self.spec.grace };
                self.stop(EndCause::Over(how), Some(Signal::TERM), span, GUARD_KILLS.at(by));
                self.extend(by);
            }
        }
    }

    /// The leadership protects the command until then. One that has been told to stop is still killed when its time is over.
    fn extend(&mut self, deadline: Boot) {
        if deadline > self.limit.deadline() {
            self.limit.extend(deadline);
            self.tell_pid1();
            // If it cannot be said, the command ends earlier than it had to.
            self.say(CommandOrder::Extend { deadline: deadline.as_nanos() });
        }
    }

    fn grant(&mut self, request: ChildRequest) {
        match request {
            ChildRequest::Signal(signal) => {
                self.say(CommandOrder::Signal(signal.as_raw()));
            }
            ChildRequest::Stop(signal) => {
                self.stop(
                    EndCause::Asked,
                    signal,
                    self.spec.planned(),
                    GUARD_KILLS.at(self.limit.deadline()),
                );
            }
            ChildRequest::Kill => self.kill(EndCause::Asked),
        }
    }

    /// The signal is sent once: a leadership that is released because its command was asked to stop does not cause a second one.
    /// The guard kills after `span`, or before the deadline if that comes first, which renewals move.
    fn stop(&mut self, why: EndCause, signal: Option<Signal>, span: Duration, latest: Boot) {
        let now = boot_now();
        let kill_by = now + span;
        if kill_by.min(latest) <= now {
            return self.kill(why);
        }
        if self.stopping.is_none() {
            let signal = signal.map_or(0, Signal::as_raw);
            self.say_or_kill(CommandOrder::Stop { signal, kill_by: kill_by.as_nanos() });
        }
        self.stopping.get_or_insert(why);
    }

    fn kill(&mut self, why: EndCause) {
        self.stopping.get_or_insert(why);
        if let Some(InitHandle { ended, containment: Containment::Namespace, .. }) = &self.init {
            // Nothing but this is needed, so a guard that has been stopped is not waited for.
            let _ = pidfd_send_signal(ended, Signal::KILL);
        }
        self.say_or_kill(CommandOrder::Kill);
    }

    fn say(&self, order: CommandOrder) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.send(self.epoch, order, &[]).is_ok())
    }

    fn say_or_kill(&mut self, order: CommandOrder) {
        if !self.say(order) {
            self.kill_guard();
        }
    }

    fn kill_guard(&mut self) {
        self.given_up = true;
        self.stopping.get_or_insert(EndCause::Overdue);
        if let Some(guard) = self.guard.as_mut() {
            guard.kill();
        }
    }

    /// Without the guard, the tree's end is that of the process it hangs on.
    async fn guard_died(&mut self, started: Option<Started>, error: io::Error) -> CommandEnd {
        let pid = self.guard.as_ref().and_then(|guard| Pid::from_raw(guard.pid().cast_signed()));
        // Also one that still runs but sends nonsense: it leaves when the channel ends.
        self.kill_guard();
        *self.guard = None;
        let survivor = guard_lost::end(self.init.as_ref(), pid, self.limit.deadline()).await;
        guard_lost::remove_address(self.spec.address.as_ref(), self.limit.deadline()).await;
        // Logged only now: a log that is not read must not delay the kill.
        tracing::warn!(epoch = self.epoch, %error, "the guard is gone, and the command with it");
        if let Some(started) = started {
            let _ = started.send(Err(StartError::Guard(error)));
        }
        let why = self.stopping.filter(|why| *why != EndCause::Overdue).unwrap_or(EndCause::GuardDied);
        let exit = self.in_vain.take().map_or(ExitStatus::KILLED, |(ended, _)| ended.exit);
        CommandEnd { exit, why: survivor.map_or(why, EndCause::Unkillable) }
    }
}

/// Given up half-way (a panic, a runtime that shuts down): the end of the channel is the guard's sign to kill the tree.
impl Drop for CommandTask {
    fn drop(&mut self) {
        if !self.done {
            *self.guard = None;
        }
    }
}

/// Until an init without a namespace has ended.
async fn swept(init: Option<&InitHandle>) {
    match init {
        Some(InitHandle { ended, containment: Containment::Sweep, .. }) => {
            let _ = ended.readable().await;
        }
        _ => std::future::pending().await,
    }
}

async fn until(timer: Option<&mut BootTimer>, deadline: Boot) {
    match timer {
        Some(timer) => timer.until(deadline).await,
        // Out of file descriptors: look at the clock now and then instead.
        None => tokio::time::sleep(deadline.since(boot_now()).min(Duration::from_millis(50))).await,
    }
}
