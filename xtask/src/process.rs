//! Starting other programs, and listening to what they say.

use crate::Problem;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const VERSION: [&str; 4] = [
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// The cargo that started this, so that one toolchain is used throughout.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // What the cargo around this says of this package: build scripts of others (ring's) read variables of the same names, and all
    // that depends on them would be built anew whenever cargo is called now from here and now by hand.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"].into_iter().chain(VERSION) {
        command.env_remove(name);
    }
    command
}

/// Runs to the end, with everything it prints shown.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus, Problem> {
    command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, &error))
}

/// Runs to the end, and hands over each line of its standard output as it comes. Showing it is up to `each`.
pub(crate) fn listen(command: &mut Command, each: impl FnMut(&str)) -> Result<ExitStatus, Problem> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let stdout = child.stdout.take().expect("the output was asked for");
    lines(stdout, each).map_err(|error| format!("cannot read what {command:?} prints: {error}"))?;
    child.wait().map_err(|error| format!("cannot wait for {command:?}: {error}"))
}

/// As [`listen`], to its standard error.
pub(crate) fn listen_to_errors(command: &mut Command, each: impl FnMut(&str)) -> Result<ExitStatus, Problem> {
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let stderr = child.stderr.take().expect("the output was asked for");
    lines(stderr, each).map_err(|error| format!("cannot read what {command:?} prints: {error}"))?;
    child.wait().map_err(|error| format!("cannot wait for {command:?}: {error}"))
}

/// Programs print what they like, so lines are read as bytes and shown as text as far as they are any.
fn lines(from: impl Read, mut each: impl FnMut(&str)) -> std::io::Result<()> {
    for line in BufReader::new(from).split(b'\n') {
        each(&String::from_utf8_lossy(&line?));
    }
    Ok(())
}

/// The program that a line of cargo's JSON tells of, if it does: the name of its target, and where it is.
pub(crate) fn built_program(line: &str) -> Option<(String, PathBuf)> {
    let json: Value = serde_json::from_str(line).ok()?;
    Some((json["target"]["name"].as_str()?.to_owned(), PathBuf::from(json["executable"].as_str()?)))
}

/// All of its standard output; an error if it cannot be started or fails.
pub(crate) fn read(command: &mut Command) -> Result<String, Problem> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| cannot_start(command, &error))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{command:?} printed what is not text"))
}

/// The first line that a program prints when asked for its version; `None` if it is not there.
pub(crate) fn version(probe: &[&str]) -> Option<String> {
    let (program, args) = probe.split_first()?;
    let mut command = if *program == "cargo" { cargo(Path::new(".")) } else { Command::new(program) };
    let output = command.args(args).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Prints a line at once, so that it keeps its place among what child processes print.
pub(crate) fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // A reader that went away is no reason to stop half-way through the tests.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// How long something takes, for people.
#[derive(Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "for show: nothing here is decided by time")]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub(crate) fn took(&self) -> Duration {
        self.0.elapsed()
    }
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Problem {
    format!("cannot start {}: {error}", command.get_program().to_string_lossy())
}
