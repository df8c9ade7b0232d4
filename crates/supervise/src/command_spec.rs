//! What to run, and how long it gets to stop.

use bellwether_vip::VirtualAddress;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// The most descriptors that one guard keeps as proof.
pub const PROOFS_MAX: usize = 16;

/// A command and the terms on which it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<OsString>,
    pub(crate) grace: Duration,
    pub(crate) stop_timeout: Option<Duration>,
    pub(crate) without_env: Vec<OsString>,
    pub(crate) namespace: bool,
    pub(crate) listens: bool,
    pub(crate) address: Option<VirtualAddress>,
}

impl CommandSpec {
    /// Runs the file `program` (see [`find_command`](crate::find_command)) with these arguments, of which the first is
    /// the name that the program sees as its own. Never through a shell.
    pub fn new(
        program: impl Into<PathBuf>,
        argv: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> CommandSpec {
        CommandSpec {
            program: program.into(),
            argv: argv.into_iter().map(Into::into).collect(),
            grace: Duration::ZERO,
            stop_timeout: None,
            without_env: Vec::new(),
            namespace: true,
            listens: false,
            address: None,
        }
    }

    /// Runs nothing but a process of this program that waits to be stopped: for a leadership whose only work is an
    /// [`address`](CommandSpec::address).
    pub fn idle() -> CommandSpec {
        CommandSpec::new("/proc/self/exe", ["bellwether-idle", crate::IDLE_ROLE])
    }

    /// Holds this address while the command runs: from before its start until its whole tree is gone. A leadership needs a ttl of at least
    /// [`TTL_MIN`](bellwether_vip::TTL_MIN) for it.
    pub fn address(mut self, address: VirtualAddress) -> CommandSpec {
        self.address = Some(address);
        self
    }

    /// The time between TERM and KILL when the deadline forces the end: the `work_grace` of the election's settings. Default: zero, which
    /// kills at once.
    pub fn grace(mut self, grace: Duration) -> CommandSpec {
        self.grace = grace;
        self
    }

    /// The time between TERM and KILL in a planned end, when the command is asked to stop or its leadership is released: the
    /// `stop_timeout` of the election's settings, so that the lease is renewed meanwhile. The deadline still applies. Default: the grace.
    pub fn stop_timeout(mut self, stop_timeout: Duration) -> CommandSpec {
        self.stop_timeout = Some(stop_timeout);
        self
    }

    /// How long a command has in a planned end.
    #[cfg(target_os = "linux")]
    pub(crate) fn planned(&self) -> Duration {
        self.stop_timeout.unwrap_or(self.grace)
    }

    /// Makes no PID namespace even if permitted: for a command that needs the process ids of the rest of the system (a pid file), or
    /// whose mounts must be visible outside.
    pub fn without_namespace(mut self) -> CommandSpec {
        self.namespace = false;
        self
    }

    /// Hands the sockets that were passed to this process (`LISTEN_FDS`) to the command, by setting `LISTEN_PID` to its process id. Without
    /// this they stay open in it, too.
    pub fn listening(mut self) -> CommandSpec {
        self.listens = true;
        self
    }

    /// Removes a variable from the environment of the command and the guard: one that holds a password.
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> CommandSpec {
        self.without_env.push(name.as_ref().to_owned());
        self
    }
}
