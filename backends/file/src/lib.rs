//! Leader election on a directory that all candidates can reach.

mod directory;
mod errors;
pub mod go_duration;
#[cfg(target_os = "linux")]
mod inotify;
mod liveness;
mod local;
mod names;
#[cfg(not(target_os = "linux"))]
mod no_queue;
mod notify;
mod numbered;
#[cfg(test)]
mod numbered_tests;
#[cfg(test)]
mod pauses;
mod place;
mod sweep;

pub use liveness::{Alive, is_dead, sweep_dead};
pub use local::is_local;
pub use names::file_name;
pub use notify::{Notice, Notices, Watches, death_shows, notices, polled_notices};
pub use numbered::{Found, NUMBER_MAX, Numbered, RECORD_MAX_BYTES, Value, Version, Write};
pub use place::prepare;
