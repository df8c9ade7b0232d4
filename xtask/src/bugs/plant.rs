//! Planting: a copy of the project in which every `good` of the tables has become `if planted("Name") { bad } else { good }`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use super::{Change, TABLES, VARIABLE};
use crate::Problem;
use crate::tree::Tree;

const CORE: &str = "crates/core/";

/// The files that differ in the copy. Else, what is wrong with the tables.
pub(super) fn all(tree: &Tree) -> Result<BTreeMap<&'static str, String>, Vec<String>> {
    let (mut places, mut problems) = (BTreeMap::<_, Vec<Place>>::new(), Vec::new());
    for (_, table, bugs) in TABLES {
        for bug in bugs {
            for change in bug.changes {
                let text = tree.text(change.file).unwrap_or_default();
                match find(text, change.good).as_slice() {
                    [range] => places.entry(change.file).or_default().push(Place {
                        range: range.clone(),
                        bug: bug.name,
                        change,
                    }),
                    found => problems.push(format!(
                        "{table}: the `good` of {} occurs {} times in {}, not once: bring it up to date: {}",
                        bug.name,
                        found.len(),
                        change.file,
                        change.good
                    )),
                }
            }
        }
    }
    let mut planted = BTreeMap::new();
    for (file, mut places) in places {
        places.sort_by_key(|place| (place.range.start, place.range.end));
        for pair in places.windows(2) {
            if pair[0].range != pair[1].range && pair[1].range.start < pair[0].range.end {
                problems.push(format!(
                    "{file}: {} and {} overlap; change the `good` of one",
                    pair[0].bug, pair[1].bug
                ));
            }
        }
        planted.insert(file, replaced(tree.text(file).unwrap_or_default(), file, &places));
    }
    if problems.is_empty() { Ok(planted) } else { Err(problems) }
}

/// Writes the copy. A file that is the same already is left alone, so that cargo builds nothing anew for its sake.
pub(super) fn copy(root: &Path, copy: &Path) -> Result<(), Problem> {
    let tree = Tree::load(root)?;
    let planted = all(&tree).map_err(|problems| problems.join("\n"))?;
    let trouble = |path: &Path, error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(copy).map_err(|error| trouble(copy, error))?;
    for old in Tree::load(copy)?.files.iter().filter(|old| tree.text(&old.path).is_none()) {
        let path = copy.join(&old.path);
        fs::remove_file(&path).map_err(|error| trouble(&path, error))?;
    }
    for file in &tree.files {
        let mut text = planted.get(file.path.as_str()).unwrap_or(&file.text).clone();
        match file.path.as_str() {
            "Cargo.toml" => text = text.replace("[workspace.lints.rust]", LINTS),
            "crates/core/src/lib.rs" => text += &switch(),
            _ => {}
        }
        let path = copy.join(&file.path);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        let written = fs::create_dir_all(path.parent().unwrap_or(copy)).and_then(|()| fs::write(&path, text));
        written.map_err(|error| trouble(&path, error))?;
    }
    Ok(())
}

/// Nobody reads the copy, so nobody minds its parentheses.
const LINTS: &str = "[workspace.lints.rust]\nunused = { level = \"allow\", priority = -1 }";

fn switch() -> String {
    format!(
        r#"
/// Whether this bug is awake.
pub fn planted(bug: &str) -> bool {{
    static AWAKE: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| std::env::var("{VARIABLE}").ok());
    AWAKE.as_deref() == Some(bug)
}}
"#
    )
}

/// Where a change goes.
struct Place {
    range: Range<usize>,
    bug: &'static str,
    change: &'static Change,
}

/// The text with all of these changes in it. They are in order; several at one place are bugs of the same code.
fn replaced(text: &str, file: &str, places: &[Place]) -> String {
    let (mut new, mut from) = (String::new(), 0);
    let planted = if file.starts_with(CORE) { "crate::planted" } else { "bellwether_core::planted" };
    for same in places.chunk_by(|one, other| one.range == other.range) {
        let range = same[0].range.clone();
        let good = &text[range.clone()];
        let bad = same
            .iter()
            .map(|place| format!("if {planted}({:?}) {{ {} }} else ", place.bug, place.change.bad));
        let choice = format!("{}{{ {good} }}", bad.collect::<String>());
        new += &text[from..range.start];
        new += &if good.ends_with([';', '}']) { choice } else { format!("({choice})") };
        from = range.end;
    }
    new + &text[from..]
}

/// Every place of the fragment in the text, whatever blanks are in either.
fn find(text: &str, fragment: &str) -> Vec<Range<usize>> {
    let solid = |text: &str| -> Vec<(usize, char)> {
        text.char_indices().filter(|(_, c)| !c.is_whitespace()).collect()
    };
    let fragment: Vec<char> = fragment.chars().filter(|c| !c.is_whitespace()).collect();
    let wanted: Vec<char> = fragment.iter().copied().filter(|c| !"«»".contains(*c)).collect();
    // The closing mark comes after the opening one, which is not in the text.
    let first = fragment.iter().position(|c| *c == '«').unwrap_or(0);
    let last = fragment.iter().position(|c| *c == '»').map_or(wanted.len(), |at| at - 1);
    let text = solid(text);
    let windows = text.windows(wanted.len().max(1));
    let found = windows.filter(|window| window.iter().map(|(_, c)| c).eq(&wanted));
    found.map(|window| window[first].0..window[last - 1].0 + window[last - 1].1.len_utf8()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_found_however_it_is_laid_out() {
        let text = "let a = b\n    .min(c);\nlet d = b.min(c);";
        assert_eq!(&text[find(text, "let a = b.min(c);")[0].clone()], "let a = b\n    .min(c);");
        assert_eq!(find(text, "b.min(c)").len(), 2);
        assert_eq!(&text[find(text, "d = «b.min(c)»")[0].clone()], "b.min(c)");
        assert!(find(text, "b.max(c)").is_empty());
    }

    #[test]
    fn bugs_of_the_same_code_become_one_choice() {
        let change = |bad| -> &'static Change { Box::leak(Box::new(Change { file: "f", good: "b", bad })) };
        let place = |bug, bad| Place { range: 8..9, bug, change: change(bad) };
        let text = replaced("let a = b;", "sim/src/f.rs", &[place("One", "1"), place("Two", "2")]);
        assert_eq!(
            text,
            "let a = (if bellwether_core::planted(\"One\") { 1 } else if bellwether_core::planted(\"Two\") { 2 } else { b });"
        );
    }

    #[test]
    fn code_that_is_gone_is_reported_with_the_entry_to_change() {
        let problems = all(&Tree::of(&[])).unwrap_err();
        assert!(problems[0].contains("anywhere.rs") && problems[0].contains("0 times"), "{}", problems[0]);
    }
}
