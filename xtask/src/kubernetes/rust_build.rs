//! Builds a program of a Rust workspace of its own, beside the project's: it has its own versions of what the project uses too.

use std::path::Path;

use super::programs::Program;
use crate::Problem;
use crate::metadata::Workspace;
use crate::process::{cargo, run};

/// All of them share what they compile; from the root of the project.
const TARGET: &str = "target/peers";

pub(crate) fn build(program: &Program) -> Result<(), Problem> {
    let place = program.place().ok_or("there is no home directory to keep it in")?;
    let root = Workspace::load()?.root;
    let target = root.join(TARGET);
    // Not in the module's own directory: the settings of the project's `.cargo` count there too.
    let mut command = cargo(&root);
    command.args(["build", "--release", "--locked", "--package", program.name, "--manifest-path"]);
    command.arg(Path::new(program.module).join("Cargo.toml")).arg("--target-dir").arg(&target);
    if !run(&mut command)?.success() {
        return Err(format!("{} does not build", program.name));
    }
    let keep = || {
        std::fs::create_dir_all(place.parent().unwrap_or(&place))?;
        // Beside its place and then moved there: an interrupted copy leaves nothing that looks whole.
        let unfinished = place.with_extension(std::process::id().to_string());
        std::fs::copy(target.join("release").join(program.name), &unfinished)?;
        std::fs::rename(&unfinished, &place)
    };
    keep().map_err(|error: std::io::Error| format!("cannot keep it at {}: {error}", place.display()))
}
