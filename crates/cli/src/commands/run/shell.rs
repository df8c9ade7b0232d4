//! Commands of the user's beside the work: health checks and hooks, by `/bin/sh -c`, in a process group of their own,
//! killed as a group when their time is up.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use bellwether_supervise::start_beside;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::{secrets, systemd};

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShellEnd {
    /// With exit code 0.
    Well,
    /// With another code, by a signal, or it could not be started: the rest of a sentence about it.
    Badly(String),
    /// Not within its time; its group was killed.
    Late,
}

/// Runs a command with this on its standard input, and kills its group after `limit`.
pub(super) async fn run(command: &str, input: Option<&str>, limit: Duration) -> ShellEnd {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut shell = Command::new("/bin/sh");
    for name in not_inherited() {
        shell.env_remove(name);
    }
    shell.args(["-c", command]).stdin(stdin).stdout(Stdio::null()).process_group(0).kill_on_drop(true);
    let mut child = match start_beside(|| shell.spawn(), Child::id) {
        Ok(child) => child,
        Err(error) => return ShellEnd::Badly(format!("could not be started by /bin/sh: {error}")),
    };
    let group = Group::of(&child);
    let work = async {
        if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
            // A command that does not read its input is no error.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        child.wait().await
    };
    let ended = match tokio::time::timeout(limit, work).await {
        Ok(Ok(status)) if status.success() => ShellEnd::Well,
        Ok(Ok(status)) => ShellEnd::Badly(match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => format!("ended with {status}"),
        }),
        Ok(Err(error)) => ShellEnd::Badly(format!("could not be waited for: {error}")),
        Err(_) => ShellEnd::Late,
    };
    drop(group);
    ended
}

/// The variables that nothing started through us inherits: our passwords, and what systemd tells this process by.
pub(super) fn not_inherited() -> impl Iterator<Item = String> {
    secrets::variables().chain(systemd::VARIABLES.map(str::to_owned))
}

/// The process group of a command: whatever is left of it is killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Group {
        Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
