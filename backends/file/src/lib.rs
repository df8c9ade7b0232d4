//! Leader election on a directory that all candidates can reach.

mod directory;
mod errors;
pub mod go_duration;
mod names;
mod numbered;
#[cfg(test)]
mod numbered_tests;
#[cfg(test)]
mod pauses;
mod sweep;

pub use names::file_name;
pub use numbered::{Found, NUMBER_MAX, Numbered, RECORD_MAX_BYTES, Value, Version, Write};
