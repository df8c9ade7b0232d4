//! Fuzzes [`bellwether_fuzz::engine_snapshot`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::engine_snapshot(bytes));

#[cfg(not(fuzzing))]
fn main() {}
