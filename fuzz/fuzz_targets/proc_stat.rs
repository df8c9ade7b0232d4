//! Fuzzes [`bellwether_fuzz::proc_stat`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::proc_stat(bytes));

#[cfg(not(fuzzing))]
fn main() {}
