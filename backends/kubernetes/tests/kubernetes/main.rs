//! Elections on a real API server, which the tests of this program share: each has a namespace of its own.

mod conformance;
mod foreign;
mod stage;
mod watching;
