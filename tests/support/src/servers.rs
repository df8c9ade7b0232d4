//! Real servers, one a test program or test, gone with it.

pub mod nats;
pub mod pgbouncer;
pub mod postgres;
mod user;
