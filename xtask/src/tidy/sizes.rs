//! Files are small enough to be read in one go.

use super::{Findings, Project};

const FAIL_ABOVE_LINES: usize = 700;
const NOTE_ABOVE_LINES: usize = 400;

pub(super) fn check(project: &Project) -> Findings {
    let mut findings = Findings::default();
    let mut sizes = Vec::new();
    for file in project.tree.rust() {
        let lines = file.text.lines().count();
        sizes.push(lines);
        if lines > FAIL_ABOVE_LINES {
            let message = format!("{}: {lines} lines, more than {FAIL_ABOVE_LINES}; split it", file.path);
            findings.failures.push(message);
        } else if lines > NOTE_ABOVE_LINES {
            findings.notes.push(format!("{}: {lines} lines", file.path));
        }
    }
    let median = median(&mut sizes);
    findings.notes.push(format!("{} files of Rust, median {median} lines", sizes.len()));
    findings
}

fn median(sizes: &mut [usize]) -> usize {
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Workspace;
    use crate::tree::Tree;

    #[test]
    fn long_files_are_noted_and_very_long_ones_fail() {
        let (short, long, very_long) = ("a\n".repeat(10), "a\n".repeat(401), "a\n".repeat(701));
        let tree = Tree::of(&[("a.rs", &short), ("b.rs", &long), ("c.rs", &very_long), ("d.md", &very_long)]);
        let workspace = Workspace { root: "".into(), packages: Vec::new() };
        let findings = check(&Project { workspace, tree });
        assert_eq!(findings.failures, ["c.rs: 701 lines, more than 700; split it"]);
        assert_eq!(findings.notes, ["b.rs: 401 lines", "3 files of Rust, median 401 lines"]);
    }
}
