//! A real server for each test program, and candidates with connections of their own.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part")]

pub mod candidate;
pub mod process;
pub mod server;
