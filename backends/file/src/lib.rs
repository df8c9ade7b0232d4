//! Leader election on a directory that all candidates can reach.
//!
//! Owns what lies on disk:
//!
//! ```text
//! DIR/<election>/              the election's name, or a prefix of it and a hash: `file_name`
//!     41.json … 48.json        the lease: the highest number counts, the last eight stay: `Numbered`
//!     history.7.json …         notes beside it, kept the same way
//!     <incarnation>.alive      locked by the kernel while that incarnation lives: `Alive`
//!     .tmp-…                   being written, or left by a crash and swept after ten minutes
//! DIR/.floors/<election>/      tells that the election was held here, when its own directory is gone: `Marker`
//! DIR/.seed-<election>         a plain file on its way to becoming `0.json`: `prepare`
//! ```
//!
//! [`open`] makes a backend of a directory. It lays [`Register`](bellwether_backend::Register) over the numbered files;
//! claims, renewals, expiry and the rest are [`Lease`](bellwether_backend::Lease)'s.
//!
//! Whatever else lies there is left alone: nothing is removed but what was read and found to be ours.
//!
//! Assumes a file system with atomic, exclusive hard links, and for the proof of death a local one. There is no lock
//! that one candidate could hold against another, so a candidate stopped at any instruction holds nobody up.

mod checkup;
mod directory;
mod discard;
mod election;
mod errors;
mod following;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(target_os = "linux")]
mod inotify;
mod liveness;
mod local;
mod marker;
mod names;
mod notes;
mod notify;
mod numbered;
#[cfg(test)]
mod numbered_tests;
mod prepare;
mod register;
mod signs_of_life;
mod sweep;
mod threads;
mod url;
mod value;

pub use liveness::{Alive, life, sweep_dead};
pub use local::{boot_id, is_local};
pub use names::file_name;
pub use notify::{DirectoryWatches, FileNotice, FileNotices, death_shows, notices, polled_notices};
pub use numbered::Numbered;
pub use prepare::prepare;
pub use register::{File, FileRegister, from_url, open};
pub use url::directory;
pub use value::{FoundValue, NUMBER_MAX, Ours, RECORD_MAX_BYTES, Value, Version, Written};
