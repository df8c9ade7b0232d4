//! The process between guard and COMMAND: parent of the tree, reaper of its orphans.
//!
//! It is a forked guard, not another program, and has one thread. Two kinds:
//!
//! - **in a PID namespace**, as its first process. It dies with the guard by the parent-death signal, and the
//!   kernel kills the namespace with it; nothing else is needed, so nothing else is done.
//! - **without**, as an adopter of orphans. If the guard is gone, or has not acted in time, init kills and reaps the tree. It holds the
//!   proofs until then, so that even a kill −9 of supervisor and guard does not prove a crash too early. If init itself is stopped, a
//!   kernel deadline ends it: COMMAND dies with it by the parent-death signal, and the rest of the tree becomes the guard's.
//!
//! Init starts COMMAND only when the guard tells it to, which is after the supervisor has heard of init. So if one of them dies in
//! between, no unknown process runs. Init ends when COMMAND has ended and, without a namespace, the rest of the tree is gone.

use crate::channel::{self, Packet};
use crate::guard_protocol;
use crate::init_protocol::{InitOrder, InitReport};
use crate::kill_sequence::{INIT_KILLS, KERNEL_KILLS_INIT};
use crate::launch::Launch;
use crate::tree;
use crate::{Containment, address, advised};
use bellwether_core::Boot;
use bellwether_deadman::process::{self, Namespace, Pid, Signal, SignalFd};
use bellwether_deadman::{KernelDeadline, TimerFd, boot_now};
use bellwether_vip::VirtualAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};

/// Between two passes over a tree that is being killed.
const PASS_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

pub(crate) struct Init<'a> {
    pub(crate) control: OwnedFd,
    pub(crate) containment: Containment,
    /// What COMMAND begins with, except for its group and its parent, which init decides.
    pub(crate) launch: Launch<'a>,
}

impl Init<'_> {
    /// The whole life of an init; returns its exit code, which means nothing.
    pub(crate) fn live(self) -> i32 {
        match self.prepare() {
            Ok((signals, limit)) => self.wait_and_serve(signals, limit),
            Err(error) => {
                answer(&self.control, &InitReport::Unable(advised(&error)));
                1
            }
        }
    }

    fn prepare(&self) -> io::Result<(SignalFd, Option<Limit>)> {
        process::set_name(c"bellw-init");
        let signals = SignalFd::new([Signal::CHILD.as_raw()])?;
        let limit = match self.containment {
            Containment::Namespace => {
                // If the guard has died before this, the channel has ended, and `Go` never comes.
                process::die_with_parent()?;
                process::own_proc()?;
                None
            }
            Containment::Sweep => {
                process::adopt_orphans()?;
                Some(Limit::new(Boot::from_nanos(self.launch.order.deadline))?)
            }
        };
        Ok((signals, limit))
    }

    fn wait_and_serve(self, signals: SignalFd, limit: Option<Limit>) -> i32 {
        answer(&self.control, &InitReport::Ready);
        let address = self.launch.order.address.clone().filter(|_| !self.launch.order.rehearsal);
        let mut serving = Serving {
            control: self.control,
            signals,
            limit,
            containment: self.containment,
            own_group: false,
            command: None,
            orphaned: false,
        };
        match serving.wait_for_go() {
            Some(own_group) => serving.own_group = own_group,
            None => {
                serving.remove_if_orphaned(address.as_ref());
                return 0;
            }
        }
        let parent = (self.containment == Containment::Sweep).then(rustix::process::getpid);
        let launch = Launch { own_group: serving.own_group, parent, ..self.launch };
        // The report and the standard input go with the closure: this process keeps neither.
        match process::fork(Namespace::Same, || launch.exec()) {
            Ok(pid) => serving.command = Some(pid),
            Err(error) => answer(&serving.control, &InitReport::Unable(advised(&error))),
        }
        serving.serve();
        serving.remove_if_orphaned(address.as_ref());
        0
    }
}

/// When an init without a namespace acts without being told, and the kernel if it does not.
struct Limit {
    deadline: Boot,
    act_at: Boot,
    timer: TimerFd,
    kernel: KernelDeadline,
}

impl Limit {
    fn new(deadline: Boot) -> io::Result<Limit> {
        let mut limit =
            Limit { deadline, act_at: deadline, timer: TimerFd::new()?, kernel: KernelDeadline::new()? };
        limit.set(deadline);
        Ok(limit)
    }

    fn set(&mut self, deadline: Boot) {
        self.deadline = deadline;
        self.act_at = INIT_KILLS.at(deadline);
        self.timer.set(Some(self.act_at));
        self.kernel.arm(KERNEL_KILLS_INIT.at(deadline));
    }
}

struct Serving {
    control: OwnedFd,
    signals: SignalFd,
    limit: Option<Limit>,
    containment: Containment,
    /// Whether COMMAND leads a process group of its own.
    own_group: bool,
    /// COMMAND, while it has not been reaped.
    command: Option<Pid>,
    /// The guard is gone.
    orphaned: bool,
}

