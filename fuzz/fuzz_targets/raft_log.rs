//! Fuzzes [`bellwether_fuzz::raft_log`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::raft_log(bytes));

#[cfg(not(fuzzing))]
fn main() {}
