//! A Raft cluster of real processes that can be mistreated, clients that keep a record of what they were told, and judges of it.
//!
//! - [`Nodes`]: the processes, their directories, their addresses; every cluster id that any of them ever named.
//! - [`Client`]: writes and reads. What it was told is [done, refused or unknown](Outcome).
//! - [`Load`]: writes all the time, and afterwards looks whether everything that was acknowledged is there.
//! - [`complaints`]: whether one order explains what all clients were told.
//! - [`Conformance`]: the suite that every backend passes, while leaders fail.
//! - [`Storm`]: leaders that are killed, stopped and cut off under clients, for that judge.

mod client;
mod conformance;
mod linearizable;
mod load;
mod nodes;
mod seat;
mod storm;

pub use client::{Client, Outcome};
pub use conformance::{Batch, Conformance, SuiteFigures};
pub use linearizable::{Act, Operation, complaints};
pub use load::{Load, Record};
pub use nodes::Nodes;
pub use seat::Seat;
pub use storm::{Fault, Figures, Storm};
