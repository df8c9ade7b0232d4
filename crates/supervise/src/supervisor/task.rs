//! One command, watched from the supervisor.

use super::aftermath::{self, Init, Rest};
use super::link::Link;
use crate::kill_sequence::{GUARD_KILLS, PROCESS_1_ENDS, SUPERVISOR_KILLS_GUARD, SUPERVISOR_SWEEPS};
use crate::message::{Order, Report};
use crate::{Containment, Ended, Exit, NotRunnable, Spec, StartError, Why};
use bellwether_core::Boot;
use bellwether_deadman::process::{self, IgnoredSignals, Pid, Signal};
use bellwether_deadman::{BootTimer, Pid1Deadline, Pid1Spared, ReadableFd, boot_now};
use bellwether_election::{Leadership, Over, Standing, Standings};
use rustix::process::pidfd_send_signal;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};

/// How long it has to tell that its init has ended. Long enough for one that waits for a processor: given up, it takes the exit code of
/// the command with it.
const TELL_WITHIN: Duration = Duration::from_millis(200);

/// What the holder of the handle wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
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

pub(super) struct Task {
    link: OwnedMutexGuard<Option<Link>>,
    spec: Arc<Spec>,
    epoch: u64,
    env: Vec<(String, String)>,
    /// Whether the rehearsal had a PID namespace.
    namespace_announced: bool,
    standing: Standings,
    /// The last that the guard was told.
    deadline: Boot,
    /// Until it runs, the command has what was left of the leadership when it was ordered; renewals do not count.
    start_by: Option<Boot>,
    wishes: mpsc::UnboundedReceiver<Wish>,
    /// The handle is gone, and no wish will come any more.
    dropped: bool,
    /// Why the tree is being stopped, once it is.
    stopping: Option<Why>,
    init: Option<Init>,
    /// For a tree that the kernel does not kill by itself: whoever else is stopped, process 1 is there.
    pid1: Option<Pid1Deadline>,
    /// When a guard without a namespace should have told that its init has ended.
    tell_by: Option<Boot>,
    /// The guard has been killed, or is about to be found dead.
    given_up: bool,
    /// How it ends if what cannot be killed has not ended by then.
    in_vain: Option<(Ended, Boot)>,
    /// Nothing of the command is left.
    done: bool,
}

