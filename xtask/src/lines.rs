//! `cargo xtask lines`: how much product code there is, crate by crate.
//!
//! A line counts if it has more than brackets on it and is published: under `crates/` or `backends/`, outside tests. It is a measure for
//! comparing two checkouts, so one and the same count is applied to both.

use crate::metadata::Workspace;
use crate::source::{bodies, code, line, without_comments};
use crate::tree::{File, Tree};
use crate::{Problem, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const TEST: &str = "#[cfg(test)]";
/// A line of these alone only ends what others began.
const BRACKETS: &str = "()[]{};, ";

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let tree = match args {
        [] => Tree::load(&Workspace::load()?.root)?,
        [dir] => Tree::load(Path::new(dir))?,
        [_, second, ..] => return Err(format!("`lines` takes one directory, not also `{second}`")),
    };
    let counts = count(&tree);
    if counts.is_empty() {
        return Err("there is no product code here: name the root of a checkout".to_owned());
    }
    for (name, lines) in &counts {
        println!("{name:20} {lines:>6}");
    }
    println!("{:20} {:>6}", "all", counts.values().sum::<usize>());
    Ok(Verdict::Good)
}

/// The lines of each crate, by its directory.
fn count(tree: &Tree) -> BTreeMap<String, usize> {
    let tests = test_modules(tree);
    let is_test = |file: &File| file.is_test() || tests.iter().any(|test| is_within(&file.path, test));
    let mut counts = BTreeMap::new();
    for file in tree.rust().filter(|file| !is_test(file)) {
        if let Some(name) = published(&file.path) {
            *counts.entry(name.to_owned()).or_default() += lines_of_code(&file.text);
        }
    }
    counts
}

/// `crates/core` for `crates/core/src/lib.rs`.
fn published(path: &str) -> Option<&str> {
    let (dir, rest) = path.split_once('/').filter(|(dir, _)| matches!(*dir, "crates" | "backends"))?;
    let (name, _) = rest.split_once('/')?;
    Some(&path[..dir.len() + 1 + name.len()])
}

/// Modules in files of their own that are compiled for tests only, each without `.rs`.
fn test_modules(tree: &Tree) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for file in tree.rust() {
        let code = code(&file.text);
        for body in bodies(&code, TEST) {
            let item = code[body].trim();
            let Some(name) = item.strip_suffix(';').and_then(|item| item.strip_prefix("mod ")) else {
                continue;
            };
            modules.insert(format!("{}/{}", folder(&file.path), name.trim()));
        }
    }
    modules
}

/// Where the modules of a file are.
fn folder(path: &str) -> &str {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    if matches!(name, "lib.rs" | "main.rs" | "mod.rs") { dir } else { path.trim_end_matches(".rs") }
}

fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn lines_of_code(text: &str) -> usize {
    let code = code(text);
    // From the line of the attribute to that of the closing brace.
    let tests: Vec<_> =
        bodies(&code, TEST).into_iter().map(|body| line(&code, body.start)..=line(&code, body.end)).collect();
    let counts = |number: usize, line: &str| {
        let says_something = !line.trim().chars().all(|c| BRACKETS.contains(c));
        says_something && !tests.iter().any(|test| test.contains(&number))
    };
    without_comments(text).lines().zip(1..).filter(|(line, number)| counts(*number, line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count_and_texts_do() {
        let text = "//! Doc.\n\nconst SQL: &str = \"\nSELECT 1 -- {\n\";\n/* no */\nfn f() {} // yes\n});\n\
                    #[cfg(test)]\nmod tests {\n    const A: &str = \"\n}\n\";\n}\nfn g() {}\n";
        assert_eq!(lines_of_code(text), 5);
        assert_eq!(
            lines_of_code("fn f() {\n    g(\n        1,\n    );\n}\n"),
            3,
            "brackets alone are no code"
        );
    }

    #[test]
    fn only_published_code_counts_and_modules_of_tests_do_not() {
        let tree = Tree::of(&[
            ("crates/core/src/lib.rs", "mod a;\n#[cfg(test)]\nmod stories;\n"),
            ("crates/core/src/a.rs", "fn f() {}\n#[cfg(test)]\nmod worlds;\n"),
            ("crates/core/src/a/worlds.rs", "fn test() {}\n"),
            ("crates/core/src/stories/first.rs", "fn test() {}\n"),
            ("crates/core/tests/all.rs", "fn test() {}\n"),
            ("backends/file/src/lib.rs", "fn f() {}\nfn g() {}\n"),
            ("sim/src/lib.rs", "fn f() {}\n"),
        ]);
        let counts: Vec<_> = count(&tree).into_iter().collect();
        assert_eq!(counts, [("backends/file".to_owned(), 2), ("crates/core".to_owned(), 2)]);
    }
}
