//! Fuzzes [`bellwether_fuzz::event_lines`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::event_lines(bytes));

#[cfg(not(fuzzing))]
fn main() {}
