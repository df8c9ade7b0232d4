//! A `bellwether` process that can be watched and mistreated.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use rustix::process::{Pid, Signal, kill_process};

use crate::{EventLine, PATIENCE, bellwether, until_blocking};

/// A running candidate. Killed when dropped.
pub struct Candidate {
    child: Child,
    lines: Receiver<EventLine>,
    stderr: Receiver<String>,
    /// Every line it has said so far.
    pub said: Vec<EventLine>,
    /// When it was killed, if it was: nothing it believed lasts longer. The instant before the signal, since whoever sent it may
    /// have had to wait for a processor afterwards, and the next leader does not wait for that.
    pub killed: Option<Boot>,
}

/// Runs a command that is to end by itself, and fails the test if it does not.
pub fn run_to_end(mut command: Command) -> Output {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().expect("the command starts");
    let pid = Pid::from_child(&child);
    // In a thread, which also reads what it says: nobody looks again and again, and a full pipe holds nothing up.
    let (sender, output) = channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output = output.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let _ = kill_process(pid, Signal::KILL);
        panic!("{command:?} does not end");
    });
    output.expect("our own child")
}

/// Waits for its end, and fails the test if that does not come.
pub fn exit_of(child: &mut Child) -> ExitStatus {
    until_blocking(|| {
        let status = child.try_wait().expect("our own child");
        status.ok_or_else(|| format!("process {} does not end", child.id()))
    })
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote on stderr.
    pub stderr: String,
}

impl Candidate {
    /// `bellwether run ELECTION --events` on a directory, with more arguments.
    pub fn on_file(directory: &Path, election: &str, id: &str, more: &[&str]) -> Candidate {
        let mut command = Command::new(bellwether());
        command.arg("--backend").arg(format!("file:{}", directory.display()));
        command.args(["--id", id, "run", election, "--events"]).args(more);
        Candidate::start(command)
    }

    /// Any command that prints event lines on stdout.
    pub fn start(command: Command) -> Candidate {
        // A group of its own, since tests stop it: what the kernel does to groups with stopped processes must not reach the tests.
        Candidate::start_in(0, command)
    }

    /// As [`Candidate::start`], in that process group.
    pub fn start_in(group: i32, mut command: Command) -> Candidate {
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.process_group(group).spawn().expect("the command starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut stderr = child.stderr.take().expect("a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok).filter_map(|text| EventLine::parse(&text)) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (all, stderr_text) = channel();
        thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            let _ = all.send(text);
        });
        Candidate { child, lines, stderr: stderr_text, said: Vec::new(), killed: None }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line with this event, and fails the test if none comes.
    pub fn expect(&mut self, event: &str) -> EventLine {
        match self.wait(event, PATIENCE) {
            Some(line) => line,
            None => panic!("no {event} from {} after {:?}", self.pid(), self.said),
        }
    }

    /// The first line with this event: one that has come already, or else the next.
    pub fn heard(&mut self, event: &str) -> EventLine {
        let found = self.said.iter().find(|line| line.event() == event).cloned();
        found.unwrap_or_else(|| self.expect(event))
    }

    /// Waits until it knows a leader, itself or another: from then on it takes part.
    pub fn joined(&mut self) {
        while self.expect("leader_changed").text("leader").is_none() {}
    }

    /// Waits for the next line with this event for so long.
    pub fn wait(&mut self, event: &str, limit: Duration) -> Option<EventLine> {
        let deadline = boot_now() + limit;
        loop {
            match self.lines.recv_timeout(deadline.since(boot_now())) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.event() == event {
                        return Some(line);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Takes in the lines that have come.
    pub fn drain(&mut self) {
        self.said.extend(self.lines.try_iter());
    }

    /// Whether the last it said of itself is that it leads.
    pub fn leads(&mut self) -> bool {
        self.drain();
        let state = self.said.iter().rev().find(|line| line.event() == "state_changed");
        state.and_then(|line| line.text("to")) == Some("leader")
    }

    /// Sends a signal; returns the instant before.
    pub fn signal(&mut self, signal: Signal) -> Boot {
        let before = boot_now();
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a signal to our own child");
        before
    }

    /// Kills it as the kernel would; returns the instant before.
    pub fn kill(&mut self) -> Boot {
        let before = self.signal(Signal::KILL);
        self.killed = Some(before);
        let _ = self.child.wait();
        before
    }

    /// Waits for its own end, whoever else shares its stdout or stderr.
    pub fn exit_code(&mut self) -> Option<i32> {
        exit_of(&mut self.child).code()
    }

    /// Waits for its end, and for that of everybody who shares its stdout or stderr.
    pub fn ended(&mut self) -> Ended {
        let status = exit_of(&mut self.child);
        let deadline = boot_now() + PATIENCE;
        let stderr = self.stderr.recv_timeout(deadline.since(boot_now()));
        let stderr =
            stderr.unwrap_or_else(|_| panic!("{} has ended, but not all that it started", self.pid()));
        loop {
            match self.lines.recv_timeout(deadline.since(boot_now())) {
                Ok(line) => self.said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("{} has ended, but its stdout is open", self.pid()),
            }
        }
        Ended { code: status.code(), stderr }
    }

    /// System calls cannot be counted from outside without a tracer, but each one that waits shows as a voluntary
    /// switch: so often has this process gone to sleep, all its threads together.
    pub fn sleeps(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("a running process");
        let of = |task: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
            let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        tasks.filter_map(of).sum()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
