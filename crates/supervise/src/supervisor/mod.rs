//! The supervisor's side: starts the guard, tells it of every renewal, hears how the command ended.
//!
//! One task per command owns the channel to the guard for as long as the command runs. It holds the work guard of the
//! leadership and drops it only when the whole tree has been reaped: when the guard reports it or, if the guard is dead, when init has
//! ended.

mod child;
mod command_task;
mod guard_limit;
mod guard_lost;
mod guard_process;
mod rehearsal;

pub use child::Child;

use crate::{CommandSpec, Containment, PROOFS_MAX, StartError};
use bellwether_election::{Leadership, Standing};
use guard_process::GuardProcess;
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
    spec: Arc<CommandSpec>,
    /// Locked for as long as a command runs: there is one at a time. `None` when the guard has died.
    guard: Arc<Mutex<Option<GuardProcess>>>,
    /// Whether the last rehearsal had a PID namespace, so that its user counts on one.
    namespace_announced: Arc<AtomicBool>,
}

impl Supervisor {
    /// Starts the guard.
    ///
    /// Where no PID namespace is permitted, orphans among this process's descendants become its children from the first rehearsal or
    /// command on, including those of other commands; [`reap_orphans`](crate::reap_orphans) reaps them. If guard and init are killed
    /// there, this process kills every child that it has had since the first `Supervisor` was made, except those started by
    /// [`start_beside`](crate::start_beside): it cannot tell the others from a command's.
    ///
    /// # Errors
    /// When the guard cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without its I/O driver.
    pub fn new(spec: CommandSpec) -> io::Result<Supervisor> {
        let guard = GuardProcess::start(&spec)?;
        let guard = Arc::new(Mutex::new(Some(guard)));
        Ok(Supervisor { spec: Arc::new(spec), guard, namespace_announced: Arc::default() })
    }

    /// Goes through a start up to the point of executing the command, and returns its containment, so that a node which cannot start
    /// anything finds out before it leads. If a later start has less containment, a warning is logged.
    ///
    /// # Errors
    /// What is missing. Nothing runs then.
    pub async fn rehearse(&self) -> Result<Containment, StartError> {
        let mut guard = self.guard.lock().await;
        self.raise(&mut guard)?;
        let rehearsed = match guard.as_ref() {
            Some(guard) => rehearsal::rehearse(guard, &self.spec).await,
            None => unreachable!("raised above"),
        };
        if rehearsed.is_err() {
            // Whatever state it is in, the next one begins anew.
            *guard = None;
        }
        let namespace = matches!(rehearsed, Ok(Containment::Namespace));
        self.namespace_announced.store(namespace, Ordering::Release);
        if let Ok(Containment::Sweep) = rehearsed {
            // From now on: an orphan of the command never goes past this process, however early its guard is lost.
            let _ = bellwether_deadman::process::adopt_orphans();
        }
        rehearsed
    }

    /// Starts a guard if there is none.
    fn raise(&self, guard: &mut Option<GuardProcess>) -> Result<(), StartError> {
        if guard.as_mut().is_none_or(|guard| !guard.is_up()) {
            *guard = Some(GuardProcess::start(&self.spec).map_err(StartError::Guard)?);
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
        let mut guard = Arc::clone(&self.guard).lock_owned().await;
        self.raise(&mut guard)?;
        let hold = leadership.hold().map_err(StartError::Over)?;
        let mut standing = leadership.standing();
        let deadline = match standing.now() {
            Standing::Until(deadline) => deadline,
            Standing::Over { how, .. } => return Err(StartError::Over(how)),
        };
        let (requests, receiver) = mpsc::unbounded_channel();
        let (started, is_started) = oneshot::channel();
        let (ended, is_ended) = oneshot::channel();
        let (gone, is_gone) = oneshot::channel();
        let announced = self.namespace_announced.load(Ordering::Acquire);
        let spec = Arc::clone(&self.spec);
        let task =
            command_task::CommandTask::new(guard, spec, announced, leadership, standing, deadline, receiver);
        // Dropped only when the tree is known to be gone. If the task is dropped half-way, the leadership is not released, and runs out.
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
            Ok(Ok(running)) => Ok(Child::new(running, requests, is_ended, is_gone)),
            Ok(Err(error)) => {
                // The leadership has been released when the caller gets the error.
                let _ = is_ended.await;
                Err(error)
            }
            Err(_) => Err(StartError::Guard(io::Error::other("the task that watches the command has ended"))),
        }
    }

    /// The guard's process id; `None` when it is dead or runs a command.
    pub fn guard_pid(&self) -> Option<u32> {
        self.guard.try_lock().ok()?.as_ref().map(GuardProcess::pid)
    }
}
