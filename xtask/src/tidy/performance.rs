//! The page of figures and its plot are made of the figures beside them, and of nothing else.
//!
//! They are compared with what would be written now; no benchmark runs for that. A page before its first run is none.

use std::fs;

use super::{Findings, Project};
use crate::tree::Tree;
use crate::{Problem, bench};

pub(super) fn check(project: &Project, write: bool) -> Findings {
    let mut findings = Findings::default();
    let drifted = match drifted(&project.tree) {
        Ok(drifted) => drifted,
        Err(problem) => return Findings { failures: vec![problem], notes: Vec::new() },
    };
    for (path, text) in drifted {
        if !write {
            findings.failures.push(format!("{path} has drifted: run `cargo xtask tidy --write`"));
            continue;
        }
        match fs::write(project.workspace.root.join(path), text) {
            Ok(()) => findings.notes.push(format!("{path} rewritten")),
            Err(error) => findings.failures.push(format!("{path}: {error}")),
        }
    }
    findings
}

/// The files that are not what the figures make, with what they make.
fn drifted(tree: &Tree) -> Result<Vec<(&'static str, String)>, Problem> {
    let Some(figures) = tree.text(bench::FIGURES) else { return Ok(Vec::new()) };
    let made = bench::made_of(figures).map_err(|problem| format!("{}: {problem}", bench::FIGURES))?;
    Ok(made.into_iter().filter(|(path, text)| tree.text(path) != Some(text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &str = r#"{ "commands": [], "facts": [], "benchmarks": [], "left_out": ["nats"] }"#;

    #[test]
    fn a_page_that_was_edited_is_named() {
        let [page, plot] = bench::made_of(NOTHING).unwrap();
        let figures = (bench::FIGURES, NOTHING);
        let files = |text: &str| drifted(&Tree::of(&[figures, (page.0, text), (plot.0, &plot.1)])).unwrap();
        assert_eq!(files(&page.1), []);
        assert_eq!(files(&page.1.replace("nats", "raft")), [page]);
    }

    #[test]
    fn no_figures_ask_for_no_page_and_broken_ones_are_named() {
        assert_eq!(drifted(&Tree::of(&[])), Ok(Vec::new()));
        let problem = drifted(&Tree::of(&[(bench::FIGURES, "{}")])).unwrap_err();
        assert_eq!(problem, "docs/performance.json: a run has no `commands`");
    }
}