impl Serving {
    /// Whether COMMAND is to lead a process group; `None` if it is not to be made.
    fn wait_for_go(&mut self) -> Option<bool> {
        loop {
            let mut fds = [PollFd::new(&self.control, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            match self.hear() {
                ControlFlow::Continue(Some(InitOrder::Go { own_group })) => return Some(own_group),
                ControlFlow::Continue(Some(word)) => self.obey(word),
                ControlFlow::Continue(None) => {}
                ControlFlow::Break(()) => return None,
            }
        }
    }

    fn serve(&mut self) {
        let mut killing = false;
        loop {
            let childless = self.reap();
            if self.command.is_none() {
                // In a namespace the kernel kills the rest as this process ends.
                if childless || self.containment == Containment::Namespace {
                    return;
                }
                killing = true;
            }
            if killing {
                if let Some(limit) = &mut self.limit {
                    // An init that is killing the tree must finish, however slow it is.
                    limit.kernel.disarm();
                }
                tree::signal_descendants(Signal::KILL);
            }
            self.wait(killing);
            while let Some(_child_ended) = self.signals.next() {}
            loop {
                match self.hear() {
                    ControlFlow::Continue(Some(word)) => self.obey(word),
                    ControlFlow::Continue(None) => break,
                    // The guard is gone. In a namespace, so is this process at any moment.
                    ControlFlow::Break(()) if self.containment == Containment::Namespace => return,
                    ControlFlow::Break(()) => {
                        killing = true;
                        break;
                    }
                }
            }
            // Only now, since a later instant may have been told.
            killing |= self.limit.as_ref().is_some_and(|limit| boot_now() >= limit.act_at);
        }
    }

    fn wait(&self, killing: bool) {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if killing {
            // Neither channel nor timer: both may be readable for good, and no wait would last.
            let _ = poll(&mut fds, Some(&PASS_EVERY));
            return;
        }
        fds.push(PollFd::new(&self.control, PollFlags::IN));
        fds.extend(self.limit.as_ref().map(|limit| PollFd::new(&limit.timer, PollFlags::IN)));
        let _ = poll(&mut fds, None);
    }

    fn reap(&mut self) -> bool {
        let mut ended = None;
        let childless = tree::reap(|pid, status| {
            if Some(pid) == self.command {
                ended = Some(status);
            }
        });
        self.wake_command();
        if let Some(status) = ended {
            self.command = None;
            answer(&self.control, &InitReport::Ended(status));
        }
        childless
    }

    /// Ctrl-Z on a command in the foreground stops it alone, and no shell gets the terminal back: its parent, which is us,
    /// goes on. A leader is not to be suspended from the keyboard, so its group goes on too. In the supervisor's group all of it stops, and
    /// its shell continues it.
    fn wake_command(&self) {
        let Some(command) = self.command.filter(|_| self.own_group) else { return };
        let stopped = waitid(WaitId::Pid(command), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        if let Ok(Some(stopped)) = stopped
            && stopped.stopping_signal() == Some(Signal::TSTP.as_raw())
        {
            let _ = rustix::process::kill_process_group(command, Signal::CONT);
        }
    }

    /// The next order, if one has arrived; breaks when the channel has ended.
    fn hear(&mut self) -> ControlFlow<(), Option<InitOrder>> {
        match channel::receive(self.control.as_fd()) {
            Ok(Some(Packet { bytes, .. })) => ControlFlow::Continue(guard_protocol::decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ControlFlow::Continue(None),
            Ok(None) | Err(_) => {
                self.orphaned = true;
                ControlFlow::Break(())
            }
        }
    }

    /// Without a namespace, this process outlives the guard: it removes the address that the guard held, and keeps the proofs until then.
    fn remove_if_orphaned(&self, address: Option<&VirtualAddress>) {
        if let (true, Some(limit), Some(address)) = (self.orphaned, &self.limit, address) {
            address::remove_by(address, limit.deadline);
        }
    }

    fn obey(&mut self, word: InitOrder) {
        match word {
            InitOrder::Go { .. } => {}
            InitOrder::Deadline(at) => {
                if let Some(limit) = &mut self.limit {
                    limit.set(Boot::from_nanos(at));
                }
            }
            InitOrder::ToCommand(number) => {
                if let (Some(pid), Some(signal)) = (self.command, Signal::from_named_raw(number)) {
                    let _ = rustix::process::kill_process(pid, signal);
                }
            }
            InitOrder::ToTree(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.signal_tree(signal);
                    // What is stopped could not act on it.
                    self.signal_tree(Signal::CONT);
                }
            }
        }
    }

    fn signal_tree(&self, signal: Signal) {
        match self.containment {
            Containment::Namespace => process::signal_everybody(signal),
            Containment::Sweep => {
                tree::signal_descendants(signal);
            }
        }
    }
}

fn answer(control: &OwnedFd, report: &InitReport) {
    // It fails only if the guard is gone, which the next look at the channel shows.
    let _ = channel::send(control.as_fd(), &guard_protocol::encode(report), &[]);
}
