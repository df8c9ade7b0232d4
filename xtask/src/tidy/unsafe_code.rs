//! Only `deadman` is unsafe.
//!
//! The compiler forbids it too, crate by crate; this also sees code that the compiler was not asked to build
//! and crates that forgot to ask for the lints.

use super::{Findings, Project};
use crate::source::{code, line, words};

const ALLOWED: &str = "crates/deadman/";

pub(super) fn check(project: &Project) -> Findings {
    let mut findings = Findings::default();
    for file in project.tree.rust().filter(|file| !file.path.starts_with(ALLOWED)) {
        let code = code(&file.text);
        for at in words(&code, "unsafe") {
            let line = line(&code, at);
            findings.failures.push(format!("{}:{line}: unsafe code belongs in {ALLOWED}", file.path));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Workspace;
    use crate::tree::Tree;

    #[test]
    fn unsafe_code_is_found_outside_its_crate_and_the_word_in_comments_is_not() {
        let tree = Tree::of(&[
            ("crates/core/src/a.rs", "// unsafe\n#![forbid(unsafe_code)]\nfn f() { unsafe { g() } }"),
            ("crates/deadman/src/lib.rs", "fn f() { unsafe { g() } }"),
        ]);
        let workspace = Workspace { root: "".into(), packages: Vec::new() };
        let findings = check(&Project { workspace, tree });
        assert_eq!(findings.failures, ["crates/core/src/a.rs:3: unsafe code belongs in crates/deadman/"]);
    }
}
