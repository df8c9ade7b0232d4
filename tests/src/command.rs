//! The command run once against a store, and what it says.

use std::process::{Command, Output};

use serde_json::Value;

use crate::{bellwether, run_to_end};

/// The command with these arguments, on that store.
pub fn command(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(bellwether());
    // Not as an argument, where a warning about passwords would look at it.
    command.env("BELLWETHER_BACKEND", url).args(arguments);
    command
}

/// Runs it to its end.
pub fn on(url: &str, arguments: &[&str]) -> Output {
    run_to_end(command(url, arguments))
}

/// The JSON that it printed.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}
