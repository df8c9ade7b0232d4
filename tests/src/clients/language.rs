//! The languages that there are clients in, and how a program in each is made.
//!
//! Nothing is written into the checkout: what is compiled, and the compiler of TypeScript, which npm fetches, is beside the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::binary;

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python, 3.9 or later.
    Python,
    /// Go.
    Go,
    /// TypeScript, on Node.
    TypeScript,
}

/// What is compiled at a time.
static BUILDS: Mutex<()> = Mutex::new(());

impl Language {
    /// All of them.
    pub const ALL: [Language; 3] = [Language::Python, Language::Go, Language::TypeScript];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "Python",
            Language::Go => "Go",
            Language::TypeScript => "TypeScript",
        }
    }

    /// The witness: work that says when it begins, goes on and ends.
    pub fn witness(self, address: &str) -> Command {
        let mut command = match self {
            Language::Python => self.script(&tests().join("witness.py")),
            Language::Go => Command::new(self.go_program("witness", &tests().join("go"))),
            Language::TypeScript => self.script(&tests().join("witness.mjs")),
        };
        command.arg(address);
        command
    }

    /// A program that is not compiled, beside the client.
    pub fn script(self, file: &Path) -> Command {
        match self {
            Language::Python => {
                let mut python = Command::new("python3");
                // No files of its own beside the client.
                python.arg("-B").arg(file).env("PYTHONPATH", client("python"));
                python
            }
            Language::TypeScript => {
                let place = compiled_typescript();
                let beside = place.join(file.file_name().expect("a file"));
                copy_if_changed(file, &beside);
                let mut node = Command::new("node");
                node.arg(beside);
                node
            }
            Language::Go => panic!("Go is compiled"),
        }
    }

    /// A Go program, compiled from this module.
    pub fn go_program(self, name: &str, module: &Path) -> PathBuf {
        let _one = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
        let program = place("go").join(name);
        let mut go = Command::new("go");
        // Nothing but the standard library: nothing is fetched.
        go.args(["build", "-o"]).arg(&program).arg(".").current_dir(module);
        go.env("GOTOOLCHAIN", "local").env("GOPROXY", "off").env("GOFLAGS", "-mod=mod").env("GOWORK", "off");
        run(go, "Go 1.21 or later (https://go.dev/dl)");
        program
    }
}

/// Where the client of a language is.
pub(super) fn client(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients").join(language)
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// A directory for what is made.
fn place(name: &str) -> PathBuf {
    let place = binary::directory().join("clients").join(name);
    std::fs::create_dir_all(&place).expect("a target directory that can be written");
    place
}

/// The client in TypeScript, checked and compiled by the compiler that its lock file names.
fn compiled_typescript() -> PathBuf {
    let _one = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
    let (from, to) = (client("typescript"), place("typescript"));
    let is_new = ["package.json", "package-lock.json"]
        .map(|name| copy_if_changed(&from.join(name), &to.join(name)))
        .contains(&true);
    let compiler = to.join("node_modules/typescript/bin/tsc");
    if is_new || !compiler.exists() {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-fund", "--no-audit", "--ignore-scripts"]).current_dir(&to);
        run(npm, "Node 18 or later with npm (Debian: nodejs, npm)");
    }
    let changed = ["tsconfig.json", "bellwether.ts"]
        .map(|name| copy_if_changed(&from.join(name), &to.join(name)))
        .contains(&true);
    if changed || is_new || !to.join("dist/bellwether.js").exists() {
        let mut node = Command::new("node");
        node.arg(compiler).current_dir(&to);
        run(node, "Node 18 or later (Debian: nodejs)");
    }
    to
}

/// Whether it was another file, or none.
fn copy_if_changed(from: &Path, to: &Path) -> bool {
    let bytes = std::fs::read(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    let changed = std::fs::read(to).ok().as_ref() != Some(&bytes);
    if changed {
        std::fs::write(to, bytes).expect("a target directory that can be written");
    }
    changed
}

fn run(mut command: Command, needs: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; install {needs}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
