//! `--config FILE`: settings from a TOML file, weaker than flags and environment, stronger than the defaults.
//!
//! The file's values become the defaults of the flags of the same name, so whatever a flag accepts, the file accepts,
//! and the precedence is clap's own. Keys at the top are for every subcommand that has such a flag; keys in a table
//! named like a subcommand are for that one. A key gives way to a flag that it cannot be used with. An error that the file has a
//! part in names the file and the key.
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
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};

use crate::exit::{Exit, Failure};

/// The file that is named, if one is, and what it sets.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    file: PathBuf,
    table: Table,
    set: Vec<Setting>,
    /// Keys that gave way to a flag.
    dropped: Vec<String>,
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
        let configuration = Configuration { file, ..Configuration::default() };
        let text = std::fs::read_to_string(&configuration.file)
            .map_err(|error| configuration.bad(&format!("cannot be read: {error}")))?;
        configuration.with_text(&text)
    }

    /// The same file, with this in it.
    pub(crate) fn with_text(mut self, text: &str) -> Result<Configuration, Failure> {
        self.table = text.parse().map_err(|error: toml::de::Error| {
            // Not the line itself, which may have a password in it.
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            self.bad(&format!("line {line}: {}", error.message()))
        })?;
        Ok(self)
    }

    /// The command line with the defaults that the file gives.
    pub(crate) fn apply(&mut self, mut command: Command) -> Result<Command, Failure> {
        let subcommands: Vec<String> =
            command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
        self.set.clear();
        for (key, value) in self.table.clone() {
            match value {
                Value::Table(inner) if subcommands.contains(&key) => {
                    for (inner_key, value) in inner {
                        command = self.set(command, &[&key], Some(&key), inner_key, value)?;
                    }
                }
                Value::Table(_) => return Err(self.no_section(&key, &command)),
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
        if self.dropped.contains(&setting.to_string()) {
            return Ok(command);
        }
        let value = match value {
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(switch) => switch.to_string(),
            other => {
                let kind = if other.is_array() { "an array" } else { "a date" };
                return Err(
                    self.bad(&format!("{setting} must be a string, a number or a boolean, not {kind}"))
                );
            }
        };
        let key = setting.key.as_str();
        let mut found = of.is_none() && flag_named(&command, key).is_some();
        if found {
            command = with_default(command, key, &value);
        }
        for name in subcommands {
            command = command.mut_subcommand(name.as_ref(), |one| {
                found |= flag_named(&one, key).is_some();
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
            let counts =
                flag_named(one, &setting.key).and_then(|flag| found.value_source(flag.get_id().as_str()));
            setting.of.as_deref().is_none_or(|of| of == name) && counts == Some(ValueSource::DefaultValue)
        });
    }

    /// Drops what cannot be used together with a flag or a variable, which are stronger; whether there was any. Two keys that
    /// cannot be used together are a mistake.
    pub(crate) fn gives_way(&mut self, command: &Command, found: &ArgMatches) -> Result<bool, Failure> {
        let Some((name, found)) = found.subcommand() else { return Ok(false) };
        let Some(one) = command.find_subcommand(name) else { return Ok(false) };
        let of_file = |flag: &Arg| {
            let is_on =
                |setting: &&Setting| flag.get_long() == Some(&setting.key) && setting.value != "false";
            self.set.iter().find(is_on)
        };
        for flag in one.get_arguments() {
            let Some(setting) = of_file(flag) else { continue };
            let excludes = |a: &Arg, b: &Arg| one.get_arg_conflicts_with(a).contains(&b);
            for other in one.get_arguments().filter(|other| excludes(flag, other) || excludes(other, flag)) {
                if let Some(second) = of_file(other) {
                    let sentence = format!("{setting} and {second} cannot be used together: leave one out");
                    return Err(self.bad(&sentence));
                }
                let source = found.value_source(other.get_id().as_str());
                if matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
                    self.dropped.push(setting.to_string());
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The failure, if it is the file's value that no flag would accept.
    pub(crate) fn blamed_for(&self, error: &clap::Error, arguments: &[OsString]) -> Option<Failure> {
        let (Some(ContextValue::String(flag)), Some(ContextValue::String(value))) =
            (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
        else {
            return None;
        };
        // As `--verbose...`, where it may be given several times.
        let flag = flag.split(' ').next()?.trim_end_matches("...");
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
        let involved = self.set.iter().filter(|setting| failure.is_about(&setting.key));
        let keys: Vec<String> = involved.map(ToString::to_string).collect();
        if failure.exit() != Exit::Usage || keys.is_empty() {
            return String::new();
        }
        format!(" (from the configuration {}: {})", self.file.display(), keys.join(", "))
    }

    fn unknown(&self, setting: &Setting, command: &Command) -> Failure {
        if setting.of.is_some() && flag_named(command, &setting.key).is_some() {
            let key = &setting.key;
            return self.bad(&format!("{key} applies to every command: write it above the first section"));
        }
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

    fn no_section(&self, name: &str, command: &Command) -> Failure {
        let known = command.clone().try_get_matches_from(["bellwether", name]).err();
        let similar = match known.as_ref().and_then(|error| error.get(ContextKind::SuggestedSubcommand)) {
            Some(ContextValue::Strings(similar)) => similar.first().cloned(),
            _ => None,
        };
        let advice = match similar {
            Some(similar) => format!("did you mean [{similar}]?"),
            None => "a section is named like a command, such as [run]".to_owned(),
        };
        self.bad(&format!("there is no section [{name}]; {advice}"))
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

fn flag_named<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|flag| flag.get_long() == Some(name))
}

fn with_default(command: Command, flag: &str, value: &str) -> Command {
    let Some(id) = flag_named(&command, flag).map(|flag| flag.get_id().clone()) else { return command };
    command.mut_arg(id, |flag| {
        let value = match (flag.get_action(), value) {
            (ArgAction::Count, "true") => "1",
            (ArgAction::Count, "false") => "0",
            _ => value,
        };
        flag.default_value(value.to_owned())
    })
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
