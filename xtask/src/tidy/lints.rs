//! Every crate has the workspace's lints; `deadman`, which cannot, argues for each unsafe block.

use super::{Findings, Project};

const EXEMPT: &str = "bellwether-deadman";
/// What the exempt crate has to deny instead.
const INSTEAD: &[&str] = &["missing_docs", "unsafe_op_in_unsafe_fn", "undocumented_unsafe_blocks"];

pub(super) fn check(project: &Project) -> Findings {
    let mut findings = Findings::default();
    for package in &project.workspace.packages {
        let path = if package.dir.is_empty() {
            "Cargo.toml".to_owned()
        } else {
            format!("{}/Cargo.toml", package.dir)
        };
        let Some(manifest) = project.tree.text(&path) else {
            findings.failures.push(format!("{path} cannot be read"));
            continue;
        };
        if package.name != EXEMPT {
            if !inherits(manifest) {
                findings.failures.push(format!("{path}: add `[lints]` with `workspace = true`"));
            }
            continue;
        }
        for lint in INSTEAD {
            if !manifest.lines().any(|line| line.trim() == format!("{lint} = \"deny\"")) {
                findings.failures.push(format!("{path}: has to deny `{lint}`"));
            }
        }
    }
    findings
}

fn inherits(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let compact: String = line.split_whitespace().collect();
        (section == "[lints]" && compact == "workspace=true") || compact == "lints.workspace=true"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inheriting_is_told_from_not_inheriting() {
        assert!(inherits("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"));
        assert!(inherits("lints.workspace = true"));
        assert!(!inherits("[package]\nname = \"a\"\n"));
        assert!(!inherits("[lints]\n[dependencies]\nworkspace = true"));
    }
}
