//! What `/proc/PID/stat` says of a process.

use std::{fs, io};

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug)]
pub struct ProcStat {
    /// It is a zombie, or gone.
    pub ended: bool,
    /// The number of its parent.
    pub parent: i32,
    /// When it began, in ticks of the kernel since boot: with its number, this names a process for good.
    pub began: u64,
}

impl ProcStat {
    /// Reads it for the process of this number, as `/proc` counts.
    ///
    /// # Errors
    /// When there is no such process ([`is_gone`]), or `/proc` cannot be read.
    pub fn of(pid: i32) -> io::Result<ProcStat> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        ProcStat::parse(&stat).ok_or_else(|| io::Error::other("an unknown format of /proc/PID/stat"))
    }

    pub(crate) fn parse(stat: &str) -> Option<ProcStat> {
        // The name comes in parentheses and may contain any of what follows it.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // A process whose first thread has ended looks like a zombie, but its other threads run on.
        let threads: u32 = fields.get(17)?.parse().ok()?;
        let ended = ["Z", "X"].contains(fields.first()?) && threads <= 1;
        Some(ProcStat { ended, parent: fields.get(1)?.parse().ok()?, began: fields.get(19)?.parse().ok()? })
    }
}

/// Whether `/proc` answered that there is no such process.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of `/proc/PID/stat` with this state and this number of threads.
    fn line(state: char, threads: u32) -> String {
        format!("7 (a) Z (b) {state} 5 7 7 0 -1 4194304 127 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0 0")
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_runs_while_another_does() {
        for (state, threads, ended) in [('S', 1, false), ('Z', 1, true), ('Z', 2, false), ('X', 1, true)] {
            let stat = ProcStat::parse(&line(state, threads)).expect("a line of the kernel's");
            assert_eq!((stat.ended, stat.parent, stat.began), (ended, 5, 4711), "{state} {threads}");
        }
    }
}
