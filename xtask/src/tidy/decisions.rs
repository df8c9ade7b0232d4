//! Every decision in `docs/adr` has a status and a date, and is in the index.

use super::{Findings, Project};
use crate::tree::Tree;

const FOLDER: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";
/// The lines that each has to have.
const FIELDS: &[&str] = &["- Status: ", "- Date: "];

pub(super) fn check(project: &Project) -> Findings {
    Findings { failures: failures(&project.tree), notes: Vec::new() }
}

fn failures(tree: &Tree) -> Vec<String> {
    let index = tree.text(INDEX).unwrap_or_default();
    let mut failures = Vec::new();
    for file in &tree.files {
        let Some(name) = file.path.strip_prefix(FOLDER).filter(|_| file.path != INDEX) else { continue };
        for field in FIELDS {
            if !file.text.lines().any(|line| line.strip_prefix(field).is_some_and(|value| !value.is_empty()))
            {
                failures.push(format!("{}: has no line `{}…`", file.path, field));
            }
        }
        if !index.contains(&format!("({name})")) {
            failures.push(format!("{}: is not in {INDEX}", file.path));
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_has_status_and_date_and_is_in_the_index() {
        let index = (INDEX, "| [0001](0001-a.md) | accepted |");
        let good = ("docs/adr/0001-a.md", "# A\n\n- Status: accepted\n- Date: 2026-01-02\n");
        assert_eq!(failures(&Tree::of(&[index, good])), Vec::<String>::new());
        let bad = ("docs/adr/0002-b.md", "# B\n\n- Status: \n");
        assert_eq!(failures(&Tree::of(&[index, good, bad])).len(), 3);
    }
}
