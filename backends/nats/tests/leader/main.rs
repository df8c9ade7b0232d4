//! The profile `leader`: the testing matrix of its description, row by row, and candidates of others on the same key.
//!
//! One program, because its stories spend their time waiting and can do so together.

mod foreign;
mod matrix;
mod network;
mod stepping_down;
#[path = "../support/mod.rs"]
mod support;
mod time;
