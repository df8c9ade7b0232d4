//! Fenced files, written by real processes that are stopped and killed.

mod foreign;
mod late_writers;
mod races;
mod reading;
mod stage;
