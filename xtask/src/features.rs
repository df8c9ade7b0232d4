//! Every feature of every published crate builds alone, none builds, and all build together.
//!
//! Plain `cargo check`, and a warning counts as a failure: what one feature alone leaves unused is dead weight. Beside
//! each stands the number of crates that it compiles, so that a dependency that grows is seen.

use crate::Problem;
use crate::metadata::{Package, Workspace};
use crate::process::{Stopwatch, cargo, read, say};
use crate::terminal::{on_stdout, span};
use std::collections::BTreeSet;
use std::process::Stdio;

/// Checks all of it: how many builds are good, and how many are not.
pub(crate) fn check(workspace: &Workspace) -> Result<(u64, u64), Problem> {
    let (mut good, mut bad) = (0, 0);
    for package in workspace.packages.iter().filter(|package| package.published) {
        for features in choices(&package.features) {
            let watch = Stopwatch::start();
            let complaints = complaints(workspace, package, &features)?;
            let crates = crates(workspace, package, &features)?;
            let name = if features.is_empty() { "none" } else { &features };
            let line = format!("{:22} {name:24} crates {crates:>4} {:>12}", package.name, span(watch.took()));
            if complaints.is_empty() {
                good += 1;
                say(&line);
            } else {
                bad += 1;
                say(&on_stdout().bad(&line));
                say(&complaints);
            }
        }
    }
    Ok((good, bad))
}

/// What is built of a package with these features: none, each alone, all.
fn choices(features: &[String]) -> Vec<String> {
    let alone = features.iter().filter(|feature| *feature != "default").cloned();
    let mut choices: Vec<String> = std::iter::once(String::new()).chain(alone).collect();
    if choices.len() > 2 {
        choices.push(choices[1..].join(","));
    }
    choices
}

/// What the compiler says about it, which should be nothing.
fn complaints(workspace: &Workspace, package: &Package, features: &str) -> Result<String, Problem> {
    let mut check = cargo(&workspace.root);
    check.args(["check", "--quiet"]).args(build(package, features));
    let output =
        check.stdin(Stdio::null()).output().map_err(|error| format!("cannot start cargo: {error}"))?;
    let mut complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() && complaints.is_empty() {
        complaints = format!("cargo check ended with {}", output.status);
    }
    Ok(complaints)
}

/// How many crates are compiled for it, itself included.
fn crates(workspace: &Workspace, package: &Package, features: &str) -> Result<usize, Problem> {
    let mut tree = cargo(&workspace.root);
    tree.args(["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(build(package, features));
    let printed = read(&mut tree)?;
    let names = printed.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty());
    Ok(names.collect::<BTreeSet<_>>().len())
}

fn build<'a>(package: &'a Package, features: &'a str) -> [&'a str; 5] {
    ["--package", &package.name, "--no-default-features", "--features", features]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(features: &[&str]) -> Vec<String> {
        choices(&features.iter().map(|feature| (*feature).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn each_feature_is_built_alone_and_all_together() {
        assert_eq!(of(&[]), [""]);
        assert_eq!(of(&["default", "file", "nats"]), ["", "file", "nats", "file,nats"]);
        assert_eq!(of(&["plant"]), ["", "plant"], "one is all there is");
    }
}
