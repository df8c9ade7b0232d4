//! Fuzzes [`bellwether_fuzz::duration`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::duration(bytes));

#[cfg(not(fuzzing))]
fn main() {}
