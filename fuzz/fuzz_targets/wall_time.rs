//! Fuzzes [`bellwether_fuzz::wall_time`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::wall_time(bytes));

#[cfg(not(fuzzing))]
fn main() {}
