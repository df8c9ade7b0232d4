//! Systems without the kernel's help: a command that might outlive its leadership is not started at all.

use crate::{CommandEnd, CommandSpec, Containment, Signal, StartError};
use bellwether_election::Leadership;
use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;

/// What only Linux has.
const MISSING: &str = "a stopped process is not killed at its deadline; a process does not die with its parent; a descendant can leave \
     the process tree; orphans of the process tree are not found";

/// Runs a command, leadership after leadership; on Linux only.
#[derive(Clone, Debug)]
pub struct Supervisor(Infallible);

impl Supervisor {
    /// Not on this system.
    ///
    /// # Errors
    /// Always, with what the system lacks.
    pub fn new(_spec: CommandSpec) -> io::Result<Supervisor> {
        let sentence = format!("a command cannot be tied to a leadership on this system: {MISSING}");
        Err(io::Error::new(io::ErrorKind::Unsupported, sentence))
    }

    /// Not on this system.
    ///
    /// # Errors
    /// Never called.
    pub async fn start(&self, _: &Leadership, _: Vec<OwnedFd>) -> Result<Child, StartError> {
        match self.0 {}
    }

    /// Not on this system.
    ///
    /// # Errors
    /// Never called.
    pub async fn rehearse(&self) -> Result<Containment, StartError> {
        match self.0 {}
    }

    /// There is none.
    pub fn guard_pid(&self) -> Option<u32> {
        match self.0 {}
    }
}

/// Not on this system.
///
/// # Errors
/// Always, with what the system lacks.
pub fn containment_here() -> io::Result<Containment> {
    Err(io::Error::new(io::ErrorKind::Unsupported, MISSING))
}

/// Starts a child of this process.
///
/// # Errors
/// Those of `spawn`.
pub fn start_beside<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    _pid: impl FnOnce(&C) -> Option<u32>,
) -> io::Result<C> {
    spawn()
}

/// Does nothing: no orphans come to this process.
pub async fn reap_orphans() {}

/// A process that keeps the proof that this one lives; on Linux only.
#[derive(Debug)]
pub struct ProofKept(Infallible);

impl ProofKept {
    /// Fails with what the system lacks.
    ///
    /// # Errors
    /// Always.
    pub fn start(
        _: &[std::os::fd::OwnedFd],
        _: Option<std::os::fd::BorrowedFd<'_>>,
        _: bellwether_core::Boot,
    ) -> io::Result<ProofKept> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "it needs Linux"))
    }

    /// Keeps them until then.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn extend(&self, _: bellwether_core::Boot) -> io::Result<()> {
        match self.0 {}
    }

    /// Ends the keeper.
    pub fn release(self) {
        match self.0 {}
    }
}

/// A running command; on Linux only.
#[derive(Debug)]
pub struct Child(Infallible);

impl Child {
    /// The command's process id.
    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    /// What keeps its tree together.
    pub fn containment(&self) -> Containment {
        match self.0 {}
    }

    /// Passes a signal on to the command.
    pub fn signal(&self, _: Signal) {
        match self.0 {}
    }

    /// Whether it is in this process's own group.
    pub fn shares_group(&self) -> bool {
        match self.0 {}
    }

    /// Whether the terminal was lent to it.
    pub fn has_terminal(&self) -> bool {
        match self.0 {}
    }

    /// Stops a tree that has been sent a signal.
    pub fn stop_signalled(&self) {
        match self.0 {}
    }

    /// Stops the whole tree.
    pub fn stop(&self, _: Signal) {
        match self.0 {}
    }

    /// Kills the whole tree at once.
    pub fn kill(&self) {
        match self.0 {}
    }

    /// Waits until what could not be killed is gone too.
    pub async fn outlived(&mut self) {
        match self.0 {}
    }

    /// Waits until the whole tree is gone.
    pub async fn wait(&mut self) -> CommandEnd {
        match self.0 {}
    }
}