impl Task {
    pub(super) fn new(
        link: OwnedMutexGuard<Option<Link>>,
        spec: Arc<Spec>,
        namespace_announced: bool,
        leadership: &Leadership,
        standing: Standings,
        deadline: Boot,
        wishes: mpsc::UnboundedReceiver<Wish>,
    ) -> Task {
        let epoch = leadership.epoch().get();
        let env = [
            ("BELLWETHER_ELECTION", leadership.election().as_str()),
            ("BELLWETHER_ID", leadership.id().as_str()),
            ("BELLWETHER_EPOCH", &epoch.to_string()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Task {
            link,
            spec,
            epoch,
            env,
            namespace_announced,
            standing,
            deadline,
            wishes,
            start_by: Some(deadline),
            dropped: false,
            done: false,
            stopping: None,
            init: None,
            pid1: Pid1Deadline::new(),
            tell_by: None,
            given_up: false,
            in_vain: None,
        }
    }

    /// Sees the command through. When this returns, nothing of it is left but that.
    pub(super) async fn run(mut self, proofs: Vec<OwnedFd>, started: Started) -> (Ended, Option<Rest>) {
        let ended = self.watch(proofs, started).await;
        self.done = !matches!(ended.why, Why::Unkillable(_));
        let rest = (!self.done).then(|| Rest {
            epoch: self.epoch,
            // A next command gets another guard.
            link: self.link.take(),
            init: self.init.take(),
            standing: self.standing.clone(),
            pid1: self.pid1.take(),
        });
        (ended, rest)
    }

    async fn watch(&mut self, proofs: Vec<OwnedFd>, started: Started) -> Ended {
        let mut started = Some(started);
        self.tell_pid1();
        if let Err(error) = self.order_start(&proofs) {
            let error = self.link.as_ref().expect("linked").last_word(error).await;
            return self.guard_died(started, error).await;
        }
        // The guard has its own copies, and this process whatever they were copied from.
        drop(proofs);
        let mut timer = BootTimer::new().ok();
        loop {
            let link = self.link.as_ref().expect("linked until the guard has died");
            let limit = self.limit();
            tokio::select! {
                report = link.receive() => match report {
                    Ok((report, descriptor)) => {
                        if let Some(ended) = self.hear(report, descriptor, &mut started) {
                            return ended;
                        }
                    }
                    Err(error) => return self.guard_died(started, error).await,
                },
                () = self.standing.changed() => self.follow(),
                () = swept(self.init.as_ref()), if self.tell_by.is_none() => {
                    // A guard that has been stopped gets no word of renewals: its init has acted in its place.
                    self.tell_by = Some(boot_now() + TELL_WITHIN);
                }
                wish = self.wishes.recv(), if !self.dropped => {
                    // Without a handle there is nobody to run it for.
                    self.dropped = wish.is_none();
                    self.grant(wish.unwrap_or(Wish::Kill));
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

    /// When the guard, or whoever acts in its place, has to be done.
    fn limit(&self) -> Boot {
        if self.given_up {
            return Boot::FOREVER;
        }
        if let Some((_, until)) = self.in_vain {
            return until;
        }
        let limit = self.start_by.unwrap_or(self.deadline).min(self.deadline);
        let swept = self.init.as_ref().is_some_and(|init| init.containment == Containment::Sweep);
        let limit = if swept { &SUPERVISOR_SWEEPS } else { &SUPERVISOR_KILLS_GUARD }.at(limit);
        self.tell_by.map_or(limit, |by| limit.min(by))
    }

    fn tell_pid1(&mut self) {
        if let Some(pid1) = &mut self.pid1 {
            pid1.set(PROCESS_1_ENDS.at(self.deadline));
        }
    }

    fn order_start(&self, proofs: &[OwnedFd]) -> io::Result<()> {
        let order = Order::Start {
            epoch: self.epoch,
            env: self.env.clone(),
            deadline: self.deadline.as_nanos(),
            grace: self.spec.grace.as_nanos().try_into().unwrap_or(u64::MAX),
            namespace: self.spec.namespace,
            rehearsal: false,
            ignored: IgnoredSignals::at_start().bits(),
            listens: self.spec.listens,
        };
        let stdin = io::stdin();
        let descriptors: Vec<_> =
            std::iter::once(stdin.as_fd()).chain(proofs.iter().map(AsFd::as_fd)).collect();
        self.link.as_ref().expect("linked").send(&order, &descriptors)
    }

    /// The end, if this report is about it.
    fn hear(
        &mut self,
        report: Report,
        descriptor: Option<OwnedFd>,
        started: &mut Option<Started>,
    ) -> Option<Ended> {
        match report {
            Report::Contained { epoch, init, namespace, refused } if epoch == self.epoch => {
                let containment = if namespace { Containment::Namespace } else { Containment::Sweep };
                if containment == Containment::Namespace {
                    self.pid1 = None;
                } else {
                    // Should guard and init be killed, what they leave comes to us. It cannot fail on a kernel that is
                    // not broken, and then the tree's end is still that of its init.
                    let _ = process::adopt_orphans();
                    if let Some(error) = refused.filter(|_| self.namespace_announced) {
                        tracing::warn!(
                            epoch, %error, "no PID namespace could be made this time: {}", containment.promise()
                        );
                    }
                }
                self.init = descriptor.and_then(|pidfd| {
                    let pid = Pid::from_raw(init);
                    let spared = pid.and_then(Pid1Spared::alone);
                    Some(Init { pid, ended: ReadableFd::new(pidfd).ok()?, containment, _spared: spared })
                });
                None
            }
            Report::Started { epoch, pid, shares_group, has_terminal } if epoch == self.epoch => {
                let containment = self.init.as_ref().map_or(Containment::Sweep, |init| init.containment);
                self.start_by = None;
                tracing::debug!(epoch, pid, %containment, "command started");
                // If nobody waits any more, the handle is gone, and its channel with it: that kills the command.
                let pid = pid.cast_unsigned();
                let running = Running { pid, containment, shares_group, has_terminal };
                let _ = started.take().map(|started| started.send(Ok(running)));
                None
            }
            Report::Failed { epoch, errno, sentence } if epoch == self.epoch => {
                let error = match (errno, self.stopping) {
                    (Some(errno), _) => {
                        StartError::NotRunnable(NotRunnable::from_errno(&self.spec.program, errno))
                    }
                    (None, Some(Why::Over(over))) => StartError::Over(over),
                    (None, _) if boot_now() >= self.deadline => StartError::Over(Over::Expired),
                    (None, _) => StartError::Guard(io::Error::other(sentence)),
                };
                let _ = started.take().map(|started| started.send(Err(error)));
                Some(Ended { exit: Exit::Code(126), why: Why::ByItself })
            }
            Report::Ended { epoch, status, overdue } if epoch == self.epoch => {
                let exit = exit_of(status);
                let why = self.stopping.unwrap_or(if overdue { Why::Overdue } else { Why::ByItself });
                Some(Ended { exit, why })
            }
            Report::Unkillable { epoch, survivor, status } if epoch == self.epoch => {
                // At once: until it has ended, nobody else leads for the rest of the lease. It may do so by itself, which the guard tells then.
                tracing::error!(
                    "{survivor} was started by the command and cannot be killed: it has more rights than bellwether. End it by \
                     hand. Nothing is released before it has ended; others take over when the lease has run out"
                );
                let exit = status.map_or(Exit::KILLED, exit_of);
                self.in_vain = Some((Ended { exit, why: Why::Unkillable(survivor) }, self.deadline));
                None
            }
            // Of an earlier command, or a greeting.
            _ => None,
        }
    }

    fn follow(&mut self) {
        match self.standing.now() {
            Standing::Until(deadline) => self.extend(deadline),
            Standing::Over { how, by } => {
                let span = if how.is_planned() { self.spec.planned() } else { self.spec.grace };
                self.stop(Why::Over(how), Some(Signal::TERM), span, GUARD_KILLS.at(by));
                self.extend(by);
            }
        }
    }

    /// The leadership protects the command until then. One that has been told to stop is still killed when its time is over.
    fn extend(&mut self, deadline: Boot) {
        if deadline > self.deadline {
            self.deadline = deadline;
            self.tell_pid1();
            // If it cannot be said, the command ends earlier than it had to.
            self.say(&Order::Extend { epoch: self.epoch, deadline: deadline.as_nanos() });
        }
    }

    fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Signal(signal) => {
                self.say(&Order::Signal { epoch: self.epoch, signal: signal.as_raw() });
            }
            Wish::Stop(signal) => {
                self.stop(Why::Asked, signal, self.spec.planned(), GUARD_KILLS.at(self.deadline));
            }
            Wish::Kill => self.kill(Why::Asked),
        }
    }

    /// The signal is sent once: a leadership that is let go because its command was asked to stop brings no second one.
    /// The guard kills after `span`, or before the deadline if that comes first, which renewals move.
    fn stop(&mut self, why: Why, signal: Option<Signal>, span: Duration, latest: Boot) {
        let now = boot_now();
        let kill_by = now + span;
        if kill_by.min(latest) <= now {
            return self.kill(why);
        }
        if self.stopping.is_none() {
            let signal = signal.map_or(0, Signal::as_raw);
            self.say_or_kill(&Order::Stop { epoch: self.epoch, signal, kill_by: kill_by.as_nanos() });
        }
        self.stopping.get_or_insert(why);
    }

    fn kill(&mut self, why: Why) {
        self.stopping.get_or_insert(why);
        if let Some(Init { ended, containment: Containment::Namespace, .. }) = &self.init {
            // Nothing but this is needed, so a guard that has been stopped is not waited for.
            let _ = pidfd_send_signal(ended, Signal::KILL);
        }
        self.say_or_kill(&Order::Kill { epoch: self.epoch });
    }

    fn say(&self, order: &Order) -> bool {
        self.link.as_ref().is_some_and(|link| link.send(order, &[]).is_ok())
    }

    fn say_or_kill(&mut self, order: &Order) {
        if !self.say(order) {
            self.kill_guard();
        }
    }

    fn kill_guard(&mut self) {
        self.given_up = true;
        self.stopping.get_or_insert(Why::Overdue);
        if let Some(link) = self.link.as_mut() {
            link.kill();
        }
    }

    /// Without the guard, the tree's end is that of the process it hangs on.
    async fn guard_died(&mut self, started: Option<Started>, error: io::Error) -> Ended {
        let guard = self.link.as_ref().and_then(|link| Pid::from_raw(link.pid().cast_signed()));
        // Also if it only raves: the end of the channel is its sign to leave.
        self.kill_guard();
        *self.link = None;
        let survivor = aftermath::end(self.init.as_ref(), guard, self.deadline).await;
        // Only now: whoever reads the log must not hold up what has to be done.
        tracing::warn!(epoch = self.epoch, %error, "the guard is gone, and the command with it");
        if let Some(started) = started {
            let _ = started.send(Err(StartError::Guard(error)));
        }
        let why = self.stopping.filter(|why| *why != Why::Overdue).unwrap_or(Why::GuardDied);
        let exit = self.in_vain.take().map_or(Exit::KILLED, |(ended, _)| ended.exit);
        Ended { exit, why: survivor.map_or(why, Why::Unkillable) }
    }
}

/// Given up half-way (a panic, a runtime that shuts down): the end of the channel is the guard's sign to kill the tree.
impl Drop for Task {
    fn drop(&mut self) {
        if !self.done {
            *self.link = None;
        }
    }
}

fn exit_of(status: i32) -> Exit {
    let number = (status & 0x7f) as u8;
    if number == 0 { Exit::Code((status >> 8) as u8) } else { Exit::Signal(number) }
}

/// Until an init without a namespace has ended.
async fn swept(init: Option<&Init>) {
    match init {
        Some(Init { ended, containment: Containment::Sweep, .. }) => {
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
