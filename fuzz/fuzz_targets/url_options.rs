//! Fuzzes [`bellwether_fuzz::url_options`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::url_options(bytes));

#[cfg(not(fuzzing))]
fn main() {}
