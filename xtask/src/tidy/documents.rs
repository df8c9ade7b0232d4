//! Documents name what exists: links, files, and commands of `cargo xtask`.
//!
//! A document that sends its reader to a file that was renamed, or to a flag that is gone, is worse than none. Names of files are looked
//! for as the end of a path, so `watch.rs` is enough where the sentence says which crate is meant. The changelog tells of the past, so it
//! may name what is gone.

use super::{Findings, Project};
use crate::commands;
use crate::source::line;
use crate::test::step_names;
use crate::tree::{File, Tree};

const PAST: &str = "CHANGELOG.md";
const XTASK: &str = "cargo xtask ";
/// These hand arguments on to other programs, whose flags are not known here.
const PASS_ON: &[&str] = &["sim", "mutants", "bench"];

pub(super) fn check(project: &Project) -> Findings {
    let mut findings = Findings::default();
    let steps = step_names(&project.workspace);
    for file in &project.tree.files {
        let is_page = file.path.ends_with(".md");
        if is_page {
            findings.failures.extend(dead_links(file, &project.tree));
        }
        if is_page && file.path != PAST {
            findings.failures.extend(missing_files(file, &project.tree));
        }
        if is_page || file.path.ends_with(".yml") {
            findings.failures.extend(unknown_commands(file, &steps));
        }
    }
    findings
}

/// Links to files or headings that are not there.
fn dead_links(file: &File, tree: &Tree) -> Vec<String> {
    let mut failures = Vec::new();
    for (at, _) in file.text.match_indices("](") {
        let target = file.text[at + 2..].split([')', '\n']).next().unwrap_or_default();
        // The web is not asked, and rustdoc checks links to items by itself.
        if target.contains("://") || target.contains("::") {
            continue;
        }
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
        let is_folder = tree.files.iter().any(|other| other.path.starts_with(&format!("{path}/")));
        let found = match tree.text(&path) {
            Some(text) => heading.is_empty() || has_heading(text, heading),
            None => is_folder,
        };
        if !found {
            failures.push(format!(
                "{}:{}: links to {target}, which is not there",
                file.path,
                line(&file.text, at)
            ));
        }
    }
    failures
}

/// The path that a link in `from` leads to, from the root.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

fn has_heading(text: &str, anchor: &str) -> bool {
    text.lines().filter(|line| line.starts_with('#')).any(|line| slug(line.trim_start_matches('#')) == anchor)
}

/// How a heading is called in links.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Rust files that a page names and that no path ends with.
fn missing_files(file: &File, tree: &Tree) -> Vec<String> {
    let mut failures = Vec::new();
    for (number, text) in file.text.lines().zip(1..).map(|(text, number)| (number, text)) {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c)));
        for word in words.filter(|word| word.ends_with(".rs")) {
            let name = word.trim_start_matches("../");
            let exists = tree.rust().any(|other| {
                other.path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
            });
            if !exists {
                failures.push(format!("{}:{number}: names {word}, which is not there", file.path));
            }
        }
    }
    failures
}

/// Commands, flags and steps of `cargo xtask` that there are not.
fn unknown_commands(file: &File, steps: &[String]) -> Vec<String> {
    let mut failures = Vec::new();
    for (at, _) in file.text.match_indices(XTASK) {
        let said = file.text[at + XTASK.len()..].split(['`', '\n', '#', ')']).next().unwrap_or_default();
        let mut words = said.split_whitespace().map(|word| word.trim_end_matches([',', '.', ';', ':', '"']));
        let name = words.next().unwrap_or_default();
        let mut complain = |what: &str| {
            let line = line(&file.text, at);
            failures.push(format!("{}:{line}: `cargo xtask {}`: {what}", file.path, said.trim()));
        };
        let Some(help) = commands::describe(name) else {
            complain(&format!("there is no command `{name}`"));
            continue;
        };
        let words: Vec<&str> = words.collect();
        for flag in words.iter().filter(|word| word.starts_with("--") && !PASS_ON.contains(&name)) {
            if !help.contains(flag) {
                complain(&format!("`{name}` has no `{flag}`"));
            }
        }
        let only = words.iter().position(|word| *word == "--only").and_then(|at| words.get(at + 1));
        for step in only.iter().flat_map(|names| names.split(',')) {
            if !steps.iter().any(|name| name == step) {
                complain(&format!("there is no step `{step}`"));
            }
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::of(&[
            ("docs/a.md", "# A page, `really`\n"),
            ("backends/nats/src/watch.rs", ""),
            (".github/workflows/ci.yml", "run: cargo xtask test --only tidy\n"),
        ])
    }

    fn page(text: &str) -> File {
        File { path: "docs/b.md".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn links_lead_to_files_folders_and_headings() {
        let good = page(
            "[a](a.md) [b](#b) [c](../backends/nats) [d](a.md#a-page-really) [e](https://example.org/x) [f](crate::F)\n# B",
        );
        let tree = Tree { files: tree().files.into_iter().chain([page(&good.text)]).collect() };
        assert_eq!(dead_links(&good, &tree), Vec::<String>::new());
        for bad in ["[a](c.md)", "\n[a](a.md#b)", "[a](../a.md)"] {
            assert_eq!(dead_links(&page(bad), &tree).len(), 1, "{bad}");
        }
    }

    #[test]
    fn files_are_found_by_the_end_of_their_path() {
        let good = page("`watch.rs`, [it](../backends/nats/src/watch.rs) and src/watch.rs.");
        assert_eq!(missing_files(&good, &tree()), Vec::<String>::new());
        let bad = missing_files(&page("\n`atch.rs` and lib/watch.rs"), &tree());
        assert_eq!(bad.len(), 2, "{bad:?}");
        assert_eq!(bad[0], "docs/b.md:2: names atch.rs, which is not there");
    }

    #[test]
    fn commands_flags_and_steps_are_known() {
        let steps = ["tidy".to_owned(), "core".to_owned()];
        let good = page(
            "`cargo xtask test --only core,tidy` and `cargo xtask sim --seeds 5`, `cargo xtask tidy --write`.",
        );
        assert_eq!(unknown_commands(&good, &steps), Vec::<String>::new());
        for bad in ["cargo xtask tset", "`cargo xtask test --olny core`", "cargo xtask test --only cor"] {
            assert_eq!(unknown_commands(&page(bad), &steps).len(), 1, "{bad}");
        }
    }
}
