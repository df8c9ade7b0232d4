//! `cargo xtask`: tests, benchmarks and checks of the project itself.
fn main() {}
