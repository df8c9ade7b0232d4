//! One command, from the order to start it until its tree is gone.

use super::Station;
use super::address::{GuardedAddress, WantedAddress};
use super::init_process::{InitProcess, contain};
use super::terminal::Terminal;
use crate::channel;
use crate::guard_protocol::{self, CommandOrder, CommandReport, GuardReport, StartOrder};
use crate::init_protocol::{InitOrder, InitReport};
use crate::kill_sequence::{GUARD_KILLS, GUARD_TERMS, KERNEL_KILLS_GUARD};
use crate::launch::MADE;
use crate::tree::{self, Pass};
use crate::{Containment, advised};
use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_deadman::process::{Pid, Signal};
use rustix::process::{WaitOptions, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Between two passes over a tree that is being killed without a namespace.
const PASS_EVERY: Duration = Duration::from_millis(1);
/// Between two passes when all that is left of it cannot be killed.
const PASS_IN_VAIN_EVERY: Duration = Duration::from_millis(100);

/// The order to start a command, with what came along.
pub(super) struct Start {
    pub(super) epoch: u64,
    pub(super) order: StartOrder,
    pub(super) stdin: OwnedFd,
    pub(super) proofs: Vec<OwnedFd>,
}

pub(super) struct GuardedCommand {
    epoch: u64,
    deadline: Boot,
    grace: Duration,
    phase: Phase,
    /// Told to stop because no renewal came.
    overdue: bool,
    init: InitProcess,
    /// Where COMMAND's process reports that it exists, and why it could not execute the program; closed once it has.
    report: Option<OwnedFd>,
    pid: Option<Pid>,
    failure: Option<StartFailure>,
    status: Option<i32>,
    proofs: Vec<OwnedFd>,
    terminal: Option<Terminal>,
    /// Removed before the proofs are closed.
    address: Option<GuardedAddress>,
}

/// Why there is no COMMAND.
enum StartFailure {
    /// The kernel refused to run it.
    NotRunnable(i32),
    /// The process that was to become it could not be made, or not be prepared.
    NotMade(String),
}

/// How far the end of a command has come. It never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Told to stop, and killed at that instant or earlier.
    Stopping(Boot),
    Killing,
    /// What is left cannot be killed, which has been reported.
    InVain,
    Gone,
}

impl GuardedCommand {
    /// Arms the kernel deadline, then makes the processes. `None` if that failed, which has been reported.
    pub(super) fn begin(station: &mut Station, start: Start) -> Option<GuardedCommand> {
        let epoch = start.epoch;
        let failed = |sentence| GuardReport::Command(epoch, CommandReport::Failed { errno: None, sentence });
        let (deadline, grace) =
            (Boot::from_nanos(start.order.deadline), Duration::from_nanos(start.order.grace));
        if boot_now() >= GUARD_TERMS.at(deadline) - grace {
            let sentence = "too little time is left of the leadership to start the command".to_owned();
            station.report(&failed(sentence), &[]);
            return None;
        }
        let wanted = WantedAddress::of(&start.order);
        station.kernel.arm(KERNEL_KILLS_GUARD.at(deadline));
        match GuardedCommand::make(station, start, deadline, grace) {
            Ok((mut run, refused)) => {
                run.limit(station);
                match GuardedAddress::take(station, &mut run.init, run.report.as_mut(), wanted) {
                    Ok(address) => run.address = address,
                    Err(sentence) => {
                        run.abandon(station);
                        let report = CommandReport::NoAddress { sentence };
                        station.report(&GuardReport::Command(epoch, report), &[]);
                        return None;
                    }
                }
                let namespace = run.init.containment == Containment::Namespace;
                let report = CommandReport::Contained { init: run.init.pid.as_raw_pid(), namespace, refused };
                station.report(&GuardReport::Command(epoch, report), &[&run.init.pidfd]);
                run.tell(InitOrder::Go { own_group: !run.init.shares_group });
                Some(run)
            }
            Err(error) => {
                station.kernel.disarm();
                let error = advised(&error);
                station.report(
                    &failed(format!("cannot make the process that contains the command: {error}")),
                    &[],
                );
                None
            }
        }
    }

    /// Also why there is no PID namespace, if one was wanted.
    fn make(
        station: &mut Station,
        mut start: Start,
        deadline: Boot,
        grace: Duration,
    ) -> io::Result<(GuardedCommand, Option<String>)> {
        let lend = |_| Terminal::lend(&start.stdin, station.supervisors_group);
        let terminal = (!start.order.rehearsal).then_some(()).and_then(lend);
        let (report, mut their_report) = channel::pair()?;
        rustix::net::sockopt::set_socket_passcred(&report, true)?;
        let wanted = start.order.namespace;
        let mut contain =
            |containment| contain(containment, station, &mut start, terminal.as_ref(), &mut their_report);
        let (init, refused) = match wanted.then(|| contain(Containment::Namespace)) {
            Some(Ok(init)) => (init, None),
            Some(Err(error)) => (contain(Containment::Sweep)?, Some(error.to_string())),
            None => (contain(Containment::Sweep)?, None),
        };
        let run = GuardedCommand {
            epoch: start.epoch,
            deadline,
            grace,
            phase: Phase::Running,
            overdue: false,
            init,
            report: Some(report),
            pid: None,
            failure: None,
            status: None,
            proofs: start.proofs,
            terminal,
            address: None,
        };
        Ok((run, refused))
    }

