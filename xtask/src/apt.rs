//! Installing what Debian has, or taking it out of its package.

use std::path::Path;
use std::process::Command;

use crate::process;

/// With everything that apt prints shown.
pub(crate) fn install(package: &str) -> Result<(), String> {
    for args in [&["update"][..], &["install", "-y", "--no-install-recommends", package][..]] {
        let mut apt = Command::new("apt-get");
        apt.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        let status = process::run(&mut apt)?;
        if !status.success() {
            return Err(format!("apt-get {} failed ({status})", args[0]));
        }
    }
    Ok(())
}

/// Downloads a package and unpacks it into `place`, which has nothing else. Nothing is set up on the machine, so no service is
/// started, and root is not needed.
pub(crate) fn unpack(package: &str, place: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(place);
    std::fs::create_dir_all(place).map_err(|error| format!("cannot make {}: {error}", place.display()))?;
    let fetch = || succeed(Command::new("apt-get").args(["download", package]).current_dir(place));
    fetch().or_else(|_| succeed(Command::new("apt-get").arg("update")).and_then(|()| fetch()))?;
    let files = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    let archive = files.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "deb"));
    succeed(Command::new("dpkg").arg("-x").arg(archive.ok_or("apt-get downloaded no package")?).arg(place))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = process::run(command)?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed ({status})")) }
}
