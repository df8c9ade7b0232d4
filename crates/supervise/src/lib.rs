//! A command that lives exactly as long as a leadership.
//!
//! ```text
//! supervisor ── orders, one socket ──▶ guard ── control ──▶ init ──▶ COMMAND ──▶ its tree
//!  leads, renews,    ◀── reports ──     keeps the proof     reaps, passes signals on,
//!  extends the deadline                 and the deadline    first process of a PID namespace
//! ```
//!
//! The contract:
//!
//! - COMMAND runs only between the start of a leadership and its deadline. Where renewals fail, [`KILL_SEQUENCE`] lists who ends the
//!   tree before the deadline, and when: the guard first, and others if the guard does not act.
//! - The proof of a crash comes last. The guard keeps duplicates of what proves that this process lives (a lock file, a connection). When
//!   the supervisor dies, for whatever reason, the guard kills and reaps the tree, and only then closes the duplicates.
//! - The release of a leadership waits until the whole tree has been reaped.
//! - No process of the tree outlives COMMAND, daemons included. With a PID namespace ([`Containment::Namespace`]) the
//!   kernel ensures it. Without permission to make one ([`Containment::Sweep`]), supervisor, guard or init search `/proc` for descendants
//!   and kill them until none is left: [`Containment::promise`] says what that leaves open.
//! - An [address](CommandSpec::address) is set before COMMAND starts and removed when its tree is gone, before the proof is given. If the
//!   guard is killed, the supervisor removes it; if both are, a process that the guard made for this purpose does, or init where there is no
//!   namespace. Each of them keeps the proof until it has.
//!
//! The guard is this very program, started again with a hidden argument, so `main` begins like this:
//!
//! ```no_run
//! fn main() {
//!     bellwether_supervise::guard_main_if_asked(); // in the guard: never returns
//!     bellwether_deadman::leave_pid1().expect("room for another process"); // in a container: forks
//!     // … threads, a runtime, the election; then, for every leadership:
//! }
//! # async fn lead(election: bellwether_election::Election) -> Result<(), Box<dyn std::error::Error>> {
//! use bellwether_supervise::{CommandSpec, Supervisor, find_command};
//! let program = find_command("work".as_ref(), Some("/usr/bin:/bin".as_ref()))?; // before standing
//! let supervisor = Supervisor::new(CommandSpec::new(program, ["work", "--fast"]))?;
//! supervisor.rehearse().await?; // a node that cannot start anything must not win
//! let leadership = election.wait_for_leadership().await?;
//! let mut child = supervisor.start(&leadership, Vec::new()).await?;
//! let ended = child.wait().await;
//! # Ok(())
//! # }
//! ```
//!
//! Work that is not a command, in a process that cannot be killed from here, has a [`ProofKept`] instead of a guard.
//!
//! It cannot end descendants that gained more rights than this process has (a setuid program), which it reports
//! ([`EndCause::Unkillable`]); work that others do for the command (a container engine); and processes in uninterruptible sleep.
//!
//! COMMAND begins as this program did: descriptors that were open stay open, signals that were ignored stay ignored, and where
//! there is a terminal that it is not given, it stays in this program's process group.
//!
//! It assumes that descriptors 0 to 2 are open, which Rust's runtime ensures. The caller decides which signals to pass on and what to do
//! when COMMAND has ended, and tells users which containment holds.
//!
//! Linux only. Elsewhere [`Supervisor::new`] fails with what the system lacks.

mod command_end;
mod command_spec;
mod containment;
mod find_command;
mod kill_sequence;
mod start_error;

#[cfg(target_os = "linux")]
mod address;
#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod children;
#[cfg(all(feature = "fuzz", target_os = "linux"))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod guard_protocol;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod init_protocol;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod proof_keeper;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod supervisor;
#[cfg(target_os = "linux")]
mod tree;

pub use bellwether_deadman::process::Signal;
#[cfg(target_os = "linux")]
pub use children::{reap_orphans, start_beside};
pub use command_end::{CommandEnd, EndCause, ExitStatus, Survivor};
pub use command_spec::{CommandSpec, PROOFS_MAX};
pub use containment::Containment;
#[cfg(target_os = "linux")]
pub use containment::containment_here;
pub use find_command::{NotRunnable, find_command};
pub use kill_sequence::{KILL_SEQUENCE, KillStep};
#[cfg(target_os = "linux")]
pub use proof_keeper::ProofKept;
pub use start_error::{StartError, advised};
pub use supervisor::{Child, Supervisor};
#[cfg(not(target_os = "linux"))]
pub use supervisor::{ProofKept, containment_here, reap_orphans, start_beside};

/// The argument that makes a start of this program a guard.
#[cfg(target_os = "linux")]
const ROLE: &str = "__guard";

/// The argument that makes a start of this program a command that waits to be stopped.
const IDLE_ROLE: &str = "__idle";

/// In a guard process, does the guard's work and never returns; in the process of [`CommandSpec::idle`], waits to be stopped; in the one of a
/// [`ProofKept`], keeps the proof. In any other process, does nothing.
///
/// Call it first in `main`, before starting threads and before [`bellwether_deadman::leave_pid1`].
pub fn guard_main_if_asked() {
    #[cfg(target_os = "linux")]
    {
        let mut args = std::env::args_os().skip(1);
        match args.next() {
            Some(role) if role == ROLE => std::process::exit(guard::main(args.collect())),
            Some(role) if role == proof_keeper::ROLE => std::process::exit(proof_keeper::main()),
            // A signal ends it.
            Some(role) if role == IDLE_ROLE => loop {
                rustix::event::pause();
            },
            _ => {}
        }
    }
}
