//! Fuzzes [`bellwether_fuzz::file_notices`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::file_notices(bytes));

#[cfg(not(fuzzing))]
fn main() {}
