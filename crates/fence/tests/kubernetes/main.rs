//! Fenced objects on a real API server. All tests share one, each with a namespace of its own.

mod foreign;
mod late_writers;
mod stage;
