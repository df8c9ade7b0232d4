//! Stopping some threads of a process while its others run on: a runtime that is stuck.
//!
//! A debugger does it: nothing else stops one thread of a process from outside. It is a script, because the call is `unsafe` here.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Attaches to each thread of the process that has this name, interrupts it, says so, and waits. Whoever ends it lets them go on.
const DEBUGGER: &str = r#"
import ctypes, os, sys
SEIZE, INTERRUPT = 0x4206, 0x4207
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid, name = sys.argv[1], sys.argv[2]
stopped = set()
def stop():
    found = False
    for thread in os.listdir(f"/proc/{pid}/task"):
        if thread in stopped or open(f"/proc/{pid}/task/{thread}/comm").read().strip() != name:
            continue
        for what in (SEIZE, INTERRUPT):
            if libc.ptrace(what, int(thread), None, None):
                sys.exit(os.strerror(ctypes.get_errno()))
        os.waitpid(int(thread), WALL)
        stopped.add(thread)
        found = True
    return found
# Again, as long as there are new ones.
while stop():
    pass
print(len(stopped), flush=True)
sys.stdin.read()
"#;

/// Threads that do nothing until this is dropped.
pub struct StoppedThreads {
    debugger: Child,
    /// How many.
    pub count: usize,
}

impl StoppedThreads {
    /// Those of this name.
    #[track_caller]
    pub fn named(pid: u32, name: &str) -> StoppedThreads {
        let mut command = Command::new("python3");
        command.args(["-c", DEBUGGER, &pid.to_string(), name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut debugger = command.spawn().expect("python3 is installed");
        let mut line = String::new();
        let stdout = debugger.stdout.take().expect("a pipe");
        let _ = BufReader::new(stdout).read_line(&mut line);
        let count = line.trim().parse().unwrap_or_else(|_| panic!("the threads of {pid} cannot be stopped"));
        assert!(count > 0, "process {pid} has no thread {name}");
        StoppedThreads { debugger, count }
    }
}

impl Drop for StoppedThreads {
    fn drop(&mut self) {
        // The kernel detaches the threads of a debugger that is gone, and they go on.
        let _ = self.debugger.kill();
        let _ = self.debugger.wait();
    }
}
