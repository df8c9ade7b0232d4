//! Finding and signalling a process's descendants, where no PID namespace does it for us.
//!
//! A process that is an adopter of orphans sees every descendant of its own in `/proc`, whatever it did to get away: a
//! daemon's parents end, and the daemon becomes the adopter's child. One pass may miss a process that is being made at
//! that moment, so whoever needs them all gone repeats it until there is no child left.
//!
//! A number from `/proc` may have passed on to a stranger by the time it is used. So each process is first held by a
//! pidfd, then looked at again: only one that still has the parent it was found by, or us, is signalled. Zombies are left out.

use crate::Survivor;
use bellwether_deadman::process::{Pid, ProcStat, Signal, is_gone};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, WaitOptions};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most processes that one pass looks at; what is beyond waits for the next pass.
const PASS_MAX: usize = 100_000;

/// What one pass found.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Who was sent the signal.
    reached: usize,
    /// Who may not be signalled by this process.
    refused: Vec<Survivor>,
    /// The children of this process that it is about, zombies too, by their numbers in `/proc` and here.
    children: Vec<(i32, Option<Pid>)>,
    /// Whether the children of this process could be listed.
    listed: bool,
}

impl Pass {
    /// Somebody whom no further pass will reach, once everybody else is gone.
    pub(crate) fn unkillable(&self) -> Option<Survivor> {
        if self.reached == 0 { self.refused.first().copied() } else { None }
    }

    /// Whether there was nobody. A zombie is somebody: what it leaves may have come to this process after its children were listed.
    pub(crate) fn found_nobody(&self) -> bool {
        self.listed && self.children.is_empty()
    }

    /// Reaps those children that have ended.
    pub(crate) fn reap(&self) {
        for pid in self.children.iter().filter_map(|(_, pid)| *pid) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }

    /// Somebody who is left.
    pub(crate) fn left(&self) -> Survivor {
        let child = || {
            let (shown, pid) = *self.children.first()?;
            Some(Survivor { pid: pid?.as_raw_pid().cast_unsigned(), uid: owner(shown).unwrap_or(0) })
        };
        self.refused.first().copied().or_else(child).unwrap_or(Survivor::UNKNOWN)
    }
}

/// Sends a signal to every descendant of this process that one pass finds.
pub(crate) fn signal_descendants(signal: Signal) -> Pass {
    signal_descendants_but(signal, |_| false)
}

/// Likewise, but to no child of this process that is to be spared, nor to its descendants.
pub(crate) fn signal_descendants_but(signal: Signal, spared: impl Fn(Pid) -> bool) -> Pass {
    let Some(numbering) = Numbering::new() else { return Pass::default() };
    let own = numbering.own;
    let mut found = BTreeSet::new();
    let mut waiting = vec![own];
    let mut pass = Pass { listed: true, ..Pass::default() };
    while let Some(parent) = waiting.pop() {
        let listed = children(parent);
        pass.listed &= parent != own || listed.is_ok();
        for shown in listed.unwrap_or_default() {
            if found.len() >= PASS_MAX || !found.insert(shown) {
                continue;
            }
            if parent == own {
                let pid = numbering.ours(shown);
                if pid.is_some_and(&spared) {
                    continue;
                }
                pass.children.push((shown, pid));
            }
            waiting.push(shown);
            numbering.signal(shown, &[parent, own], signal, &mut pass);
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

/// The children of this process that have ended and that nobody has waited for.
pub(crate) fn zombies() -> Vec<Pid> {
    children_if(|shown| ProcStat::of(shown).is_ok_and(|stat| stat.ended))
}

/// All children of this process.
pub(crate) fn all_children() -> Vec<Pid> {
    children_if(|_| true)
}

fn children_if(wanted: impl Fn(i32) -> bool) -> Vec<Pid> {
    let Some(numbering) = Numbering::new() else { return Vec::new() };
    let children = children(numbering.own).unwrap_or_default().into_iter();
    children.filter(|shown| wanted(*shown)).filter_map(|shown| numbering.ours(shown)).collect()
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
            Ok(()) => pass.reached += 1,
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
    ProcStat::of(shown).ok().filter(|stat| !stat.ended).map(|stat| stat.parent)
}

/// The children of every thread of a process. None if it is gone.
fn children(shown: i32) -> io::Result<Vec<i32>> {
    let threads = match fs::read_dir(directory(shown).join("task")) {
        Ok(threads) => threads,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    let mut all = Vec::new();
    for list in lists {
        match list {
            Ok(list) => all.extend(list.split_whitespace().filter_map(|number| number.parse::<i32>().ok())),
            // A kernel without these lists: look at everybody.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !has_lists() => {
                let child = |other: &i32| ProcStat::of(*other).is_ok_and(|stat| stat.parent == shown);
                return Ok(everybody()?.filter(child).collect());
            }
            // The thread has just ended.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn has_lists() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

fn everybody() -> io::Result<impl Iterator<Item = i32>> {
    Ok(fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}
