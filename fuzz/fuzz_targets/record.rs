//! Fuzzes [`bellwether_fuzz::record`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::record(bytes));

#[cfg(not(fuzzing))]
fn main() {}