    /// Ends an init that has not been told to start COMMAND.
    fn abandon(self, station: &mut Station) {
        let _ = pidfd_send_signal(&self.init.pidfd, Signal::KILL);
        let _ = rustix::process::waitpid(Some(self.init.pid), WaitOptions::empty());
        station.kernel.disarm();
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// What to wake up for.
    pub(super) fn watched(&self) -> Vec<BorrowedFd<'_>> {
        // Not an init that has ended, nor its channel: both stay readable. The ends of orphans and the timer wake us.
        let killing = matches!(self.phase, Phase::Killing | Phase::InVain);
        if killing && self.init.containment == Containment::Sweep {
            return Vec::new();
        }
        let report = self.report.as_ref().map(AsFd::as_fd);
        let control = (!self.init.silent).then_some(self.init.control.as_fd());
        let address = self.address.as_ref().map(GuardedAddress::watched);
        [Some(self.init.pidfd.as_fd()), control, report, address].into_iter().flatten().collect()
    }

    /// When to wake up at the latest.
    pub(super) fn due(&self, now: Boot) -> Option<Boot> {
        let address = self.address.as_ref().and_then(GuardedAddress::due);
        [self.command_due(now), address].into_iter().flatten().min()
    }

    fn command_due(&self, now: Boot) -> Option<Boot> {
        match (self.phase, self.init.containment) {
            (Phase::Running, _) => Some(self.stop_at()),
            (Phase::Stopping(by), _) => Some(by.min(self.kill_at())),
            (Phase::Killing, Containment::Sweep) => Some(now + PASS_EVERY),
            (Phase::InVain, _) => Some(now + PASS_IN_VAIN_EVERY),
            (Phase::Killing, Containment::Namespace) | (Phase::Gone, _) => None,
        }
    }

    fn kill_at(&self) -> Boot {
        GUARD_KILLS.at(self.deadline)
    }

    fn stop_at(&self) -> Boot {
        GUARD_TERMS.at(self.deadline) - self.grace
    }

    /// Who ends the tree if this process does not: the kernel by ending us, or else init.
    fn limit(&self, station: &mut Station) {
        match self.init.containment {
            Containment::Namespace => station.kernel.arm(KERNEL_KILLS_GUARD.at(self.deadline)),
            Containment::Sweep => station.kernel.disarm(),
        }
    }

    pub(super) fn obey(&mut self, station: &mut Station, order: CommandOrder) {
        match order {
            CommandOrder::Start(_) => {}
            // A command that was told to stop does not run on. In a planned end, a renewal moves the deadline of the kill. A command
            // that was stopped because no renewal came is killed in time even if one comes after all.
            CommandOrder::Extend { deadline }
                if self.phase == Phase::Running
                    || matches!(self.phase, Phase::Stopping(_)) && !self.overdue =>
            {
                self.deadline = Boot::from_nanos(deadline);
                self.limit(station);
                if self.init.containment == Containment::Sweep {
                    self.tell(InitOrder::Deadline(deadline));
                }
                let said = self.address.as_mut().and_then(|address| address.extend(self.deadline));
                self.report_address(station, said);
            }
            CommandOrder::Extend { .. } => {}
            CommandOrder::Signal(signal) => self.tell(InitOrder::ToCommand(signal)),
            CommandOrder::Stop { signal, kill_by } => {
                if matches!(self.phase, Phase::Running | Phase::Stopping(_)) {
                    self.tell(InitOrder::ToTree(signal));
                    self.stopping(Boot::from_nanos(kill_by));
                }
            }
            CommandOrder::Kill => self.kill(),
        }
    }

    fn stopping(&mut self, by: Boot) {
        let earlier = if let Phase::Stopping(earlier) = self.phase { earlier } else { Boot::FOREVER };
        self.phase = Phase::Stopping(by.min(earlier));
    }

    /// Takes note of what has happened, and does what is due.
    pub(super) fn look(&mut self, station: &mut Station, now: Boot) {
        self.hear_command(station);
        self.hear_init();
        if self.phase == Phase::Running && now >= self.stop_at() {
            self.overdue = true;
            self.tell(InitOrder::ToTree(Signal::TERM.as_raw()));
            self.stopping(self.kill_at());
        }
        if let Phase::Stopping(by) = self.phase
            && now >= by.min(self.kill_at())
        {
            self.kill();
        }
        self.reap(station);
        let said = self.address.as_mut().and_then(|address| address.look(now));
        self.report_address(station, said);
    }

