//! Fenced keys on real NATS servers.

mod foreign;
mod late_writers;
mod races;
mod stage;
