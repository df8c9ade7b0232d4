//! From the command line, the environment and the configuration file to [`Args`], or to a sentence that says what to write
//! instead.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::args::{Args, Command, Global, Run};
use crate::config::Configuration;
use crate::exit::{Exit, Failure};
use crate::{output, stderr};

/// What was asked for, and what the configuration file had to do with it; or how to end without.
pub(crate) fn parse() -> Result<(Args, Configuration), Exit> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let told = |failure: Failure| {
        stderr::end(Some(failure.to_string()));
        failure.exit()
    };
    let mut configuration = Configuration::named(&arguments).map_err(told)?;
    let plain = without_empty_variables(with_exit_codes(Args::command()));
    let (command, found) = matched(plain, &arguments, &mut configuration).map_err(told)?;
    let parsed = found.and_then(|found| Args::from_arg_matches(&found).map(|args| (args, found)));
    let (mut args, found) = parsed.map_err(|error| {
        if let Some(failure) = configuration.blamed_for(&error, &arguments) {
            return told(failure);
        }
        // Help and version are not mistakes.
        let asked_for = !error.use_stderr();
        match with_tip(error, &arguments, command).print() {
            Err(error) if asked_for => output::lost(&error).map_or(Exit::Clean, told),
            _ if asked_for => Exit::Clean,
            _ => Exit::Usage,
        }
    })?;
    no_flags_without_command(&found)
        .and_then(|()| drop_weaker_backend(&found, &mut args.global))
        .map_err(told)?;
    no_empty_command(&args, &arguments).and_then(|()| no_half_of_two(&args)).map_err(|failure| {
        stderr::end(Some(format!("{failure}{}", configuration.part_in(&failure))));
        failure.exit()
    })?;
    Ok((args, configuration))
}

/// What the command line says, with the configuration for what it leaves open.
pub(crate) fn matched(
    plain: clap::Command,
    arguments: &[OsString],
    configuration: &mut Configuration,
) -> Result<(clap::Command, Result<ArgMatches, clap::Error>), Failure> {
    loop {
        let mut command = configuration.apply(plain.clone())?;
        let found = command.try_get_matches_from_mut(arguments);
        if let Ok(found) = &found {
            configuration.leave_out_overridden(&command, found);
            if configuration.gives_way(&command, found)? {
                continue;
            }
        }
        return Ok((command, found));
    }
}

/// A variable of these that is empty counts as unset. An empty BELLWETHER_BACKEND does not: the default would be another store.
const MAY_BE_EMPTY: [&str; 2] = ["BELLWETHER_CONFIG", "BELLWETHER_ID"];

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command.mut_args(|flag| match flag.get_env() {
        Some(name) if MAY_BE_EMPTY.iter().any(|may| *may == name) && is_empty(name) => flag.env(None::<&str>),
        _ => flag,
    })
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

/// Of the two ways to name a backend, leaves the stronger: a flag is stronger than the environment, and that is stronger than the
/// configuration.
fn drop_weaker_backend(found: &ArgMatches, global: &mut Global) -> Result<(), Failure> {
    let mut innermost = found;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    let source = |id| innermost.value_source(id).max(found.value_source(id));
    let typed = |id| source(id) == Some(ValueSource::CommandLine);
    if source("dsn").is_some() && (typed("backend") || typed("backend_file")) {
        let sentence = "--dsn and --backend both name where the election is held: give one";
        return Err(Failure::new(Exit::Usage, sentence).about_backend());
    }
    let (Some(url), Some(file)) = (source("backend"), source("backend_file")) else { return Ok(()) };
    match url.cmp(&file) {
        Ordering::Less => global.backend = None,
        Ordering::Greater => global.backend_file = None,
        Ordering::Equal => {
            let sentence = "--backend and --backend-file both name where the election is held: give one";
            return Err(Failure::new(Exit::Usage, sentence));
        }
    }
    Ok(())
}

