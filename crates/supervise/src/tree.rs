//! Finding and signalling a process's descendants, where no PID namespace does it for us.
//!
//! A process that is an adopter of orphans sees every descendant of its own in `/proc`, whatever it did to get away: a
//! daemon's parents end, and the daemon becomes the adopter's child. One pass may miss a process that is being made at
//! that moment, so whoever needs them all gone repeats it until there is no child left.
//!
//! A number from `/proc` may have passed on to a stranger by the time it is used. So each process is first held by a
//! pidfd, then looked at again: only one that still has the parent it was found by, or us, is signalled. Zombies are left out.

use crate::ended::Survivor;
use bellwether_deadman::process::{Pid, Signal};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, WaitOptions};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most processes that one pass looks at; what is beyond waits for the next pass.
const PASS_MAX: usize = 100_000;

/// What one pass found.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Who was sent the signal.
    pub(crate) reached: Vec<Pid>,
    /// Who may not be signalled by this process.
    pub(crate) refused: Vec<Survivor>,
}

impl Pass {
    /// Somebody whom no further pass will reach, once everybody else is gone.
    pub(crate) fn unkillable(&self) -> Option<Survivor> {
        if self.reached.is_empty() { self.refused.first().copied() } else { None }
    }
}

/// Sends a signal to every descendant of this process that one pass finds.
pub(crate) fn signal_descendants(signal: Signal) -> Pass {
    signal_descendants_if(signal, |_, _| true)
}

/// Likewise, but only to those that `chosen` picks by their directory in `/proc` and by whether they are children of this process, and all
/// descendants of theirs.
pub(crate) fn signal_descendants_if(signal: Signal, chosen: impl Fn(&Path, bool) -> bool) -> Pass {
    let Some(numbering) = Numbering::new() else { return Pass::default() };
    let own = numbering.own;
    let mut found = BTreeSet::new();
    let mut waiting: Vec<(i32, bool)> = vec![(own, false)];
    let mut pass = Pass::default();
    while let Some((parent, inherited)) = waiting.pop() {
        for shown in children(parent) {
            if found.len() >= PASS_MAX || !found.insert(shown) {
                continue;
            }
            let picked = inherited || chosen(&directory(shown), parent == own);
            waiting.push((shown, picked));
            if picked {
                numbering.signal(shown, &[parent, own], signal, &mut pass);
            }
        }
    }
    pass
}

/// Reaps every child that has ended, telling `each` about it. True when no child is left.
pub(crate) fn reap(mut each: impl FnMut(Pid, i32)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => each(pid, status.as_raw()),
            Ok(None) => return false,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// The children of this process that have ended and that nobody has waited for, guards left out.
pub(crate) fn zombies() -> Vec<Pid> {
    let Some(numbering) = Numbering::new() else { return Vec::new() };
    let ended = |shown: &i32| {
        let zombie = stat(*shown).is_some_and(|(state, _)| state == "Z");
        let name = fs::read_to_string(directory(*shown).join("comm")).unwrap_or_default();
        zombie && !name.starts_with("bellw")
    };
    children(numbering.own).into_iter().filter(ended).filter_map(|shown| numbering.ours(shown)).collect()
}

/// Whether the process with this directory in `/proc` was started with all of these variables; `or` if it has more rights than this process
/// and so hides them.
pub(crate) fn has_env(process: &Path, variables: &[(String, String)], or: bool) -> bool {
    let environment = match fs::read(process.join("environ")) {
        Ok(environment) => environment,
        Err(error) => return or && error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    variables.iter().all(|(name, value)| {
        let wanted = format!("{name}={value}");
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    })
}

/// How the numbers in `/proc` relate to ours: it may have been mounted for a namespace further out.
struct Numbering {
    /// This process, as `/proc` has it.
    own: i32,
    /// Which of the numbers that `/proc` gives for a process is the one in our namespace; `None` if it has only ours.
    column: Option<usize>,
}

impl Numbering {
    fn new() -> Option<Numbering> {
        let own = fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()?;
        let foreign = u32::try_from(own) != Ok(std::process::id());
        let column = if foreign { Some(numbers(own)?.len().checked_sub(1)?) } else { None };
        Some(Numbering { own, column })
    }

    /// Signals the process, if it still lives and is a child of one of these.
    fn signal(&self, shown: i32, parents: &[i32], signal: Signal, pass: &mut Pass) {
        let Some(pid) = self.ours(shown) else { return };
        let Ok(held) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        if !parent_of_living(shown).is_some_and(|parent| parents.contains(&parent)) {
            return;
        }
        match rustix::process::pidfd_send_signal(&held, signal) {
            Ok(()) => pass.reached.push(pid),
            Err(Errno::PERM) => {
                let pid = pid.as_raw_pid().cast_unsigned();
                pass.refused.push(Survivor { pid, uid: owner(shown).unwrap_or(0) });
            }
            Err(_) => {}
        }
    }

    /// Its number in our namespace.
    fn ours(&self, shown: i32) -> Option<Pid> {
        let number = match self.column {
            None => shown,
            Some(column) => *numbers(shown)?.get(column)?,
        };
        Pid::from_raw(number)
    }
}

fn directory(shown: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{shown}"))
}

/// A process's number in each namespace that it is in, from that of `/proc` inwards.
fn numbers(shown: i32) -> Option<Vec<i32>> {
    let line = status(shown, "NSpid:")?;
    line.split_whitespace().map(|number| number.parse().ok()).collect()
}

/// The number of the user that a process belongs to.
fn owner(shown: i32) -> Option<u32> {
    status(shown, "Uid:")?.split_whitespace().next()?.parse().ok()
}

fn status(shown: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(directory(shown).join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
}

fn parent_of_living(shown: i32) -> Option<i32> {
    stat(shown).filter(|(state, _)| !["Z", "X"].contains(&state.as_str())).map(|(_, parent)| parent)
}

/// Its state and its parent.
fn stat(shown: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(directory(shown).join("stat")).ok()?;
    // The name comes in parentheses and may contain any of what follows it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// The children of every thread of a process. Empty if it is gone.
fn children(shown: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(directory(shown).join("task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    let mut all = Vec::new();
    for list in lists {
        match list {
            Ok(list) => all.extend(list.split_whitespace().filter_map(|number| number.parse::<i32>().ok())),
            // A kernel without these lists: look at everybody.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !has_lists() => {
                let child = |other: &i32| stat(*other).is_some_and(|(_, parent)| parent == shown);
                return everybody().filter(child).collect();
            }
            // The thread has just ended.
            Err(_) => {}
        }
    }
    all
}

fn has_lists() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

fn everybody() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
