//! Fuzzes [`bellwether_fuzz::raft_url`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::raft_url(bytes));

#[cfg(not(fuzzing))]
fn main() {}
