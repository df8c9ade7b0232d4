//! `bellwether torture` on a store, as users run it.

use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{command, json};

/// How long a run may take beyond its faults: the first leader, the end, and whatever else the machine is at.
const BEYOND: Duration = Duration::from_secs(100);
/// How long faults happen.
const LENGTH: &str = "20s";

/// Runs it to its end, which has to come by itself.
pub fn tortured(url: &str, arguments: &[&str]) -> Output {
    ended(command(url, &[&["torture", "-o", "json"], arguments].concat()))
}

/// Runs a command of torture to its end.
pub fn ended(mut command: Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the command starts");
    let pid = Pid::from_child(&child);
    let (sender, output) = channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output = output.recv_timeout(BEYOND + Duration::from_secs(20)).unwrap_or_else(|_| {
        let _ = kill_process(pid, Signal::KILL);
        panic!("{command:?} does not end");
    });
    output.expect("our own child")
}

/// Tortures candidates on this store under all faults but these, and has nothing to complain of; returns what it printed.
#[track_caller]
pub fn survives(url: &str, without: &[&str]) -> Value {
    let output = tortured(url, &["--for", LENGTH]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    let report = json(&output);
    println!("{url}: {report:#}");
    assert_eq!((&report["verdict"], &report["violations"]), (&"clean".into(), &Value::Array(Vec::new())));
    // Epochs rose, or the verdict would not be clean; and there was something to judge. A slow machine has fewer changes than the plan means.
    let number = |field: &str| report[field].as_u64().expect("a number");
    let fenced = |field: &str| report["fencing"][field].as_u64().expect("a number");
    assert!(number("changes") >= 3, "{report:#}");
    assert!(fenced("checked") > 20 && fenced("checked_late") == 0, "{report:#}");
    let left_out: Vec<&str> = report["left_out"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["fault"].as_str())
        .collect();
    let unexpected: Vec<&&str> = left_out
        .iter()
        .filter(|kind| !["clock", "server-restart"].contains(kind) && !without.contains(kind))
        .collect();
    assert!(unexpected.is_empty(), "left out: {unexpected:?}");
    report
}
