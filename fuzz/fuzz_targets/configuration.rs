//! Fuzzes [`bellwether_fuzz::configuration`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::configuration(bytes));

#[cfg(not(fuzzing))]
fn main() {}
