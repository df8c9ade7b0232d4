//! Processes of this machine, as `/proc` shows them.

use std::fs;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::PATIENCE;

/// A living process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// The first 15 bytes of its name.
    pub name: String,
    /// The leadership in its environment: set in COMMAND and its tree, and in nobody else.
    pub epoch: Option<u64>,
}

impl Process {
    /// Every living process with this variable, `NAME=VALUE`, in its environment. Zombies have no environment.
    pub fn all_with(variable: &str) -> Vec<Process> {
        let entries = fs::read_dir("/proc").expect("Linux's /proc").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Process::read(pid, variable)).collect()
    }

    fn read(pid: i32, variable: &str) -> Option<Process> {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        if !variables.clone().any(|one| one == variable.as_bytes()) {
            return None;
        }
        let epoch =
            variables.find_map(|one| std::str::from_utf8(one).ok()?.strip_prefix("BELLWETHER_EPOCH="));
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name comes in parentheses and may contain any of what follows it.
        let (head, rest) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let mut rest = rest.split_whitespace();
        let alive = rest.next()? != "Z";
        let parent = rest.next()?.parse().ok()?;
        alive.then(|| Process { pid, parent, name, epoch: epoch.and_then(|epoch| epoch.parse().ok()) })
    }

    /// Sends it a signal; it may be gone already.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_raw(self.pid).expect("a process id"), signal);
    }

    /// Waits for its end, and returns the instant at which that was seen.
    pub fn wait_for_end(&self) -> Boot {
        let pid = Pid::from_raw(self.pid).expect("a process id");
        if let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) {
            let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
            let ended = poll(&mut [PollFd::new(&held, PollFlags::IN)], Some(&limit));
            assert_eq!(ended, Ok(1), "{self:?} lives on");
        }
        boot_now()
    }
}
