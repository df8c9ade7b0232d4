//! The test programs: built in one go, run package by package.
//!
//! Built in one go because cargo chooses features for the whole set of packages that it is given; a build
//! per package would compile the same crates over and over with slightly different features. Run one by one
//! so that each package has its own time and count.

use super::steps::APART;
use super::tally::Tally;
use crate::Problem;
use crate::metadata::{Package, Target, Workspace};
use crate::process::{cargo, listen, say};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Default)]
pub(super) struct Binaries {
    root: PathBuf,
    programs: Vec<Program>,
    /// Whether everything that was asked for was built.
    pub(super) complete: bool,
}

/// A variable of the environment and its value.
pub(super) type Variable = (&'static str, PathBuf);

/// A program that cargo built.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// The directory of its package.
    dir: PathBuf,
    target: String,
    kind: String,
    is_test: bool,
    path: PathBuf,
}

impl Binaries {
    /// Builds the tests of these packages, or of all when none is named. What compiles is kept even if
    /// something else does not, so that one broken package does not hide the results of the others.
    pub(super) fn build(workspace: &Workspace, packages: &[&String]) -> Result<Binaries, Problem> {
        let mut cargo = cargo(&workspace.root);
        cargo.args(["test", "--no-run", "--no-fail-fast", "--all-features"]);
        cargo.arg("--message-format=json-render-diagnostics");
        if packages.is_empty() {
            cargo.arg("--workspace");
        }
        for package in packages {
            cargo.args(["--package", package]);
        }
        let mut programs = Vec::new();
        let status = listen(&mut cargo, |line| programs.extend(artifact(line)))?;
        Ok(Binaries { root: workspace.root.clone(), programs, complete: status.success() })
    }

    /// Runs every test program that the package should have, but for those that another step runs.
    pub(super) fn run(&self, package: &Package) -> Result<Tally, Problem> {
        let mut tally = Tally::default();
        let apart = |name: &str| APART.iter().any(|(of, program, _)| *of == package.name && *program == name);
        let here = |target: &&Target| target.tested && !(target.kind == "test" && apart(&target.name));
        for target in package.targets.iter().filter(here) {
            tally.add(self.run_target(package, (&target.kind, &target.name), &[], &[])?);
        }
        Ok(tally)
    }

    /// Runs one test program of the package, or only these tests of it, with these variables.
    pub(super) fn run_test(
        &self,
        package: &Package,
        name: &str,
        tests: &[&str],
        env: &[Variable],
    ) -> Result<Tally, Problem> {
        self.run_target(package, ("test", name), tests, env)
    }

    fn run_target(
        &self,
        package: &Package,
        (kind, name): (&str, &str),
        tests: &[&str],
        env: &[Variable],
    ) -> Result<Tally, Problem> {
        let dir = self.root.join(&package.dir);
        let built = |program: &&Program| {
            program.is_test && program.dir == dir && program.target == name && program.kind == kind
        };
        let Some(program) = self.programs.iter().find(built) else {
            say(&format!("{kind} `{name}` of {} did not build", package.name));
            return Ok(Tally::FAILED);
        };
        self.run_program(package, program, tests, env)
    }

    fn run_program(
        &self,
        package: &Package,
        program: &Program,
        tests: &[&str],
        env: &[Variable],
    ) -> Result<Tally, Problem> {
        say(&format!("-- {} {} `{}`", package.name, program.kind, program.target));
        let mut command = Command::new(&program.path);
        command.args(tests).envs(env.iter().map(|(name, value)| (name, value)));
        // What cargo would set; tests find their fixtures and the package's own commands by it.
        command.current_dir(&program.dir).env("CARGO_MANIFEST_DIR", &program.dir);
        command.env("CARGO_PKG_NAME", &package.name).env("CARGO_PKG_VERSION", &package.version);
        for other in &self.programs {
            if other.dir == program.dir && other.kind == "bin" && !other.is_test {
                command.env(format!("CARGO_BIN_EXE_{}", other.target), &other.path);
            }
        }
        let (mut tally, mut counted) = (Tally::default(), false);
        let status = listen(&mut command, |line| {
            say(line);
            counted |= tally.read(line);
        })?;
        if !status.success() {
            say(&format!("`{}` of {} ended with {status}", program.target, package.name));
        }
        if !tests.is_empty() && tally.passed + tally.failed < tests.len() as u64 {
            return Err(format!(
                "`{}` of {} has not all of the tests {tests:?}",
                program.target, package.name
            ));
        }
        // A program with a `main` of its own prints no counts: it is one test.
        Ok(if counted { tally.ended(status.success()) } else { Tally::of_success(status.success()) })
    }
}

/// The program that a line of cargo's JSON tells of, if it does.
fn artifact(line: &str) -> Option<Program> {
    let json: Value = serde_json::from_str(line).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(Program {
        path: PathBuf::from(json["executable"].as_str()?),
        dir: Path::new(json["manifest_path"].as_str()?).parent()?.to_owned(),
        target: text(&json["target"]["name"])?,
        kind: text(&json["target"]["kind"][0])?,
        is_test: json["profile"]["test"].as_bool()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_found_in_what_cargo_prints() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/core/Cargo.toml",
            "target":{"kind":["lib"],"name":"bellwether_core"},"profile":{"test":true},
            "executable":"/w/target/debug/deps/bellwether_core-1f"}"#;
        let expected = Program {
            dir: "/w/crates/core".into(),
            target: "bellwether_core".into(),
            kind: "lib".into(),
            is_test: true,
            path: "/w/target/debug/deps/bellwether_core-1f".into(),
        };
        assert_eq!(artifact(line), Some(expected));
    }

    #[test]
    fn libraries_and_chatter_are_not_programs() {
        assert_eq!(artifact("   Compiling something"), None);
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
        let library = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml",
            "target":{"kind":["lib"],"name":"a"},"profile":{"test":false},"executable":null}"#;
        assert_eq!(artifact(library), None);
    }
}
