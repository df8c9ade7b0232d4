//! Processes that torture started, and those that came of them.
//!
//! A process is held by a descriptor, so that a signal never reaches another one that has got its number since. Everything that is
//! started carries a [mark](Mark) in its environment, by which descendants are found, whatever they did to get away.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bellwether_deadman::process::ProcStat;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable that marks what a run has started.
const VARIABLE: &str = "BELLWETHER_TORTURE";

/// What tells the processes of one run from all others.
#[derive(Clone, Debug)]
pub(crate) struct Mark(String);

/// A process, held.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) pid: i32,
    fd: OwnedFd,
}

impl Mark {
    /// One that no other run has.
    pub(crate) fn new(bits: u128) -> Mark {
        Mark(format!("{bits:032x}"))
    }

    /// The variable and its value.
    pub(crate) fn variable(&self) -> (&str, &str) {
        (VARIABLE, &self.0)
    }

    /// Every living process that carries it. Zombies have no environment.
    pub(crate) fn carried(&self) -> Vec<Held> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| *pid != std::process::id().cast_signed()).filter_map(|pid| self.held(pid)).collect()
    }

    /// The process and all that came of it: its guard is its child, and the command is a descendant of that.
    pub(crate) fn family(&self, first: i32) -> Vec<Held> {
        let all = self.carried();
        let parents: Vec<(i32, i32)> =
            all.iter().filter_map(|one| Some((one.pid, ProcStat::of(one.pid).ok()?.parent))).collect();
        let mut family = vec![first];
        // Parents are found before their children, however deep: each round finds one generation.
        loop {
            let found = |(pid, parent): &(i32, i32)| {
                (family.contains(parent) && !family.contains(pid)).then_some(*pid)
            };
            let more: Vec<i32> = parents.iter().filter_map(found).collect();
            if more.is_empty() {
                break;
            }
            family.extend(more);
        }
        all.into_iter().filter(|one| family.contains(&one.pid)).collect()
    }

    /// Holds the process if it carries the mark: looked at once it is held, so it is that one.
    fn held(&self, pid: i32) -> Option<Held> {
        let held = Held::open(pid).ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let wanted = format!("{VARIABLE}={}", self.0);
        environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()).then_some(held)
    }
}

impl Held {
    /// The process of this number. It is the one that was meant if it cannot have been reaped yet, or is looked at afterwards.
    pub(crate) fn open(pid: i32) -> io::Result<Held> {
        let number = Pid::from_raw(pid).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Held { pid, fd: pidfd_open(number, PidfdFlags::NONBLOCK)? })
    }

    /// Sends it a signal; it may be gone already.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.fd, signal);
    }

    /// A descriptor that is readable once the process has ended.
    pub(crate) fn ended(&self) -> io::Result<OwnedFd> {
        self.fd.as_fd().try_clone_to_owned()
    }

    /// What people call it.
    pub(crate) fn name(&self) -> String {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        format!("{} ({})", self.pid, name.trim())
    }
}
