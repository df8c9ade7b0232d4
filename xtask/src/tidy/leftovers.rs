//! Nothing is left half-done: no placeholder code, no test that is switched off, no note to come back.

use super::{Findings, Project};
use crate::source::{code, line, words};

/// In code. Spelled in two halves where the whole word would trip over itself.
const IN_CODE: &[&str] = &["todo!(", "unimplemented!(", "#[ignore"];
/// Anywhere, comments above all.
const ANYWHERE: &[&str] = &[concat!("FIX", "ME"), concat!("X", "XX")];

pub(super) fn check(project: &Project) -> Findings {
    let mut findings = Findings::default();
    for file in project.tree.rust() {
        for (line, word) in leftovers(&file.text) {
            findings.failures.push(format!("{}:{line}: `{word}` is left", file.path));
        }
    }
    findings
}

fn leftovers(text: &str) -> Vec<(usize, &'static str)> {
    let code = code(text);
    let in_code =
        IN_CODE.iter().flat_map(|word| code.match_indices(word).map(|(at, _)| (line(&code, at), *word)));
    let anywhere = ANYWHERE.iter().flat_map(|word| words(text, word).map(|at| (line(text, at), *word)));
    let mut found: Vec<_> = in_code.chain(anywhere).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_found_where_they_count() {
        let text = format!(
            "fn a() {{ todo!() }}\n// todo!() is fine here\n// {}: later\n#[ignore = \"slow\"]\nlet t = \"tmp-{}\";",
            concat!("FIX", "ME"),
            "X".repeat(6),
        );
        let expected = [(1, "todo!("), (3, concat!("FIX", "ME")), (4, "#[ignore")];
        assert_eq!(leftovers(&text), expected);
    }
}
