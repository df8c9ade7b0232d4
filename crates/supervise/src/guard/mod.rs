//! The guard: a process of one thread that outlives its supervisor until the command's tree is gone.
//!
//! ```text
//!            Start                     tree reaped
//!  idle ───────────────▶ running ──────────────────▶ idle
//!    │                    │   │                        └ address removed, proofs closed, then `Ended`
//!    │ supervisor gone    │   └ supervisor gone: KILL at once, reap, remove the address, close the proofs, leave
//!    ▼                    └ no renewal: TERM, KILL, at their times
//!  leaves
//! ```
//!
//! It waits for five things at once: orders, its init's end, what init and COMMAND report, news of its address, and the time. It never waits for
//! any of them alone, and never for the supervisor to read. Every signal is blocked, so only SIGKILL ends it early, such as that of
//! the kernel deadline. It has a kernel deadline only with a PID namespace, where the kernel then kills the whole tree. Without one,
//! the guard itself has to kill the tree, even if it is late.

mod address;
mod command;
mod init_process;
mod terminal;

use crate::advised;
use crate::channel::{self, Packet};
use crate::guard_protocol::{self, CommandOrder, GuardOrder, GuardReport, VERSION};
use crate::launch::Program;
use bellwether_deadman::process::{self, Pid, Signal, SignalFd};
use bellwether_deadman::{KernelDeadline, TimerFd, boot_now};
use command::{GuardedCommand, Start};
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Bad usage, as the command has it.
const USAGE: i32 = 64;
/// The guard could not be set up.
const BUG: i32 = 70;

/// A guard's whole life; returns its exit code.
pub(crate) fn main(args: Vec<OsString>) -> i32 {
    let mut args = args.into_iter();
    let (Some(path), true) = (args.next(), channel::is_channel(io::stdin())) else {
        eprintln!("`__guard` is internal: bellwether starts its own guard with it");
        return USAGE;
    };
    match Guard::new(Program { path: PathBuf::from(path), argv: args.collect() }) {
        Ok(guard) => guard.live(),
        Err(error) => {
            // The supervisor logs it.
            let report = guard_protocol::encode(&GuardReport::Unable { sentence: advised(&error) });
            let _ = channel::send(io::stdin(), &report, &[]);
            BUG
        }
    }
}

/// What a guard has for its whole life, run after run.
struct Station {
    socket: OwnedFd,
    program: Program,
    kernel: KernelDeadline,
    /// To put in the place of descriptors that a forked process must not keep.
    nothing: OwnedFd,
    /// The supervisor's process group, which has the terminal between commands.
    supervisors_group: Option<Pid>,
}

struct Guard {
    station: Station,
    timer: TimerFd,
    /// Wakes us when a child has ended.
    children: SignalFd,
    supervisor_gone: bool,
    run: Option<GuardedCommand>,
}

impl Guard {
    fn new(program: Program) -> io::Result<Guard> {
        // Here and in every init, which is forked from here.
        bellwether_deadman::never_wait_for_stderr();
        process::block_all_signals();
        // If SIGCHLD is ignored, the exit status of children is lost.
        process::default_signals();
        process::set_name(c"bellw-guard");
        let supervisors_group = process::group();
        // Out of the supervisor's group: what is typed, and what is sent to that group, is not for the guard. The
        // session stays, for the sake of the terminal.
        rustix::process::setpgid(None, None)?;
        process::adopt_orphans()?;
        let kernel = KernelDeadline::new()?;
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        let nothing = OwnedFd::from(std::fs::File::options().read(true).write(true).open("/dev/null")?);
        let station = Station { socket, program, kernel, nothing, supervisors_group };
        let children = SignalFd::new([Signal::CHILD.as_raw()])?;
        let timer = TimerFd::new()?;
        // Last: until here it is where a failure is told.
        rustix::stdio::dup2_stdin(&station.nothing)?;
        Ok(Guard { station, timer, children, supervisor_gone: false, run: None })
    }

    fn live(mut self) -> i32 {
        self.station.report(&GuardReport::Ready { version: VERSION }, &[]);
        while !(self.supervisor_gone && self.run.is_none()) {
            self.wait();
            self.hear();
            if let Some(run) = &mut self.run {
                run.look(&mut self.station, boot_now());
            }
            if let Some(run) = self.run.take_if(|run| run.is_over()) {
                run.finish(&mut self.station);
            }
        }
        0
    }

    fn wait(&mut self) {
        self.timer.set(self.run.as_ref().and_then(|run| run.due(boot_now())));
        let mut fds =
            vec![PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.children, PollFlags::IN)];
        if !self.supervisor_gone {
            fds.push(PollFd::new(&self.station.socket, PollFlags::IN));
        }
        let watched = self.run.as_ref().map(GuardedCommand::watched).unwrap_or_default();
        fds.extend(watched.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        // It fails only without memory, and then what is due is done all the same.
        let _ = poll(&mut fds, None);
        while self.children.next().is_some() {}
    }

    fn hear(&mut self) {
        while !self.supervisor_gone {
            match channel::receive(self.station.socket.as_fd()) {
                Ok(Some(packet)) => self.obey(packet),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The supervisor is gone, or its messages cannot be read, which is as bad.
                end @ (Ok(None) | Err(_)) => {
                    if let Err(error) = end {
                        self.station.report(&GuardReport::Unable { sentence: error.to_string() }, &[]);
                    }
                    self.supervisor_gone = true;
                    if let Some(run) = &mut self.run {
                        run.kill();
                    }
                }
            }
        }
    }

    fn obey(&mut self, packet: Packet) {
        let Some(GuardOrder { epoch, what }) = guard_protocol::decode(&packet.bytes) else { return };
        match (what, &mut self.run) {
            (CommandOrder::Start(order), None) => {
                let mut descriptors = packet.descriptors.into_iter();
                let Some(stdin) = descriptors.next() else { return };
                let start = Start { epoch, order, stdin, proofs: descriptors.collect() };
                self.run = GuardedCommand::begin(&mut self.station, start);
            }
            (what, Some(run)) if run.epoch() == epoch => run.obey(&mut self.station, what),
            // For a command that has ended meanwhile; or a start too early, since the supervisor waits for the end of the last command.
            (_, _) => {}
        }
    }
}

impl Station {
    fn report(&self, report: &GuardReport, descriptors: &[&OwnedFd]) {
        let descriptors: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
        // A supervisor that is gone is noticed by its silence.
        let _ = channel::send(self.socket.as_fd(), &guard_protocol::encode(report), &descriptors);
    }
}
