//! A process whose lines on stdout are read as they come.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};

use crate::{PATIENCE, until_blocking};

/// A command with its output in a pipe. Killed when dropped.
pub struct OutputLines {
    child: Child,
    lines: Receiver<String>,
}

impl OutputLines {
    /// Starts it, with nothing to read on its stdin.
    pub fn run(mut command: Command) -> OutputLines {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (sender, lines) = channel();
        // A thread of its own, so that a line that never comes fails the test instead of hanging it.
        std::thread::spawn(move || output.map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        OutputLines { child, lines }
    }

    /// The next line.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line in time")
    }

    /// The next line of which this is true.
    #[track_caller]
    pub fn until(&mut self, mut wanted: impl FnMut(&str) -> bool) -> String {
        loop {
            let line = self.line();
            if wanted(&line) {
                return line;
            }
        }
    }
}

impl OutputLines {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("it is there");
    }

    /// Its exit code, when it has ended by itself.
    #[track_caller]
    pub fn exit_code(&mut self) -> Option<i32> {
        // Its stdout ends with it.
        while self.lines.recv_timeout(PATIENCE).is_ok() {}
        until_blocking(|| match self.child.try_wait() {
            Ok(Some(status)) => Ok(status.code()),
            other => Err(format!("it runs: {other:?}")),
        })
    }
}

impl Drop for OutputLines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
