//! The supervisor's side: starts the guard, tells it of every renewal, hears how the command ended.
//!
//! One task per command owns the channel to the guard for as long as the command runs. It holds the work guard of the
//! leadership and drops it only when the whole tree has been reaped: by the guard's word, or, should the guard be dead, by
//! waiting for the end of the process that the tree hangs on.

mod aftermath;
mod handle;
mod link;
mod rehearsal;
mod task;

pub use handle::Child;

use crate::{Containment, PROOFS_MAX, Spec, StartError};
use bellwether_election::{Leadership, Standing};
use link::Link;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, mpsc, oneshot};

/// Runs a command, leadership after leadership, through a guard process.
///
/// Cheap to clone. Dropping the last one, when no command runs, ends the guard.
#[derive(Clone, Debug)]
pub struct Supervisor {
    spec: Arc<Spec>,
    /// Locked for as long as a command runs: there is one at a time. `None` when the guard has died.
    link: Arc<Mutex<Option<Link>>>,
    /// Whether the last rehearsal had a PID namespace, so that its user counts on one.
    namespace_announced: Arc<AtomicBool>,
}

impl Supervisor {
    /// Starts the guard, so that it is there when it is needed.
    ///
    /// Where no PID namespace is permitted, orphans among this process's descendants become its own children from the
    /// first rehearsal or command on; those of other commands too, which [`Orphans`](crate::Orphans) reaps. Should guard and init be killed there, this process
    /// kills every child that it has had since the first `Supervisor` was made and that was not started by
    /// [`start_beside`](crate::start_beside): it cannot tell the others from a command's.
    ///
    /// # Errors
    /// When the guard cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without its I/O driver.
    pub fn new(spec: Spec) -> io::Result<Supervisor> {
        let link = Link::start(&spec)?;
        let link = Arc::new(Mutex::new(Some(link)));
        Ok(Supervisor { spec: Arc::new(spec), link, namespace_announced: Arc::default() })
    }

    /// Does everything that starting the command takes, except becoming the command, and tells which containment it has: so
    /// that a node which cannot start anything finds out before it leads. A later start that has to do with less is warned of in the log.
    ///
    /// # Errors
    /// What is missing. Nothing runs then.
    pub async fn rehearse(&self) -> Result<Containment, StartError> {
        let mut link = self.link.lock().await;
        self.raise(&mut link)?;
        let rehearsed = match link.as_ref() {
            Some(link) => rehearsal::rehearse(link, &self.spec).await,
            None => unreachable!("raised above"),
        };
        if rehearsed.is_err() {
            // Whatever state it is in, the next one begins anew.
            *link = None;
        }
        let namespace = matches!(rehearsed, Ok(Containment::Namespace));
        self.namespace_announced.store(namespace, Ordering::Release);
        if let Ok(Containment::Sweep) = rehearsed {
            // From now on: an orphan of the command never goes past this process, however early its guard is lost.
            let _ = bellwether_deadman::process::adopt_orphans();
        }
        rehearsed.map_err(StartError::Guard)
    }

    /// There is a guard, or it cannot be started.
    fn raise(&self, link: &mut Option<Link>) -> Result<(), StartError> {
        if link.as_mut().is_none_or(|link| !link.is_up()) {
            *link = Some(Link::start(&self.spec).map_err(StartError::Guard)?);
        }
        Ok(())
    }

    /// Starts the command for this leadership, and returns when it runs.
    ///
    /// `proofs` are duplicates of whatever proves, to others, that this process lives: the guard closes them when the
    /// tree is gone. If a command still runs, waits for its end first.
    ///
    /// # Errors
    /// The leadership was over, the command cannot be run, or the guard failed. Nothing runs then.
    pub async fn start(&self, leadership: &Leadership, proofs: Vec<OwnedFd>) -> Result<Child, StartError> {
        assert!(proofs.len() <= PROOFS_MAX, "at most {PROOFS_MAX} proofs");
        let mut link = Arc::clone(&self.link).lock_owned().await;
        self.raise(&mut link)?;
        let hold = leadership.hold().map_err(StartError::Over)?;
        let mut standing = leadership.standing();
        let deadline = match standing.now() {
            Standing::Until(deadline) => deadline,
            Standing::Over { how, .. } => return Err(StartError::Over(how)),
        };
        let (wishes, receiver) = mpsc::unbounded_channel();
        let (started, is_started) = oneshot::channel();
        let (ended, is_ended) = oneshot::channel();
        let (gone, is_gone) = oneshot::channel();
        let announced = self.namespace_announced.load(Ordering::Acquire);
        let spec = Arc::clone(&self.spec);
        let task = task::Task::new(link, spec, announced, leadership, standing, deadline, receiver);
        // Let go only where the tree is known to be gone. Should the task be given up half-way, nothing is released, and
        // the leadership runs out.
        let hold = ManuallyDrop::new(hold);
        tokio::spawn(async move {
            let (outcome, rest) = task.run(proofs, started).await;
            match rest {
                // The tree is gone: now the release may be written, and then the caller may know.
                None => {
                    drop(ManuallyDrop::into_inner(hold));
                    let _ = ended.send(outcome);
                }
                // There is no release before the rest is gone, too.
                Some(rest) => {
                    let _ = ended.send(outcome);
                    if rest.gone().await {
                        drop(ManuallyDrop::into_inner(hold));
                        let _ = gone.send(());
                    }
                }
            }
        });
        match is_started.await {
            Ok(Ok(running)) => Ok(Child::new(running, wishes, is_ended, is_gone)),
            Ok(Err(error)) => {
                // The release must not be in the way of whoever acts on the error.
                let _ = is_ended.await;
                Err(error)
            }
            Err(_) => Err(StartError::Guard(io::Error::other("the task that was to watch it has ended"))),
        }
    }

    /// The guard's process id, for those who want to look at it; `None` when it is dead or busy with a command.
    pub fn guard_pid(&self) -> Option<u32> {
        self.link.try_lock().ok()?.as_ref().map(Link::pid)
    }
}