    fn report_address(&self, station: &Station, said: Option<String>) {
        if let Some(sentence) = said {
            self.report(station, CommandReport::Address { sentence });
        }
    }

    /// Kills the whole tree.
    pub(super) fn kill(&mut self) {
        if matches!(self.phase, Phase::Running | Phase::Stopping(_)) {
            self.phase = Phase::Killing;
            if self.init.containment == Containment::Namespace {
                let _ = pidfd_send_signal(&self.init.pidfd, Signal::KILL);
            }
        }
    }

    fn reap(&mut self, station: &Station) {
        match self.init.containment {
            Containment::Namespace => {
                // It counts as ended when everything in its namespace has.
                let init = self.init.pid;
                if let Ok(Some(_)) | Err(rustix::io::Errno::CHILD) =
                    rustix::process::waitpid(Some(init), WaitOptions::NOHANG)
                {
                    self.gone();
                }
            }
            Containment::Sweep => {
                let killing = matches!(self.phase, Phase::Killing | Phase::InVain);
                let pass = if killing { tree::signal_descendants(Signal::KILL) } else { Pass::default() };
                let init = self.init.pid;
                let mut init_ended = false;
                if tree::reap(|pid, _| init_ended |= pid == init) {
                    self.gone();
                } else if init_ended {
                    // Killed before it had killed its children, which are ours now.
                    self.kill();
                } else if let (Phase::Killing, Some(survivor)) = (self.phase, pass.unkillable()) {
                    self.phase = Phase::InVain;
                    self.report(station, CommandReport::Unkillable { survivor, status: self.status });
                }
            }
        }
    }

    fn gone(&mut self) {
        // What it said last may have come between the last look and its end.
        self.hear_init();
        self.phase = Phase::Gone;
    }

    /// Removes the address, cancels the kernel deadline, takes the terminal back, closes the proofs, and only then reports the end.
    pub(super) fn finish(mut self, station: &mut Station) {
        self.hear_command(station);
        if let Some(address) = self.address.take() {
            address.release();
        }
        station.kernel.disarm();
        drop(self.terminal.take());
        self.proofs.clear();
        let report = match (self.failure.take(), self.pid) {
            (Some(StartFailure::NotRunnable(errno)), _) => {
                CommandReport::Failed { errno: Some(errno), sentence: String::new() }
            }
            (Some(StartFailure::NotMade(sentence)), _) => CommandReport::Failed { errno: None, sentence },
            (None, Some(_)) => {
                let status = self.status.unwrap_or(Signal::KILL.as_raw());
                CommandReport::Ended { status, overdue: self.overdue }
            }
            (None, None) => {
                let sentence = "the command was killed before it could begin".to_owned();
                CommandReport::Failed { errno: None, sentence }
            }
        };
        self.report(station, report);
    }

    fn report(&self, station: &Station, report: CommandReport) {
        station.report(&GuardReport::Command(self.epoch, report), &[]);
    }

    fn hear_command(&mut self, station: &Station) {
        while let Some(report) = &self.report {
            match channel::receive(report.as_fd()) {
                Ok(Some(packet)) if packet.bytes == MADE => self.pid = packet.sender,
                Ok(Some(packet)) => {
                    let errno = packet.bytes.try_into().ok().map(i32::from_ne_bytes);
                    self.failure = errno.map(StartFailure::NotRunnable);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => {
                    // Closed by becoming COMMAND, unless it said otherwise.
                    self.report = None;
                    if let (Some(pid), None) = (self.pid, &self.failure) {
                        let pid = pid.as_raw_pid();
                        let (shares_group, has_terminal) = (self.init.shares_group, self.terminal.is_some());
                        self.report(station, CommandReport::Started { pid, shares_group, has_terminal });
                    }
                }
            }
        }
    }

    fn hear_init(&mut self) {
        loop {
            match channel::receive(self.init.control.as_fd()) {
                Ok(Some(packet)) => match guard_protocol::decode(&packet.bytes) {
                    Some(InitReport::Ended(status)) => {
                        self.status = Some(status);
                        if self.init.containment == Containment::Sweep {
                            // Init kills too, but only this process can report what cannot be killed.
                            self.kill();
                        }
                    }
                    Some(InitReport::Unable(why)) => self.failure = Some(StartFailure::NotMade(why)),
                    Some(InitReport::Ready) | None => {}
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => {
                    self.init.silent = true;
                    return;
                }
            }
        }
    }

    fn tell(&self, word: InitOrder) {
        // An init that is gone is noticed by its end; one that does not read is killed in time.
        let _ = channel::send(self.init.control.as_fd(), &guard_protocol::encode(&word), &[]);
    }
}
