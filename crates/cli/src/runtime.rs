//! The runtime that every command runs in, or what this machine lacks for one.
//!
//! Tokio panics if it cannot start a thread, or open the descriptors that it hears of signals by. So both are tried first, and a
//! shortage ends with an error message.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use bellwether_supervise::advised;
use tokio::runtime::{Builder, Runtime};

use crate::args::Command;
use crate::exit::{Exit, Failure};

const WORKERS: usize = 2;
/// What tokio opens at once: its poller, a second handle to it, its waker, and for signals a pair of sockets and a copy of one.
const DESCRIPTORS: usize = 6;

/// Makes it, for this command.
pub(crate) fn make(command: &Command) -> Result<Runtime, Failure> {
    let build = || Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    try_descriptors().and_then(|()| try_threads()).and_then(|()| build()).map_err(|error| {
        let (what, exit) = match command {
            Command::Run(run) if !run.command_line().is_empty() => {
                ("the command cannot be started here", Exit::Command(126))
            }
            _ => ("bellwether cannot work here", Exit::Unavailable),
        };
        Failure::new(exit, format!("{what}: {}", advised(&error)))
    })
}

fn try_descriptors() -> io::Result<()> {
    let stdin = io::stdin();
    let all: io::Result<Vec<OwnedFd>> =
        (0..DESCRIPTORS).map(|_| stdin.as_fd().try_clone_to_owned()).collect();
    all.map(drop)
}

fn try_threads() -> io::Result<()> {
    let mut waiting = Vec::new();
    let mut tried = Ok(());
    while tried.is_ok() && waiting.len() < WORKERS {
        tried = thread::Builder::new().spawn(thread::park).map(|one| waiting.push(one));
    }
    for one in waiting {
        one.thread().unpark();
        // It cannot have panicked.
        let _ = one.join();
    }
    tried
}
