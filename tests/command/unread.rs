//! Output that nobody reads: a full pipe, a full disk, a reader that has gone.

use std::fs::OpenOptions;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bellwether_tests::{bellwether, exit_of, json, run_to_end, until_blocking};
use rustix::process::{Pid, Signal, kill_process};

use crate::{leader, on, temporary};

/// A pipe that takes no more.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("our own pipe");
    // In pieces of one byte at the end: a pipe takes small ones only as long as they fit entirely.
    for size in [4096, 1] {
        let fill = || loop {
            if let Err(error) = writer.write(&vec![b'.'; size]) {
                return error.kind();
            }
        };
        assert_eq!({ fill }(), ErrorKind::WouldBlock);
    }
    rustix::io::ioctl_fionbio(&writer, false).expect("our own pipe");
    (reader, writer)
}

fn candidate(directory: &Path, id: &str, more: &[&str]) -> Command {
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.display()));
    command.args(["--id", id, "run", "job", "--ttl", "1s"]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn until_led_by(directory: &Path, id: &str) {
    let status = || json(&on(directory, &["status", "job", "-o", "json"]));
    until_blocking(|| {
        let record = status();
        if record["holder"].as_str() == Some(id) {
            Ok(())
        } else {
            Err(format!("{id} does not lead: {record}"))
        }
    });
}

/// Killed when dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("it starts"))
    }

    fn leaves(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("our own child");
        assert_eq!(exit_of(&mut self.0).code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_follower_whose_stderr_nobody_reads_takes_over_and_leaves() {
    let directory = temporary();
    let mut first = leader(directory.path(), "a", &["--ttl", "1s"]);
    let (_reader, writer) = full_pipe();
    let follower = Running::start(candidate(directory.path(), "b", &[]).stderr(writer));
    first.kill();
    until_led_by(directory.path(), "b");
    follower.leaves();
    assert_eq!(on(directory.path(), &["status", "job"]).status.code(), Some(1), "it did not let go");
}

#[test]
fn a_leader_whose_stderr_or_events_nobody_reads_renews_and_leaves() {
    for events in [false, true] {
        let directory = temporary();
        let (_reader, writer) = full_pipe();
        let mut command = candidate(directory.path(), "a", &["-v", "--events"]);
        if events {
            command.stdout(writer).stderr(Stdio::null())
        } else {
            command.stderr(writer)
        };
        let leader = Running::start(&mut command);
        until_led_by(directory.path(), "a");
        let status = || json(&on(directory.path(), &["status", "job", "-o", "json"]));
        let mut last = None;
        for _ in 0..4 {
            last = until_blocking(|| {
                let renewed = status()["renewed"].as_str().map(str::to_owned);
                if renewed > last { Ok(renewed) } else { Err("it does not renew") }
            });
        }
        leader.leaves();
        assert_eq!(on(directory.path(), &["status", "job"]).status.code(), Some(1), "it did not let go");
    }
}

#[test]
fn the_last_sentence_comes_after_the_log() {
    let mut command = Command::new(bellwether());
    command.args(["--backend", "memory:", "run", "job", "-vv", "--", "sh", "-c", "exit 3"]);
    let log = String::from_utf8(run_to_end(command).stderr).expect("text");
    assert!(log.lines().last().is_some_and(|line| line.contains("stopped")), "{log}");
    let mut command = Command::new(bellwether());
    command.args(["--backend", "memory://:s3cret@x/", "run", "job", "-vv", "--wait", "0s", "--ttl", "0s"]);
    let log = String::from_utf8(run_to_end(command).stderr).expect("text");
    assert!(log.lines().next().is_some_and(|line| line.contains("process list")), "{log}");
    assert!(log.lines().last().is_some_and(|line| line.starts_with("bellwether: ")), "{log}");
}

/// The exit code with this as its stderr.
fn with_stderr(stderr: impl Into<Stdio>, arguments: &[&str]) -> Option<i32> {
    let mut command = Command::new(bellwether());
    command.args(["--backend", "memory:"]).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    exit_of(&mut Running::start(command.stderr(stderr)).0).code()
}

#[test]
fn a_failure_that_cannot_be_told_of_keeps_its_code() {
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let unread = || std::io::pipe().expect("a pipe").1;
    for (arguments, code) in [
        (&["run", "job", "--", "no-such-command"][..], 127),
        (&["run", "job", "--ttl", "0s"], 64),
        (&["rum"], 64),
        (&["run", "job", "--config", "/no/such/file"], 64),
        (&["-v", "run", "job", "--", "sh", "-c", "exit 5"], 5),
    ] {
        assert_eq!(with_stderr(full(), arguments), Some(code), "full: {arguments:?}");
        assert_eq!(with_stderr(unread(), arguments), Some(code), "gone: {arguments:?}");
    }
}

/// The exit code and stderr with this as its stdout.
fn with_stdout(stdout: impl Into<Stdio>, directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.display())).args(arguments);
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let code = exit_of(&mut running.0).code();
    let mut said = String::new();
    let stderr = running.0.stderr.take().expect("a pipe");
    { stderr }.read_to_string(&mut said).expect("text");
    (code, said)
}

/// Everything that prints and ends, with the code that it ends with where somebody reads.
const PRINTING: [(&[&str], i32); 14] = [
    (&["acquire", "job"], 0),
    (&["acquire", "job", "--hold"], 0),
    (&["status", "job"], 1),
    (&["status"], 1),
    (&["status", "-o", "json"], 1),
    (&["explain"], 0),
    (&["explain", "-o", "json"], 0),
    (&["history", "job"], 0),
    (&["history", "job", "-o", "json"], 0),
    (&["watch", "job"], 0),
    (&["top"], 0),
    (&["completions", "bash"], 0),
    (&["man"], 0),
    (&["--help"], 0),
];

#[test]
fn output_that_is_lost_is_a_failure() {
    let directory = temporary();
    assert_eq!(on(directory.path(), &["acquire", "job"]).status.code(), Some(0));
    for arguments in PRINTING.map(|(arguments, _)| arguments).iter().chain([&["doctor"][..]].iter()) {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let (code, said) = with_stdout(full, directory.path(), arguments);
        assert_eq!(code, Some(74), "{arguments:?}: {said}");
        assert!(said.contains("the output could not be written"), "{arguments:?}: {said}");
    }
    let seen = json(&on(directory.path(), &["status", "job", "-o", "json"]));
    assert!(seen["holder"].is_null(), "acquire has not let go: {seen}");
}

#[test]
fn a_reader_that_has_gone_is_a_quiet_end() {
    let directory = temporary();
    assert_eq!(on(directory.path(), &["acquire", "job"]).status.code(), Some(0));
    for (arguments, code) in PRINTING {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let (ended, said) = with_stdout(writer, directory.path(), arguments);
        assert_eq!(ended, Some(code), "{arguments:?}: {said}");
        let is_loud = said.contains("bellwether: ") || said.contains("panicked");
        assert!(!is_loud, "{arguments:?}: {said}");
    }
}
