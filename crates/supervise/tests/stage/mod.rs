//! What the tests share: a host on a stage of its own, and eyes for what it leaves behind.

#![allow(dead_code, reason = "each test file uses its part of this")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bellwether_deadman::{boot_now, random_bits};
use bellwether_support::{permitted, skipped, until_blocking};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

/// Long enough for a busy machine; it passes only when a test is about to fail.
pub(crate) const LONG: Duration = Duration::from_secs(20);
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_supervise-probe");
/// Nobody's number, by custom.
pub(crate) const NOBODY: u32 = 65_534;

/// A directory, and a mark that every process started on it carries in its environment.
pub(crate) struct Stage {
    dir: PathBuf,
    mark: String,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Hosts would go on ignoring what the test ignores, as under `nohup`, and tests send them every signal.
        bellwether_deadman::process::stop_ignoring_signals();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("supervise-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        open_to_all(&dir);
        Stage { dir, mark: format!("PROBE_MARK={:032x}", random_bits()) }
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn witness_lock(&self) -> String {
        self.path("witness")
    }

    pub(crate) fn proof(&self) -> String {
        self.path("proof")
    }

    /// A host with these options, whose command is a witness with these manners.
    pub(crate) fn host(&self, options: &[&str], manners: &[&str]) -> Host {
        let lock = self.witness_lock();
        let command = [&["/proc/self/exe", "witness", &lock], manners].concat();
        self.host_of(options, &command)
    }

    pub(crate) fn host_of(&self, options: &[&str], command: &[&str]) -> Host {
        self.spawn(Command::new(PROBE).arg("host").args(options).arg("--").args(command))
    }

    pub(crate) fn spawn(&self, command: &mut Command) -> Host {
        let (name, value) = self.mark.split_once('=').unwrap();
        // A group of its own, since tests stop it: what the kernel does to groups with stopped processes must not reach the tests.
        command.env(name, value).process_group(0);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Host { stdin: process.stdin.take(), process, lines, heard: BTreeMap::new() }
    }

    /// Every living process that carries the mark: number and name. Zombies have no environment.
    pub(crate) fn alive(&self) -> Vec<(i32, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes()) {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                found.push((pid, name.trim().to_owned()));
            }
        }
        found
    }

    /// Nobody of this stage lives on; those that are leaving get a moment to do so.
    pub(crate) fn expect_empty(&self) {
        until_blocking(|| {
            let alive = self.alive();
            if alive.is_empty() { Ok(()) } else { Err(format!("left behind: {alive:?}")) }
        });
    }

    /// Whether a witness lives.
    pub(crate) fn witnessed(&self) -> bool {
        let file = File::options().create(true).append(true).open(self.witness_lock()).unwrap();
        let free = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        !free
    }

    /// Waits for the end of the witness; returns when it was.
    pub(crate) fn wait_for_witness_gone(&self) -> bellwether_core::Boot {
        wait_for_lock(&self.witness_lock())
    }

    pub(crate) fn expect_never_two(&self) {
        let two = fs::read_to_string(format!("{}.two", self.witness_lock())).unwrap_or_default();
        assert!(two.is_empty(), "two at once: {two}");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (pid, _) in self.alive() {
            kill(pid, Signal::KILL);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Blocks until the lock is free, and returns that instant.
pub(crate) fn wait_for_lock(path: &str) -> bellwether_core::Boot {
    let file = File::options().create(true).append(true).open(path).unwrap();
    let (sender, freed) = channel();
    std::thread::spawn(move || {
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        let now = boot_now();
        drop(file);
        let _ = sender.send(now);
    });
    freed.recv_timeout(LONG).unwrap_or_else(|_| panic!("{path} is still locked"))
}

/// A running host.
pub(crate) struct Host {
    pub(crate) process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    heard: BTreeMap<String, String>,
}

impl Host {
    /// Waits for a line that begins with this word, and returns the rest of it.
    pub(crate) fn expect(&mut self, word: &str) -> String {
        let limit = boot_now() + LONG;
        loop {
            if let Some(rest) = self.heard.remove(word) {
                return rest;
            }
            let left = limit.since(boot_now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| {
                panic!("no `{word}` came, only {:?}", self.heard);
            });
            let (first, rest) = line.split_once(' ').unwrap_or((&line, ""));
            self.heard.insert(first.to_owned(), rest.to_owned());
        }
    }

    /// The next line, whatever it says; `None` at the end of the output.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.lines.recv_timeout(LONG).ok()
    }

    /// Waits until the command runs and its witness, if it has one, does too.
    pub(crate) fn running(&mut self) -> Processes {
        let guard = self.expect("guard").parse().unwrap();
        let started = self.expect("started");
        self.expect("witness");
        let (command, containment) = started.split_once(' ').unwrap();
        let command = command.parse().unwrap();
        let init = parent(command);
        Processes { host: self.pid(), guard, init, command, containment: containment.to_owned() }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    pub(crate) fn tell(&mut self, wish: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{wish}").unwrap();
    }

    /// Waits for the host's own end.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Who is who.
#[derive(Debug, Clone)]
pub(crate) struct Processes {
    pub(crate) host: i32,
    pub(crate) guard: i32,
    pub(crate) init: i32,
    pub(crate) command: i32,
    pub(crate) containment: String,
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Waits for the end of a process that is not our child.
pub(crate) fn wait_for_end_of(pid: i32) {
    let Ok(process) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else { return };
    let limit = Timespec { tv_sec: LONG.as_secs() as i64, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ended, 1, "{pid} lives on");
}

/// A control group of cgroup v1 whose processes can be frozen. They are thawed when it is dropped.
pub(crate) struct Freezer(PathBuf);

impl Freezer {
    /// One of our own; `None`, said aloud, where there are none or we may not make one.
    pub(crate) fn new() -> Option<Freezer> {
        let group = Path::new("/sys/fs/cgroup/freezer").join(format!("supervise-{:016x}", random_bits()));
        match fs::create_dir(&group) {
            Ok(()) => Some(Freezer(group)),
            Err(error) => {
                skipped(format_args!("a freezer of cgroup v1: {error}"));
                None
            }
        }
    }

    pub(crate) fn freeze(&self, pid: i32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
        fs::write(self.0.join("freezer.state"), "FROZEN").unwrap();
        until_blocking(|| {
            let state = fs::read_to_string(self.0.join("freezer.state")).unwrap();
            if state.trim() == "FROZEN" { Ok(()) } else { Err(format!("{pid} does not freeze")) }
        });
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
        let limit = boot_now() + LONG;
        while fs::remove_dir(&self.0).is_err() && boot_now() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub(crate) fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Whether whoever runs the tests may make PID namespaces; said aloud where not.
pub(crate) fn may_make_namespaces() -> bool {
    let mut attempt = Command::new("unshare");
    permitted(attempt.args(["--pid", "--mount", "--fork", "true"]), "a PID namespace")
}

/// Whether whoever runs the tests may become nobody; said aloud where not.
pub(crate) fn may_become_nobody() -> bool {
    let mut attempt = Command::new("setpriv");
    permitted(attempt.args([&format!("--reuid={NOBODY}"), "--clear-groups", "true"]), "another user")
}

fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
}
