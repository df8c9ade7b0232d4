//! `bellwether completions` and `bellwether man`: generated from the same table as `--help`.

use std::io;

use clap::CommandFactory;

use crate::args::Args;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "bellwether", &mut text);
    output::write(&text)?;
    Ok(Exit::Clean)
}

/// Prints the manual page, with a section for each subcommand's flags.
pub(crate) fn man() -> Result<Exit, Failure> {
    let text = manual()
        .map_err(|error| Failure::new(Exit::Bug, format!("the manual cannot be printed: {error}")))?;
    output::write(&text)?;
    Ok(Exit::Clean)
}

fn manual() -> io::Result<Vec<u8>> {
    let mut command = Args::command();
    command.build();
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    let mut codes = String::from(".SH \"EXIT STATUS\"\n");
    for (code, meaning) in Exit::table() {
        codes += &format!(".TP\n\\fB{code}\\fR\n{}\n", meaning.replace('\\', "\\\\").replace('-', "\\-"));
    }
    text.extend_from_slice((environment(&command) + &codes).as_bytes());
    pages(&command, "bellwether", &mut text)?;
    Ok(text)
}

/// The variables that stand for flags.
fn environment(command: &clap::Command) -> String {
    let rows = command.get_arguments().filter_map(|flag| {
        let (name, flag) = (flag.get_env()?.to_str()?, flag.get_long()?.replace('-', "\\-"));
        Some(format!(".TP\n\\fB{name}\\fR\nThe same as \\-\\-{flag}, where that flag is left out\n"))
    });
    format!(".SH ENVIRONMENT\n{}", rows.collect::<String>())
}

/// A page for each subcommand that users see, and for each of its own.
fn pages(command: &clap::Command, name: &str, text: &mut Vec<u8>) -> io::Result<()> {
    let shown = |one: &&clap::Command| !one.is_hide_set() && one.get_name() != "help";
    for one in command.get_subcommands().filter(shown) {
        let name = format!("{name}-{}", one.get_name());
        clap_mangen::Man::new(one.clone().display_name(name.clone())).render(text)?;
        pages(one, &name, text)?;
    }
    Ok(())
}
