//! Leader election as pure logic: one candidate in one election, with no clock, no randomness and no I/O.
//!
//! Time comes in as an argument ([`Boot`]), randomness as a seed, the store's answers as [`Input`]s; what to do comes out as
//! [`Output`]s. So the same code runs under a real clock and in a simulator. It keeps these safety rules:
//!
//! - a leadership ends at the *start* of the last confirmed call + ttl − margin, and only a renewal prolongs it;
//! - after an unknown outcome the candidate observes the record; it reads late answers; it replaces or releases a record in its
//!   own name that it does not lead on;
//! - once the work has been told to stop, that epoch is over;
//! - a denial is not an error, and an error is not a denial.
//!
//! `bellwether-backend` decides how stores compare and set, and how long a follower waits. The caller owns the work: see [`Core`].

pub mod duration;
mod epoch;
mod error;
mod event;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod machine;
mod names;
mod outcome;
mod pause;
mod retry;
mod rng;
mod settings;
mod time;
mod timeline;
mod timing;
mod words;

pub use epoch::Epoch;
pub use error::{ErrorKind, StoreError};
pub use event::{CoreEvent, Reason, StateName};
pub use machine::{CALLS_MAX, Call, Core, Input, Output, StoreCall};
pub use names::{BadName, Candidate, CandidateId, ElectionName, Incarnation, NAME_MAX_BYTES};
pub use outcome::{Ask, Bid, Grant, Holder, Outcome, Proof, ReleaseOptions, Request, Seen, Signal};
pub use pause::{PAUSE_MAX, Pause, Paused};
pub use retry::{
    AtMost, Breaker, DecorrelatedJitter, Exponential, Fixed, RETRY_MAX, RetryContext, RetryStrategy,
};
pub use rng::Rng;
pub use settings::{METADATA_MAX, Options, Settings};
pub use time::{Boot, Clock, Wall};
pub use timeline::Timeline;
pub use timing::{BadSettings, KILL_LEAD, TTL_RANGE, Timing, TimingOptions};
