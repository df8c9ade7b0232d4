//! On a terminal: COMMAND is in the foreground, and what is typed reaches it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use bellwether_tests::{PATIENCE, Process, Stage, exit_of};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::plain;
use crate::surroundings::group;

/// `bellwether run` as the leader of a session on a terminal of its own.
struct Terminal {
    keyboard: File,
    screen: Receiver<String>,
    child: Child,
}

impl Terminal {
    fn run(stage: &Stage, options: &[&str], script: &str) -> Terminal {
        Terminal::run_by("exec \"$@\"", stage, options, script)
    }

    /// Run by this shell line in the place of `"$@"`.
    fn run_by(line: &str, stage: &Stage, options: &[&str], script: &str) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = openpt(flags).expect("a terminal");
        unlockpt(&keyboard).expect("a terminal");
        let theirs: OwnedFd = ioctl_tiocgptpeer(&keyboard, flags).expect("its other end");
        let theirs = File::from(theirs);
        let bellwether = stage.bellwether("a");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "/bin/sh", "-c", line, "sh"]);
        command.arg(bellwether.get_program()).args(bellwether.get_args());
        command.args(["run", "job"]).args(options).args(["--", "/bin/sh", "-c", script]);
        for (name, value) in bellwether.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let copy = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let child = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("it starts");
        let keyboard = File::from(keyboard);
        let (sender, screen) = channel();
        let output = BufReader::new(keyboard.try_clone().expect("a descriptor"));
        std::thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        Terminal { keyboard, screen, child }
    }

    fn type_in(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("a terminal");
    }

    /// What follows this word on the next line that has it.
    fn expect(&self, word: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.screen.recv_timeout(PATIENCE) else { panic!("no {word} in {seen:#?}") };
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
            seen.push(line);
        }
    }

    fn code(&mut self) -> Option<i32> {
        exit_of(&mut self.child).code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_command_is_in_the_foreground_and_reads_what_is_typed() {
    let stage = plain();
    let script = "echo @groups $(cut -d' ' -f5,8 /proc/$$/stat); read line; echo @read $line; exit 6";
    let mut terminal = Terminal::run(&stage, &[], script);
    let groups = terminal.expect("@groups");
    let (own, front) = groups.split_once(' ').expect("two numbers");
    assert_eq!(own, front, "its group is that in the foreground");
    terminal.type_in(b"some words\n");
    assert_eq!(terminal.expect("@read"), "some words");
    assert_eq!(terminal.code(), Some(6));
}

#[test]
fn ctrl_c_reaches_the_command_and_its_end_is_its_own() {
    let stage = plain();
    let script = "trap 'echo @int; exit 8' INT; echo @ready; while :; do sleep 1000 & wait $!; done";
    let mut terminal = Terminal::run(&stage, &["--ttl", "60s", "--grace", "20s"], script);
    terminal.expect("@ready");
    terminal.type_in(&[3]);
    terminal.expect("@int");
    assert_eq!(terminal.code(), Some(8));
    assert!(stage.emptied().is_empty());
}

/// The command alone hears what is typed: its end must be the end of `bellwether` too, or nothing typed would end that.
#[test]
fn ctrl_c_and_ctrl_backslash_end_a_command_that_would_be_started_again() {
    for (key, code) in [(3, 130), (0x1c, 131)] {
        let stage = plain();
        let options = ["--ttl", "60s", "--restart", "always", "--keep-for", "1h"];
        let mut terminal = Terminal::run(&stage, &options, "ulimit -c 0; echo @ready; exec sleep 1000");
        terminal.expect("@ready");
        terminal.type_in(&[key]);
        assert_eq!(terminal.code(), Some(code));
        assert!(stage.emptied().is_empty());
    }
}

#[test]
fn a_signal_that_nobody_typed_does_not_keep_a_command_from_being_started_again() {
    let stage = plain();
    let again = stage.path().join("again");
    let script = format!("test -e {0} && exit 0; touch {0}; kill -INT $$", again.display());
    let mut candidate = crate::run(&stage, &["--restart", "on-failure"], &script);
    assert_eq!(candidate.ended().code, Some(0));
}

#[test]
fn somebody_at_a_terminal_sees_how_it_stands() {
    let stage = plain();
    let mut terminal = Terminal::run(&stage, &[], "exit 0");
    terminal.expect("acquired");
    terminal.expect("started process");
    terminal.expect("the command ended with code 0");
    assert_eq!(terminal.code(), Some(0));
}

/// The output goes to somebody else, who may want the terminal, so it is not lent.
#[test]
fn a_command_in_a_pipeline_reads_what_is_typed_too() {
    let stage = plain();
    let script = "echo @ready; read line; echo @read $line; exit 6";
    let terminal = Terminal::run_by("\"$@\" | cat", &stage, &["--ttl", "60s"], script);
    terminal.expect("@ready");
    let mut terminal = terminal;
    terminal.type_in(b"some words\n");
    assert_eq!(terminal.expect("@read"), "some words");
    assert_eq!(terminal.code(), Some(0), "the code of the last in the pipeline");
}

/// A group of its own in the background would be stopped when it reads: docs/adr/0016.
#[test]
fn a_command_in_a_pipeline_stays_in_our_process_group() {
    for more in [&[][..], &["--no-pid-namespace"]] {
        let stage = plain();
        let mut terminal = Terminal::run_by("\"$@\" | cat", &stage, more, "echo @ready; read line");
        terminal.expect("@ready");
        let is_command = |process: &Process| process.name == "sh" && process.epoch.is_some();
        let command = stage.alive().into_iter().find(is_command).expect("the command");
        let shell = terminal.child.id();
        assert_eq!(group(u64::try_from(command.pid).expect("a pid")), group(shell.into()), "{more:?}");
        terminal.type_in(b"a line\n");
        terminal.code();
    }
}

#[test]
fn ctrl_c_reaches_a_command_in_a_pipeline_once() {
    let stage = plain();
    // Short sleeps, since a signal may come just before the shell waits; the last one is for a second signal to come.
    let script = "n=0; trap 'n=$((n+1))' INT; echo @ready; \
                  while [ $n = 0 ]; do sleep 0.1 & wait $!; done; sleep 1; echo @count $n; exit 8";
    // The shell waits for all of the pipeline, and tells of the first one's code.
    let line = "trap : INT; { trap : INT; \"$@\"; echo @code $?; } | { trap '' INT; cat; }";
    let mut terminal = Terminal::run_by(line, &stage, &["--ttl", "60s", "--grace", "20s"], script);
    terminal.expect("@ready");
    terminal.type_in(&[3]);
    assert_eq!(terminal.expect("@count"), "1");
    assert_eq!(terminal.expect("@code"), "0", "asked to leave, it leaves cleanly");
    terminal.code();
    assert!(stage.emptied().is_empty());
}
