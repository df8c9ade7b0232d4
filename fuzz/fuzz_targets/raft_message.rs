//! Fuzzes [`bellwether_fuzz::raft_message`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::raft_message(bytes));

#[cfg(not(fuzzing))]
fn main() {}
