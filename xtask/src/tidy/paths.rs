//! No path of anybody's machine: it would be wrong on every other one, and tells who wrote it where.

use super::{Findings, Project};
use crate::source::{is_word, line};

/// In two halves, so that this file passes its own rule.
const PLACES: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("C:\\Us", "ers\\"),
];

pub(super) fn check(project: &Project) -> Findings {
    let mut findings = Findings::default();
    for file in &project.tree.files {
        for (line, place) in places(&file.text) {
            let message = format!("{}:{line}: a path under {place}; use a relative one or `~`", file.path);
            findings.failures.push(message);
        }
    }
    findings
}

fn places(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for place in PLACES {
        for (at, _) in text.match_indices(place) {
            // The middle of a longer path, a URL's or a relative one's, is nobody's home.
            let within = |c: char| is_word(c) || matches!(c, '.' | '-' | '~' | '}' | '>');
            if !text[..at].chars().next_back().is_some_and(within) {
                found.push((line(text, at), *place));
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_found_and_the_middle_of_other_paths_is_not() {
        let [home, _, _, work, _] = PLACES else { panic!("five places") };
        let text = format!("see {home}ann/x\nhttps://example.org{home}page\n\"{work}x\" src{work}mod.rs");
        assert_eq!(places(&text), [(1, *home), (3, *work)]);
    }
}
