//! What the supervisor does when the guard is gone: it ends init, and what init leaves.

use super::guard_process::GuardProcess;
use crate::guard_protocol::CommandReport;
use crate::kill_sequence::PROCESS_1_ENDS;
use crate::{Containment, Survivor, children, tree};
use bellwether_core::Boot;
use bellwether_deadman::process::{Pid, Signal};
use bellwether_deadman::{Pid1Deadline, Pid1Spared, ReadableFd, boot_now};
use bellwether_election::{Standing, Standings};
use bellwether_vip::{AddressHold, VirtualAddress};
use rustix::process::{WaitOptions, pidfd_send_signal, waitpid};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long an init without a guard has to kill its tree.
const SWEPT_WITHIN: Duration = Duration::from_millis(500);
/// How long to wait for a tree whose init is unknown: a hundred times what it takes to die.
const BLIND_WAIT: Duration = Duration::from_millis(250);
/// How long the processes that a lost guard left are killed again, even past the deadline, before they count as unkillable.
const SWEPT_AT_LEAST: Duration = Duration::from_secs(1);
/// How often orphans of a tree without a namespace are killed after guard and init were lost.
const SWEEP_EVERY: Duration = Duration::from_millis(2);
/// How often when all that is left cannot be killed.
const WAIT_EVERY: Duration = Duration::from_millis(50);

/// The process that the tree hangs on.
pub(super) struct InitHandle {
    pid: Option<Pid>,
    pub(super) ended: ReadableFd,
    pub(super) containment: Containment,
    /// Process 1 of a container does not take it for one of the command's.
    _spared: Option<Pid1Spared>,
}

impl InitHandle {
    /// `None` if its end could not be waited for.
    pub(super) fn new(pid: i32, pidfd: OwnedFd, containment: Containment) -> Option<InitHandle> {
        let pid = Pid::from_raw(pid);
        let spared = pid.and_then(Pid1Spared::alone);
        Some(InitHandle { pid, ended: ReadableFd::new(pidfd).ok()?, containment, _spared: spared })
    }

    fn as_survivor(&self) -> Survivor {
        let uid = rustix::process::getuid().as_raw();
        self.pid.map_or(Survivor::UNKNOWN, |pid| Survivor { pid: pid.as_raw_pid().cast_unsigned(), uid })
    }
}

/// Kills what a lost guard has left. Returns a process that could not be killed by the deadline.
pub(super) async fn end(init: Option<&InitHandle>, guard: Option<Pid>, deadline: Boot) -> Option<Survivor> {
    let until = deadline.max(boot_now() + SWEPT_AT_LEAST);
    match init {
        Some(init) => {
            let ended = end_init(init, until).await;
            match init.containment {
                Containment::Namespace => (!ended).then(|| init.as_survivor()),
                Containment::Sweep => sweep(guard, until).await,
            }
        }
        None => {
            // The guard died before it had reported its init, or the report could not be read: what it made is dying.
            tokio::time::sleep(BLIND_WAIT).await;
            sweep(guard, until).await
        }
    }
}

/// Waits for the end of an init whose guard is gone, until `until`. One without a namespace kills the tree itself, unless it is stopped. So it
/// is continued, and killed if that does not help; this process then finds what it leaves.
async fn end_init(init: &InitHandle, until: Boot) -> bool {
    let first = match init.containment {
        Containment::Namespace => Signal::KILL,
        Containment::Sweep => Signal::CONT,
    };
    let _ = pidfd_send_signal(&init.ended, first);
    let mut ended = tokio::time::timeout(SWEPT_WITHIN, init.ended.readable()).await.is_ok();
    if !ended {
        let _ = pidfd_send_signal(&init.ended, Signal::KILL);
        ended = tokio::time::timeout(until.since(boot_now()), init.ended.readable()).await.is_ok();
    }
    // Orphaned, it may have become our child.
    let _ = init.pid.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
    ended
}

/// Kills what is left of a tree without a namespace, until nothing is. Returns a process that is left at `until`.
///
/// Init kills its tree before it ends, unless init was killed too. Then its orphans are children of this process, next to those that this
/// process started. So every child that it did not start is killed, with all its descendants, and so are those of the lost guard if that
/// has not ended yet.
async fn sweep(guard: Option<Pid>, until: Boot) -> Option<Survivor> {
    loop {
        let pass = children::told_apart(|own| {
            tree::signal_descendants_but(Signal::KILL, |pid| own(pid).is_some() && Some(pid) != guard)
        });
        if pass.found_nobody() {
            return None;
        }
        pass.reap();
        if boot_now() >= until {
            return Some(pass.left());
        }
        tokio::time::sleep(if pass.unkillable().is_some() { WAIT_EVERY } else { SWEEP_EVERY }).await;
    }
}

/// Removes the address that a lost guard held. Returns when it is gone: nobody else may lead before.
pub(super) async fn remove_address(address: Option<&VirtualAddress>, deadline: Boot) {
    let Some(address) = address else { return };
    while let Err(error) = AddressHold::remove_for_another(address) {
        // Its lifetime ends before the deadline.
        if boot_now() >= deadline {
            tracing::warn!(%error, "{address} could not be removed; its lifetime has ended");
            return;
        }
        tokio::time::sleep(WAIT_EVERY).await;
    }
}

/// What is left of a command that could not be killed whole.
pub(super) struct Unkilled {
    pub(super) epoch: u64,
    /// The guard, which still kills what it can and keeps the proofs. None if it was lost.
    pub(super) guard: Option<GuardProcess>,
    pub(super) init: Option<InitHandle>,
    pub(super) standing: Standings,
    pub(super) pid1: Option<Pid1Deadline>,
}

impl Unkilled {
    /// Waits until it is gone too; false if nobody can tell any more. Meanwhile, process 1 of a container is told of every new deadline.
    pub(super) async fn gone(self) -> bool {
        let Unkilled { epoch, guard, init, mut standing, mut pid1 } = self;
        let gone = async {
            let Some(guard) = guard else {
                if let Some(init) = init {
                    let _ = init.ended.readable().await;
                }
                return sweep(None, Boot::FOREVER).await.is_none();
            };
            loop {
                match guard.receive().await {
                    Ok((ended, CommandReport::Ended { .. }, _)) if ended == epoch => return true,
                    Ok(_) => {}
                    Err(_) => return false,
                }
            }
        };
        let mut gone = std::pin::pin!(gone);
        loop {
            tokio::select! {
                gone = &mut gone => return gone,
                () = standing.changed() => {
                    let (Standing::Until(until) | Standing::Over { by: until, .. }) = standing.now();
                    if let Some(pid1) = &mut pid1 {
                        pid1.set(PROCESS_1_ENDS.at(until));
                    }
                }
            }
        }
    }
}
