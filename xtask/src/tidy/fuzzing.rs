//! What is for fuzzing adds and changes nothing: the feature `fuzz` is in front of modules of that name alone, and only the programs that
//! cargo-fuzz builds can tell that it builds them.
//!
//! Else what is fuzzed would be another program than the one that people run. That every target has a program and a corpus is tested in
//! `fuzz`.

use super::{Findings, Project};
use crate::metadata::Package;
use crate::source::without_comments;
use crate::tree::{File, Tree};

const FEATURE: &str = "feature = \"fuzz\"";
const MODULE: &str = "mod fuzz;";
/// rustc's name for what cargo-fuzz builds, and who may ask for it.
const BUILDS: &str = "cfg(fuzzing)";
const PROGRAMS: &str = "fuzz/";
const PACKAGE: &str = "bellwether-fuzz";
/// This rule, and others that name what they forbid.
const RULES: &str = "xtask/";

pub(super) fn check(project: &Project) -> Findings {
    let mut failures = uses(&project.tree);
    failures.extend(unlisted(&project.tree, &project.workspace.packages));
    Findings { failures, notes: Vec::new() }
}

fn uses(tree: &Tree) -> Vec<String> {
    let files = tree.rust().filter(|file| !file.path.starts_with(RULES));
    files.flat_map(|file| changing(file).chain(asking(file)).collect::<Vec<_>>()).collect()
}

/// Uses of the feature that are not in front of a module of its name.
fn changing(file: &File) -> impl Iterator<Item = String> {
    let code = without_comments(&file.text);
    let lines: Vec<String> = code.lines().map(|line| line.trim().to_owned()).collect();
    let is_module = |at: usize| {
        let rest = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
        rest.is_some_and(|line| line.ends_with(MODULE))
    };
    let wrong: Vec<usize> =
        (0..lines.len()).filter(|&at| lines[at].contains(FEATURE) && !is_module(at)).collect();
    wrong.into_iter().map(|at| {
        format!("{}:{}: the feature fuzz adds modules called fuzz, and nothing else", file.path, at + 1)
    })
}

/// Code that can tell that it is built by cargo-fuzz.
fn asking(file: &File) -> impl Iterator<Item = String> {
    let asks = !file.path.starts_with(PROGRAMS) && without_comments(&file.text).contains(BUILDS);
    asks.then(|| format!("{}: only {PROGRAMS} may ask for {BUILDS}", file.path)).into_iter()
}

/// Packages with a module for fuzzing that `fuzz` does not use.
fn unlisted(tree: &Tree, packages: &[Package]) -> Vec<String> {
    let Some(fuzz) = packages.iter().find(|package| package.name == PACKAGE) else { return Vec::new() };
    // `cargo xtask fuzz` is a file of the same name.
    let ours = packages.iter().filter(|package| !package.dir.starts_with(RULES.trim_end_matches('/')));
    let has_targets = |package: &&Package| tree.text(&format!("{}/src/fuzz.rs", package.dir)).is_some();
    let is_used = |name: &str| fuzz.dependencies.iter().any(|used| used.name == name);
    let forgotten = ours.filter(has_targets).filter(|package| !is_used(&package.name));
    forgotten
        .map(|package| format!("{}/src/fuzz.rs: add its targets to fuzz/src/lib.rs", package.dir))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, DependencyKind};

    #[test]
    fn the_feature_adds_modules_and_nothing_can_tell_that_it_is_fuzzed() {
        let good = "#[cfg(feature = \"fuzz\")]\n#[doc(hidden)]\npub mod fuzz;\n// cfg(fuzzing)\n";
        let bad = "#[cfg(feature = \"fuzz\")]\nfn limit() {}\n#[cfg(fuzzing)]\nfn f() {}\n";
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", good),
            ("crates/a/src/b.rs", bad),
            ("fuzz/fuzz_targets/a.rs", "#[cfg(fuzzing)]\nfn f() {}"),
        ]);
        let failures = uses(&tree);
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures[0].starts_with("crates/a/src/b.rs:1: ") && failures[1].contains("cfg(fuzzing)"));
    }

    #[test]
    fn targets_that_nobody_lists_are_found() {
        let tree = Tree::of(&[("crates/a/src/fuzz.rs", ""), ("crates/b/src/fuzz.rs", "")]);
        let used = Dependency { name: "a".to_owned(), kind: DependencyKind::Normal };
        let fuzz = Package { dependencies: vec![used], ..Package::empty("fuzz", PACKAGE) };
        let packages = [Package::empty("crates/a", "a"), Package::empty("crates/b", "b"), fuzz];
        assert_eq!(unlisted(&tree, &packages), ["crates/b/src/fuzz.rs: add its targets to fuzz/src/lib.rs"]);
    }
}
