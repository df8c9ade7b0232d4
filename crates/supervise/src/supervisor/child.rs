//! The handle on a running command.

use super::command_task::{ChildRequest, Running};
use crate::{CommandEnd, Containment, EndCause, ExitStatus};
use bellwether_deadman::process::Signal;
use tokio::sync::{mpsc, oneshot};

/// A command that runs for as long as its leadership lasts. Dropping the handle kills it, with its whole tree.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    containment: Containment,
    shares_group: bool,
    has_terminal: bool,
    requests: mpsc::UnboundedSender<ChildRequest>,
    ended: oneshot::Receiver<CommandEnd>,
    gone: oneshot::Receiver<()>,
    known: Option<CommandEnd>,
}

impl Child {
    pub(super) fn new(
        running: Running,
        requests: mpsc::UnboundedSender<ChildRequest>,
        ended: oneshot::Receiver<CommandEnd>,
        gone: oneshot::Receiver<()>,
    ) -> Child {
        let Running { pid, containment, shares_group, has_terminal } = running;
        Child { pid, containment, shares_group, has_terminal, requests, ended, gone, known: None }
    }

    /// The command's process id, as this process sees it; within its own PID namespace it has another.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What keeps its tree together.
    pub fn containment(&self) -> Containment {
        self.containment
    }

    /// Whether it is in this process's group, and so gets the signals of keys typed at the terminal. If not, it leads a group of its own.
    pub fn shares_group(&self) -> bool {
        self.shares_group
    }

    /// Whether it has the terminal's foreground until it ends, and so alone gets what is typed there.
    pub fn has_terminal(&self) -> bool {
        self.has_terminal
    }

    /// Passes a signal on to the command, and to nobody else in its tree.
    pub fn signal(&self, signal: Signal) {
        // Fails only when it has ended, and then there is nobody to signal.
        let _ = self.requests.send(ChildRequest::Signal(signal));
    }

    /// Sends this signal (TERM, or INT) to the whole tree, and KILL after the grace, or before the deadline if that
    /// comes first.
    pub fn stop(&self, signal: Signal) {
        let _ = self.requests.send(ChildRequest::Stop(Some(signal)));
    }

    /// As [`stop`](Child::stop), for a tree that already got the signal from the keyboard.
    pub fn stop_signalled(&self) {
        let _ = self.requests.send(ChildRequest::Stop(None));
    }

    /// Kills the whole tree at once.
    pub fn kill(&self) {
        let _ = self.requests.send(ChildRequest::Kill);
    }

    /// Waits until the whole tree is gone. Cancel-safe; may be asked again.
    pub async fn wait(&mut self) -> CommandEnd {
        if let Some(ended) = self.known {
            return ended;
        }
        // The task ends without a word only if it panicked or its runtime is shutting down; either closes the channel
        // to the guard, which then kills the tree.
        let lost = CommandEnd { exit: ExitStatus::KILLED, why: EndCause::GuardDied };
        let ended = (&mut self.ended).await.unwrap_or(lost);
        self.known = Some(ended);
        ended
    }

    /// After [`EndCause::Unkillable`], waits until the whole tree has ended by itself, so that the leadership may be released. Never returns if
    /// that can no longer be found out. Cancel-safe.
    pub async fn outlived(&mut self) {
        if (&mut self.gone).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
