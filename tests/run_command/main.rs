//! `bellwether run ELECTION -- COMMAND`, as the contract has it.
fn main() {}
