//! Explores the formation of clusters: the product's own rules, in every world that three nodes can get into within a bound, and in random
//! walks of five.
//!
//! `world` is what there is, `steps` what can happen and `effects` what comes of it, `rules` the product with at most one planted bug,
//! `invariants` what must hold after every step, and `liveness` what becomes of a world when nothing goes wrong any more.
//!
//! These tests are the short version. `cargo xtask formation` runs them with larger bounds, and prints the figures.
#![allow(missing_docs)]

mod ends;
mod exhaustive;
mod planted;
mod walks;

mod effects;
mod explore;
mod invariants;
mod liveness;
mod rules;
mod steps;
mod walk;
mod world;

/// A setting of `cargo xtask formation`.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(format!("BELLWETHER_FORMATION_{name}")).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("BELLWETHER_FORMATION_{name} is not a number: {text}")))
}

/// Whether this is the long version.
fn is_long() -> bool {
    setting("LONG").is_some_and(|long| long != 0)
}
