//! Real child processes: a test started again in another role.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub struct Process(pub Child);

impl Process {
    /// Runs the test `name` of this same test binary in another process, with `role` set for it.
    pub fn start(name: &str, role: &str) -> Process {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env("BELLWETHER_TEST_ROLE", role)
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    /// Waits for a line that ends with this, and returns what stood before it.
    pub fn wait_for(&mut self, line: &str) -> String {
        let output = BufReader::new(self.0.stdout.take().unwrap());
        let said = output.lines().map_while(Result::ok).find(|said| said.contains(line));
        said.unwrap_or_else(|| panic!("the child ended without saying {line}"))
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What this process was started for, if it is a child.
pub fn role() -> Option<String> {
    std::env::var("BELLWETHER_TEST_ROLE").ok()
}
