//! Stores on file systems in trouble: full, or read-only.

use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};

/// Something mounted on a directory; gone when dropped.
pub struct Mount {
    at: PathBuf,
}

impl Mount {
    /// The directory once more, read-only. Who opens it by its path from now on cannot write.
    pub(crate) fn read_only(at: PathBuf) -> Mount {
        mount_bind(&at, &at).expect(NEEDS_ROOT);
        let mounted = Mount { at };
        mount_remount(&mounted.at, MountFlags::BIND | MountFlags::RDONLY, c"").expect(NEEDS_ROOT);
        mounted
    }

    /// An empty file system with room for little.
    pub fn small(at: PathBuf) -> Mount {
        Mount::tmpfs(at, c"size=64k")
    }

    /// An empty file system in memory, with these options.
    pub fn tmpfs(at: PathBuf, options: &CStr) -> Mount {
        mount("tmpfs", &at, "tmpfs", MountFlags::empty(), options).expect(NEEDS_ROOT);
        Mount { at }
    }

    /// From now on nobody can write to it.
    pub fn make_read_only(&self) {
        mount_remount(&self.at, MountFlags::RDONLY, c"").expect(NEEDS_ROOT);
    }

    /// Takes up all the room there is, until the file is removed that this names.
    pub fn fill(&self) -> PathBuf {
        let ballast = self.at.join("ballast");
        let mut file = File::create(&ballast).expect("room for a file");
        while file.write_all(&[0; 4096]).is_ok() {}
        ballast
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Ends it; returns the instant before.
    pub fn end(self) -> Boot {
        boot_now()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

const NEEDS_ROOT: &str = "mounting, which needs root";
