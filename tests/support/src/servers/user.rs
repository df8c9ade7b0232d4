//! Servers refuse to run as root, so root starts them as somebody else.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::is_root;

/// The program, to be run as `postgres` or, without that user, as `nobody`; as whoever this is where that is not root. In
/// this network namespace, if one is named.
pub(super) fn as_user(program: &Path, namespace: Option<&str>) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = match namespace {
        Some(namespace) => crate::netns::within(namespace, Path::new("setpriv")),
        None => Command::new("setpriv"),
    };
    let user = user();
    command.args([&format!("--reuid={user}"), "--regid", &group(user), "--clear-groups"]).arg(program);
    // The working directory of root is closed to others.
    command.current_dir("/");
    command
}

/// A new directory that a server can write to.
pub(super) fn directory(kind: &str) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("bellwether-{kind}-{}-{count}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    own(&dir);
    dir
}

/// Gives all that is there to the user that servers run as.
pub(super) fn own(dir: &Path) {
    if is_root() {
        run(Command::new("chown").arg("-R").arg(user()).arg(dir));
    }
}

pub(super) fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {said}");
}

fn user() -> &'static str {
    let there = Command::new("id").args(["-u", "postgres"]).output().unwrap().status.success();
    if there { "postgres" } else { "nobody" }
}

fn group(user: &str) -> String {
    String::from_utf8(Command::new("id").args(["-g", user]).output().unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned()
}
