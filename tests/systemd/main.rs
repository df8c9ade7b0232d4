//! `bellwether` as a service of systemd: what it says by `sd_notify`, over a real socket, and the units in `deploy/systemd`.

#![cfg(target_os = "linux")]

mod command;
mod node;
mod ready;
mod receiver;
mod sandbox;
mod units;
mod watchdog;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bellwether_support::servers::nats::Server;
use bellwether_tests::notify::{Notification, ServiceManager};
use bellwether_tests::{Candidate, bellwether};

/// A directory with a store and a socket.
fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// One that another user may use.
fn everybody_s_directory() -> tempfile::TempDir {
    let directory = temporary();
    let_everybody_write(directory.path());
    directory
}

fn let_everybody_write(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("our own file");
}

/// To the user that units run as here.
fn give_to_nobody(path: &Path) {
    std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).expect("as root");
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("as root");
}

/// `bellwether run job` on this store, with a service manager.
fn run(manager: &ServiceManager, store: &str, watchdog: Option<Duration>, more: &[&str]) -> Command {
    let mut command = Command::new(bellwether());
    command.args(["--backend", store, "--id", "a", "run", "job", "--events"]).args(more);
    manager.tell(&mut command, watchdog);
    command
}

fn store_in(directory: &Path) -> String {
    format!("file:{}", directory.join("store").display())
}

/// A store on this server, which may be down. Silence of the connection is noticed within half a second.
fn nats_url(server: &Server) -> String {
    format!("{}?create=yes&ping=250ms", server.url())
}

/// One that leads.
fn leader(
    directory: &Path,
    manager: &ServiceManager,
    watchdog: Option<Duration>,
    more: &[&str],
) -> Candidate {
    let mut leader = Candidate::start(run(manager, &store_in(directory), watchdog, more));
    leader.expect("acquired");
    leader
}

fn pings(heard: &[Notification]) -> usize {
    heard.iter().filter(|one| one.says("WATCHDOG=1")).count()
}
