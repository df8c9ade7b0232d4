//! Ends a group of processes and removes their directory once the test program is gone, however it ended.
//!
//! A shell of its own process group reads a pipe whose other end only the test program has. When that ends, killed or not, the
//! kernel closes the pipe and the shell does the rest. So a server that a `static` holds, which is never dropped, ends too.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Retried, since a process that is being killed may still finish what it is writing.
const SCRIPT: &str =
    r#"cat; kill -s KILL -- "-$0"; rm -rf "$1" || for try in 1 2 3; do sleep 1; rm -rf "$1" && break; done"#;

/// Held as long as the processes are needed.
#[derive(Debug)]
pub(in crate::servers) struct Ending {
    leader: Child,
    shell: Child,
}

impl Ending {
    /// Of the process group that `leader` leads, and of this directory.
    pub(in crate::servers) fn of_group(leader: Child, dir: &Path) -> Ending {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, &leader.id().to_string()]).arg(dir).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = shell.spawn().expect("there is a shell");
        Ending { leader, shell }
    }

    /// The group's number, for others to join it.
    pub(in crate::servers) fn group(&self) -> i32 {
        i32::try_from(self.leader.id()).expect("process numbers fit")
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
        // Not before: as long as nobody has waited for it, no other process gets its number.
        let _ = self.leader.wait();
    }
}
