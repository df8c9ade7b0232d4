//! The PostgreSQL server that tests start: where its programs are, and how to get them.
//!
//! A directory named by `BELLWETHER_TEST_POSTGRES` comes first, then the `PATH`, then Debian's place, which is on no `PATH`. The
//! tests look in the same order. Servers of other majors are in [`majors`].

pub(crate) mod majors;

use std::path::{Path, PathBuf};

use crate::{apt, process};

const PROGRAMS: [&str; 2] = ["initdb", "postgres"];

/// What the server says of its version, and where it is.
pub(crate) fn version() -> Option<String> {
    let dir = directory()?;
    let program = dir.join("postgres");
    let said = process::version(&[program.to_str()?, "--version"])?;
    Some(format!("{said} in {}", dir.display()))
}

/// By apt.
pub(crate) fn install() -> Result<(), String> {
    if std::env::var_os("BELLWETHER_TEST_POSTGRES").is_some() {
        return Err("BELLWETHER_TEST_POSTGRES names a directory without the server's programs".to_owned());
    }
    apt::install("postgresql")
}

fn directory() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("BELLWETHER_TEST_POSTGRES").map(PathBuf::from) {
        return has_all(&named).then_some(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = debian.map(|version| version.path().join("bin")).collect();
    // The newest first.
    debian.sort();
    debian.reverse();
    std::env::split_paths(&path).chain(debian).find(|dir| has_all(dir))
}

fn has_all(dir: &Path) -> bool {
    PROGRAMS.iter().all(|program| dir.join(program).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_the_server_is_not_taken_for_one() {
        assert!(!has_all(Path::new("/")));
    }
}
