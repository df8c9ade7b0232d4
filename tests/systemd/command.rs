//! What is started through `bellwether` is not told of systemd: it would speak in the name of the whole unit.

use std::time::Duration;

use bellwether_tests::Candidate;
use bellwether_tests::notify::ServiceManager;

use crate::{run, store_in, temporary};

/// Appends what it inherits to a file.
const TELL: &str = "env | grep -E '^(NOTIFY_SOCKET|WATCHDOG_)' >> inherited; echo";

#[test]
fn command_hook_and_health_check_inherit_nothing_that_systemd_told_us() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    let (hook, health) = (format!("{TELL} hook >> ran"), format!("{TELL} health >> ran"));
    let script = format!("{TELL} command >> ran");
    let more = ["--hook", &hook, "--health-cmd", &health, "--", "/bin/sh", "-c", &script];
    let mut command = run(&manager, &store_in(directory.path()), Some(Duration::from_secs(5)), &more);
    command.current_dir(directory.path());
    let ended = Candidate::start(command).ended();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let read = |file: &str| std::fs::read_to_string(directory.path().join(file)).unwrap_or_default();
    let ran = read("ran");
    for what in ["hook", "health", "command"] {
        assert!(ran.contains(what), "{what} did not run: {ran}");
    }
    assert_eq!(read("inherited"), "");
}
