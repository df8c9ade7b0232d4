//! `cargo xtask`: what is done to the project rather than by it.
//!
//! One file a command, and a table of them in [`commands`]. Nothing here is part of the product, and nothing
//! of the product is used here: this is compiled first and has to work when the rest does not build.

mod apt;
mod bench;
mod bugs;
mod chromium;
mod commands;
mod env;
mod features;
mod formation;
mod fuzz;
mod kubernetes;
mod lines;
mod metadata;
mod mutants;
mod nats;
mod postgres;
mod process;
mod prometheus;
mod prove;
mod sim;
mod source;
mod suggest;
mod terminal;
mod test;
mod tidy;
mod tools;
mod tree;

use std::process::ExitCode;

/// How a command that could do its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad,
}

/// What kept a command from doing its work: a sentence that says what to change.
type Problem = String;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match commands::dispatch(&args) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("{} {problem}", terminal::on_stderr().bad("xtask:"));
            ExitCode::from(64)
        }
    }
}
