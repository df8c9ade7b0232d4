//! Where the built command is.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The `bellwether` command: the one named by `BELLWETHER_BIN`, else built now in the profile of this test.
pub fn bellwether() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // It would go on ignoring what the test ignores, as under `nohup`, and tests send it every signal.
        bellwether_deadman::process::stop_ignoring_signals();
        match std::env::var_os("BELLWETHER_BIN") {
            Some(named) => PathBuf::from(named),
            None => build(),
        }
    })
}

/// A program of this package, built with this test.
pub(crate) fn beside(name: &str) -> PathBuf {
    let path = directory().join(name);
    assert!(path.exists(), "{} is not built; `cargo build --package bellwether-tests` does", path.display());
    path
}

/// Where programs of the profile of this test are.
pub(crate) fn directory() -> PathBuf {
    let this = std::env::current_exe().expect("the path of this test");
    let directory = this.parent().expect("a directory");
    // target/PROFILE/deps/test-1234 or target/PROFILE/program → target/PROFILE
    let directory = if directory.ends_with("deps") { directory.parent() } else { Some(directory) };
    directory.expect("a target directory").to_owned()
}

fn build() -> PathBuf {
    let directory = directory();
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    // As for `cargo xtask`: what the cargo around this test says of its package must not count as a change to others.
    cargo.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_PKG_NAME");
    for part in ["MAJOR", "MINOR", "PATCH", "PRE"] {
        cargo.env_remove(format!("CARGO_PKG_VERSION_{part}"));
    }
    cargo.args(["build", "--quiet", "--package", "bellwether-cli", "--bin", "bellwether"]);
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "the bellwether command does not build");
    directory.join("bellwether")
}