/// The error with what to write instead, where that is known better than clap can.
fn with_tip(mut error: clap::Error, arguments: &[OsString], command: clap::Command) -> clap::Error {
    if let Some(tip) = tip(&error, arguments, command) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &clap::Error, arguments: &[OsString], command: clap::Command) -> Option<String> {
    let Some(ContextValue::String(unexpected)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let found = command.clone().ignore_errors(true).try_get_matches_from(arguments).ok()?;
    let one = command.find_subcommand(found.subcommand_name()?)?;
    // Of `-3s` clap names `-3`.
    let at = arguments.iter().position(|one| one.to_str().is_some_and(|one| one.starts_with(unexpected)))?;
    let typed = arguments[at].to_string_lossy();
    let before = arguments[at - 1].to_string_lossy();
    let is_flag = |flag: &&clap::Arg| {
        let long = flag.get_long().map(|name| format!("--{name}"));
        let short = flag.get_short().map(|name| format!("-{name}"));
        [long, short].into_iter().flatten().any(|name| name == before)
    };
    let flag = one.get_arguments().find(is_flag).filter(|flag| flag.get_action().takes_values());
    match flag {
        Some(flag) if flag.is_require_equals_set() => {
            Some(format!("its value comes after a `=`: {before}={typed}"))
        }
        Some(_) if typed.starts_with('-') => Some(format!("{before} takes no negative value")),
        // `run demo sleep 10` is how everybody writes it the first time.
        None if one.get_name() == "run" && !typed.starts_with('-') => {
            Some(format!("a command comes after `--`: bellwether run ELECTION -- {typed} …"))
        }
        _ => None,
    }
}

/// Flags that mean nothing without another one, which may be in the configuration.
fn no_half_of_two(args: &Args) -> Result<(), Failure> {
    if args.global.postgres.has_half_a_lock() {
        let sentence = "--key1 and --key2 are the two numbers of one lock: give both, or neither";
        return Err(Failure::new(Exit::Usage, sentence));
    }
    match &args.command {
        Command::Run(run) if !run.hook_on.is_empty() && run.hook.is_none() => {
            let sentence = "--hook-on chooses events for --hook, which is missing: add --hook CMD";
            Err(Failure::new(Exit::Usage, sentence))
        }
        #[cfg(feature = "http")]
        Command::Run(run) if run.http.for_clients && !run.command_line().is_empty() => {
            let sentence =
                "--for-clients is for work in clients, and COMMAND is the work here: leave one of them out";
            Err(Failure::new(Exit::Usage, sentence))
        }
        #[cfg(feature = "http")]
        Command::Run(run) if run.http.for_clients && run.health.health_cmd.is_some() => {
            let sentence = "--for-clients and --health-cmd do not go together: a client campaigns only while it is healthy";
            Err(Failure::new(Exit::Usage, sentence))
        }
        #[cfg(feature = "http")]
        Command::Run(run) => run.http.mistake().map_or(Ok(()), |why| Err(Failure::new(Exit::Usage, why))),
        _ => Ok(()),
    }
}

/// A flag about a command where there is none: the command was forgotten. In the configuration such a key is no mistake, since it is for
/// other runs as well.
fn no_flags_without_command(found: &ArgMatches) -> Result<(), Failure> {
    let Some(("run", run)) = found.subcommand() else { return Ok(()) };
    let typed = |id: &&&str| run.value_source(id) == Some(ValueSource::CommandLine);
    // Without the feature, there is no such flag.
    let is_served = run.try_contains_id("http").unwrap_or(false);
    let typed = |id: &&&str| typed(id) && !(is_served && **id == "stop_timeout");
    let is_given = |id| run.value_source(id).is_some();
    match Run::OF_COMMAND.iter().find(typed) {
        Some(flag) if !is_given("command") && !is_given("line") => {
            let flag = flag.replace('_', "-");
            let sentence = format!(
                "--{flag} is about a command, and there is none: write it after `--`, or leave --{flag} out"
            );
            Err(Failure::new(Exit::Usage, sentence))
        }
        _ => Ok(()),
    }
}

/// Where the command is missing after `--`, it is mostly a variable that is not set, and rarely the wish to lead without a command.
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
