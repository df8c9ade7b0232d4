//! `cargo xtask sim`: the simulator, optimised, with its arguments as they are.

use crate::metadata::Workspace;
use crate::{Problem, Verdict, process};

pub(crate) const PACKAGE: &str = "bellwether-sim";

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    workspace.package(PACKAGE)?;
    if args.is_empty() {
        return Err("say how many runs: `cargo xtask sim --seeds 500`; `--help` has the rest".to_owned());
    }
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["run", "--release", "--package", PACKAGE, "--bin", PACKAGE, "--"]).args(args);
    Ok(if process::run(&mut cargo)?.success() { Verdict::Good } else { Verdict::Bad })
}
