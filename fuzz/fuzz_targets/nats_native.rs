//! Fuzzes [`bellwether_fuzz::nats_native`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::nats_native(bytes));

#[cfg(not(fuzzing))]
fn main() {}
