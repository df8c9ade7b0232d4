//! Fuzzes [`bellwether_fuzz::history`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::history(bytes));

#[cfg(not(fuzzing))]
fn main() {}
