//! Fuzzes [`bellwether_fuzz::ndp`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::ndp(bytes));

#[cfg(not(fuzzing))]
fn main() {}
