//! Fuzzes [`bellwether_fuzz::bootstrap_ledger`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::bootstrap_ledger(bytes));

#[cfg(not(fuzzing))]
fn main() {}
