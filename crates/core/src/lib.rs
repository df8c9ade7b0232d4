//! Leader election as pure logic: no clock, no randomness, no I/O.

mod epoch;
mod error;
mod names;
mod time;

pub use epoch::Epoch;
pub use error::{Error, ErrorKind};
pub use names::{BadName, Candidate, CandidateId, ElectionName, Incarnation, NAME_MAX_BYTES};
pub use time::{Boot, Clock, Wall};
