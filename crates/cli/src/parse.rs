//! From the command line, the environment and the configuration file to [`Args`], or to a sentence that says what to write
//! instead.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::args::{Args, Command};
use crate::config::Configuration;
use crate::exit::{Exit, Failure};
use crate::stderr;

/// What was asked for, and what the configuration file had to do with it; or how to end without.
pub(crate) fn parse() -> Result<(Args, Configuration), Exit> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let told = |failure: Failure| {
        stderr::end(Some(failure.to_string()));
        failure.exit()
    };
    let mut command = with_exit_codes(Args::command());
    let mut configuration = Configuration::named(&arguments).map_err(told)?;
    command = configuration.apply(command).map_err(told)?;
    let found = command.try_get_matches_from_mut(&arguments);
    if let Ok(found) = &found {
        configuration.leave_out_overridden(&command, found);
    }
    let weaker = found.as_ref().map_or(Ok(None), weaker_backend).map_err(told)?;
    let mut args = found.and_then(|found| Args::from_arg_matches(&found)).map_err(|error| {
        if let Some(failure) = configuration.blamed_for(&error, &arguments) {
            return told(failure);
        }
        // Help and version are not mistakes.
        let exit = if error.use_stderr() { Exit::Usage } else { Exit::Clean };
        let _ = with_tip(error, &arguments).print();
        exit
    })?;
    match weaker {
        Some(Weaker::Url) => args.global.backend = None,
        Some(Weaker::File) => args.global.backend_file = None,
        None => {}
    }
    no_empty_command(&args, &arguments).map_err(told)?;
    Ok((args, configuration))
}

/// `--help` ends with them.
fn with_exit_codes(mut command: clap::Command) -> clap::Command {
    let rows = Exit::table().into_iter().map(|(code, meaning)| format!("\n  {code:>3}  {meaning}"));
    let codes = format!("Exit codes:{}", rows.collect::<String>());
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |one| one.after_long_help(codes.clone()));
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_long_help(format!("{codes}\n\n{after}"))
}

/// Of the two ways to name a backend, the one that does not count.
enum Weaker {
    Url,
    File,
}

/// A flag is stronger than the environment, and that is stronger than the configuration.
fn weaker_backend(found: &ArgMatches) -> Result<Option<Weaker>, Failure> {
    let mut innermost = found;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    let source = |id| innermost.value_source(id).max(found.value_source(id));
    let (Some(url), Some(file)) = (source("backend"), source("backend_file")) else { return Ok(None) };
    match url.cmp(&file) {
        Ordering::Less => Ok(Some(Weaker::Url)),
        Ordering::Greater => Ok(Some(Weaker::File)),
        Ordering::Equal => {
            let sentence = "--backend and --backend-file both name where the election is held: give one";
            Err(Failure::new(Exit::Usage, sentence))
        }
    }
}

/// `run demo sleep 10` is how everybody writes it the first time.
fn with_tip(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(unexpected)) = error.get(ContextKind::InvalidArg) else { return error };
    let is_word = error.kind() == ErrorKind::UnknownArgument && !unexpected.starts_with('-');
    if is_word && arguments.iter().any(|argument| argument == "run") {
        let tip = format!("a command comes after `--`: bellwether run ELECTION -- {unexpected} …");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// A command that is missing after `--` is mostly a variable that nobody has set, and no wish to lead and do nothing.
fn no_empty_command(args: &Args, arguments: &[OsString]) -> Result<(), Failure> {
    let Command::Run(run) = &args.command else { return Ok(()) };
    let left_out = run.command.is_empty() && arguments.last().is_some_and(|last| last == "--");
    if left_out || run.command.first().is_some_and(|name| name == OsStr::new("")) {
        let sentence = "there is no command after `--`: write one, or leave `--` out to lead without one";
        return Err(Failure::new(Exit::Usage, sentence));
    }
    if run.line.as_ref().is_some_and(|line| line.is_empty()) {
        return Err(Failure::new(Exit::Usage, "the line after `-c` is empty: write a command for the shell"));
    }
    Ok(())
}
