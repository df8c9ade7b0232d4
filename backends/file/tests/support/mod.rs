//! What several tests of this crate need: a directory that goes away, and real child processes.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part")]

pub mod candidate;
pub mod mounts;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether_core::{Error, Incarnation};
use bellwether_file::{Numbered, Value, Version, Write};

pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("bellwether-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed when the test is over, whatever happened.
pub struct Process(pub Child);

impl Process {
    /// Runs the test `name` of this same test binary in another process, with `role` set for it.
    pub fn start(name: &str, role: &str) -> Process {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env("BELLWETHER_TEST_ROLE", role)
            .stdout(Stdio::piped())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Process(child)
    }

    /// Waits for the line that the child prints when it is where the test wants it.
    pub fn wait_for(&mut self, line: &str) {
        let output = BufReader::new(self.0.stdout.take().unwrap());
        let seen = output.lines().map_while(Result::ok).any(|said| said.ends_with(line));
        assert!(seen, "the child ended without saying {line}");
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

pub fn done(write: Result<Write, Error>) -> Version {
    match write.unwrap() {
        Write::Done(version) => version,
        other => panic!("{other:?}"),
    }
}

pub fn text(records: &Numbered) -> Option<String> {
    records.load().unwrap().map(|found| match found.value {
        Value::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    })
}

pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub fn incarnation(bits: u128) -> Incarnation {
    Incarnation::from_bits(bits)
}
