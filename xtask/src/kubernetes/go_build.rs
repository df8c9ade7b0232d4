//! Builds a Go program that tests run, on a thread of its own and at idle priority, so that what else is measured meanwhile
//! stays as it is. Whoever waits for it sees how far it is.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::programs::Program;
use crate::Problem;
use crate::metadata::Workspace;
use crate::process::{Stopwatch, say, version};
use crate::terminal::span;

/// Between two lines about a build that somebody waits for.
const EVERY: Duration = Duration::from_secs(15);
/// The same on a terminal, where each takes the place of the last.
const EVERY_IN_PLACE: Duration = Duration::from_secs(1);
/// How much of what Go complains about is shown.
const COMPLAINTS: usize = 20;

/// A build under way, or over.
#[derive(Debug)]
pub(crate) struct Build {
    name: &'static str,
    watch: Stopwatch,
    steps: Arc<Steps>,
    result: Receiver<Result<(), Problem>>,
}

/// What Go has said so far that it has done.
#[derive(Debug, Default)]
struct Steps {
    downloaded: AtomicU32,
    compiled: AtomicU32,
}

impl Build {
    pub(crate) fn start(program: &'static Program) -> Build {
        let (send, result) = mpsc::channel();
        let steps = Arc::new(Steps::default());
        let counted = Arc::clone(&steps);
        // Nobody may be left to hear of it.
        std::thread::spawn(move || drop(send.send(build(program, &counted))));
        Build { name: program.name, watch: Stopwatch::start(), steps, result }
    }

    /// Returns when the program is in its place.
    pub(crate) fn wait(self) -> Result<(), Problem> {
        let in_place = std::io::stdout().is_terminal();
        let every = if in_place { EVERY_IN_PLACE } else { EVERY };
        let result = loop {
            match self.result.recv_timeout(every) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Timeout) if in_place => overwrite(&self.progress()),
                Err(RecvTimeoutError::Timeout) => say(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => {
                    break Err("the build ended without a result".to_owned());
                }
            }
        };
        if in_place {
            overwrite("");
        }
        say(&self.progress());
        result
    }

    fn progress(&self) -> String {
        let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        format!(
            "building {}: {}, {} modules downloaded, {} packages compiled",
            self.name,
            span(self.watch.took()),
            count(&self.steps.downloaded),
            count(&self.steps.compiled)
        )
    }
}

fn overwrite(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = write!(stdout, "\r{text}\x1b[K").and_then(|()| stdout.flush());
}

fn build(program: &Program, steps: &Steps) -> Result<(), Problem> {
    if version(&["go", "version"]).is_none() {
        return Err("there is no `go` on the PATH".to_owned());
    }
    let place = program.place().ok_or("there is no home directory to keep it in")?;
    let dir = place.parent().ok_or("the cache has no place")?;
    std::fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    // Beside its place and then moved there: an interrupted build leaves nothing that looks whole.
    let unfinished = dir.join(format!(".{}-{}", program.name, std::process::id()));
    let built = go(program, &Workspace::load()?.root, &unfinished, steps);
    let kept = built.and_then(|()| {
        std::fs::rename(&unfinished, &place)
            .map_err(|error| format!("cannot move it to {}: {error}", place.display()))
    });
    let _ = std::fs::remove_file(&unfinished);
    kept
}

fn go(program: &Program, root: &Path, output: &Path, steps: &Steps) -> Result<(), Problem> {
    let module = root.join(program.module);
    let requires = std::fs::read_to_string(module.join("go.mod")).unwrap_or_default();
    let mut command = at_idle_priority("go");
    command.args(["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", &linker_flags(&requires)]);
    command.arg("-o").arg(output).arg(".").current_dir(module).env("CGO_ENABLED", "0");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start go: {error}"))?;
    let mut complaints = VecDeque::new();
    let said = BufReader::new(child.stderr.take().expect("the output was asked for"));
    for line in said.lines().map_while(Result::ok) {
        if let Some(complaint) = steps.read(line) {
            complaints.push_back(complaint);
            if complaints.len() > COMPLAINTS {
                complaints.pop_front();
            }
        }
    }
    let status = child.wait().map_err(|error| format!("cannot wait for go: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("go build failed ({status}): {}", complaints.make_contiguous().join("\n")))
}

impl Steps {
    /// Counts what the line of `go build -v` tells; returns it if it is about neither a module nor a package.
    fn read(&self, line: String) -> Option<String> {
        let counter = match line.strip_prefix("go: downloading ") {
            Some(_) => &self.downloaded,
            // The path of a package, alone.
            None if !line.contains(' ') => &self.compiled,
            None => return Some(line),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// No symbols, and the version of Kubernetes, which a build from source does not know by itself.
fn linker_flags(requires: &str) -> String {
    let version = requires.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    let version = version.map(|version| format!(" -X k8s.io/component-base/version.gitVersion={version}"));
    format!("-s -w{}", version.unwrap_or_default())
}

fn at_idle_priority(program: &str) -> Command {
    let prefix: &[&str] = match version(&["chrt", "--version"]) {
        Some(_) => &["chrt", "--idle", "0", "nice", "-n", "19"],
        None => &["nice", "-n", "19"],
    };
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_packages_are_counted_and_the_rest_is_shown() {
        let steps = Steps::default();
        let complaint = "main.go:3:8: package foo is not in std";
        for line in ["go: downloading k8s.io/api v0.36.4", "k8s.io/api/core/v1", "runtime", complaint] {
            assert_eq!(steps.read(line.to_owned()).is_some(), line == complaint, "{line}");
        }
        let counts = (steps.downloaded.into_inner(), steps.compiled.into_inner());
        assert_eq!(counts, (1, 2));
    }

    #[test]
    fn the_server_is_told_its_version_by_the_module_that_requires_it() {
        let flags =
            linker_flags("require (\n\tk8s.io/component-base v0.36.4\n\tk8s.io/kubernetes v1.36.4\n)");
        assert_eq!(flags, "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4");
        assert_eq!(linker_flags("require k8s.io/client-go v0.36.4"), "-s -w");
    }
}
