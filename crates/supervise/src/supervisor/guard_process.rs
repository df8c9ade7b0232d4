//! The guard process as the supervisor holds it.

use crate::channel::{self, Packet};
use crate::guard_protocol::{self, CommandOrder, CommandReport, GuardOrder, GuardReport, VERSION};
use crate::{CommandSpec, ROLE, children};
use bellwether_deadman::ReadableFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running guard and the channel to it. Dropping it is the guard's sign to leave.
#[derive(Debug)]
pub(super) struct GuardProcess {
    /// Dropped before the process is waited for: see [`Reaped`].
    socket: ReadableFd,
    process: Reaped,
}

/// A guard that is waited for when dropped, in the background, so that it leaves no zombie.
#[derive(Debug)]
struct Reaped(Option<Child>);

impl GuardProcess {
    pub(super) fn start(spec: &CommandSpec) -> io::Result<GuardProcess> {
        let (ours, theirs) = channel::pair()?;
        let mut command = Command::new(own_program()?);
        // What `ps` shows; the rest of the line is the command's own.
        command.arg0("bellwether-guard").arg(ROLE).arg(&spec.program);
        if spec.argv.is_empty() {
            command.arg(&spec.program)
        } else {
            command.args(&spec.argv)
        };
        for name in &spec.without_env {
            command.env_remove(name);
        }
        // Its output and errors are ours, and so are the command's.
        command.stdin(Stdio::from(theirs));
        let process = children::start_guard(|| command.spawn(), |process| Some(process.id()))?;
        tracing::debug!(guard = process.id(), "guard started");
        Ok(GuardProcess { socket: ReadableFd::new(ours)?, process: Reaped(Some(process)) })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.0.as_ref().map_or(0, Child::id)
    }

    /// Whether the guard is there, as far as can be told without waiting.
    pub(super) fn is_up(&mut self) -> bool {
        self.process.0.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    /// Orders something about the command of this epoch.
    pub(super) fn send(
        &self,
        epoch: u64,
        what: CommandOrder,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let order = guard_protocol::encode(&GuardOrder { epoch, what });
        channel::send(self.socket.as_fd(), &order, descriptors)
    }

    /// The next report about the command of an epoch, with what came along. Cancel-safe.
    ///
    /// # Errors
    /// No more reports will come: the guard is gone or cannot work, or this process cannot read what it sends.
    pub(super) async fn receive(&self) -> io::Result<(u64, CommandReport, Option<OwnedFd>)> {
        loop {
            let Some(Packet { bytes, descriptors, .. }) = self.socket.read_with(channel::receive).await?
            else {
                return Err(io::Error::other("it has ended, and the command with it"));
            };
            match guard_protocol::decode(&bytes) {
                Some(GuardReport::Ready { version }) if version == VERSION => {}
                Some(GuardReport::Ready { .. }) | None => {
                    return Err(io::Error::other("it is another version of this program"));
                }
                Some(GuardReport::Unable { sentence }) => return Err(io::Error::other(sentence)),
                Some(GuardReport::Command(epoch, report)) => {
                    return Ok((epoch, report, descriptors.into_iter().next()));
                }
            }
        }
    }

    /// Why the guard cannot be told anything: what it said last, or else this error.
    pub(super) async fn last_word(&self, error: io::Error) -> io::Error {
        if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            return error;
        }
        loop {
            if let Err(last) = self.receive().await {
                return last;
            }
        }
    }

    /// Kills the guard, and thereby everything that hangs on it.
    pub(super) fn kill(&mut self) {
        if let Some(process) = &mut self.process.0 {
            let _ = process.kill();
        }
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        let Some(mut process) = self.0.take() else { return };
        if matches!(process.try_wait(), Ok(Some(_))) {
            return;
        }
        // It leaves at once when the channel ends, so the thread does too. Without a thread there is a zombie.
        let waiting = std::thread::Builder::new().name("guard's end".to_owned());
        let _ = waiting.spawn(move || process.wait());
    }
}

/// This very program, even if its file has been replaced or removed since it was started.
fn own_program() -> io::Result<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Ok(link) } else { std::env::current_exe() }
}
