//! Starting init, the process that a command's tree descends from.

use super::Station;
use super::command::Start;
use super::terminal::{Terminal, controls_session};
use crate::Containment;
use crate::channel;
use crate::guard_protocol;
use crate::init::Init;
use crate::init_protocol::InitReport;
use crate::launch::Launch;
use bellwether_deadman::process::{self, Namespace, Pid, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::DupFlags;
use rustix::process::{PidfdFlags, WaitOptions, pidfd_open, pidfd_send_signal, setpgid};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// An init that waits for the order to start COMMAND.
pub(super) struct InitProcess {
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
    pub(super) control: OwnedFd,
    /// It has ended, or is about to: nothing more comes from it.
    pub(super) silent: bool,
    pub(super) containment: Containment,
    /// It is in the supervisor's process group, and COMMAND will be.
    pub(super) shares_group: bool,
    /// Its mounts. The kernel takes milliseconds to take a mount namespace apart, and does it in the last process that
    /// leaves; while this is held, nobody's end waits for it.
    _mounts: Option<File>,
}

/// Makes an init and waits until it is ready, which takes it no longer than a few system calls.
pub(super) fn contain(
    containment: Containment,
    station: &mut Station,
    start: &mut Start,
    terminal: Option<&Terminal>,
    report: &mut OwnedFd,
) -> io::Result<InitProcess> {
    let (mut control, theirs) = channel::pair()?;
    let its_own = (start.stdin.try_clone()?, report.try_clone()?, theirs);
    let namespace = match containment {
        Containment::Namespace => Namespace::New,
        Containment::Sweep => Namespace::Same,
    };
    let pid = process::fork(namespace, || {
        let (stdin, its_report, theirs) = its_own;
        let nothing = &station.nothing;
        // With copies of the guard's ends of channels here, nobody would notice its death; with spare copies of what is
        // passed on to COMMAND, nobody would notice its start and its end.
        let mut forget = vec![&mut station.socket, &mut control, report, &mut start.stdin];
        if containment == Containment::Namespace {
            // It dies with the guard, and its files close before the namespace does: it proves nothing.
            forget.extend(&mut start.proofs);
        }
        for fd in forget {
            if rustix::io::dup3(nothing, fd, DupFlags::CLOEXEC).is_err() {
                return 1;
            }
        }
        let launch = Launch {
            program: &station.program,
            order: &start.order,
            stdin,
            own_group: false,
            terminal: terminal.map(AsFd::as_fd),
            report: its_report,
            parent: None,
        };
        let init = Init { control: theirs, containment, launch };
        init.live()
    })?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    // A COMMAND with the terminal is in its foreground, in a group of its own. If there is a terminal that it was not given, it stays in the
    // supervisor's group: it may read from the terminal whenever that job may, and is stopped and continued with it. Init is in that group
    // only so that COMMAND stays there; all its signals are blocked.
    let group = station.supervisors_group.filter(|_| terminal.is_none() && controls_session());
    let shares_group = group.is_some_and(|group| setpgid(Some(pid), Some(group)).is_ok());
    let mut init_process =
        InitProcess { pid, pidfd, control, silent: false, containment, shares_group, _mounts: None };
    match init_process.first_answer() {
        Some(InitReport::Ready) => {
            init_process._mounts = File::open(format!("/proc/{}/ns/mnt", pid.as_raw_pid())).ok();
            Ok(init_process)
        }
        answer => {
            let _ = pidfd_send_signal(&init_process.pidfd, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            let why = match answer {
                Some(InitReport::Unable(why)) => why,
                _ => "it ended before it was ready".to_owned(),
            };
            Err(io::Error::other(why))
        }
    }
}

impl InitProcess {
    fn first_answer(&self) -> Option<InitReport> {
        let mut fds = [PollFd::new(&self.control, PollFlags::IN)];
        while poll(&mut fds, None).is_err() {}
        channel::receive(self.control.as_fd()).ok()?.and_then(|packet| guard_protocol::decode(&packet.bytes))
    }
}
