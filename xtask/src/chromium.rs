//! Chromium, in which the dashboard is tested: on the `PATH`, where a variable names it, or installed by apt.

use std::path::PathBuf;

use crate::{apt, process};

const VARIABLE: &str = "BELLWETHER_TEST_CHROMIUM";

/// Tests look for the same names, in the same order. The first is Debian's for the one without windows, which is all that they need.
const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// What it says of its version.
pub(crate) fn version() -> Option<String> {
    process::version(&[program()?.to_str()?, "--version"])
}

pub(crate) fn install() -> Result<(), String> {
    if std::env::var_os(VARIABLE).is_some() {
        return Err(format!("{VARIABLE} names no program"));
    }
    apt::install(NAMES[0])
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        return named.is_file().then_some(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path);
    places.flat_map(|dir| NAMES.map(|name| dir.join(name))).find(|program| program.is_file())
}
