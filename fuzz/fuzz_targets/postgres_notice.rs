//! Fuzzes [`bellwether_fuzz::postgres_notice`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::postgres_notice(bytes));

#[cfg(not(fuzzing))]
fn main() {}
