//! promtool, which checks alert rules and metrics, and the Prometheus that scrapes them: on the `PATH`, or taken out of Debian's package, whose
//! installation would start a server.

use std::path::PathBuf;

use crate::{apt, process};

/// A program of the package, and the variable that names another.
struct Program {
    name: &'static str,
    variable: &'static str,
}

const PROMTOOL: Program = Program { name: "promtool", variable: "BELLWETHER_TEST_PROMTOOL" };
const SERVER: Program = Program { name: "prometheus", variable: "BELLWETHER_TEST_PROMETHEUS" };

/// What promtool says of its version, and where it is.
pub(crate) fn promtool_version() -> Option<String> {
    PROMTOOL.version()
}

/// What Prometheus says of its version, and where it is.
pub(crate) fn server_version() -> Option<String> {
    SERVER.version()
}

/// Unpacks both into the user's cache.
pub(crate) fn install() -> Result<(), String> {
    for Program { variable, .. } in [PROMTOOL, SERVER] {
        if std::env::var_os(variable).is_some() {
            return Err(format!("{variable} names no program"));
        }
    }
    apt::unpack("prometheus", &place().ok_or("there is no home directory to keep it in")?)
}

impl Program {
    fn version(&self) -> Option<String> {
        let program = self.path()?;
        let said = process::version(&[program.to_str()?, "--version"])?;
        let version = said.split(" (").next().unwrap_or_default();
        Some(format!("{version} in {}", program.parent()?.display()))
    }

    /// Tests look for it in the same places.
    fn path(&self) -> Option<PathBuf> {
        if let Some(named) = std::env::var_os(self.variable).map(PathBuf::from) {
            return named.is_file().then_some(named);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).chain(place().map(|place| place.join("usr/bin")));
        places.map(|dir| dir.join(self.name)).find(|program| program.is_file())
    }
}

fn place() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("bellwether").join("prometheus"))
}
