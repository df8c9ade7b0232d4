//! Fuzzes [`bellwether_fuzz::cluster_frames`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::cluster_frames(bytes));

#[cfg(not(fuzzing))]
fn main() {}
