//! Installing what Debian has.

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
