//! promtool, which checks alert rules and metrics: on the `PATH`, or taken out of Debian's package, whose installation would start a server.

use std::path::PathBuf;

use crate::{apt, process};

const VARIABLE: &str = "BELLWETHER_TEST_PROMTOOL";

/// What it says of its version, and where it is.
pub(crate) fn version() -> Option<String> {
    let program = program()?;
    let said = process::version(&[program.to_str()?, "--version"])?;
    let version = said.split(" (").next().unwrap_or_default();
    Some(format!("{version} in {}", program.parent()?.display()))
}

/// Unpacks it into the user's cache.
pub(crate) fn install() -> Result<(), String> {
    if std::env::var_os(VARIABLE).is_some() {
        return Err(format!("{VARIABLE} names no program"));
    }
    apt::unpack("prometheus", &place().ok_or("there is no home directory to keep it in")?)
}

/// Tests look for it in the same places.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        return named.is_file().then_some(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(place().map(|place| place.join("usr/bin")));
    places.map(|dir| dir.join("promtool")).find(|program| program.is_file())
}

fn place() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("bellwether").join("prometheus"))
}
