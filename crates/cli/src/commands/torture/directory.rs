//! The directory of a run: the user's, or a temporary one that nobody else can read.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use bellwether_torture::Places;

use crate::exit::{Exit, Failure};

/// Where the files of a run are.
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    /// This directory, which must be empty or not there yet, or a temporary one of that name.
    pub(super) fn make(asked: Option<&Path>, name: &str) -> Result<Directory, Failure> {
        let root = match asked {
            Some(asked) => std::path::absolute(asked).map_err(|error| unusable(asked, &error))?,
            None => std::env::temp_dir().join(format!("bellwether-{name}")),
        };
        // URLs, event lines and logs may tell what is nobody else's business.
        let made = DirBuilder::new().mode(0o700).recursive(asked.is_some()).create(&root);
        made.map_err(|error| unusable(&root, &error))?;
        let mut entries = fs::read_dir(&root).map_err(|error| unusable(&root, &error))?;
        if entries.next().is_some() {
            let sentence = format!("{} is not empty: give another directory with --dir", root.display());
            return Err(Failure::new(Exit::Usage, sentence));
        }
        Ok(Directory { root })
    }

    /// That it cannot be used.
    pub(super) fn unusable(&self, error: &io::Error) -> Failure {
        unusable(&self.root, error)
    }

    /// What is made in it first.
    pub(super) fn places(&mut self) -> Result<Places, Failure> {
        Places::make(&self.root).map_err(|error| unusable(&self.root, &error))
    }

    /// Removes it, unless it is asked for or something is wrong; where it is, if it is kept.
    pub(super) fn end(&self, is_clean: bool, is_asked_for: bool) -> Option<&Path> {
        let is_removed = is_clean && !is_asked_for && fs::remove_dir_all(&self.root).is_ok();
        (!is_removed).then_some(&*self.root)
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("the directory {} cannot be used: {error}", path.display()))
}
