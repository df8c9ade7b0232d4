//! `--config FILE`: settings from a TOML file, weaker than flags and environment, stronger than the defaults.
//!
//! The file's values become the defaults of the flags of the same name, so whatever a flag accepts, the file accepts,
//! and the precedence is clap's own. Keys at the top are for every subcommand that has such a flag; keys in a table
//! named like a subcommand are for that one. An error that the file has a part in names the file and the key.
//!
//! ```toml
//! backend = "file:/var/lib/elections"
//! ttl = "10s"
//!
//! [run]
//! priority = 3
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use toml::{Table, Value};

use crate::exit::{Exit, Failure};

/// The file that is named, if one is, and what it sets.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    file: PathBuf,
    table: Table,
    set: Vec<Setting>,
}

/// One value of the file.
#[derive(Debug)]
struct Setting {
    /// The subcommand in whose table it is.
    of: Option<String>,
    key: String,
    value: String,
}

impl Configuration {
    /// Reads the file of `--config FILE` or `--config=FILE`, wherever it stands before a `--`; else the environment's.
    pub(crate) fn named(arguments: &[OsString]) -> Result<Configuration, Failure> {
        let Some(file) = named(arguments) else { return Ok(Configuration::default()) };
        let mut configuration = Configuration { file, ..Configuration::default() };
        let text = std::fs::read_to_string(&configuration.file)
            .map_err(|error| configuration.bad(&format!("cannot be read: {error}")))?;
        configuration.table = text.parse().map_err(|error: toml::de::Error| {
            // Not the line itself, which may have a password in it.
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            configuration.bad(&format!("line {line}: {}", error.message()))
        })?;
        Ok(configuration)
    }

    /// The command line with the defaults that the file gives.
    pub(crate) fn apply(&mut self, mut command: Command) -> Result<Command, Failure> {
        let subcommands: Vec<String> =
            command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
        for (key, value) in std::mem::take(&mut self.table) {
            match value {
                Value::Table(inner) if subcommands.contains(&key) => {
                    for (inner_key, value) in inner {
                        command = self.set(command, &[&key], Some(&key), inner_key, value)?;
                    }
                }
                value => command = self.set(command, &subcommands, None, key, value)?,
            }
        }
        Ok(command)
    }

    fn set(
        &mut self,
        mut command: Command,
        subcommands: &[impl AsRef<str>],
        of: Option<&str>,
        key: String,
        value: Value,
    ) -> Result<Command, Failure> {
        let setting = Setting { of: of.map(str::to_owned), value: String::new(), key };
        let value = match value {
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(switch) => switch.to_string(),
            other => {
                let sentence =
                    format!("{setting} must be a text, a number or true, and it is a {}", other.type_str());
                return Err(self.bad(&sentence));
            }
        };
        let key = setting.key.as_str();
        let mut found = of.is_none() && has(&command, key);
        if found {
            command = with_default(command, key, &value);
        }
        for name in subcommands {
            command = command.mut_subcommand(name.as_ref(), |one| {
                found |= has(&one, key);
                with_default(one, key, &value)
            });
        }
        if !found {
            return Err(self.unknown(&setting, &command));
        }
        self.set.push(Setting { value, ..setting });
        Ok(command)
    }

    /// Forgets what flags or the environment override, and what is for other subcommands.
    pub(crate) fn leave_out_overridden(&mut self, command: &Command, found: &ArgMatches) {
        let Some((name, found)) = found.subcommand() else { return };
        let Some(one) = command.find_subcommand(name) else { return };
        self.set.retain(|setting| {
            let flag = one.get_arguments().find(|flag| flag.get_long() == Some(&setting.key));
            let counts = flag.and_then(|flag| found.value_source(flag.get_id().as_str()));
            setting.of.as_deref().is_none_or(|of| of == name) && counts == Some(ValueSource::DefaultValue)
        });
    }

    /// The failure, if it is the file's value that no flag would accept.
    pub(crate) fn blamed_for(&self, error: &clap::Error, arguments: &[OsString]) -> Option<Failure> {
        let (Some(ContextValue::String(flag)), Some(ContextValue::String(value))) =
            (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
        else {
            return None;
        };
        let flag = flag.split(' ').next()?;
        let typed = |argument: &OsString| {
            argument
                .to_str()
                .and_then(|text| text.strip_prefix(flag))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        let is_it = |one: &&Setting| flag.strip_prefix("--") == Some(&one.key) && one.value == *value;
        let setting = self.set.iter().find(is_it).filter(|_| !arguments.iter().any(typed))?;
        let why = match (error.kind(), error.get(ContextKind::ValidValue), error.source()) {
            (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid)), _) => {
                format!("{value:?} is none of {}", valid.join(", "))
            }
            (_, _, Some(source)) => source.to_string(),
            _ => format!("{value:?} cannot be used"),
        };
        Some(self.bad(&format!("{setting}: {why}")))
    }

    /// For the end of a sentence about bad settings: what of them is from the file.
    pub(crate) fn part_in(&self, failure: &Failure) -> String {
        if failure.exit() != Exit::Usage || self.set.is_empty() {
            return String::new();
        }
        let keys: Vec<String> = self.set.iter().map(ToString::to_string).collect();
        format!(" (from the configuration {}: {})", self.file.display(), keys.join(", "))
    }

    fn unknown(&self, setting: &Setting, command: &Command) -> Failure {
        if let Some(similar) = similar(command, setting) {
            return self.bad(&format!("there is no setting {setting}; did you mean {similar}?"));
        }
        let flags = |one: &Command| -> Vec<String> {
            one.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
        };
        let of = |one: &&Command| setting.of.as_deref().is_none_or(|of| of == one.get_name());
        let mut known: Vec<String> = command.get_subcommands().filter(of).flat_map(flags).collect();
        if setting.of.is_none() {
            known.extend(flags(command));
        }
        known.sort();
        known.dedup();
        self.bad(&format!("there is no setting {setting}; there are {}", known.join(", ")))
    }

    fn bad(&self, sentence: &str) -> Failure {
        Failure::new(Exit::Usage, format!("the configuration {}: {sentence}", self.file.display()))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(of) => write!(f, "{of}.{}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

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

/// The flag that clap would suggest for this one.
fn similar(command: &Command, setting: &Setting) -> Option<String> {
    let (name, flag) = (setting.of.as_deref().unwrap_or("run"), format!("--{}", setting.key));
    let error = command.clone().try_get_matches_from(["bellwether", name, &flag]).err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(flag) => flag.split(' ').next()?.strip_prefix("--").map(str::to_owned),
        _ => None,
    }
}
