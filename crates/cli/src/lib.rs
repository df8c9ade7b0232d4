//! The `bellwether` command: hold elections from a shell.
//!
//! `parse` reads what is asked, `commands` does it, `exit` says how it ended. One file a subcommand. The program calls [`main`] and does
//! nothing else; that there is a library lets fuzzing reach the configuration.

// `print!` panics when nobody reads, and waits for a slow reader; `output` and `stderr` do neither.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod backend;
mod commands;
mod config;
mod exit;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod id;
mod logging;
mod output;
mod parse;
mod runtime;
mod secrets;
mod stderr;
mod systemd;

use std::process::ExitCode;

use bellwether_supervise::advised;

use crate::args::Command;
use crate::exit::Exit;

/// How long the tasks that are left at the end may take to be dropped.
const LAST_TASKS: std::time::Duration = std::time::Duration::from_millis(500);

/// The whole command.
pub fn main() -> ExitCode {
    // The guard of a command and the parts of torture are this program again; and as process 1 of a container neither kernel timers nor default
    // signals work, so there the real one is a child. Both before there is a second thread.
    bellwether_supervise::guard_main_if_asked();
    #[cfg(feature = "torture")]
    bellwether_torture::role_main_if_asked();
    if let Err(error) = bellwether_deadman::leave_pid1() {
        stderr::end(Some(format!("running as PID 1, and fork failed: {}", advised(&error))));
        return Exit::Bug.into();
    }
    let (mut args, configuration) = match parse::parse() {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    // Only a process of one thread can try it, so it is tried here.
    if let Command::Doctor(doctor) = &mut args.command {
        doctor.containment = Some(bellwether_supervise::containment_here().map_err(|error| advised(&error)));
    }
    logging::start(&args.global, args.has_live_screen());
    let outcome = runtime::make(&args.command).and_then(|runtime| {
        let outcome = runtime.block_on(commands::run(args));
        // Tasks that still run are dropped, and what they started (a health check, a hook) is killed by that; but a
        // thread that is stuck writing to a full pipe must not keep the process.
        runtime.shutdown_timeout(LAST_TASKS);
        outcome
    });
    let (exit, sentence) = match outcome {
        Ok(exit) => (exit, None),
        Err(failure) => (failure.exit(), Some(format!("{failure}{}", configuration.part_in(&failure)))),
    };
    stderr::end(sentence);
    exit.into()
}
