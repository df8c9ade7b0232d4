//! File systems that a test can fill or make read-only.

use std::path::Path;
use std::process::Command;

use bellwether_support::Scratch;

/// A small file system of its own, gone with the test.
pub(crate) struct Mounted(Scratch);

impl Mounted {
    pub(crate) fn new() -> Mounted {
        let scratch = Scratch::new();
        mount(&["-t", "tmpfs", "-o", "size=64k", "bellwether-test"], scratch.path());
        Mounted(scratch)
    }

    /// The same files where they cannot be changed.
    pub(crate) fn read_only(&self) -> Mounted {
        let view = Scratch::new();
        mount(&["--bind", self.path().to_str().unwrap()], view.path());
        let view = Mounted(view);
        mount(&["-o", "remount,bind,ro"], view.path());
        view
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

pub(crate) fn mount(arguments: &[&str], at: &Path) {
    let status = Command::new("mount").args(arguments).arg(at).status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "this test mounts a small tmpfs and this machine does not permit it: run it as root, or in a container \
         with CAP_SYS_ADMIN ({status:?})"
    );
}
