//! Tables in the documents are what the code prints.
//!
//! A Markdown file marks the place:
//!
//! ```text
//! <!-- generated: settings -->
//! whatever the producer called `settings` prints
//! <!-- end -->
//! ```
//!
//! Without `--write` a difference is a failure. Markers in a fenced block, as above, are only text.

use super::{Findings, Project};
use crate::Problem;
use crate::process::{cargo, read};
use crate::suggest::did_you_mean;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Something that prints a table: arguments for cargo.
struct Generator {
    name: &'static str,
    args: &'static [&'static str],
}

/// Every producer. One is added together with the first marker that names it.
const GENERATORS: &[Generator] = &[
    Generator { name: "exit-codes", args: &table("exit-codes") },
    Generator { name: "reasons", args: &table("reasons") },
    Generator { name: "error-kinds", args: &table("error-kinds") },
    Generator { name: "run-flags", args: &table("run-flags") },
    Generator { name: "node-flags", args: &table("node-flags") },
    Generator { name: "torture-flags", args: &table("torture-flags") },
    Generator { name: "faults", args: &table("faults") },
    Generator { name: "events", args: &table("events") },
    Generator { name: "schemes", args: &table("schemes") },
    Generator { name: "kill-sequence", args: &table("kill-sequence") },
    Generator { name: "metrics", args: &table("metrics") },
    Generator { name: "node-metrics", args: &table("node-metrics") },
];

/// The command prints the tables of what it does.
const fn table(name: &'static str) -> [&'static str; 9] {
    ["run", "--quiet", "--package", "bellwether-cli", "--bin", "bellwether", "--", "tables", name]
}

pub(super) fn check(project: &Project, write: bool) -> Findings {
    let mut findings = Findings::default();
    let mut printed = BTreeMap::new();
    let root = &project.workspace.root;
    for file in project.tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let new = splice(&file.text, |name| {
            // Each producer runs once, and only if some document wants it.
            if !printed.contains_key(name) {
                printed.insert(name.to_owned(), produce(root, name)?);
            }
            Ok(printed[name].clone())
        });
        match new {
            Err(problem) => findings.failures.push(format!("{}:{problem}", file.path)),
            Ok(new) if new == file.text => {}
            Ok(new) if write => match fs::write(root.join(&file.path), new) {
                Ok(()) => findings.notes.push(format!("{} rewritten", file.path)),
                Err(error) => findings.failures.push(format!("{}: {error}", file.path)),
            },
            Ok(_) => {
                let message = format!("{} has drifted: run `cargo xtask tidy --write`", file.path);
                findings.failures.push(message);
            }
        }
    }
    for generator in GENERATORS.iter().filter(|generator| !printed.contains_key(generator.name)) {
        findings.failures.push(format!("no document has the table `{}`", generator.name));
    }
    findings
}

fn produce(root: &Path, name: &str) -> Result<String, Problem> {
    let generator = GENERATORS.iter().find(|generator| generator.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, GENERATORS.iter().map(|generator| generator.name));
        format!("nothing prints a table `{name}`{hint}")
    })?;
    read(cargo(root).args(generator.args))
}

/// The text with what is between each pair of markers replaced by what `produce` gives for its name.
/// Problems start with the number of the line.
fn splice(text: &str, mut produce: impl FnMut(&str) -> Result<String, Problem>) -> Result<String, Problem> {
    let mut spliced = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').enumerate();
    let mut fenced = false;
    while let Some((index, line)) = lines.next() {
        spliced += line;
        fenced ^= line.trim_start().starts_with("```");
        let Some(name) = marker(line).filter(|_| !fenced) else { continue };
        let table = produce(name).map_err(|problem| format!("{}: {problem}", index + 1))?;
        spliced += table.trim_end();
        spliced += "\n";
        let end = lines.find(|(_, line)| line.trim() == "<!-- end -->");
        let (_, end) = end.ok_or_else(|| format!("{}: `{name}` has no `<!-- end -->`", index + 1))?;
        spliced += end;
    }
    Ok(spliced)
}

fn marker(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!-- generated: ")?.strip_suffix(" -->")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Result<String, Problem> {
        match name {
            "settings" => Ok("| a |\n".to_owned()),
            _ => Err(format!("nothing prints a table `{name}`")),
        }
    }

    #[test]
    fn what_is_between_the_markers_is_replaced_and_nothing_else() {
        let text = "x\n<!-- generated: settings -->\nold\nolder\n<!-- end -->\ny";
        let new = splice(text, table).unwrap();
        assert_eq!(new, "x\n<!-- generated: settings -->\n| a |\n<!-- end -->\ny");
        assert_eq!(splice(&new, table).unwrap(), new, "a current table stays as it is");
    }

    #[test]
    fn several_tables_and_empty_ones_are_filled() {
        let empty = "<!-- generated: settings -->\n<!-- end -->\n";
        let full = "<!-- generated: settings -->\n| a |\n<!-- end -->\n";
        assert_eq!(splice(&empty.repeat(2), table).unwrap(), full.repeat(2));
    }

    #[test]
    fn markers_that_do_not_work_out_are_named_with_their_line() {
        let unknown = splice("\n<!-- generated: colours -->\n<!-- end -->\n", table).unwrap_err();
        assert_eq!(unknown, "2: nothing prints a table `colours`");
        let open = splice("<!-- generated: settings -->\nrest of the page\n", table).unwrap_err();
        assert_eq!(open, "1: `settings` has no `<!-- end -->`");
    }

    #[test]
    fn a_fenced_marker_is_an_example() {
        let text = "```text\n<!-- generated: colours -->\n```\n";
        assert_eq!(splice(text, table).unwrap(), text);
    }
}
