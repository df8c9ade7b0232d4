//! The project's files, read once.

use crate::Problem;
use std::fs;
use std::path::Path;

pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

/// A text file. What is not text is not looked at.
pub(crate) struct File {
    /// From the root, with `/`: `crates/core/src/lib.rs`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Hidden directories that are part of the project; others belong to editors and the like.
const HIDDEN_BUT_OURS: &[&str] = &[".cargo", ".ci", ".config", ".github"];
const NOT_OURS: &[&str] = &["target", "node_modules"];

impl Tree {
    pub(crate) fn load(root: &Path) -> Result<Tree, Problem> {
        let mut files = Vec::new();
        walk(root, "", &mut files).map_err(|error| format!("cannot read {}: {error}", root.display()))?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files })
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let file = |&(path, text): &(&str, &str)| File { path: path.to_owned(), text: text.to_owned() };
        Tree { files: files.iter().map(file).collect() }
    }
}

impl File {
    /// Whether the file is code for tests only, by its place.
    pub(crate) fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples" | "fuzz" | "fuzz.rs"))
    }
}

fn walk(dir: &Path, prefix: &str, files: &mut Vec<File>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        // Links are not followed: they could lead out of the project, or in a circle.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&name.as_str());
            if !hidden && !NOT_OURS.contains(&name.as_str()) {
                walk(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file()
            && name != ".git"
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            files.push(File { path, text });
        }
    }
    Ok(())
}
