//! What the supervisor does when the guard is gone: it ends the process that the tree hangs on, and what that one left.

use crate::{Containment, Survivor, tree};
use bellwether_deadman::Watched;
use bellwether_deadman::process::{Pid, Signal};
use rustix::process::{WaitOptions, pidfd_send_signal, waitpid};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an init without a guard has to kill its tree.
const SWEPT_WITHIN: Duration = Duration::from_millis(500);
/// How often, and how many times, orphans of a tree without a namespace are looked for after guard and init were killed.
const SWEEP_EVERY: Duration = Duration::from_millis(2);
const SWEEPS_MAX: usize = 2_500;

/// The process that the tree hangs on.
pub(super) struct Init {
    pub(super) pid: Option<Pid>,
    pub(super) ended: Watched,
    pub(super) containment: Containment,
}

/// Waits for the end of an init whose guard is gone. One without a namespace kills the tree by itself, unless it has been stopped: so it is
/// woken, and killed if that does not help, since what it leaves is found from here.
pub(super) async fn end(init: &Init) {
    let first = match init.containment {
        Containment::Namespace => Signal::KILL,
        Containment::Sweep => Signal::CONT,
    };
    let _ = pidfd_send_signal(&init.ended, first);
    if tokio::time::timeout(SWEPT_WITHIN, init.ended.readable()).await.is_err() {
        let _ = pidfd_send_signal(&init.ended, Signal::KILL);
        let _ = init.ended.readable().await;
    }
    // Orphaned, it may have become our child.
    let _ = init.pid.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
}

/// Init ends when it has swept, unless it was killed too. What it left is ours now, next to children that have nothing to do with it;
/// the environment that it was started with tells which is which. Returns somebody who cannot be killed, if there is one.
pub(super) async fn sweep(env: &[(String, String)]) -> Option<Survivor> {
    let mut killed = BTreeSet::new();
    for _ in 0..SWEEPS_MAX {
        // A child that hides its environment is an orphan of the tree: no other child of ours has more rights than we have.
        let pass = tree::signal_descendants_if(Signal::KILL, |found, child| tree::has_env(found, env, child));
        if let Some(survivor) = pass.unkillable() {
            return Some(survivor);
        }
        let none = pass.reached.is_empty();
        killed.extend(pass.reached.into_iter().map(|pid| pid.as_raw_pid()));
        killed.retain(|pid| {
            // Reaped or not ours: either way there is nothing to wait for once this says so.
            matches!(waitpid(Pid::from_raw(*pid), WaitOptions::NOHANG), Ok(None))
        });
        if none && killed.is_empty() {
            return None;
        }
        tokio::time::sleep(SWEEP_EVERY).await;
    }
    None
}
