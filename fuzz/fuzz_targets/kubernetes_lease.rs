//! Fuzzes [`bellwether_fuzz::kubernetes_lease`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::kubernetes_lease(bytes));

#[cfg(not(fuzzing))]
fn main() {}
