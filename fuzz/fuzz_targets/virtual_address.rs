//! Fuzzes [`bellwether_fuzz::virtual_address`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::virtual_address(bytes));

#[cfg(not(fuzzing))]
fn main() {}
