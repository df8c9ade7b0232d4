//! What the black-box tests share: the built command as a process, and a judge of who led when.
//!
//! Nothing here knows the inside of Bellwether. Processes are started, killed, stopped and asked to leave; what they
//! say about themselves comes from their event lines, on one clock.

mod binary;
mod candidate;
mod command;
mod line;
#[cfg(target_os = "linux")]
mod mounted;
mod overlap;
mod piped;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
pub mod series;
#[cfg(target_os = "linux")]
pub mod silent_leader;
#[cfg(target_os = "linux")]
mod stage;
mod untouched;

pub use binary::bellwether;
pub use candidate::{Candidate, Ended, exit_of, run_to_end};
pub use command::{command, json, on};
pub use line::Line;
#[cfg(target_os = "linux")]
pub use mounted::Mounted;
pub use overlap::{Overlap, overlaps};
pub use piped::Piped;
#[cfg(target_os = "linux")]
pub use processes::Process;
#[cfg(target_os = "linux")]
pub use stage::{Stage, Surroundings};
pub use untouched::{untouched_by_status, unwritten_by_status};

pub use bellwether_support::{PATIENCE, is_root, permitted, skipped, until_blocking};
