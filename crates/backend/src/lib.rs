//! What a store must do to hold elections, and the lease on a compare-and-set register.
//!
//! Two families of stores meet in one trait, [`Backend`]:
//!
//! - **register** stores offer only compare-and-set and news of changes ([`Register`]); [`Lease`] turns that into
//!   claim, renew, release, expiry, epochs, priority, requests and cooldown, with its judgement in the pure
//!   [`Observations`];
//! - **session** stores, where a lock belongs to a live session, offer a handful of statements ([`SessionStore`]);
//!   [`SessionLease`] turns them into the same, with its judgement in the pure `takeover.rs`.
//!
//! With the feature `conformance` there is a suite that any backend passes against its real server, as far as its
//! declared [`Capabilities`] go, and there are wrappers that make a store misbehave.

mod backend;
mod capabilities;
mod checkup;
mod coalesce;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "conformance")]
pub mod faults;
mod followers;
mod forward;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod history;
pub mod json;
mod lease;
mod lock;
mod mailbox;
mod memory;
pub mod names;
mod notice_queue;
mod observations;
mod once;
mod record;
mod register;
mod session;
mod session_lease;
mod session_store;
mod takeover;
pub mod url;

pub use backend::{Backend, Fut, Notice, Notices, ended_with_its_runtime};
pub use capabilities::Capabilities;
pub use checkup::{Discarded, Finding, Grade, PERMISSIONS, Probing};
pub use coalesce::{Coalesce, Unanswered};
pub use followers::Followers;
pub use forward::Forward;
pub use history::{HISTORY_MAX, Past};
pub use lease::Lease;
pub use lock::lock;
pub use mailbox::Mailbox;
pub use memory::{Memory, MemoryStore};
pub use notice_queue::NoticeQueue;
pub use observations::{ClaimVerdict, Observations, Source};
pub use once::{Creation, ONCE_MAX_BYTES, check_note};
pub use record::{Record, Reservation};
pub use register::{Change, Changes, Found, FoundNote, Life, Note, Register, Write};
pub use session::{
    LockAnswer, LockHolder, LockKey, LockResult, Presence, Session, SessionFailure, SessionNotice,
    WantedLock, WantedPresence,
};
pub use session_lease::{Ear, SessionLease};
pub use session_store::{Claimed, LockMark, SessionId, SessionStore, Sessions, Written};
pub use takeover::Condition;
