//! The children that this process started itself: guards, and what runs beside a command, such as hooks and health checks.
//!
//! As an adopter of orphans this process has other children too, and those may be of a command's tree, whatever they did to hide it. So it is
//! not they who are recognised, but these. Children that were there before the first guard are none of a command's either: this process may
//! have become this program by `exec`.

use crate::tree;
use bellwether_deadman::Pid1Spared;
use bellwether_deadman::process::Pid;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Where a child comes from that has nothing to do with a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was there before.
    Before,
    /// This process started it, and waits for its end.
    Started,
}

struct Own {
    pid: Pid,
    origin: Origin,
    /// Process 1 of a container knows of it too.
    _spared: Option<Pid1Spared>,
}

/// `None` until the first one is started.
static OWN: Mutex<Option<Vec<Own>>> = Mutex::new(None);

/// Starts a child of this process that is not part of a command's tree: a hook, a health check. It is not killed with a command.
///
/// `pid` returns the process id of the child that `spawn` has made, which is remembered until the child has been waited for.
///
/// # Errors
/// Those of `spawn`.
pub fn start_beside<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    pid: impl FnOnce(&C) -> Option<u32>,
) -> io::Result<C> {
    start(spawn, pid, Pid1Spared::with_descendants)
}

/// Likewise for a guard, whose descendants are a command's.
pub(crate) fn start_guard<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    pid: impl FnOnce(&C) -> Option<u32>,
) -> io::Result<C> {
    start(spawn, pid, Pid1Spared::alone)
}

fn start<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    pid: impl FnOnce(&C) -> Option<u32>,
    spare: impl FnOnce(Pid) -> Option<Pid1Spared>,
) -> io::Result<C> {
    // Locked meanwhile: a child is never seen before it is known.
    let mut own = lock();
    let child = spawn()?;
    if let Some(pid) = pid(&child).and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        own.get_or_insert_default().push(Own { pid, origin: Origin::Started, _spared: spare(pid) });
    }
    Ok(child)
}

/// Runs `look` with a function that tells which children of this process are not part of a command's tree. None is started meanwhile.
pub(crate) fn told_apart<T>(look: impl FnOnce(&dyn Fn(Pid) -> Option<Origin>) -> T) -> T {
    let own = lock();
    look(&|pid| own.iter().flatten().find(|own| own.pid == pid).map(|own| own.origin))
}

fn lock() -> MutexGuard<'static, Option<Vec<Own>>> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = || {
        let own = |pid| Own { pid, origin: Origin::Before, _spared: Pid1Spared::with_descendants(pid) };
        tree::all_children().into_iter().map(own).collect()
    };
    own.get_or_insert_with(before).retain(|own| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(own.pid), options), Err(Errno::CHILD))
    });
    own
}

/// How long whoever starts a child may take to wait for it once it has ended.
const WAITED_WITHIN: Duration = Duration::from_secs(1);

/// Reaps children that this process has but did not start, for as long as it is polled: orphans that came to it, and those of whoever
/// became this program by `exec`.
///
/// A child that has ended counts as one of them when it has been a zombie for a second, unless it is a guard or was started by
/// [`start_beside`].
pub async fn reap_orphans() {
    // Without it, they stay until this process ends.
    let Ok(mut ended) = signal(SignalKind::child()) else { return };
    let mut orphans = Orphans::default();
    loop {
        orphans.reap();
        if orphans.is_empty() {
            ended.recv().await;
        }
        tokio::time::sleep(WAITED_WITHIN).await;
    }
}

/// Orphans that had ended when they were last looked for.
#[derive(Debug, Default)]
struct Orphans {
    ended: Vec<Pid>,
}

impl Orphans {
    /// Reaps those that were seen before, and looks for more.
    fn reap(&mut self) {
        let mut ended = told_apart(|own| {
            let mut ended = tree::zombies();
            ended.retain(|pid| own(*pid) != Some(Origin::Started));
            ended
        });
        ended.retain(|pid| {
            let seen = self.ended.contains(pid);
            if seen {
                let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
            }
            !seen
        });
        self.ended = ended;
    }

    /// Whether nobody waits to be reaped.
    fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }
}
