//! `bellwether torture`: some seconds on every store, and that it fails when it must. The one on Kubernetes is in the test `kubernetes`, with
//! everything else that needs an API server.
#![cfg(target_os = "linux")]

mod failing;
mod leaving;
mod refusals;
mod stores;

use std::path::Path;

use bellwether_tests::command;

/// Torture on a directory with its files in another, for longer than a test takes.
fn long(directory: &Path) -> std::process::Command {
    let url = format!("file:{}", directory.join("store").display());
    let mut torture = command(&url, &["torture", "-o", "json", "--for", "10m"]);
    torture.arg("--dir").arg(directory.join("run"));
    torture
}
