//! What the black-box tests share: the built command as a process, and a judge of who led when.
//!
//! Nothing here knows the inside of Bellwether. Processes are started, killed, stopped and asked to leave; what they
//! say about themselves comes from their event lines, on one clock.

mod binary;
mod candidate;
#[cfg(target_os = "linux")]
pub mod clients;
mod command;
mod event_line;
pub mod http;
#[cfg(target_os = "linux")]
pub mod mixed_election;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
pub mod notify;
mod output_lines;
mod overlap;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
pub mod raft;
mod read_only_status;
#[cfg(target_os = "linux")]
pub mod series;
#[cfg(target_os = "linux")]
pub mod silent_leader;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod stopped_threads;
#[cfg(target_os = "linux")]
pub mod torture;

pub use binary::bellwether;
pub use candidate::{Candidate, Ended, exit_of, run_to_end};
pub use command::{command, json, on};
pub use event_line::EventLine;
#[cfg(target_os = "linux")]
pub use mounts::Mount;
pub use output_lines::OutputLines;
pub use overlap::{Led, Overlap, overlaps};
#[cfg(target_os = "linux")]
pub use processes::Process;
pub use read_only_status::{untouched_by_status, unwritten_by_status, unwritten_lease_by_status};
#[cfg(target_os = "linux")]
pub use stage::{Stage, Surroundings};
#[cfg(target_os = "linux")]
pub use stopped_threads::StoppedThreads;

pub use bellwether_support::{PATIENCE, is_root, permitted, skipped, until_blocking};
