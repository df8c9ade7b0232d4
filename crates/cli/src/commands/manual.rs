//! `bellwether completions` and `bellwether man`: generated from the same table as `--help`.

use std::io::{Write, stdout};

use clap::CommandFactory;

use crate::args::{Args, Completions};
use crate::exit::{Exit, Failure};

/// Prints completions for a shell.
pub(crate) fn completions(completions: &Completions) -> Exit {
    clap_complete::generate(completions.shell, &mut Args::command(), "bellwether", &mut stdout());
    Exit::Clean
}

/// Prints the manual page, with a section for each subcommand's flags.
pub(crate) fn man() -> Result<Exit, Failure> {
    let mut command = Args::command();
    command.build();
    let failed = |error| Failure::new(Exit::Bug, format!("the manual cannot be printed: {error}"));
    clap_mangen::Man::new(command.clone()).render(&mut stdout()).map_err(failed)?;
    let mut codes = String::from(".SH \"EXIT STATUS\"\n");
    for (code, meaning) in Exit::table() {
        codes += &format!(".TP\n\\fB{code}\\fR\n{}\n", meaning.replace('\\', "\\\\").replace('-', "\\-"));
    }
    stdout().write_all(codes.as_bytes()).map_err(failed)?;
    for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
        let named = one.clone().display_name(format!("bellwether-{}", one.get_name()));
        clap_mangen::Man::new(named).render(&mut stdout()).map_err(failed)?;
    }
    Ok(Exit::Clean)
}
