//! `cargo xtask sim`: the simulator, optimised, with its arguments as they are; and with bugs planted in it.

use crate::metadata::Workspace;
use crate::{Problem, Verdict, bugs, process};

pub(crate) const PACKAGE: &str = "bellwether-sim";

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    workspace.package(PACKAGE)?;
    if args.is_empty() {
        return Err("say how many runs: `cargo xtask sim --seeds 500`; `--help` has the rest".to_owned());
    }
    if args.iter().any(|arg| arg == "--bugs") {
        return bugs::all();
    }
    if let Some(at) = args.iter().position(|arg| arg == "--bug") {
        let name = args.get(at + 1).ok_or("--bug needs a name")?;
        return bugs::one(name, &[&args[..at], &args[at + 2..]].concat());
    }
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["run", "--release", "--package", PACKAGE, "--bin", PACKAGE, "--"]).args(args);
    Ok(if process::run(&mut cargo)?.success() { Verdict::Good } else { Verdict::Bad })
}
