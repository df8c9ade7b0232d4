//! Leader election as pure logic: one candidate in one election, with no clock, no randomness and no I/O.
//!
//! Time comes in as an argument ([`Boot`]), randomness as a seed, the store's answers as [`Input`]s; what is to
//! be done comes out as [`Output`]s. So the same code runs under a real clock and in a simulator, and every
//! safety rule that can be kept here is kept here:
//!
//! - belief ends at the *start* of the last confirmed call + ttl − margin, and nothing prolongs it but a renewal;
//! - an unknown outcome is looked into, a late answer is read, and a record in our name that we do not lead on is
//!   replaced or released;
//! - once the work has been told to stop, that epoch is over;
//! - a denial is not an error, and an error is not a denial.
//!
//! What the store makes of compare-and-set, and how long a follower waits, is in `bellwether-backend`.
//! What happens to the work is the caller's: see [`Core`].

mod breaker;
pub mod duration;
mod epoch;
mod error;
mod event;
mod machine;
mod names;
mod outcome;
mod retry;
mod rng;
mod settings;
mod time;
mod timeline;
mod timing;

pub use breaker::Breaker;
pub use epoch::Epoch;
pub use error::{Error, ErrorKind};
pub use event::{CoreEvent, Reason, StateName};
pub use machine::{CALLS_MAX, Call, Core, Input, Output};
pub use names::{BadName, Candidate, CandidateId, ElectionName, Incarnation, NAME_MAX_BYTES};
pub use outcome::{Ask, Bid, Grant, Holder, Outcome, Parting, Proof, Request, Seen, Signal};
pub use retry::{AtMost, DecorrelatedJitter, Exponential, Fixed, RETRY_MAX, RetryContext, RetryStrategy};
pub use rng::Rng;
pub use settings::{METADATA_MAX, Options, Settings};
pub use time::{Boot, Clock, Wall};
pub use timeline::Timeline;
pub use timing::{BadSettings, KILL_LEAD, TTL_RANGE, Timing, TimingOptions};
