//! Who is at the other end of a connection.

use std::os::fd::OwnedFd;

use bellwether_deadman::ReadableFd;
use tokio::net::UnixStream;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody on a network, even if that is loopback.
    Network,
    /// A process of this machine that may write to the socket's file, by its id where that means something here.
    Local(Option<i32>),
}

impl Peer {
    /// Whoever connected to this socket.
    pub(crate) fn of(stream: &UnixStream) -> Peer {
        let pid = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
        // One of another PID namespace is 0.
        Peer::Local(pid.filter(|pid| *pid > 0))
    }

    pub(crate) fn is_local(self) -> bool {
        matches!(self, Peer::Local(_))
    }

    /// The end of its process, to wait for; `None` where it cannot be seen.
    ///
    /// If the process has ended and its id is that of another by now, this waits for the end of the other: later, and never too early.
    pub(crate) fn process(self) -> Option<ReadableFd> {
        let Peer::Local(Some(pid)) = self else { return None };
        ReadableFd::new(pidfd(pid)?).ok()
    }
}

#[cfg(target_os = "linux")]
fn pidfd(pid: i32) -> Option<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn pidfd(_: i32) -> Option<OwnedFd> {
    None
}
