//! Fuzzes [`bellwether_fuzz::cluster_identity`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::cluster_identity(bytes));

#[cfg(not(fuzzing))]
fn main() {}
