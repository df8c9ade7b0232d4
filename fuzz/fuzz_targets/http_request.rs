//! Fuzzes [`bellwether_fuzz::http_request`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::http_request(bytes));

#[cfg(not(fuzzing))]
fn main() {}
