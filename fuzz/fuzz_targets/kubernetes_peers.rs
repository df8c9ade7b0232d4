//! Fuzzes [`bellwether_fuzz::kubernetes_peers`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::kubernetes_peers(bytes));

#[cfg(not(fuzzing))]
fn main() {}
