//! Fuzzes [`bellwether_fuzz::arp`].

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_fuzz::arp(bytes));

#[cfg(not(fuzzing))]
fn main() {}
