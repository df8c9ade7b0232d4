//! What this very program is when it was started with one of the hidden arguments.
//!
//! - [`TIED`]: a process that the kernel kills when whoever started it ends, and that then becomes this program with the arguments behind. So
//!   nothing that torture started outlives it, even if it is killed itself: a candidate that dies takes its guard and its command along.
//! - [`WITNESS`]: the command that candidates run.
//! - [`CLOCKS`]: says what its clocks say.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, exit};

use bellwether_deadman::process::{die_with_parent, exec};

use crate::{wall_clock, witness};

const TIED: &str = "__tied";
const WITNESS: &str = "__witness";
const CLOCKS: &str = "__clocks";
/// Bad usage, as the command has it.
const USAGE: i32 = 64;
/// The process could not be tied, or not become what it was to be.
const BUG: i32 = 70;

/// In a process that torture started for a part of its own, does that and never returns, or returns as `bellwether` with other arguments.
/// In any other process, does nothing.
///
/// Call it first in `main`, before starting threads.
pub fn role_main_if_asked() {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(role) if role == WITNESS => exit(witness::main(args.next())),
        Some(role) if role == CLOCKS => {
            let (boot, wall) = wall_clock::clocks();
            println!("{boot} {wall}");
            exit(0)
        }
        Some(role) if role == TIED => exit(tied(args.collect())),
        _ => {}
    }
}

/// `program ARGS…`, tied to this process. Start it from a thread that never ends: the kernel ties it to the thread.
pub(crate) fn tied_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(TIED).arg(std::process::id().to_string());
    command
}

/// A process that says what its clocks say.
pub(crate) fn clocks_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(CLOCKS);
    command
}

/// The command of a candidate: a witness in this directory.
pub(crate) fn witness_args(program: &Path, directory: &Path) -> [OsString; 3] {
    [program.into(), WITNESS.into(), directory.into()]
}

/// Dies with its parent from now on, and becomes this program with the other arguments; returns the code to end with if it cannot.
fn tied(args: Vec<OsString>) -> i32 {
    let mut args = args.into_iter();
    let Some(parent) = args.next().and_then(|text| text.to_str()?.parse::<i32>().ok()) else {
        eprintln!("`{TIED}` is internal: bellwether torture starts its candidates with it");
        return USAGE;
    };
    // If the parent has ended meanwhile, nobody would end this process.
    let is_there = || rustix::process::getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent);
    if die_with_parent().is_err() || !is_there() {
        return BUG;
    }
    let Ok(program) = std::env::current_exe() else { return BUG };
    let argv: Vec<OsString> = std::iter::once(program.clone().into()).chain(args).collect();
    let error = exec(&program, &argv, &[]);
    eprintln!("{} cannot be started: {error}", program.display());
    BUG
}
