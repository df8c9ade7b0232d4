//! `--config FILE`: settings from a TOML file, weaker than flags and environment, stronger than the defaults.
//!
//! The file's values become the defaults of the flags of the same name, so whatever a flag accepts, the file accepts,
//! and the precedence is clap's own. Keys at the top are for every subcommand that has such a flag; keys in a table
//! named like a subcommand are for that one.
//!
//! ```toml
//! backend = "file:/var/lib/elections"
//! ttl = "10s"
//!
//! [run]
//! priority = 3
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Command;
use toml::{Table, Value};

use crate::exit::{Exit, Failure};

/// The command line with the defaults that the configuration file gives, if one is named.
pub(crate) fn apply(command: Command, arguments: &[OsString]) -> Result<Command, Failure> {
    let Some(file) = named(arguments) else { return Ok(command) };
    let text =
        std::fs::read_to_string(&file).map_err(|error| bad(&file, &format!("cannot be read: {error}")))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| bad(&file, error.message()))?;
    set(command, &file, table)
}

/// `--config FILE` or `--config=FILE`, wherever it stands before a `--`; else the environment's.
fn named(arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(file) = argument.to_str().and_then(|text| text.strip_prefix("--config=")) {
            return Some(PathBuf::from(file));
        }
    }
    std::env::var_os("BELLWETHER_CONFIG").filter(|file| !file.is_empty()).map(PathBuf::from)
}

fn set(mut command: Command, file: &Path, table: Table) -> Result<Command, Failure> {
    let subcommands: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    for (key, value) in table {
        command = match value {
            Value::Table(inner) if subcommands.contains(&key) => set_of_one(command, file, &key, inner)?,
            value => {
                let value = printed(file, &key, value)?;
                let mut found = has(&command, &key);
                command = with_default(command, &key, &value);
                for name in &subcommands {
                    command = command.mut_subcommand(name, |one| {
                        found |= has(&one, &key);
                        with_default(one, &key, &value)
                    });
                }
                if !found {
                    return Err(unknown(file, &key, &command));
                }
                command
            }
        };
    }
    Ok(command)
}

fn set_of_one(mut command: Command, file: &Path, name: &str, table: Table) -> Result<Command, Failure> {
    for (key, value) in table {
        let value = printed(file, &key, value)?;
        let one = command.find_subcommand(name).filter(|one| has(one, &key));
        if one.is_none() {
            return Err(unknown(file, &format!("{name}.{key}"), &command));
        }
        command = command.mut_subcommand(name, |one| with_default(one, &key, &value));
    }
    Ok(command)
}

fn unknown(file: &Path, key: &str, command: &Command) -> Failure {
    let flags = |one: &Command| -> Vec<String> {
        one.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
    };
    let mut known: Vec<String> = command.get_subcommands().flat_map(flags).chain(flags(command)).collect();
    known.sort();
    known.dedup();
    bad(file, &format!("there is no setting {key:?}; there are {}", known.join(", ")))
}

fn has(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(flag))
}

fn with_default(command: Command, flag: &str, value: &str) -> Command {
    let id = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(flag))
        .map(|argument| argument.get_id().clone());
    match id {
        Some(id) => command.mut_arg(id, |argument| argument.default_value(value.to_owned())),
        None => command,
    }
}

fn printed(file: &Path, key: &str, value: Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(switch) => Ok(switch.to_string()),
        other => Err(bad(
            file,
            &format!("{key} must be a text, a number or true, and it is a {}", other.type_str()),
        )),
    }
}

fn bad(file: &Path, sentence: &str) -> Failure {
    Failure::new(Exit::Usage, format!("the configuration {}: {sentence}", file.display()))
}
