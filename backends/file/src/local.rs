//! Whether kernel locks in a directory can prove a death.
//!
//! Owns the boot id, and the list of file systems on which `flock(2)` is kept by this machine's kernel, for all who can open the file, until
//! the last copy of the descriptor closes. Everything that is not on the list is not trusted: on a network file
//! system a lock may be local to one client, or be dropped by a server that restarts while its owner lives, and then a
//! living leader would look dead. A list of the network ones instead would trust the next one that appears.

use std::path::Path;

use bellwether_core::StoreError;

use crate::directory::Directory;
use crate::errors::meaning;

/// Magic numbers from `statfs(2)`.
#[cfg(target_os = "linux")]
const LOCAL: [(u64, &str); 12] = [
    (0xef53, "ext"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x3153_464a, "jfs"),
    (0x5265_4973, "reiserfs"),
    (0x3434, "nilfs"),
];

/// The name of the file system, where it is one that is trusted.
#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_cast, reason = "the type of this field differs between platforms")]
pub(crate) fn trusted(dir: &Directory) -> rustix::io::Result<Option<&'static str>> {
    // The field is a signed word on some platforms; only its low 32 bits are the number.
    let magic = rustix::fs::fstatfs(dir.fd())?.f_type as u64 & 0xffff_ffff;
    Ok(LOCAL.iter().find(|(local, _)| *local == magic).map(|(_, name)| *name))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn trusted(_: &Directory) -> rustix::io::Result<Option<&'static str>> {
    Ok(None)
}

/// False also when nothing is known about the file system.
pub fn is_local(dir: &Path) -> Result<bool, StoreError> {
    let failed = |errno| meaning("look at", dir, errno);
    let dir = Directory::open(dir).map_err(failed)?;
    directory_is_local(&dir).map_err(failed)
}

/// Which start of which machine this is; `None` where the kernel does not tell. Containers share their host's.
pub fn boot_id() -> Option<String> {
    bellwether_deadman::boot_id().map(str::to_owned)
}

pub(crate) fn directory_is_local(dir: &Directory) -> rustix::io::Result<bool> {
    Ok(trusted(dir)?.is_some())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_trusted_and_a_kernel_interface_is_not() {
        assert!(is_local(&std::env::temp_dir()).unwrap());
        assert!(!is_local(Path::new("/proc")).unwrap());
    }
}
