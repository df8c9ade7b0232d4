//! Writes that a resource refuses once a later leader has written.
//!
//! ```text
//!  epoch 7 ── read, stopped ─────────────────────────── write? ──▶ fenced: epoch 8 has written
//!  epoch 8 ──────────────── read ── write ── done
//! ```
//!
//! An election decides who should write, and a leader that is stopped between its last look at the clock and its write cannot know that its
//! time is over. What it writes to can: every value carries the [`Stamp`] of its writer, and a write is done **only if no later epoch has
//! written**. The rule is [`admit`]; each resource makes check and write one.
//!
//! | resource | type | check and write are one by |
//! |---|---|---|
//! | a file | [`file::FencedFile`] | numbered versions, made by `link(2)` |
//!
//! Every call takes the epoch, `leadership.epoch()`; each resource is opened for one election, and another election's value is refused.
//!
//! # Raise first, then read
//!
//! A new leader that reads a value, changes it and writes it may lose a write that its predecessor made in between: that write was admitted,
//! since no later epoch had written yet. `raise` prevents that: it writes the value again, unchanged, under the new epoch, and returns
//! it. From then on nothing of an earlier epoch is admitted, so what it returned is the last of them.
//!
//! # What it does not give
//!
//! - A fence knows who has *written*, not who leads: until a later leader has written or raised, the earlier one may write.
//! - Only writes that go through the fence are fenced. Whoever writes past it, with another tool, may remove the stamp with the value;
//!   the next fenced write then fails with [`Failure::Unstamped`] instead of guessing.
//! - A resource that is deleted by other means, or restored from a backup, has forgotten its latest epoch.

mod error;
#[cfg(feature = "file")]
pub mod file;
mod rule;
mod stamp;

pub use error::{Failure, FenceError, Fenced};
pub use rule::{Found, admit, admit_adopting};
pub use stamp::{Stamp, Value};
